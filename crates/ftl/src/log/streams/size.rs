//! Size: requests of 64 KiB and more are cold (LLH paper, Sec. 5; Chang 2008).

use super::{Classifier, HotCold};
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::{KIB, SECTOR_BYTES};

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "size",
    about: "requests of 64 KiB and more are cold",
    keys: &[],
    needs_hints: false,
    build: |_, _, _| Box::new(Size),
};

const COLD_SECTORS: u32 = (64 * KIB / SECTOR_BYTES) as u32;

pub(super) struct Size;

palimpsest_flash::state!(Size {});

impl HotCold for Size {
    fn is_hot(&mut self, extent: Extent) -> bool {
        extent.sectors < COLD_SECTORS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_kibibytes_are_cold() {
        assert!(Size.is_hot(Extent { sector: 0, sectors: 127 }));
        assert!(!Size.is_hot(Extent { sector: 0, sectors: 128 }));
    }
}
