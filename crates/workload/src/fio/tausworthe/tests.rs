//! Tests of the module `tausworthe`.

use super::*;

/// Values of the published recurrences, computed apart from this file from the formulas of the papers.
#[test]
fn values_of_the_papers() {
    let first = |seed, long| {
        let mut generator = Tausworthe::new(seed, long);
        [generator.next(), generator.next(), generator.next()]
    };
    assert_eq!(first(1, false), [2_634_262_343, 4_072_702_554, 2_367_269_570]);
    assert_eq!(first(1, true), [11_128_779_724_671_416_100, 6_550_831_460_819_418_398, 17_807_837_793_713_620_933]);
}

#[test]
fn draws_are_even() {
    for long in [false, true] {
        let mut generator = Tausworthe::new(7, long);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[generator.below(10) as usize] += 1);
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 33.0, "{counts:?}");
    }
}
