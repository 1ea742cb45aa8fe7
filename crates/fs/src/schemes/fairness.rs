//! `fairness`: the File Channel Fairness Scheme, Sec. III-C.1. The channel that holds most pages of a file bounds its
//! read time, so each page goes to the channel that holds fewest. Requests of whole rounds (k x 8 pages on 8 channels)
//! go in turn. The paper counts the pages issued to each channel to find those "that are not so busy" for ties. Issued
//! pages do not fall as programs end, so by default ties go to the fewest outstanding pages first (`fs.tie`).

use super::{IN_TURN, Scheme};
use palimpsest_ftl_api::{keys, words};

words! {
    /// The channel among those that hold equally few pages of a file; the next in turn among further ties.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Tie {
        /// The fewest outstanding pages, then the fewest issued ones.
        #[default]
        Outstanding = "outstanding",
        /// The fewest issued pages, as the text of the paper says.
        Issued = "issued",
        /// The next in turn.
        Turn = "turn",
    }
}

keys! {
    /// The settings of schemes that balance files.
    pub(crate) struct FairnessSettings;

    group KEYS {
        /// channel of a page among those that hold equally few of its file: the fewest pages outstanding, then issued;
        /// the fewest issued, as in the paper; or the next in turn
        pub(crate) tie: Tie = "fs.tie", Tie::KIND, "outstanding", needs["fs.scheme = fairness|hybrid"];
    }
}

pub(super) const ENTRY: Scheme = Scheme {
    name: "fairness",
    about: "the channel that holds the fewest pages of the file; whole rounds of channels in turn",
    keys: KEYS,
    choose: |view| {
        if view.is_whole_rounds() { view.turn } else { view.lowest(|channel| view.held(channel)) }
    },
    ..IN_TURN
};
