//! The event queue: ordered by time, then by order of addition.
//!
//! One 128-bit key holds time (56 bits: 834 days), order (40 bits) and the event (32 bits), so one comparison of
//! numbers orders two events. Two lines hold the ends of programs and erases, and all other events. Events of one line
//! have similar delays, so each is added near the end of its line and few others move. Each line keeps its next events
//! sorted in a ring of 1 KiB, and the rest in a heap.

use palimpsest_flash::units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The last representable time, 834 days.
pub const END_OF_TIME: Nanos = (1 << 56) - 1;

/// An event, with the index of its die, operation, gate or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A die has sensed its pages.
    Sensed(u32),
    /// An operation's data has left its die.
    Moved(u32),
    /// A die has finished a program or erase, unless suspended meanwhile (low bits: die; high bits: generation).
    Finished(u32),
    /// A die may be able to start an operation.
    Wake(u32),
    /// An operation's data has been encoded, or decoded and delivered to the host.
    Coded(u32),
    /// An event that a gate waits for has happened, such as the arrival of a request's data.
    Accepted(u32),
    /// A die has loaded one page of a word line, and more follow.
    Loaded(u32),
    /// Data of programs has crossed the host link, by the head of their list.
    Arrived(u32),
    /// The power fails.
    PowerFails,
    /// The host has the answer to a request.
    Answered(u32),
    /// Only time passes.
    Nothing,
}

const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << KIND_SHIFT) - 1;
/// Indices of dies are smaller; those of arrivals come behind.
const DIES: u32 = 1 << 17;

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
            Event::Arrived(index) => (6, DIES + index),
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
            6 if index < DIES => Event::Loaded(index - 1),
            6 => Event::Arrived(index - DIES),
            _ => Event::Answered(index),
        }
    }
}

/// Time, order and event; 0 denotes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u128);

impl Key {
    /// Time of the event.
    #[inline]
    pub fn time(self) -> Nanos {
        (self.0 >> 72) as Nanos
    }

    #[inline]
    fn is_never(self) -> bool {
        (self.0 >> 64) as u64 == u64::MAX
    }
}

/// Largest number of sorted events in a line.
const NEAR: usize = 64;

/// No event: greater than all keys.
const NEVER: Key = Key(u128::MAX);

/// A ring of the next events, in order.
struct Ring {
    /// The first key is [`NEVER`] if the ring is empty.
    keys: [Key; NEAR],
    head: usize,
    length: usize,
}

impl Ring {
    /// The key at `index` from the first.
    #[inline]
    fn at(&mut self, index: usize) -> &mut Key {
        &mut self.keys[self.head.wrapping_add(index) % NEAR]
    }

    #[inline]
    fn first(&self) -> Key {
        self.keys[self.head % NEAR]
    }

    #[inline]
    fn last(&mut self) -> Key {
        *self.at(self.length.wrapping_sub(1))
    }

    /// Inserts a key; there must be room. Moves the keys before or behind, whichever are fewer.
    #[inline]
    fn add(&mut self, key: Key) {
        let middle = self.length / 2;
        if key < *self.at(middle) {
            self.head = self.head.wrapping_sub(1);
            let mut place = 0;
            while *self.at(place + 1) < key {
                *self.at(place) = *self.at(place + 1);
                place += 1;
            }
            *self.at(place) = key;
        } else {
            let mut place = self.length;
            while place > 0 && *self.at(place - 1) > key {
                *self.at(place) = *self.at(place - 1);
                place -= 1;
            }
            *self.at(place) = key;
        }
        self.length += 1;
    }

    /// Takes the first key; the ring must not be empty.
    #[inline]
    fn take_first(&mut self) -> Key {
        let key = self.first();
        self.head = self.head.wrapping_add(1);
        self.length -= 1;
        if self.length == 0 {
            *self.at(0) = NEVER;
        }
        key
    }
}

/// Events in order.
struct Line {
    /// The next events.
    near: Ring,
    /// Length of `near` below which an event is added there directly; 0 if `far` holds events.
    room: usize,
    /// Events after all of `near`; empty if `near` is.
    far: BinaryHeap<Reverse<Key>>,
}

impl Default for Line {
    fn default() -> Self {
        Line { near: Ring { keys: [NEVER; NEAR], head: 0, length: 0 }, room: NEAR, far: BinaryHeap::new() }
    }
}

impl Line {
    #[inline]
    fn is_empty(&self) -> bool {
        self.near.length == 0
    }

    /// The first event, or [`NEVER`].
    #[inline]
    fn first(&self) -> Key {
        self.near.first()
    }

    #[inline]
    fn add(&mut self, key: Key) {
        if self.near.length < self.room { self.near.add(key) } else { self.add_to_many(key) }
    }

    /// Adds an event to a line with more events than the ring holds.
    #[inline(never)]
    fn add_to_many(&mut self, key: Key) {
        self.room = 0;
        if key > self.near.last() {
            return self.far.push(Reverse(key));
        }
        if self.near.length == NEAR {
            self.near.length -= 1;
            self.far.push(Reverse(*self.near.at(NEAR - 1)));
        }
        self.near.add(key);
    }

    /// Takes the first event; the line must not be empty.
    #[inline]
    fn take_first(&mut self) -> Key {
        let key = self.near.take_first();
        if self.near.length == 0 && self.room == 0 {
            self.sort_next();
        }
        key
    }

    /// Moves the next events from the heap to the ring.
    #[cold]
    fn sort_next(&mut self) {
        while self.near.length < NEAR / 2
            && let Some(Reverse(key)) = self.far.pop()
        {
            self.near.add(key);
        }
        self.room = if self.far.is_empty() { NEAR } else { 0 };
    }
}

/// The event queue.
#[derive(Default)]
pub struct EventQueue {
    /// Ends of programs and erases, which are due long after they are added, in about the same order.
    ends: Line,
    others: Line,
    order: u64,
    /// The event taken last.
    last: Key,
    /// The last reserved event.
    latest: Key,
}

impl EventQueue {
    #[inline]
    fn key(&mut self, time: Nanos, event: Event) -> Key {
        // Events after the last representable time are due then, where the run ends.
        let time = time.min(END_OF_TIME);
        self.order += 1;
        let order = u128::from(self.order & ((1 << 40) - 1));
        Key(u128::from(time) << 72 | order << 32 | u128::from(event.pack()))
    }

    /// Adds `event` at `time`.
    #[inline]
    pub fn push(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        match event {
            Event::Finished(_) => self.ends.add(key),
            _ => self.others.add(key),
        }
    }

    /// Reserves the place of an event, for [`Self::add`]. If no other event is left, time still advances to the last
    /// reserved one.
    #[inline]
    pub fn reserve(&mut self, time: Nanos, event: Event) -> Key {
        let key = self.key(time, event);
        self.latest = self.latest.max(key);
        key
    }

    /// Adds a reserved event.
    #[inline]
    pub fn add(&mut self, key: Key) {
        self.others.add(key);
    }

    /// The event taken last.
    #[inline]
    pub fn last(&self) -> Key {
        self.last
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        (self.ends, self.others, self.latest) = (Line::default(), Line::default(), Key(0));
    }

    /// Time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        let key = if self.ends.is_empty() { self.others.first() } else { self.others.first().min(self.ends.first()) };
        if key.is_never() { (self.latest > self.last).then(|| self.latest.time()) } else { Some(key.time()) }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        let ends = !self.ends.is_empty() && self.ends.first() < self.others.first();
        let key = if ends {
            self.ends.take_first()
        } else if self.others.is_empty() {
            let time = self.next_time()?;
            self.last = self.latest;
            return Some((time, Event::Nothing));
        } else {
            self.others.take_first()
        };
        self.last = key;
        Some((key.time(), Event::unpack(key.0 as u32)))
    }
}

#[cfg(test)]
mod tests;
