//! `fairness`: the File Channel Fairness Scheme, Sec. III-C.1. The channel that holds most pages of a file bounds its read time,
//! so each page goes to the channel that holds fewest. Requests of whole rounds (k x 8 pages on 8 channels) go in turn. Ties
//! go to the channel with the fewest outstanding pages, then the fewest issued ones: the paper's counter of issued pages is there
//! to find channels "that are not so busy".

use super::{Scheme, SchemeEntry, View};

pub(super) const ENTRY: SchemeEntry = SchemeEntry {
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
