//! Tests of `working_set`.

use super::*;
use palimpsest_flash::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn windows_of_every_length_have_their_distinct_pages() {
    let mut rng = Rng::new(3, 1);
    let mut found = WorkingSets::new(true);
    let (mut now, mut last) = (0, BTreeMap::new());
    let mut accesses: Vec<(u64, u64)> = Vec::new();
    for _ in 0..20_000 {
        // Now and then some windows stay empty.
        now += if rng.chance(0.001) { 700 * MILLISECOND } else { rng.below(4 * MILLISECOND) };
        let most = 1 + rng.below(600);
        let page = rng.below(most);
        accesses.push((now, page));
        let clock = found.clock(now);
        found.go_to(clock);
        found.count(last.insert(page, clock), 1);
    }
    let figures = found.figures();
    assert_eq!(figures.len(), 4);
    for each in &figures {
        let length = each.window_ns.unwrap();
        let mut sets = vec![BTreeSet::new(); (now / length + 1) as usize];
        for (time, page) in &accesses {
            sets[(time / length) as usize].insert(*page);
        }
        let sizes: Vec<u64> = sets.iter().map(|set| set.len() as u64 * PAGE_BYTES).collect();
        assert_eq!(each.max_bytes, *sizes.iter().max().unwrap());
        assert!((each.mean_bytes - sizes.iter().sum::<u64>() as f64 / sizes.len() as f64).abs() < 1e-6);
        assert_eq!(each.bytes, if sizes.len() <= MOST_WINDOWS { sizes } else { Vec::new() }, "{length}");
    }
    assert!(figures[0].bytes.is_empty() && !figures[2].bytes.is_empty());
}

#[test]
fn closed_loops_count_requests() {
    let mut found = WorkingSets::new(false);
    assert_eq!((found.figures().len(), found.figures()[0].bytes.clone()), (1, vec![0]));
    for request in 0..250 {
        let clock = found.clock(request);
        found.go_to(clock);
        found.count(None, 2);
    }
    let figures = found.figures();
    assert_eq!((figures.len(), figures[0].window_requests, figures[0].window_ns), (1, Some(100), None));
    assert_eq!(figures[0].bytes, [200 * PAGE_BYTES, 200 * PAGE_BYTES, 100 * PAGE_BYTES]);
}
