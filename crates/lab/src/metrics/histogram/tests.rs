//! Tests of `histogram`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn percentiles_are_within_0_2_percent_of_the_sorted_values() {
    let mut rng = Rng::new(5, 0);
    let mut values: Vec<u64> = (0..10_000).map(|_| rng.below(1 << rng.clone().below(40).max(1))).collect();
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.record(value));
    values.sort_unstable();
    for per_mille in [1, 100, 500, 900, 990, 999, 1000] {
        let exact = values[(values.len() * per_mille as usize).div_ceil(1000) - 1];
        let got = histogram.percentile(per_mille);
        assert!(got.abs_diff(exact) * 500 <= exact, "p{per_mille}: {got} against {exact}");
    }
    assert_eq!(histogram.max(), *values.last().unwrap());
}

#[test]
fn a_sketch_has_all_times_in_buckets_of_a_64th() {
    let mut rng = Rng::new(6, 0);
    let mut histogram = Histogram::new();
    (0..10_000).for_each(|_| histogram.record(rng.below(1 << rng.clone().below(40).max(1))));
    let (lower, counts) = histogram.sketch();
    assert_eq!(counts.iter().sum::<u64>(), 10_000);
    assert!(lower.is_sorted() && lower.len() < 64 * 40 && lower.len() < histogram.occupied().count());
    for &begin in lower.iter().filter(|&&begin| begin >= 128) {
        assert_eq!(begin % (1 << (begin.ilog2() - 6)), 0);
    }
}

#[test]
fn equal_times_are_exact() {
    let mut histogram = Histogram::new();
    (0..100).for_each(|_| histogram.record(119_003));
    (0..900).for_each(|_| histogram.record(3_000_001));
    assert_eq!((histogram.percentile(100), histogram.percentile(500)), (119_003, 3_000_001));
    assert_eq!(histogram.mean(), (119_003 + 9 * 3_000_001 + 5) / 10);
}

#[test]
fn buckets_cover_all_values_without_gaps() {
    let mut last = 0;
    for index in 1..(40 * SUB as usize) {
        let lower = Histogram::lower(index);
        assert!(lower > last);
        assert_eq!((Histogram::bucket_of(lower), Histogram::bucket_of(lower - 1)), (index, index - 1));
        last = lower;
    }
}
