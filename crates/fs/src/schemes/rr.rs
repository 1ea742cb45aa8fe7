//! `rr`: channels in turn, in order of arrival. What the paper compares with, and what an FTL without hints does.

use super::{Entry, Scheme, View};

pub(super) const ENTRY: Entry =
    Entry { name: "rr", about: "channels in turn, in order of arrival", keys: &[], build: || Box::new(RoundRobin) };

struct RoundRobin;

impl Scheme for RoundRobin {
    fn choose(&self, view: &View<'_>) -> u32 {
        view.turn
    }
}
