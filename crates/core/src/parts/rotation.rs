//! Which plane a host write goes to: the next in turn, the one that the address names, or the one with the least to do.

use crate::ftl::settings::Allocation;
use crate::geometry::Geometry;
use crate::plan::Io;

/// The choice of planes.
pub struct Rotation {
    allocation: Allocation,
    planes: u32,
    dies: u32,
    cursor: u32,
}

impl Rotation {
    /// A choice over all planes of `geometry`.
    pub fn new(allocation: Allocation, geometry: &Geometry) -> Self {
        Rotation { allocation, planes: geometry.planes(), dies: geometry.dies(), cursor: 0 }
    }

    /// The plane to try first for logical page `page`.
    #[inline]
    pub fn first(&self, io: &Io, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static => page % self.planes,
            Allocation::RoundRobin => self.cursor,
            Allocation::LeastLoaded => self.least_loaded(io),
        }
    }

    /// The plane to try when `step` planes from `first` on would not do.
    #[inline]
    pub fn then(&self, first: u32, step: u32) -> u32 {
        if first + step >= self.planes { first + step - self.planes } else { first + step }
    }

    /// `plane` was written to.
    #[inline]
    pub fn used(&mut self, plane: u32) {
        self.cursor = if plane + 1 == self.planes { 0 } else { plane + 1 };
    }

    fn least_loaded(&self, io: &Io) -> u32 {
        let in_turn = (0..self.planes).map(|step| (self.cursor + step) % self.planes);
        in_turn.min_by_key(|&plane| io.load(plane % self.dies)).unwrap_or(0)
    }
}
