//! `least-work`, beyond the paper: each page goes to the channel that is idle soonest. `read-busy` checks only whether a channel
//! reads, which under load all do, and places a request on the few that do not; this estimates how long each is busy, with
//! reads, programs and the pages of the request itself.
//!
//! Pages of the file that a channel holds beyond those of the channel with fewest count as the time that they add to a read as
//! large as this write: their share in the file, times the time of a read. `fairness` uses nothing else, and so ignores idle
//! channels.
//!
//! Unlike `depth` it never groups consecutive pages on one channel to save DRAM permission exchanges: a later read of them
//! would be serial.

use super::{Scheme, SchemeEntry, View};
use palimpsest_flash::units::Nanos;

pub(super) const ENTRY: SchemeEntry = SchemeEntry {
    name: "least-work",
    about: "the channel that is idle soonest, the balance of the file counted as time",
    keys: &[],
    build: || Box::new(LeastWork),
};

struct LeastWork;

impl Scheme for LeastWork {
    fn choose(&self, view: &View<'_>) -> u32 {
        let fewest = view.file.iter().min().copied().unwrap_or(0);
        let total = view.file.iter().map(|&pages| Nanos::from(pages)).sum::<Nanos>().max(1);
        let cost = |channel: u32| {
            let beyond = Nanos::from(view.file[channel as usize] - fewest);
            let unfair = beyond * view.read_time * Nanos::from(view.pages).min(total) / total;
            (view.work[channel as usize] + unfair, view.issued[channel as usize])
        };
        view.in_turn().min_by_key(|&channel| cost(channel)).unwrap_or(view.turn)
    }
}
