//! Shape of a drive and arithmetic on its addresses.
//!
//! Physical page numbers count pages block by block and blocks plane by plane. A block is therefore a contiguous range
//! of pages, and a plane a contiguous range of blocks. Consecutive planes are on different channels: plane =
//! ((plane_in_die * dies_per_chip + die_in_chip) * chips_per_channel + chip) * channels + channel. Consecutive planes
//! vary the channel first, then chip, die and plane ("CWDP" of Hu et al. 2011).

use crate::units::SECTOR_BYTES;

/// Groups of a file, by name: files of one directory, or with one suffix, tend to have similar lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileGroup {
    /// Number of the directory; 0: none.
    pub directory: u64,
    /// Number of the suffix of the name; 0: none.
    pub suffix: u64,
}

crate::state!(FileGroup { directory, suffix });

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Return the data last written.
    Read,
    /// Replace the data.
    Write,
    /// Unmap the data: a later read returns zeros.
    Trim,
    /// Make every write acknowledged so far durable.
    Flush,
}

/// A run of 512-byte sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub sector: u64,
    /// Sectors, at least one.
    pub sectors: u32,
}

impl Extent {
    /// The first sector after the run.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// The length of the run in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// The dimensions of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Channels of the drive.
    pub channels: u32,
    /// Chips on each channel.
    pub chips_per_channel: u32,
    /// Dies in each chip.
    pub dies_per_chip: u32,
    /// Planes in each die.
    pub planes_per_die: u32,
    /// Blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Subpages in each page.
    pub subpages_per_page: u32,
    /// Bytes of a subpage.
    pub subpage_bytes: u32,
}

impl Geometry {
    /// Dies of the drive.
    #[inline]
    pub fn dies(&self) -> u32 {
        self.channels * self.chips_per_channel * self.dies_per_chip
    }

    /// Planes of the drive.
    #[inline]
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Blocks of the drive.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }

    /// Physical pages of the drive.
    #[inline]
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(self.pages_per_block)
    }

    /// Physical subpages of the drive.
    #[inline]
    pub fn subpages(&self) -> u64 {
        self.pages() * u64::from(self.subpages_per_page)
    }

    /// Subpages of a block.
    #[inline]
    pub fn subpages_per_block(&self) -> u32 {
        self.pages_per_block * self.subpages_per_page
    }

    /// Bytes of a page.
    #[inline]
    pub fn page_bytes(&self) -> u32 {
        self.subpage_bytes * self.subpages_per_page
    }

    /// The plane of `block`.
    #[inline]
    pub fn plane_of_block(&self, block: u32) -> u32 {
        block / self.blocks_per_plane
    }

    /// The die of `plane`. Consecutive dies are on different channels.
    #[inline]
    pub fn die_of_plane(&self, plane: u32) -> u32 {
        plane % self.dies()
    }

    /// The channel of `die`.
    #[inline]
    pub fn channel_of_die(&self, die: u32) -> u32 {
        die % self.channels
    }
}

/// Division by a run-time constant, as a multiplication of dividend + 1 (Robison 2005, "N-bit unsigned division via
/// N-bit multiply-add"); a divisor of 1 needs no special case. Exact for all 32-bit dividends.
#[derive(Debug, Clone, Copy)]
pub struct Divisor {
    value: u32,
    /// The largest number below 2^64 / value.
    magic: u64,
}

impl Divisor {
    /// Division by `value` > 0.
    pub fn new(value: u32) -> Self {
        assert!(value > 0, "division by zero");
        Divisor { value, magic: u64::MAX / u64::from(value) }
    }

    /// The divisor.
    #[inline]
    pub fn value(self) -> u32 {
        self.value
    }

    /// The quotient.
    #[inline]
    pub fn divide(self, dividend: u32) -> u32 {
        ((u128::from(self.magic) * u128::from(u64::from(dividend) + 1)) >> 64) as u32
    }

    /// The quotient of a number that usually has 32 bits.
    #[inline]
    pub fn divide_wide(self, dividend: u64) -> u64 {
        match u32::try_from(dividend) {
            Ok(dividend) => u64::from(self.divide(dividend)),
            Err(_) => dividend / u64::from(self.value),
        }
    }

    /// The quotient and the remainder.
    #[inline]
    pub fn split(self, dividend: u32) -> (u32, u32) {
        let quotient = self.divide(dividend);
        (quotient, dividend - quotient * self.value)
    }
}

/// The unit of `sectors` sectors that holds `sector`. A power of two, the usual case, takes a shift, because a division
/// costs about a dozen operations.
#[inline]
pub fn unit_of(sector: u64, sectors: u32) -> u64 {
    if sectors.is_power_of_two() { sector >> sectors.trailing_zeros() } else { sector / u64::from(sectors) }
}

#[cfg(test)]
mod tests;
