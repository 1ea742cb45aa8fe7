//! `rr`: channels in turn, in order of arrival: the baseline of the paper, and the allocation of an FTL without file information.

use super::{Scheme, SchemeEntry, View};

pub(super) const ENTRY: SchemeEntry = SchemeEntry {
    name: "rr",
    about: "channels in turn, in order of arrival",
    keys: &[],
    build: || Box::new(RoundRobin),
};

struct RoundRobin;

impl Scheme for RoundRobin {
    fn choose(&self, view: &View<'_>) -> u32 {
        view.turn
    }
}
