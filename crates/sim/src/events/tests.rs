//! Tests of the module `events`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn events_come_by_time_then_by_order() {
    let mut rng = Rng::new(1, 0);
    let mut queue = EventQueue::default();
    let mut expected: Vec<(Nanos, u32)> = (0..1000).map(|index| (rng.below(50), index)).collect();
    for &(time, index) in &expected {
        queue.push(time, if index % 2 == 0 { Event::Moved(index) } else { Event::Finished(index) });
    }
    expected.sort_unstable();
    for (time, index) in expected {
        assert_eq!(queue.next_time(), Some(time));
        let event = if index % 2 == 0 { Event::Moved(index) } else { Event::Finished(index) };
        assert_eq!(queue.pop(), Some((time, event)));
    }
    assert_eq!(queue.pop(), None);
}

#[test]
fn few_and_many_events_come_in_order_while_others_are_added() {
    let mut rng = Rng::new(2, 0);
    let event_of = |index: u32| if index.is_multiple_of(3) { Event::Finished(index) } else { Event::Moved(index) };
    for most in [1, 5, 63, 64, 65, 100, 300] {
        let mut queue = EventQueue::default();
        let mut expected = std::collections::BTreeSet::new();
        let mut now = 0;
        for index in 0..20_000u32 {
            if expected.len() < most && (expected.is_empty() || rng.below(2) == 0) {
                let time = now + rng.below([3, 1000, 100_000][index as usize % 3]);
                queue.push(time, event_of(index));
                expected.insert((time, index));
            } else if let Some((time, index)) = expected.pop_first() {
                assert_eq!(queue.next_time(), Some(time));
                assert_eq!(queue.pop(), Some((time, event_of(index))));
                now = time;
            }
        }
        while let Some((time, index)) = expected.pop_first() {
            assert_eq!(queue.pop(), Some((time, event_of(index))));
        }
        assert_eq!((queue.pop(), queue.next_time()), (None, None));
    }
}

#[test]
fn an_event_with_a_reserved_place_keeps_that_order() {
    let mut queue = EventQueue::default();
    let kept = queue.reserve(5, Event::Wake(1));
    queue.push(5, Event::Moved(2));
    let later = queue.reserve(9, Event::Wake(3));
    queue.add(kept);
    assert_eq!(queue.pop(), Some((5, Event::Wake(1))));
    assert!(queue.last() == kept && later > kept);
    assert_eq!(queue.pop(), Some((5, Event::Moved(2))));
    // No other event is left, so time advances to the last reserved one.
    assert_eq!((queue.next_time(), queue.pop()), (Some(9), Some((9, Event::Nothing))));
    assert_eq!((queue.next_time(), queue.pop()), (None, None));
}
