//! `depth`: the Dynamic Depth Scheme, Sec. III-C.3. A request of more than 16 pages sends several pages to each channel at once:
//! as many as come on a channel when the request is spread over all. They are one command group, so that the hand-over of the
//! FTL's memory is paid once, and are there together, so that planes can take one command and dies work side by side. (Threshold:
//! the paper's; how many: the paper is silent. It says that 16 pages make a depth of more than one possible, that is two pages on
//! each of 8 channels.)
//!
//! Which pages these are the paper does not say either: consecutive ones, as in docs/systems.md, whose later reads share a channel;
//! or each n-th on n channels, as in turn (`fs.depth_pages`).

use super::{Entry, Scheme, View};
use palimpsest_ftl_api::keys::{Key, Kind};

/// Pages that are not yet a large request.
const THRESHOLD: u32 = 16;

const DEPTH_PAGES: Key = Key::new(
    "fs.depth_pages",
    Kind::Choice(&["consecutive", "apart"]),
    "consecutive",
    "pages of a large write that depth and hybrid give a channel at once: consecutive, or each n-th on n channels",
);

pub(super) const ENTRY: Entry = Entry {
    name: "depth",
    about: "channels in turn; of requests of more than 16 pages several consecutive ones to each",
    keys: &[DEPTH_PAGES],
    build: || Box::new(Depth),
};

/// Whether a request of `pages` pages is large.
pub(super) fn is_large(pages: u32) -> bool {
    pages > THRESHOLD
}

struct Depth;

impl Scheme for Depth {
    fn goes_deep(&self, pages: u32) -> bool {
        is_large(pages)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        view.turn
    }
}
