//! `fairness`: the File Channel Fairness Scheme, Sec. III-C.1. A read of a file takes as long as the channel that holds most of
//! it, so each page goes to the channel that holds least. Requests of whole rounds (k x 8 pages on 8 channels) go in turn.
//! Among channels with equally many pages of the file, the one to which the fewest pages were issued is taken.

use super::{Entry, Scheme, View};

pub(super) const ENTRY: Entry = Entry {
    name: "fairness",
    about: "the channel that holds the fewest pages of the file; whole rounds of channels in turn",
    keys: &[],
    build: || Box::new(Fairness),
};

struct Fairness;

impl Scheme for Fairness {
    fn choose(&self, view: &View<'_>) -> u32 {
        if view.is_whole_rounds() { view.turn } else { view.lowest(|channel| view.held(channel)) }
    }
}
