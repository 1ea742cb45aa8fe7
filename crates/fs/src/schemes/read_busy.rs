//! `read-busy`: the Read Busy Scheme, Sec. III-C.2. A write behind a read waits for it to end, as only operations of one type
//! pipeline: channels with reads under way are skipped while another is free.
//!
//! "Fewer writes to the channel that is occupied with reads", says the paper, not how many fewer. A channel that has a page of the
//! request already is not free: a request reaches as many channels as in turn, those without reads first. (All its pages on the
//! few channels without reads would wait for each other, which costs more than the reads do.)

use super::{Entry, Scheme, View};

pub(super) const ENTRY: Entry = Entry {
    name: "read-busy",
    about: "channels in turn, those with reads under way skipped while another is free",
    keys: &[],
    build: || Box::new(ReadBusy),
};

struct ReadBusy;

impl Scheme for ReadBusy {
    fn choose(&self, view: &View<'_>) -> u32 {
        view.lowest(|channel| view.busy(channel))
    }
}
