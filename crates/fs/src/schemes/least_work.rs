//! `least-work`, which is ours and goes beyond the paper: each page goes to the channel that is done soonest with what waits
//! there. `read-busy` asks whether a channel reads, which under load all do, and gives all pages of a request to the few that
//! do not; this asks for how long each will be busy, with reads, programs and the pages of the request itself.
//!
//! The pages that a channel holds of the file beyond those of the emptiest channel count as what they would add to a read as
//! large as this write: their share in the file, times the time of a read. `fairness` looks at nothing else, and so lets the
//! file decide where idle channels should.
//!
//! Consecutive pages are never put on one channel for the sake of fewer hand-overs, as `depth` does: a later read of them
//! would have to wait for them one after the other.

use super::{Entry, Scheme, View};
use palimpsest_flash::units::Nanos;

pub(super) const ENTRY: Entry = Entry {
    name: "least-work",
    about: "the channel that is done soonest with what waits there, the balance of the file counted as time",
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
