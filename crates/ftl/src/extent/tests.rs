//! Tests of the module `extent`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn pages_hold_each_sector_of_an_extent_once_and_in_order() {
    let mut rng = Rng::new(1, 0);
    for _ in 0..2000 {
        let per_page = 1 + rng.below(70) as u32;
        let extent = Extent { sector: rng.below(1 << 20), sectors: 1 + rng.below(400) as u32 };
        let sectors = |(page, first, sectors): (u32, u32, u32)| {
            assert!(sectors > 0 && first + sectors <= per_page);
            let begin = u64::from(page) * u64::from(per_page) + u64::from(first);
            begin..begin + u64::from(sectors)
        };
        let all = extent.sector..extent.end();
        assert!(pages(extent, per_page.into()).flat_map(sectors).eq(all.clone()));
        assert!(pages_by(extent, Divisor::new(per_page)).flat_map(sectors).eq(all));
    }
}
