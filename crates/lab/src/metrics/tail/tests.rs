//! Tests of the module `tail`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn the_99th_percentile_is_within_a_sixtieth_also_after_merging() {
    let mut rng = Rng::new(7, 0);
    for count in [1, 2, 99, 100, 101, 5000] {
        let mut values: Vec<u64> = (0..count).map(|_| 40_000 + rng.below(3_000_000)).collect();
        let mut parts = [Tail::default(), Tail::default()];
        values.iter().enumerate().for_each(|(index, &value)| parts[index % 2].record(value));
        let [mut tail, other] = parts;
        tail.merge(&other);
        values.sort_unstable();
        let exact = values[(values.len() * 99).div_ceil(100) - 1];
        let got = tail.p99().unwrap();
        assert!(got.abs_diff(exact) * 63 <= exact, "{count}: {got} against {exact}");
    }
    assert_eq!(Tail::default().p99(), None);
}

#[test]
fn small_times_are_exact() {
    let mut tail = Tail::default();
    (0..64).for_each(|value| tail.record(value));
    assert_eq!(tail.p99(), Some(63));
}
