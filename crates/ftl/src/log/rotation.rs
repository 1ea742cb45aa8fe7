//! Chooses the plane of a host write: the next in turn, the plane that the address names, one of the channel that the
//! address names, or the least busy one. With superblocks of some dies, their planes take turns until a block of each
//! is full, then the planes of the next dies.

use crate::log::settings::Allocation;
use palimpsest_flash::geometry::Geometry;
use palimpsest_ftl_api::plan::Io;

/// The choice of planes.
pub struct Rotation {
    allocation: Allocation,
    planes: u32,
    channels: u32,
    dies: u32,
    cursor: u32,
    /// Per channel: the plane that is next in turn.
    next_in: Vec<u32>,
    superblock: Option<Superblock>,
    /// Per plane: true if the plane's die has failed; empty until one fails.
    passed_by: Vec<bool>,
}

palimpsest_flash::state!(Rotation { cursor, next_in } parts { superblock } built {
    allocation, planes, channels, dies, passed_by
});

/// The superblock that is written.
struct Superblock {
    /// The first die, and the number of dies.
    first: u32,
    dies: u32,
    /// Pages written, and their total number.
    written: u32,
    pages: u32,
}

palimpsest_flash::state!(Superblock { first, written } built { dies, pages });

impl Superblock {
    /// The plane that is next in turn on a drive of `dies` dies.
    #[inline]
    fn plane(&self, dies: u32, planes: u32) -> u32 {
        let turn = self.written % (self.dies * (planes / dies));
        self.first + turn % self.dies + turn / self.dies * dies
    }

    #[inline]
    fn advance(&mut self, dies: u32) {
        self.written += 1;
        if self.written == self.pages {
            (self.written, self.first) = (0, (self.first + self.dies) % dies);
        }
    }
}

impl Rotation {
    /// A choice over all planes of `geometry`, in turn over superblocks of `superblock_dies` dies (0: of all).
    pub fn new(allocation: Allocation, superblock_dies: u32, geometry: &Geometry) -> Self {
        let next_in = (0..geometry.channels).collect();
        let (planes, channels, dies) = (geometry.planes(), geometry.channels, geometry.dies());
        let part = allocation == Allocation::RoundRobin && (1..dies).contains(&superblock_dies);
        let pages = superblock_dies * (planes / dies) * geometry.pages_per_block;
        let superblock = part.then_some(Superblock { first: 0, dies: superblock_dies, written: 0, pages });
        Rotation { allocation, planes, channels, dies, cursor: 0, next_in, superblock, passed_by: Vec::new() }
    }

    /// Excludes `plane` from writes.
    pub fn pass_by(&mut self, plane: u32) {
        self.passed_by.resize(self.planes as usize, false);
        self.passed_by[plane as usize] = true;
    }

    /// True if `plane` is excluded from writes.
    #[inline]
    pub fn passes_by(&self, plane: u32) -> bool {
        self.passed_by.get(plane as usize).is_some_and(|&passed| passed)
    }

    /// Planes or channels that addresses name; 1 if they name none.
    pub fn groups(&self) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => self.planes,
            Allocation::Channel => self.channels,
            Allocation::RoundRobin | Allocation::LeastLoaded => 1,
        }
    }

    /// The plane or channel that address `page` names.
    #[inline]
    pub fn group(&self, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => page % self.planes,
            Allocation::Channel => page % self.channels,
            Allocation::RoundRobin | Allocation::LeastLoaded => 0,
        }
    }

    /// The plane to try first for address `page`.
    #[inline]
    pub fn first(&self, io: &Io, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => page % self.planes,
            Allocation::Channel => self.next_in[(page % self.channels) as usize],
            Allocation::RoundRobin => match &self.superblock {
                Some(superblock) => superblock.plane(self.dies, self.planes),
                None => self.cursor,
            },
            Allocation::LeastLoaded => self.least_loaded(io),
        }
    }

    /// True if all planes take turns, one after the other.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        self.allocation == Allocation::RoundRobin && self.superblock.is_none()
    }

    /// The plane to try after `step` planes from `first` on were unsuitable.
    #[inline]
    pub fn then(&self, first: u32, step: u32) -> u32 {
        if self.allocation == Allocation::Channel {
            // All planes of the channel, then the planes of the next.
            let (channel, lane) = (first % self.channels, first / self.channels);
            let lanes = self.planes / self.channels;
            return (channel + step / lanes) % self.channels + (lane + step) % lanes * self.channels;
        }
        if first + step >= self.planes { first + step - self.planes } else { first + step }
    }

    /// Records a write to `plane`.
    #[inline]
    pub fn used(&mut self, plane: u32) {
        if let Some(superblock) = &mut self.superblock {
            superblock.advance(self.dies);
        }
        self.cursor = if plane + 1 == self.planes { 0 } else { plane + 1 };
        if self.allocation == Allocation::Channel {
            self.next_in[(plane % self.channels) as usize] = (plane + self.channels) % self.planes;
        }
    }

    fn least_loaded(&self, io: &Io) -> u32 {
        let in_turn = (0..self.planes).map(|step| (self.cursor + step) % self.planes);
        let in_turn = in_turn.filter(|&plane| !self.passes_by(plane));
        in_turn.min_by_key(|&plane| io.load(plane % self.dies)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
