//! `depth`: the Dynamic Depth Scheme, Sec. III-C.3. A request of more than 16 pages sends several pages to each channel
//! at once: its share if all channels get as many. They are one command group, which needs one DRAM permission
//! exchange, and arrive together, so that planes share a command and dies work in parallel. (The threshold is the
//! paper's, which is silent on the number of pages. The paper says that 16 pages make a depth of more than one
//! possible: two pages on each of 8 channels.)
//!
//! Nor does the paper say which pages are grouped: consecutive ones, as in docs/systems.md, whose later reads share a
//! channel; or each n-th on n channels, as in turn (`fs.depth_pages`).

use super::{IN_TURN, Scheme};
use palimpsest_ftl_api::{keys, words};

words! {
    /// Which pages of a large write are one command group.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DepthPages {
        /// Consecutive ones.
        Consecutive = "consecutive",
        /// Each n-th on n channels, so that neighbours are on different channels.
        Apart = "apart",
    }
}

keys! {
    /// The settings of schemes with dynamic depth.
    pub(crate) struct DepthSettings;

    group KEYS {
        /// pages of a large write that a channel gets at once: consecutive, or each n-th on n channels
        pub(crate) depth_pages: DepthPages = "fs.depth_pages", DepthPages::KIND, "consecutive",
            needs["fs.scheme = depth|hybrid"];
    }
}

pub(super) const ENTRY: Scheme = Scheme {
    name: "depth",
    about: "channels in turn; of requests of more than 16 pages several consecutive ones to each",
    keys: KEYS,
    groups_above: 16,
    ..IN_TURN
};
