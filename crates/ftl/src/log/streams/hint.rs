//! Hint: writes with an expected lifetime below the median of recent ones are hot. Beyond the papers; the co-design
//! paper's future work: "hot data identification in file system to help FTL design" (Sec. VI).
//!
//! A hint is the expected lifetime of a page, in written pages (`palimpsest_fs`, `lifetimes`). A write is hot if the
//! lifetime is below the running median of all hints, so about half of the file writes are hot. Metadata of the file
//! system are hot. Pages that the file system's collection moves are cold, as are pages that the layer's collection
//! moves. A write without a hint is hot. The median has a resolution of 1/256 of a doubling and moves one step up or
//! down with each hint ("frugal streaming", Ma, Muthukrishnan and Sandler 2013).

use super::{Classifier, HotCold};
use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::plan::inner::Hint;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "hint",
    about: "writes are hot whose lifetime, as the file system above the layer expects it, is shorter than most",
    keys: &[],
    needs_hints: true,
    build: |_, _, _| Box::new(ByHint::default()),
};

/// Step of the median, in 1/256 of a doubling.
const STEP: u32 = 4;

/// 256 times the binary logarithm of `pages`, linear between powers of two.
fn logarithm(pages: u64) -> u32 {
    let pages = pages.max(1);
    let whole = pages.ilog2();
    whole << 8 | (((u128::from(pages) << 8 >> whole) as u32) & 0xff)
}

#[derive(Default)]
pub(super) struct ByHint {
    median: Option<u32>,
}

palimpsest_flash::state!(ByHint { median });

impl HotCold for ByHint {
    fn is_hot(&mut self, extent: Extent) -> bool {
        self.is_hot_for(extent, Hint::None)
    }

    fn is_hot_for(&mut self, _extent: Extent, hint: Hint) -> bool {
        let pages = match hint {
            Hint::None | Hint::Metadata => return true,
            Hint::Moved => return false,
            Hint::Lifetime(pages) => logarithm(pages),
        };
        let median = *self.median.get_or_insert(pages);
        self.median = Some(match pages.cmp(&median) {
            std::cmp::Ordering::Less => median.saturating_sub(STEP).max(pages),
            std::cmp::Ordering::Equal => median,
            std::cmp::Ordering::Greater => (median + STEP).min(pages),
        });
        pages < median
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;

    const ANY: Extent = Extent { sector: 0, sectors: 8 };

    #[test]
    fn logarithms() {
        assert_eq!([0, 1, 2, 3, 4, 1 << 40].map(logarithm), [0, 0, 256, 384, 512, 40 << 8]);
        assert!((1..5000u64).all(|pages| logarithm(pages) <= logarithm(pages + 1)));
    }

    #[test]
    fn half_of_what_is_announced_is_hot_wherever_it_lies() {
        for scale in [1u64, 1000, 1 << 30] {
            let (mut hint, mut rng, mut hot) = (ByHint::default(), Rng::new(1, scale), 0);
            hint.is_hot_for(ANY, Hint::Lifetime(1 << 20));
            for turn in 0..40_000 {
                let is_hot = hint.is_hot_for(ANY, Hint::Lifetime(scale << rng.below(8) | rng.below(scale)));
                hot += u32::from(is_hot && turn >= 20_000);
            }
            assert!((8_000..12_000).contains(&hot), "{hot} of 20000");
        }
    }

    #[test]
    fn two_kinds_of_files_get_streams_of_their_own() {
        let (mut hint, mut rng, mut wrong) = (ByHint::default(), Rng::new(2, 0), 0);
        for turn in 0..20_000 {
            let short = rng.below(2) == 0;
            let pages = if short { 100 + rng.below(20) } else { 10_000 + rng.below(2000) };
            wrong += u32::from(hint.is_hot_for(ANY, Hint::Lifetime(pages)) != short && turn > 1000);
        }
        // The median moves between the two clusters, and sometimes into one.
        assert!(wrong < 200, "{wrong} of 19000");
    }

    #[test]
    fn records_are_hot_and_what_moves_is_cold() {
        let mut hint = ByHint::default();
        assert!(hint.is_hot_for(ANY, Hint::Metadata) && hint.is_hot(ANY) && !hint.is_hot_for(ANY, Hint::Moved));
    }
}
