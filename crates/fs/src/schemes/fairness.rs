//! `fairness`: the File Channel Fairness Scheme, Sec. III-C.1. The channel that holds most pages of a file bounds its
//! read time, so each page goes to the channel that holds fewest. Requests of whole rounds (k x 8 pages on 8 channels)
//! go in turn. Ties go to the channel with the fewest outstanding pages, then the fewest issued ones, because the paper
//! counts issued pages to find channels "that are not so busy".

use super::{IN_TURN, Scheme};

pub(super) const ENTRY: Scheme = Scheme {
    name: "fairness",
    about: "the channel that holds the fewest pages of the file; whole rounds of channels in turn",
    choose: |view| {
        if view.is_whole_rounds() { view.turn } else { view.lowest(|channel| view.held(channel)) }
    },
    ..IN_TURN
};
