//! Tests of the module `threshold`.

use super::*;

#[test]
fn the_threshold_falls_with_fuller_victims_and_rises_otherwise() {
    let mut threshold = Threshold::new(4);
    threshold.update(10, 2, 5);
    assert_eq!(threshold.now, 4, "nothing to compare with");
    threshold.update(12, 2, 5);
    assert_eq!(threshold.now, 3);
    threshold.update(11, 2, 5);
    assert_eq!(threshold.now, 3, "the mean of 10 and 12");
    threshold.update(11, 2, 5);
    assert_eq!(threshold.now, 4, "11 against the mean of 12 and 11");
    threshold.update(1, 2, 5);
    threshold.update(1, 2, 5);
    assert_eq!((threshold.now, threshold.least, threshold.most), (5, 3, 5), "no more than the limit");
    threshold.update(9, 0, 5);
    assert_eq!(threshold.now, 5, "a window of 0 fixes it");
}

#[test]
fn a_slowed_threshold_moves_after_several_steps_to_its_floor() {
    let mut threshold = Threshold::new(3).slowed(2, 2);
    let mut seen = Vec::new();
    for valid in [10, 12, 9, 13, 14, 15, 16, 17, 18] {
        threshold.update(valid, 1, 5);
        seen.push(threshold.now);
    }
    assert_eq!(seen, [3, 3, 3, 3, 2, 2, 2, 2, 2]);
    for valid in [17, 16, 15, 14] {
        threshold.update(valid, 1, 5);
    }
    assert_eq!(threshold.now, 4);
}

#[test]
fn the_published_rule_compares_the_cheapest_victim_with_means() {
    let mut threshold = Threshold::new(5).slowed(2, 4);
    threshold.judge(99, 2, 100, 7);
    threshold.judge(99, 2, 100, 7);
    assert_eq!(threshold.now, 6, "twice less than blocks that are full");
    threshold.record(50, 2);
    threshold.record(60, 2);
    for (cheapest, now) in [(56, 6), (56, 5), (55, 5), (54, 5), (56, 5), (56, 4), (56, 4), (56, 4)] {
        threshold.judge(cheapest, 2, 100, 7);
        assert_eq!(threshold.now, now, "{cheapest} against 55");
    }
    threshold.record(10, 2);
    threshold.judge(36, 2, 100, 7);
    assert_eq!(threshold.run, -1, "36 against the mean of 60 and 10");
    threshold.judge(1, 0, 100, 7);
    assert_eq!(threshold.run, -1, "a window of 0 fixes it");
}
