//! `least-work`, which is ours and goes beyond the paper: each page goes to the channel that is done soonest with what waits
//! there. `read-busy` asks whether a channel reads, which under load all do; this asks for how long it will be busy, with
//! reads, programs and the pages of the request itself. The pages that the channel holds of the file beyond those of the
//! emptiest channel count as the time that reading them together would take more, which is what `fairness` saves. Large
//! requests go several pages to a channel, as with `depth`.

use super::{Entry, Scheme, View, depth};
use crate::units::Nanos;

pub(super) const ENTRY: Entry = Entry {
    name: "least-work",
    about: "the channel that is done soonest, reads and the balance of the file counted; depth for large requests",
    build: || Box::new(LeastWork),
};

struct LeastWork;

impl Scheme for LeastWork {
    fn depth(&self, pages: u32, channels: u32) -> u32 {
        depth::depth(pages, channels)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        let fewest = view.file.iter().min().copied().unwrap_or(0);
        let cost = |channel: u32| {
            let beyond = Nanos::from(view.file[channel as usize] - fewest);
            (view.work[channel as usize] + beyond * view.read_time, view.issued[channel as usize])
        };
        view.in_turn().min_by_key(|&channel| cost(channel)).unwrap_or(view.turn)
    }
}
