//! Arrivals: when each part of a write's data is in the drive.
//!
//! The data of a write crosses the host link in the order of its sectors. With a write buffer, the controller then puts
//! the data there subpage by subpage. So a page has its data when its own last sector has arrived, long before the last
//! sector of a large write. Writes arrive in order: data of earlier writes is complete before the present write.
//!
//! Ignored: packets of the link, and commands that share the link.

use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::{Nanos, Rate, SECTOR_BYTES};

/// Times at which the first and the last byte of some data arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crossing {
    pub first: Nanos,
    pub last: Nanos,
}

/// Speed at which data enters a drive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Rate of the host link; 0: unlimited.
    pub link: Rate,
    /// Time to put the first subpage of a write into the write buffer, and each further one.
    pub first: Nanos,
    pub next: Nanos,
    /// Sectors of a subpage.
    pub subpage: u32,
}

impl Pace {
    /// Time to put the first `sectors` sectors of a write, at least one, into the write buffer.
    #[inline]
    fn time_to_put(&self, sectors: u64) -> Nanos {
        let Pace { first, next, subpage, .. } = *self;
        if next == 0 { first } else { first + next * (sectors.div_ceil(subpage.into()) - 1) }
    }
}

/// The arrival of a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// First sector, and the one after the last.
    sector: u64,
    end: u64,
    /// The first byte may leave the link.
    from: Nanos,
    /// All earlier writes have arrived.
    before: Nanos,
    /// This write has arrived, and all earlier ones.
    until: Nanos,
    pace: Pace,
    /// True if a file system stores the data under addresses of its own, so that its pages arrive with the last sector.
    whole: bool,
}

impl Arrival {
    /// The arrival of a write to `extent`, which crosses the link in the time of `crossing`. All earlier writes have
    /// arrived at `before`.
    #[inline]
    pub fn new(extent: Extent, crossing: Crossing, before: Nanos, pace: Pace) -> Self {
        let Crossing { first: from, last } = crossing;
        let until = (last + pace.time_to_put(extent.sectors.into())).max(before);
        Arrival { sector: extent.sector, end: extent.end(), from, before, until, pace, whole: false }
    }

    /// The arrival of writes that are complete at `at`.
    pub fn complete(at: Nanos) -> Self {
        Arrival { from: at, before: at, until: at, ..Arrival::default() }
    }

    /// This arrival, for pages under addresses of a file system.
    pub fn in_files(self) -> Self {
        Arrival { whole: true, ..self }
    }

    /// All writes so far have arrived.
    #[inline]
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// The sectors before `end` have arrived.
    #[inline]
    fn before_sector(&self, end: u64) -> Nanos {
        if end >= self.end {
            return self.until;
        }
        let crossed = match end.saturating_sub(self.sector) {
            0 => 0,
            sectors => self.pace.link.time_for(sectors * SECTOR_BYTES) + self.pace.time_to_put(sectors),
        };
        (self.from + crossed).max(self.before)
    }

    /// The arrival of the sectors from `sector` to `end`, if the write has any of them.
    #[inline]
    pub fn of(&self, sector: u64, end: u64) -> Option<Crossing> {
        let is_part = sector < self.end && self.sector < end;
        is_part.then(|| Crossing { first: self.before_sector(sector), last: self.before_sector(end) })
    }

    /// The arrival of a page with the logical subpages `lsns`, of which others are of earlier writes.
    #[inline]
    pub fn of_page(&self, lsns: impl Iterator<Item = u32>) -> Crossing {
        if self.whole {
            return Crossing { first: self.from, last: self.until };
        }
        let subpage = u64::from(self.pace.subpage);
        let mut sectors = (u64::MAX, 0);
        for sector in lsns.map(|lsn| u64::from(lsn) * subpage) {
            if sector < self.end && self.sector < sector + subpage {
                sectors = (sector.min(sectors.0), sectors.1.max(sector + subpage));
            }
        }
        self.of(sectors.0, sectors.1).unwrap_or(Crossing { first: self.before, last: self.before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { link: Rate(4_096_000_000), first: 0, next: 0, subpage: 8 };

    /// A write of `sectors` sectors from `sector` on: a subpage of 4 KiB takes 1 us on the link.
    fn write(sector: u64, sectors: u32, from: Nanos, before: Nanos) -> Arrival {
        let crossing = Crossing { first: from, last: from + u64::from(sectors) * 125 };
        Arrival::new(Extent { sector, sectors }, crossing, before, PACE)
    }

    fn of(arrival: &Arrival, lsns: &[u32]) -> (Nanos, Nanos) {
        let Crossing { first, last } = arrival.of_page(lsns.iter().copied());
        (first, last)
    }

    #[test]
    fn a_page_arrives_with_its_own_last_sector() {
        let arrival = write(80, 64, 500, 0);
        assert_eq!(arrival.until(), 8_500);
        assert_eq!(of(&arrival, &[10, 11]), (500, 2_500));
        assert_eq!(of(&arrival, &[12, 13]), (2_500, 4_500));
        assert_eq!(of(&arrival, &[17, 18]), (7_500, 8_500), "subpage 18 is of an earlier write");
        assert_eq!(of(&arrival, &[18, 9]), (0, 0));
        // Parts of subpages.
        let arrival = write(4, 8, 0, 0);
        assert_eq!([of(&arrival, &[0]), of(&arrival, &[1])], [(0, 500), (500, 1_000)]);
        assert_eq!(arrival.of(12, 20), None);
    }

    #[test]
    fn earlier_writes_arrive_first() {
        let arrival = write(0, 32, 500, 2_000);
        assert_eq!(
            [of(&arrival, &[0]), of(&arrival, &[2]), of(&arrival, &[4])],
            [(2_000, 2_000), (2_500, 3_500), (2_000, 2_000)]
        );
        assert_eq!(of(&arrival.in_files(), &[0]), (500, 4_500), "addresses of a file system");
        assert_eq!(of(&Arrival::complete(70), &[0]), (70, 70));
    }

    #[test]
    fn the_buffer_takes_subpages_one_by_one() {
        let pace = Pace { link: Rate(0), first: 300, next: 100, ..PACE };
        let arrival = Arrival::new(Extent { sector: 0, sectors: 32 }, Crossing::default(), 0, pace);
        assert_eq!((0..4).map(|lsn| of(&arrival, &[lsn]).1).collect::<Vec<_>>(), [300, 400, 500, 600]);
    }
}
