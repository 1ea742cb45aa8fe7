//! Recency: a write is hot if the first unit is still in a table of recent writes.
//!
//! The table is direct-mapped, with a place for an eighth of the units: another unit of the same place replaces an
//! entry. Cheap, and without a scan. Ignored: two units of one place hide each other.

use super::{COLD, Classifier, Classify, HOT};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::rng::mix;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "recency",
    about: "addresses written again while still in a table of recent writes are hot",
    keys: &[],
    reads_addresses: true,
    reads_lifetimes: false,
    reads_identifiers: false,
    build: |_, units, unit_sectors| Box::new(Recency::new(units, unit_sectors)),
};

const UNITS_PER_PLACE: u32 = 8;
const LEAST_PLACES: u32 = 64;
const NOTHING: u32 = u32::MAX;

pub(super) struct Recency {
    unit_sectors: u64,
    /// The last written unit of each place.
    recent: Vec<u32>,
}

palimpsest_flash::state!(Recency { recent } built { unit_sectors });

impl Recency {
    pub(super) fn new(units: u32, unit_sectors: u32) -> Self {
        let places = (units / UNITS_PER_PLACE).max(LEAST_PLACES).next_power_of_two();
        Recency { unit_sectors: u64::from(unit_sectors), recent: vec![NOTHING; places as usize] }
    }
}

impl Classify for Recency {
    fn stream_of(&mut self, extent: Extent, _directives: Directives) -> u32 {
        let unit = (extent.sector / self.unit_sectors) as u32;
        let place = mix(u64::from(unit)) as usize & (self.recent.len() - 1);
        if std::mem::replace(&mut self.recent[place], unit) == unit { HOT } else { COLD }
    }
}

#[cfg(test)]
mod tests;
