//! Tests of die failures.

use super::*;

#[test]
fn a_die_fails_once() {
    let drawn = |text: &str, seed| draw(DieFailures::parse(text).unwrap().0, 4, seed, 100);
    assert_eq!(drawn("at:5@2", 1), [(105, 2)]);
    for text in ["at:5,6@2,7,8", "every:3"] {
        let mut of_all = drawn(text, 1);
        of_all.sort_unstable_by_key(|&(_, die)| die);
        assert!(of_all.iter().map(|&(_, die)| die).eq(0..4), "{text}");
    }
    assert_eq!(drawn("at:5,6@2,7,8", 1)[1], (106, 2));
    assert!(drawn("every:3", 1).iter().map(|&(at, _)| at).eq([103, 106, 109, 112]));
    let mean = (0..2000).map(|seed| drawn("poisson:1k", seed)[3].0 - 100).sum::<u64>() as f64 / 2000.0;
    assert!((mean / 4000.0 - 1.0).abs() < 0.05, "four failures, each 1000 operations after the other: {mean}");
}
