//! Sorts the records of a trace by time, within a window of bounded memory.
//!
//! Tracers write records out of order: at completion instead of issue, from buffers of several processors, or from
//! several hosts. A record waits until a record [`LONGEST_DISORDER`] later is read, or [`WINDOW`] records wait. Records
//! of one time keep their order. A record that is earlier than a record already returned arrives with the latter, and
//! counts as late. Ignored: disorder beyond [`LONGEST_DISORDER`], which readers refuse.

use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::format_time;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Largest time by which a record may be earlier than a record before. Linux ends a request after 30 s, and Windows
/// after 60 s, so no log at completion has a larger disorder.
pub const LONGEST_DISORDER: Nanos = 60_000_000_000;

/// Records that wait at most: some 6 MB.
pub const WINDOW: usize = 1 << 16;

/// Records of a trace that are earlier than a record before, among the records returned so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Records that arrive at their own time, before records on earlier lines.
    pub sorted: u64,
    /// Records beyond the window, which arrive later than recorded.
    pub late: u64,
    /// The largest time by which a record is earlier than a record before.
    pub largest: Nanos,
}

impl Disorder {
    /// A note for the user; `None` for a trace in order of time.
    pub fn note(&self) -> Option<String> {
        let Disorder { sorted, late, largest } = *self;
        let requests = |count: u64| if count == 1 { "1 request".to_string() } else { format!("{count} requests") };
        let mut done = Vec::new();
        if sorted > 0 {
            done.push(format!("{} sorted by time", requests(sorted)));
        }
        if late > 0 {
            done.push(format!("{} beyond the {WINDOW} in sorting arrive later than recorded", requests(late)));
        }
        let what = || format!("the trace is up to {} out of order: {}", format_time(largest), done.join(", "));
        (!done.is_empty()).then(what)
    }
}

/// Records that wait for earlier ones.
#[derive(Debug)]
pub struct Window<T> {
    /// Records each at or after the one before.
    ordered: VecDeque<Waiting<T>>,
    /// Records earlier than the last of `ordered` when read.
    early: BinaryHeap<Reverse<Waiting<T>>>,
    /// The latest time read, and the number of records read.
    latest: Nanos,
    read: u64,
    /// Times of the first and of the last returned record.
    returned: Option<(Nanos, Nanos)>,
    disorder: Disorder,
}

#[derive(Debug)]
struct Waiting<T> {
    time: Nanos,
    number: u64,
    /// Time by which the record is earlier than a record before.
    back: Nanos,
    record: T,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Window {
            ordered: VecDeque::new(),
            early: BinaryHeap::new(),
            latest: 0,
            read: 0,
            returned: None,
            disorder: Disorder::default(),
        }
    }
}

impl<T> Window<T> {
    /// Adds the next record of the trace, of this time by the trace's clock.
    #[inline]
    pub fn add(&mut self, time: Nanos, record: T) {
        self.latest = self.latest.max(time);
        let waiting = Waiting { time, number: self.read, back: self.latest - time, record };
        self.read += 1;
        match self.ordered.back() {
            Some(last) if last.time > time => self.early.push(Reverse(waiting)),
            _ => self.ordered.push_back(waiting),
        }
    }

    /// The earliest record, with the arrival since the first record of the trace; `None` if an earlier record may
    /// follow, unless the trace has `ended`.
    #[inline]
    pub fn next(&mut self, ended: bool) -> Option<(Nanos, T)> {
        let is_early = match (self.ordered.front(), self.early.peek()) {
            (Some(ordered), Some(Reverse(early))) => early < ordered,
            (_, early) => early.is_some(),
        };
        let earliest = if is_early { self.early.peek().map(|Reverse(early)| early) } else { self.ordered.front() };
        let is_due = ended
            || self.ordered.len() + self.early.len() >= WINDOW
            || earliest.is_some_and(|earliest| self.latest - earliest.time >= LONGEST_DISORDER);
        if !is_due {
            return None;
        }
        let next = if is_early { self.early.pop().map(|Reverse(early)| early) } else { self.ordered.pop_front() };
        let Waiting { time, back, record, .. } = next?;
        let (first, last) = self.returned.unwrap_or((time, time));
        self.returned = Some((first, last.max(time)));
        if back > 0 {
            let is_late = time < last;
            self.disorder.late += u64::from(is_late);
            self.disorder.sorted += u64::from(!is_late);
            self.disorder.largest = self.disorder.largest.max(back);
        }
        Some((last.max(time) - first, record))
    }

    /// The disorder of the returned records.
    pub fn disorder(&self) -> Disorder {
        self.disorder
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Waiting<T> {}

#[cfg(test)]
mod tests;
