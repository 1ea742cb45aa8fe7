//! Tests of `clock`.

use super::*;

#[test]
fn clocks_are_read() {
    assert_eq!(Clock::parse("paced").unwrap(), Clock::Paced(1.0));
    assert_eq!(Clock::parse("scaled:10").unwrap(), Clock::Paced(10.0));
    for wrong in ["", "real", "scaled", "scaled:", "scaled:0", "scaled:-1", "scaled:nan", "scaled:inf", "Paced"] {
        assert!(matches!(Clock::parse(wrong), Err(Error::Input { .. })), "{wrong} was taken");
    }
}

#[test]
fn lateness_is_reported() {
    let mut wall = Wall::new(0, 10.0);
    assert_eq!(wall.report(), None);
    for late in 1..=100 {
        wall.answered(1000, wall.due(1000) + Duration::from_micros(2 * late));
    }
    assert_eq!(wall.due(1000) - wall.begin, Duration::from_micros(10));
    assert_eq!(wall.late.percentile(500), 100_000);
    let report = wall.report().unwrap();
    assert!(report.contains("200.0 us at most; 50.00 % by more than 100 us"), "{report}");
}

#[test]
fn the_drive_waits_for_a_program_that_refills() {
    let mut depth = Depth::default();
    (1..=32).for_each(|count| depth.arrived(count));
    assert!(depth.wait(32).is_some(), "more may come at first");
    depth.nothing_came();
    assert!(depth.wait(32).is_none());
    depth.completed(31);
    assert!(depth.wait(31).is_none(), "nothing comes: it drains");
    for _ in 0..1000 {
        depth.arrived(32);
        depth.completed(31);
        assert!(depth.wait(31).is_some(), "the program refills");
        assert!(depth.wait(32).is_none());
    }
    // The program goes on with less.
    for _ in 0..2 * LATELY {
        depth.arrived(4);
        depth.completed(3);
    }
    depth.arrived(4);
    assert!(depth.wait(4).is_none());
    assert!(depth.wait(3).is_some());
}
