//! `least-work`, beyond the paper: each page goes to the channel that is idle soonest. `read-busy` checks only whether
//! a channel reads. Under load all do, and a request goes to the few that do not. This scheme estimates the busy time
//! of each channel, with reads, programs and the pages of the request.
//!
//! Pages of the file that a channel holds beyond the channel with fewest count as the time that they add to a read as
//! large as this write: their share in the file, times the time of a read. `fairness` uses nothing else, and so ignores
//! idle channels.
//!
//! Unlike `depth` this scheme never groups consecutive pages on one channel to save DRAM permission exchanges: a later
//! read of them would be serial.

use super::{IN_TURN, Scheme, View};
use palimpsest_flash::units::Nanos;

pub(super) const ENTRY: Scheme = Scheme {
    name: "least-work",
    about: "the channel that is idle soonest, the balance of the file counted as time",
    choose,
    ..IN_TURN
};

fn choose(view: &View<'_>) -> u32 {
    let fewest = view.file.iter().min().copied().unwrap_or(0);
    let total = view.file.iter().map(|&pages| Nanos::from(pages)).sum::<Nanos>().max(1);
    view.lowest(|channel| {
        let beyond = Nanos::from(view.file[channel] - fewest);
        let unfair = beyond * view.read_time * Nanos::from(view.pages).min(total) / total;
        (view.work[channel] + unfair, view.issued[channel])
    })
}
