//! The event queue: ordered by time, then by the order in which events were added.
//!
//! One 128-bit key holds time (56 bits: 834 days), order (40 bits) and what happens (32 bits), so that comparing two events
//! is comparing two numbers.

use palimpsest_flash::units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The last moment: 834 days after the first.
pub const END_OF_TIME: Nanos = (1 << 56) - 1;

/// The event, with the number of its die, channel or gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A die has sensed its pages.
    Sensed(u32),
    /// An operation's data has left its die.
    Moved(u32),
    /// A die has finished programming or erasing, unless it was suspended meanwhile (low bits: die; high bits: generation).
    Finished(u32),
    /// A die may be able to start something.
    Wake(u32),
    /// An operation's data has been encoded; or decoded, and has reached the host.
    Coded(u32),
    /// A request's data has reached the drive.
    Accepted(u32),
    /// A die has taken in a page of a word line, of which others follow.
    Loaded(u32),
    /// The power fails.
    PowerFails,
    /// The host has the answer to a request.
    Answered(u32),
    /// Only time passes.
    Nothing,
}

const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << KIND_SHIFT) - 1;

impl Event {
    #[inline]
    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Event::Sensed(index) => (0, index),
            Event::Moved(index) => (1, index),
            Event::Finished(index) => (2, index),
            Event::Wake(index) => (3, index),
            Event::Coded(index) => (4, index),
            Event::Accepted(index) => (5, index),
            Event::PowerFails => (6, 0),
            Event::Loaded(index) => (6, index + 1),
            Event::Nothing => (6, INDEX),
            Event::Answered(index) => (7, index),
        };
        debug_assert!(index <= INDEX);
        kind << KIND_SHIFT | index
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        let index = packed & INDEX;
        match packed >> KIND_SHIFT {
            0 => Event::Sensed(index),
            1 => Event::Moved(index),
            2 => Event::Finished(index),
            3 => Event::Wake(index),
            4 => Event::Coded(index),
            5 => Event::Accepted(index),
            6 if index == 0 => Event::PowerFails,
            6 if index == INDEX => Event::Nothing,
            6 => Event::Loaded(index - 1),
            _ => Event::Answered(index),
        }
    }
}

/// Time, order and what happens; 0 denotes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u128);

impl Key {
    /// When.
    #[inline]
    pub fn time(self) -> Nanos {
        (self.0 >> 72) as Nanos
    }
}

/// The queue.
#[derive(Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<Key>>,
    order: u64,
    /// The event that was taken last.
    last: Key,
    /// The last event for which a place is kept.
    latest: Key,
}

impl EventQueue {
    #[inline]
    fn key(&mut self, time: Nanos, event: Event) -> Key {
        // Events behind the end of time come at its end, which ends the run.
        let time = time.min(END_OF_TIME);
        self.order += 1;
        let order = u128::from(self.order & ((1 << 40) - 1));
        Key(u128::from(time) << 72 | order << 32 | u128::from(event.pack()))
    }

    /// Adds `event` at `time`.
    #[inline]
    pub fn push(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        self.add(key);
    }

    /// Keeps the place for an event that may be added later. Without it nothing happens then; but the last of them ends a silence.
    #[inline]
    pub fn reserve(&mut self, time: Nanos, event: Event) -> Key {
        let key = self.key(time, event);
        self.latest = self.latest.max(key);
        key
    }

    /// Adds an event whose place was kept.
    #[inline]
    pub fn add(&mut self, key: Key) {
        self.heap.push(Reverse(key));
    }

    /// The event that was taken last.
    #[inline]
    pub fn last(&self) -> Key {
        self.last
    }

    /// Nothing happens any more.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.latest = Key(0);
    }

    /// Time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        match self.heap.peek() {
            Some(Reverse(key)) => Some(key.time()),
            None => (self.latest > self.last).then(|| self.latest.time()),
        }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        let Some(Reverse(key)) = self.heap.pop() else {
            let time = self.next_time()?;
            self.last = self.latest;
            return Some((time, Event::Nothing));
        };
        self.last = key;
        Some((key.time(), Event::unpack(key.0 as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;

    #[test]
    fn events_come_by_time_then_by_order() {
        let mut rng = Rng::new(1, 0);
        let mut queue = EventQueue::default();
        let mut expected: Vec<(Nanos, u32)> = (0..1000).map(|index| (rng.below(50), index)).collect();
        for &(time, index) in &expected {
            queue.push(time, if index % 2 == 0 { Event::Moved(index) } else { Event::Accepted(index) });
        }
        expected.sort_unstable();
        for (time, index) in expected {
            assert_eq!(queue.next_time(), Some(time));
            let event = if index % 2 == 0 { Event::Moved(index) } else { Event::Accepted(index) };
            assert_eq!(queue.pop(), Some((time, event)));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn an_event_whose_place_was_kept_comes_as_if_it_had_been_added_then() {
        let mut queue = EventQueue::default();
        let kept = queue.reserve(5, Event::Wake(1));
        queue.push(5, Event::Moved(2));
        let later = queue.reserve(9, Event::Wake(3));
        queue.add(kept);
        assert_eq!(queue.pop(), Some((5, Event::Wake(1))));
        assert!(queue.last() == kept && later > kept);
        assert_eq!(queue.pop(), Some((5, Event::Moved(2))));
        // Nothing else is left: time goes to the last that was kept.
        assert_eq!((queue.next_time(), queue.pop()), (Some(9), Some((9, Event::Nothing))));
        assert_eq!((queue.next_time(), queue.pop()), (None, None));
    }
}
