//! Tests of schedules.

use super::*;

fn parse(text: &str, of_dies: bool) -> Parsed<Schedule> {
    Schedule::parse(text, of_dies, "faults", "never or more")
}

#[test]
fn schedules_are_read() {
    for (text, read) in [
        ("never", "never"),
        ("every:50k", "every:50000"),
        ("poisson:2M", "poisson:2000000"),
        ("at:7,10,1k", "at:7,10,1000"),
        ("at:2k@3", "at:2000@3"),
        ("at:7,9@0,1M", "at:7,9@0,1000000"),
    ] {
        assert_eq!(parse(text, true).unwrap().text(), read);
    }
}

#[test]
fn other_texts_are_refused() {
    let numbers =
        ["", "every", "every:", "every:0", "every:-1", "every:1e3", "often", "poisson:", "poisson:9999999999999M"];
    let lists = ["at:", "at:0", "at:2,1", "at:1,,2", "at:5@", "at:5@-1", "at:5@1,7@1", "at:@3", "at:5@3@4"];
    for text in numbers.into_iter().chain(lists) {
        let message = format!("\"{text}\" is no schedule of faults; expected never or more");
        assert_eq!(parse(text, true), Err(message), "{text} was taken");
    }
    assert!(parse("at:5@1", false).is_err(), "a fault of the whole drive names no die");
}

#[test]
fn faults_come_as_scheduled() {
    let draws = |text: &str| Draws::new(parse(text, true).unwrap(), Rng::new(1, 2), 100);
    assert_eq!(draws("never").next(100), None);
    assert_eq!(draws("every:10").next(117), Some(127));
    let mut at = draws("at:10,20@3");
    assert_eq!([100, 110, 119, 120].map(|done| at.next(done)), [Some(110), Some(120), Some(120), None]);
    assert_eq!(at.next_with_die(110), Some((120, Some(3))));
    let mut poisson = draws("poisson:1k");
    let mean = (0..10_000).map(|_| poisson.next(0).unwrap()).sum::<u64>() as f64 / 10_000.0;
    assert!((mean / 1000.0 - 1.0).abs() < 0.03, "{mean}");
}
