//! Hint: what the file system above expects to live less than most of what was written lately is hot. Beyond the papers; the
//! co-design paper's future work: "hot data identification in file system to help FTL design" (Sec. VI).
//!
//! The file system says for how many written pages the pages of a file live (`host::fs::lifetimes`). The rule: hot is what will
//! live for less than the running median of what was announced, so that about half of what files write is hot. Records of the
//! file system are hot, what its collection moves is cold, as what the layer's own collection moves; a file of which nothing
//! is known yet is hot. The median is kept in 1/256 of a doubling and goes a step up or down with each announcement ("frugal
//! streaming", Ma, Muthukrishnan and Sandler 2013).

use super::{Classifier, HotCold};
use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::plan::inner::Life;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "hint",
    about: "what the file system above the layer expects to live less than most is hot",
    keys: &[],
    needs_hints: true,
    build: |_, _, _| Box::new(Hint::default()),
};

/// How far the median goes at a time, in 1/256 of a doubling.
const STEP: u32 = 4;

/// 256 times the logarithm to base 2 of `pages`, between powers of two on a straight line.
fn logarithm(pages: u64) -> u32 {
    let pages = pages.max(1);
    let whole = pages.ilog2();
    whole << 8 | (((u128::from(pages) << 8 >> whole) as u32) & 0xff)
}

#[derive(Default)]
pub(super) struct Hint {
    /// The running median of what was announced.
    median: Option<u32>,
}

impl HotCold for Hint {
    fn is_hot(&mut self, extent: Extent) -> bool {
        self.is_hot_for(extent, Life::Unknown)
    }

    fn is_hot_for(&mut self, _extent: Extent, life: Life) -> bool {
        let pages = match life {
            Life::Unknown | Life::Metadata => return true,
            Life::Moved => return false,
            Life::Pages(pages) => logarithm(pages),
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
            let (mut hint, mut rng, mut hot) = (Hint::default(), Rng::new(1, scale), 0);
            hint.is_hot_for(ANY, Life::Pages(1 << 20));
            for turn in 0..40_000 {
                let is_hot = hint.is_hot_for(ANY, Life::Pages(scale << rng.below(8) | rng.below(scale)));
                hot += u32::from(is_hot && turn >= 20_000);
            }
            assert!((8_000..12_000).contains(&hot), "{hot} of 20000");
        }
    }

    #[test]
    fn two_kinds_of_files_are_told_apart() {
        let (mut hint, mut rng, mut wrong) = (Hint::default(), Rng::new(2, 0), 0);
        for turn in 0..20_000 {
            let short = rng.below(2) == 0;
            let pages = if short { 100 + rng.below(20) } else { 10_000 + rng.below(2000) };
            wrong += u32::from(hint.is_hot_for(ANY, Life::Pages(pages)) != short && turn > 1000);
        }
        // The median wanders between the two, and now and then into one.
        assert!(wrong < 200, "{wrong} of 19000");
    }

    #[test]
    fn records_are_hot_and_what_moves_is_cold() {
        let mut hint = Hint::default();
        assert!(hint.is_hot_for(ANY, Life::Metadata) && hint.is_hot(ANY) && !hint.is_hot_for(ANY, Life::Moved));
    }
}
