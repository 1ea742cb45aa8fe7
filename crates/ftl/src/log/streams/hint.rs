//! Hint: writes with an expected lifetime below the median of recent ones are hot. Beyond the papers; the co-design
//! paper's future work: "hot data identification in file system to help FTL design" (Sec. VI).
//!
//! The hint is the lifetime of the command: of the host, or of a file system above the layer, in written pages
//! (`palimpsest_fs`, `lifetimes`). A write is hot if the lifetime is below the running median of all hints, so about
//! half of the file writes are hot. Metadata of the file system are hot. Pages that the file system's collection moves
//! are cold, as are pages that the layer's collection moves. A write without a hint is hot. The median
//! has a resolution of 1/256 of a doubling and moves one step up or down with each hint ("frugal streaming", Ma,
//! Muthukrishnan and Sandler 2013).

use super::{COLD, Classifier, Classify, HOT};
use palimpsest_flash::command::{Directives, Lifetime};
use palimpsest_flash::geometry::Extent;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "hint",
    about: "writes whose lifetime, as host or file system expect, is shorter than most are hot",
    keys: &[],
    reads_addresses: false,
    reads_lifetimes: true,
    reads_identifiers: false,
    build: |_, _, _| Box::new(ByHint::default()),
};

/// Step of the median, in 1/256 of a doubling.
const STEP: u32 = 4;

/// 256 times the binary logarithm of `pages`, linear between powers of two.
fn logarithm(pages: u32) -> u32 {
    let pages = pages.max(1);
    let whole = pages.ilog2();
    whole << 8 | (((u64::from(pages) << 8 >> whole) as u32) & 0xff)
}

#[derive(Default)]
pub(super) struct ByHint {
    median: Option<u32>,
}

palimpsest_flash::state!(ByHint { median });

impl Classify for ByHint {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        let pages = match directives.lifetime {
            Lifetime::Unknown | Lifetime::Metadata => return HOT,
            Lifetime::Moved => return COLD,
            Lifetime::Pages(pages) => logarithm(pages),
        };
        let median = *self.median.get_or_insert(pages);
        self.median = Some(match pages.cmp(&median) {
            std::cmp::Ordering::Less => median.saturating_sub(STEP).max(pages),
            std::cmp::Ordering::Equal => median,
            std::cmp::Ordering::Greater => (median + STEP).min(pages),
        });
        if pages < median { HOT } else { COLD }
    }
}

#[cfg(test)]
mod tests;
