//! Tests of the module `segments`.

use super::*;

/// The units in the order of eviction.
fn order(segments: &mut Segments) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some(unit) = segments.oldest() {
        segments.check().unwrap();
        order.push(unit);
        segments.remove(unit);
    }
    order
}

#[test]
fn what_is_asked_for_again_outlives_what_is_not() {
    let mut segments = Segments::new(100, 4);
    (0..4).for_each(|unit| segments.insert(unit, Gate::NONE));
    assert_eq!((segments.hit(0), segments.hit(1), segments.hit(9)), (Some(Gate::NONE), Some(Gate::NONE), None));
    segments.insert(4, Gate::NONE);
    assert_eq!(order(&mut segments), [2, 3, 4, 0, 1], "0 and 1 are protected");
}

#[test]
fn the_protected_segment_is_half() {
    let mut segments = Segments::new(100, 4);
    (0..4).for_each(|unit| segments.insert(unit, Gate::NONE));
    (0..3).for_each(|unit| assert!(segments.hit(unit).is_some()));
    assert_eq!(order(&mut segments), [3, 0, 1, 2], "0 had to go, as the newest of the probationary");
}

#[test]
fn what_comes_dirty_goes_first() {
    let mut segments = Segments::new(100, 4);
    segments.insert(1, Gate::NONE);
    segments.dirty(2);
    segments.dirty(1);
    assert_eq!((segments.len(), segments.oldest()), (2, Some(2)));
    assert_eq!((segments.clean(1..2), segments.clean(1..2), segments.is_dirty(2)), (1, 0, true));
    [63, 64, 65, 99].into_iter().for_each(|unit| segments.dirty(unit));
    assert_eq!((segments.clean(3..65), segments.clean(0..100)), (2, 3));
}

#[test]
fn a_cache_for_all_units_has_slots_for_arriving_ones_only() {
    let mut segments = Segments::new(4, 4);
    let arriving = Gate::new(1, 0);
    segments.insert(0, arriving);
    segments.insert(1, Gate::NONE);
    segments.dirty(2);
    segments.dirty(1);
    let hits = (0..4).map(|unit| segments.hit(unit)).collect::<Vec<_>>();
    assert_eq!(hits, [Some(arriving), Some(Gate::NONE), Some(Gate::NONE), None]);
    assert_eq!((segments.len(), segments.slots.len(), segments.clean(0..4)), (3, 1, 2));
    segments.check().unwrap();
}
