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

#[cfg(test)]
mod tests {
    use super::*;

    /// Data is in the buffer in order, and a read waits for the last overlapping write that has not arrived.
    #[test]
    fn writes_arrive_in_order_and_reads_wait_for_theirs() {
        let (mut link, extent) = (Link::default(), |sector| Extent { sector, sectors: 8 });
        assert_eq!(link.receive(extent(0), 100, 0), 100);
        assert_eq!(link.receive(extent(8), 60, 0), 100, "behind the first");
        assert_eq!(link.receive(extent(4), 150, 0), 150);
        let arrives = |link: &Link, sectors: Range<u64>, now| link.arrives(|| sectors, now);
        assert_eq!([arrives(&link, 0..4, 5), arrives(&link, 0..5, 5), arrives(&link, 15..16, 5)], [100, 150, 100]);
        assert_eq!([arrives(&link, 16..24, 5), arrives(&link, 0..4, 120)], [5, 120]);
        assert_eq!(link.buffered_at(), 150);
        link.receive(extent(0), 300, 200);
        assert_eq!(arrives(&link, 4..16, 200), 300, "the writes before have arrived");
        link.lose();
        assert_eq!((link.buffered_at(), arrives(&link, 0..4, 200)), (0, 200));
    }
}
