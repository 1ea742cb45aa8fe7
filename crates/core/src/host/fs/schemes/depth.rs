//! `depth`: the Dynamic Depth Scheme, Sec. III-C.3. A request of more than 16 pages sends several consecutive pages to each
//! channel in turn: as many as come on a channel when the request is spread over all. They are one command group, so that the
//! hand-over of the FTL's memory is paid once, and lie on several dies and planes. (Threshold: the paper's; how many: the paper
//! is silent. It says that 16 pages make a depth of more than one possible, that is two pages on each of 8 channels.)

use super::{Entry, Scheme, View};

/// Pages that are not yet a large request.
const THRESHOLD: u32 = 16;

pub(super) const ENTRY: Entry = Entry {
    name: "depth",
    about: "channels in turn; of requests of more than 16 pages several consecutive ones to each",
    build: || Box::new(Depth),
};

/// Pages of a request of `pages` that go to one channel together.
pub(super) fn depth(pages: u32, channels: u32) -> u32 {
    if pages > THRESHOLD { (pages / channels).max(1) } else { 1 }
}

struct Depth;

impl Scheme for Depth {
    fn depth(&self, pages: u32, channels: u32) -> u32 {
        depth(pages, channels)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        view.turn
    }
}
