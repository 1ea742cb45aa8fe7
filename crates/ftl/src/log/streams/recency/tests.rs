//! Tests of the module `recency`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn what_is_written_often_is_hot() {
    let mut recency = Recency::new(100_000, 8);
    let mut rng = Rng::new(1, 0);
    let mut hot = [0u32; 2];
    for round in 0..200_000 {
        // Every other write goes to 100 units, the rest to 100,000.
        let units = if round % 2 == 0 { 100 } else { 100_000 };
        let extent = Extent { sector: rng.below(units) * 8, sectors: 8 };
        hot[round % 2] += u32::from(recency.stream_of(extent, Directives::NONE) == HOT);
    }
    assert!(hot[0] > 95_000 && hot[1] < 15_000, "{hot:?}");
}
