//! Size: requests of 64 KiB and more are cold (LLH paper, Sec. 5; Chang 2008).

use super::{COLD, Classifier, Classify, HOT};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::{KIB, SECTOR_BYTES};

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "size",
    about: "requests of 64 KiB and more are cold",
    keys: &[],
    reads_addresses: false,
    reads_lifetimes: false,
    reads_identifiers: false,
    build: |_, _, _| Box::new(Size),
};

const COLD_SECTORS: u32 = (64 * KIB / SECTOR_BYTES) as u32;

pub(super) struct Size;

palimpsest_flash::state!(Size {});

impl Classify for Size {
    fn stream_of(&mut self, extent: Extent, _directives: Directives) -> u32 {
        if extent.sectors < COLD_SECTORS { HOT } else { COLD }
    }
}

#[cfg(test)]
mod tests;
