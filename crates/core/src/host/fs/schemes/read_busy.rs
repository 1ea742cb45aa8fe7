//! `read-busy`: the Read Busy Scheme, Sec. III-C.2. A write behind a read waits for it to end, as only operations of one type
//! pipeline: channels with reads under way are skipped while another has none.

use super::{Entry, Scheme, View};

pub(super) const ENTRY: Entry = Entry {
    name: "read-busy",
    about: "channels in turn, those with reads under way skipped while another has none",
    build: || Box::new(ReadBusy),
};

struct ReadBusy;

impl Scheme for ReadBusy {
    fn choose(&self, view: &View<'_>) -> u32 {
        view.next_quiet()
    }
}
