//! `hybrid`: fairness among the channels without reads, with dynamic depth. Co-design paper, Sec. IV.

use super::{Entry, Scheme, View, depth};

pub(super) const ENTRY: Entry =
    Entry { name: "hybrid", about: "fairness, read-busy and depth together", build: || Box::new(Hybrid) };

struct Hybrid;

impl Scheme for Hybrid {
    fn depth(&self, pages: u32, channels: u32) -> u32 {
        depth::depth(pages, channels)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        match view.is_whole_rounds() {
            true => view.next_quiet(),
            false => view.fewest_of_file(|channel| view.is_quiet(channel)),
        }
    }
}
