//! The host link of a drive: data of writes arrives in order, and reads of that data wait for it.
//!
//! Ignored: the rate of the link, which the engine models.

use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::arrival::Arrival;
use std::collections::VecDeque;
use std::ops::Range;

/// Data of writes on the host link.
#[derive(Default)]
pub(super) struct Link {
    /// Time at which all writes so far are in the buffer.
    buffered_at: Nanos,
    /// Writes whose data is still on the link, in order.
    arriving: VecDeque<Arrival>,
}

impl Link {
    /// Time at which all writes so far are in the buffer.
    #[inline]
    pub(super) fn buffered_at(&self) -> Nanos {
        self.buffered_at
    }

    /// Records a write, which arrives after all earlier ones.
    #[inline]
    pub(super) fn receive(&mut self, arrival: Arrival, now: Nanos) {
        self.buffered_at = arrival.until();
        if self.buffered_at > now {
            while self.arriving.front().is_some_and(|earlier| earlier.until() <= now) {
                self.arriving.pop_front();
            }
            self.arriving.push_back(arrival);
        }
    }

    /// Time at which all data that the host has written to the sectors has arrived.
    #[inline]
    pub(super) fn arrives(&self, sectors: impl FnOnce() -> Range<u64>, now: Nanos) -> Nanos {
        if self.arriving.is_empty() {
            return now;
        }
        let Range { start, end } = sectors();
        let parts = self.arriving.iter().filter_map(|arrival| arrival.of(start, end));
        parts.fold(now, |last, part| last.max(part.last))
    }

    /// Drops all data after a power cut, if no protected buffer receives it.
    pub(super) fn lose(&mut self) {
        *self = Link::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::geometry::Extent;
    use palimpsest_flash::units::Rate;
    use palimpsest_ftl_api::plan::arrival::{Crossing, Pace};

    /// Data is in the buffer in order, and a read waits for its own sectors of overlapping writes.
    #[test]
    fn writes_arrive_in_order_and_reads_wait_for_theirs() {
        let mut link = Link::default();
        // A sector takes 10 ns.
        let pace = Pace { link: Rate(51_200_000_000), subpage: 8, ..Pace::default() };
        let write = |link: &mut Link, sector, from, now| {
            let crossing = Crossing { first: from, last: from + 80 };
            link.receive(Arrival::new(Extent { sector, sectors: 8 }, crossing, link.buffered_at(), pace), now);
            link.buffered_at()
        };
        assert_eq!(write(&mut link, 0, 20, 0), 100);
        assert_eq!(write(&mut link, 8, 0, 0), 100, "behind the first");
        assert_eq!(write(&mut link, 4, 100, 0), 180);
        let arrives = |link: &Link, sectors: Range<u64>, now| link.arrives(|| sectors, now);
        assert_eq!([arrives(&link, 0..4, 5), arrives(&link, 0..5, 5), arrives(&link, 15..16, 5)], [60, 110, 100]);
        assert_eq!([arrives(&link, 16..24, 5), arrives(&link, 0..4, 120)], [5, 120]);
        assert_eq!(write(&mut link, 0, 220, 200), 300);
        assert_eq!(arrives(&link, 4..16, 200), 300, "the writes before have arrived");
        link.lose();
        assert_eq!((link.buffered_at(), arrives(&link, 0..4, 200)), (0, 200));
    }
}
