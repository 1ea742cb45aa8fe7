//! Tests of the module `in_order`.

use super::*;
use proptest::prelude::*;

/// Numbers and arrivals of all records of `times`, in the order returned, and the disorder.
fn sorted(times: &[Nanos]) -> (Vec<(usize, Nanos)>, Disorder) {
    let mut window = Window::default();
    let mut all = Vec::new();
    for (number, &time) in times.iter().enumerate() {
        window.add(time, number);
        while let Some((arrival, number)) = window.next(false) {
            all.push((number, arrival));
        }
    }
    while let Some((arrival, number)) = window.next(true) {
        all.push((number, arrival));
    }
    (all, window.disorder())
}

#[test]
fn records_beyond_the_window_are_counted_as_late() {
    // Each time is new, so that the first record leaves when the window is full.
    let mut times: Vec<Nanos> = (10..10 + WINDOW as Nanos + 1).collect();
    times.push(5);
    let (all, disorder) = sorted(&times);
    let latest = WINDOW as Nanos + 10;
    assert_eq!(all[2], (WINDOW + 1, 1), "two records had left");
    assert_eq!(disorder, Disorder { sorted: 0, late: 1, largest: latest - 5 });
    assert!(disorder.note().unwrap().contains("1 request beyond the 65536 in sorting"), "{disorder:?}");
}

#[test]
fn a_record_waits_no_longer_than_the_longest_disorder() {
    let mut window = Window::default();
    window.add(7, 'a');
    window.add(7 + LONGEST_DISORDER - 1, 'b');
    assert_eq!(window.next(false), None);
    window.add(7 + LONGEST_DISORDER, 'c');
    window.add(7, 'd');
    assert_eq!(window.next(false), Some((0, 'a')));
    assert_eq!(window.next(false), Some((0, 'd')));
    assert_eq!(window.next(false), None);
    assert_eq!(window.disorder().late, 0);
}

proptest! {
    #[test]
    fn a_window_sorts_as_a_stable_sort(times in prop::collection::vec(0u64..200, 1..200)) {
        let (all, disorder) = sorted(&times);
        let mut expected: Vec<(usize, Nanos)> = times.iter().copied().enumerate().collect();
        expected.sort_by_key(|&(_, time)| time);
        let first = expected[0].1;
        let expected: Vec<_> = expected.into_iter().map(|(number, time)| (number, time - first)).collect();
        prop_assert_eq!(all, expected);
        let highest = |at: usize| times[..at].iter().copied().max().unwrap_or(0);
        let earlier = (0..times.len()).filter(|&at| times[at] < highest(at)).count() as u64;
        let largest = (0..times.len()).map(|at| highest(at).saturating_sub(times[at])).max().unwrap();
        prop_assert_eq!(disorder, Disorder { sorted: earlier, late: 0, largest });
    }
}
