//! Address: writes below a boundary are hot. An oracle for synthetic loads whose popular pages come first (LLH paper,
//! Sec. 5.3: the pages below the boundary take half of the accesses).

use super::{COLD, Classifier, Classify, HOT};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_flash::units::parse::{Parsed, format_bytes, parse_bytes, shown};
use palimpsest_ftl_api::keys;
use palimpsest_ftl_api::keys::Notated;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "address",
    about: "addresses below a boundary are hot: an oracle",
    keys: KEYS,
    reads_addresses: true,
    reads_lifetimes: false,
    reads_identifiers: false,
    build: |settings, units, unit_sectors| {
        Box::new(Address::new(AddressSettings::new(settings).hot_below, units, unit_sectors))
    },
};

keys! {
    struct AddressSettings;

    group KEYS {
        /// what begins below is hot; zipf:A: below the pages that take half of a Zipf law of exponent A
        hot_below: HotBelow = "ftl.hot_below", HotBelow::KIND, "zipf:1", needs["ftl.classifier = address"];
    }
}

/// End of the hot addresses.
#[derive(Debug, Clone, Copy, PartialEq)]
enum HotBelow {
    /// A byte of the drive.
    Bytes(u64),
    /// The end of the first units that take half of the accesses of a Zipf law of this exponent over all units of the
    /// drive.
    Zipf(f64),
}

impl Notated for HotBelow {
    const EXPECTED: &'static str = "a number of bytes such as \"1GiB\", or \"zipf:0.95\"";

    fn parse(text: &str) -> Parsed<HotBelow> {
        let Some(exponent) = text.strip_prefix("zipf:") else {
            return parse_bytes(text)
                .map(HotBelow::Bytes)
                .map_err(|_| format!("\"{}\" is no boundary; expected {}", shown(text), Self::EXPECTED));
        };
        match exponent.parse::<f64>() {
            Ok(exponent) if (0.0..=10.0).contains(&exponent) => Ok(HotBelow::Zipf(exponent)),
            _ => Err(format!("\"{}\": expected zipf:A with an exponent A from 0 to 10", shown(text))),
        }
    }

    fn text(&self) -> String {
        match self {
            HotBelow::Bytes(bytes) => format_bytes(*bytes),
            HotBelow::Zipf(exponent) => format!("zipf:{exponent}"),
        }
    }
}

pub(super) struct Address {
    /// The first cold sector.
    boundary: u64,
}

palimpsest_flash::state!(Address {} built { boundary });

impl Address {
    fn new(below: HotBelow, units: u32, unit_sectors: u32) -> Self {
        let boundary = match below {
            HotBelow::Bytes(bytes) => bytes / SECTOR_BYTES,
            HotBelow::Zipf(exponent) => u64::from(half_of_zipf(units, exponent)) * u64::from(unit_sectors),
        };
        Address { boundary }
    }
}

/// The fewest units that take half of the accesses if unit n = 1, 2, .. of `units` is accessed in proportion to
/// n^-exponent.
fn half_of_zipf(units: u32, exponent: f64) -> u32 {
    let weight = |unit: u32| (f64::from(unit) + 1.0).powf(-exponent);
    // Small terms first, because their sum loses less precision.
    let total: f64 = (0..units).rev().map(weight).sum();
    let mut taken = 0.0;
    (0..units)
        .find(|&unit| {
            taken += weight(unit);
            taken >= total / 2.0
        })
        .map_or(units, |unit| unit + 1)
}

impl Classify for Address {
    fn stream_of(&mut self, extent: Extent, _directives: Directives) -> u32 {
        if extent.sector < self.boundary { HOT } else { COLD }
    }
}

#[cfg(test)]
mod tests;
