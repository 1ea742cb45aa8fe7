//! Sequence: pages written in a sequence of more than two consecutive pages are cold (LLH paper, Sec. 5.3, for the FIU
//! traces, whose requests are all of one page).
//!
//! Decided here: a write that begins at the page after the last written one continues the sequence. The first two pages
//! are hot, because the sequence is not detected yet. Ignored: interleaved sequences, and reads.

use super::{COLD, Classifier, Classify, HOT};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "sequence",
    about: "pages written in a sequence of more than two consecutive ones are cold",
    keys: &[],
    reads_addresses: true,
    reads_lifetimes: false,
    reads_identifiers: false,
    build: |_, _, unit_sectors| Box::new(Sequence::new(unit_sectors)),
};

/// Longer sequences are cold.
const HOT_PAGES: u64 = 2;

pub(super) struct Sequence {
    unit_sectors: u64,
    /// The page after the last written one.
    next: u64,
    /// Pages of the present sequence.
    length: u64,
}

palimpsest_flash::state!(Sequence { next, length } built { unit_sectors });

impl Sequence {
    pub(super) fn new(unit_sectors: u32) -> Self {
        Sequence { unit_sectors: u64::from(unit_sectors), next: u64::MAX, length: 0 }
    }
}

impl Classify for Sequence {
    fn stream_of(&mut self, extent: Extent, _directives: Directives) -> u32 {
        let (first, next) = (extent.sector / self.unit_sectors, extent.end().div_ceil(self.unit_sectors));
        self.length = if first == self.next { self.length } else { 0 } + (next - first);
        self.next = next;
        if self.length <= HOT_PAGES { HOT } else { COLD }
    }
}

#[cfg(test)]
mod tests;
