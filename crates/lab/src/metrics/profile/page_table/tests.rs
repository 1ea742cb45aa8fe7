//! Tests of the module `page_table`.

use super::*;
use palimpsest_flash::rng::Rng;
use std::collections::BTreeMap;

#[test]
fn it_is_a_map() {
    let (mut table, mut map, mut rng) = (PageTable::<u32>::default(), BTreeMap::new(), Rng::new(1, 0));
    for step in 0..20_000u32 {
        let page = rng.below(1 << (4 + step / 2000)) * [1, 1 << 40][rng.below(2) as usize];
        let (kept, expected) = (table.of(page), map.entry(page).or_default());
        assert_eq!(kept, expected);
        *kept += step;
        *expected += step;
        if step % 3001 == 0 {
            table.retain(|page| page % 3 != 0);
            map.retain(|page, _| page % 3 != 0);
        }
        assert_eq!(table.len(), map.len());
    }
    let sorted = |values: Vec<u32>| {
        let mut values = values;
        values.sort_unstable();
        values
    };
    assert_eq!(sorted(table.iter().copied().collect()), sorted(map.into_values().collect()));
}
