//! Which plane a host write goes to: the next in turn, the one that the address names, one of the channel that it names, or the
//! one with the least to do.

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
    /// The plane of each channel that is next in turn.
    next_in: Vec<u32>,
}

impl Rotation {
    /// A choice over all planes of `geometry`.
    pub fn new(allocation: Allocation, geometry: &Geometry) -> Self {
        let next_in = (0..geometry.channels).collect();
        let (planes, channels, dies) = (geometry.planes(), geometry.channels, geometry.dies());
        Rotation { allocation, planes, channels, dies, cursor: 0, next_in }
    }

    /// Planes or channels that addresses name; 1 where they name none.
    pub fn groups(&self) -> u32 {
        match self.allocation {
            Allocation::Static => self.planes,
            Allocation::Channel => self.channels,
            Allocation::RoundRobin | Allocation::LeastLoaded => 1,
        }
    }

    /// The plane or channel that logical page `page` names.
    #[inline]
    pub fn group(&self, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static => page % self.planes,
            Allocation::Channel => page % self.channels,
            Allocation::RoundRobin | Allocation::LeastLoaded => 0,
        }
    }

    /// The plane to try first for logical page `page`.
    #[inline]
    pub fn first(&self, io: &Io, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static => page % self.planes,
            Allocation::Channel => self.next_in[(page % self.channels) as usize],
            Allocation::RoundRobin => self.cursor,
            Allocation::LeastLoaded => self.least_loaded(io),
        }
    }

    /// The plane to try when `step` planes from `first` on would not do.
    #[inline]
    pub fn then(&self, first: u32, step: u32) -> u32 {
        if self.allocation == Allocation::Channel {
            // All planes of the channel, then those of the next.
            let (channel, lane) = (first % self.channels, first / self.channels);
            let lanes = self.planes / self.channels;
            return (channel + step / lanes) % self.channels + (lane + step) % lanes * self.channels;
        }
        if first + step >= self.planes { first + step - self.planes } else { first + step }
    }

    /// `plane` was written to.
    #[inline]
    pub fn used(&mut self, plane: u32) {
        self.cursor = if plane + 1 == self.planes { 0 } else { plane + 1 };
        if self.allocation == Allocation::Channel {
            self.next_in[(plane % self.channels) as usize] = (plane + self.channels) % self.planes;
        }
    }

    fn least_loaded(&self, io: &Io) -> u32 {
        let in_turn = (0..self.planes).map(|step| (self.cursor + step) % self.planes);
        in_turn.min_by_key(|&plane| io.load(plane % self.dies)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::nand::Nand;
    use palimpsest_flash::nand::data::Payload;
    use palimpsest_flash::nand::part::samples::slc;

    #[test]
    fn addresses_name_channels_and_planes_take_turns() {
        let geometry = Geometry {
            channels: 4,
            chips_per_channel: 1,
            dies_per_chip: 2,
            planes_per_die: 2,
            blocks_per_plane: 4,
            pages_per_block: 4,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
        let mut rotation = Rotation::new(Allocation::Channel, &geometry);
        let mut taken = Vec::new();
        for page in [2, 6, 2, 3, 102, 2] {
            taken.push(rotation.first(&io, page));
            rotation.used(*taken.last().unwrap());
        }
        assert_eq!(taken, [2, 6, 10, 3, 14, 2], "pages 2, 6 and 102 are of channel 2, whose planes go round");
        let mut all: Vec<u32> = (0..16).map(|step| rotation.then(6, step)).collect();
        assert_eq!(all[..5], [6, 10, 14, 2, 7], "the channel first");
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..16), "then all others");
    }
}
