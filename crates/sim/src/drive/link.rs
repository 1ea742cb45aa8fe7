//! The host link of a drive: data of writes arrives in order, and reads of that data wait for it.
//!
//! Ignored: the rate of the link, which the engine models.

use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::Nanos;
use std::collections::VecDeque;
use std::ops::Range;

/// Data of writes on the host link.
#[derive(Default)]
pub(super) struct Link {
    /// Time at which all writes so far are in the buffer.
    buffered_at: Nanos,
    /// Writes whose data is still on the link, with the arrival times, in order.
    arriving: VecDeque<(Extent, Nanos)>,
}

impl Link {
    /// Time at which all writes so far are in the buffer.
    pub(super) fn buffered_at(&self) -> Nanos {
        self.buffered_at
    }

    /// Records a write to `extent` whose data crosses the link until `received`. Returns the time at which the data is
    /// in the buffer: in order, because a page may hold data of several writes and waits for the last.
    #[inline]
    pub(super) fn receive(&mut self, extent: Extent, received: Nanos, now: Nanos) -> Nanos {
        self.buffered_at = self.buffered_at.max(received);
        if self.buffered_at > now {
            while self.arriving.front().is_some_and(|&(_, at)| at <= now) {
                self.arriving.pop_front();
            }
            self.arriving.push_back((extent, self.buffered_at));
        }
        self.buffered_at
    }

    /// Time at which all data that the host has written to the sectors has arrived.
    #[inline]
    pub(super) fn arrives(&self, sectors: impl FnOnce() -> Range<u64>, now: Nanos) -> Nanos {
        if self.arriving.is_empty() {
            return now;
        }
        let sectors = sectors();
        let overlaps = |written: &Extent| written.sector < sectors.end && sectors.start < written.end();
        self.arriving.iter().filter(|(written, _)| overlaps(written)).fold(now, |last, &(_, at)| last.max(at))
    }

    /// Drops all data after a power cut, if no protected buffer receives it.
    pub(super) fn lose(&mut self) {
        *self = Link::default();
    }
}
