//! The tenants behind the data on flash: the owner of the last write of each logical subpage, and the programmed
//! subpages of each owner's data, whatever the reason of the program.
//!
//! A tenant is an owner of commands: a job of a job file, or a volume of a trace. A tile is a unit of the layer's map.
//! Most tiles have one owner, so a program or copy of a tile needs one byte. Ignored: padding, and records of the
//! layer and the controller, which no tenant wrote; and owners after the first 65,535, whose data counts as no owner's.

use super::Cause;
use palimpsest_flash::geometry::Divisor;
use palimpsest_flash::nand::{SubpageMask, first_subpages};
use std::collections::HashMap;
use std::ops::Range;

/// A tile whose subpages have several owners, or an owner whose number does not fit a byte.
const MIXED: u8 = u8::MAX;

/// Owners from here on are found by their hash alone.
const SMALL: u32 = 1 << 16;

/// The owners of the data on a drive.
pub struct Owners {
    // For look-ups only: the order never affects a result.
    numbers: HashMap<u32, u16>,
    /// The same for small owners, by owner; 0: none yet.
    small: Vec<u16>,
    /// Subpages of a tile.
    width: Divisor,
    /// The number of the owner of each tile, 0: none; or [`MIXED`].
    tiles: Vec<u8>,
    /// The number of the owner of each logical subpage of mixed tiles; empty before the first.
    subpages: Vec<u16>,
    /// Subpages programmed since the start, by number: of tiles with one owner, and of others.
    by_tile: Box<[u64; 256]>,
    by_subpage: Vec<u64>,
}

impl Owners {
    /// A drive of `logical` logical subpages, whose data has no owner, and whose layer maps units of `width` subpages.
    pub fn new(logical: u64, width: u32) -> Self {
        Owners {
            numbers: HashMap::new(),
            small: Vec::new(),
            width: Divisor::new(width),
            tiles: vec![0; logical.div_ceil(width.into()) as usize],
            subpages: Vec::new(),
            by_tile: Box::new([0; 256]),
            by_subpage: vec![0],
        }
    }

    /// Records that `owner` writes the logical subpages `lsns`.
    #[inline]
    pub fn wrote(&mut self, lsns: Range<u32>, owner: u32) {
        let number = match self.small.get(owner as usize) {
            Some(&number) if number > 0 => number,
            _ => self.number(owner),
        };
        let width = self.width.value();
        let (tile, at) = self.width.split(lsns.start);
        if at == 0 && lsns.end - lsns.start == width && number < MIXED.into() {
            self.tiles[tile as usize] = number as u8;
        } else {
            self.wrote_some(lsns, number);
        }
    }

    #[cold]
    fn number(&mut self, owner: u32) -> u16 {
        let next = u16::try_from(self.by_subpage.len()).unwrap_or(0);
        let number = *self.numbers.entry(owner).or_insert(next);
        self.by_subpage.resize(self.by_subpage.len().max(usize::from(number) + 1), 0);
        if owner < SMALL {
            self.small.resize(self.small.len().max(owner as usize + 1), 0);
            self.small[owner as usize] = number;
        }
        number
    }

    /// Records that owner `number` writes `lsns`: several tiles, or a part of one.
    #[inline(never)]
    fn wrote_some(&mut self, lsns: Range<u32>, number: u16) {
        let (width, mut next) = (self.width.value(), lsns.start);
        while next < lsns.end {
            let tile = self.width.divide(next);
            let (first, end) = (tile * width, ((tile + 1) * width).min(lsns.end));
            let is_whole = first == next && end == first + width && number < MIXED.into();
            let owner = &mut self.tiles[tile as usize];
            if is_whole {
                *owner = number as u8;
            } else if *owner == MIXED || u16::from(*owner) != number {
                let before = std::mem::replace(owner, MIXED);
                self.subpages.resize(self.tiles.len() * width as usize, 0);
                if before != MIXED {
                    self.subpages[first as usize..(first + width) as usize].fill(before.into());
                }
                self.subpages[next as usize..end as usize].fill(number);
            }
            next = end;
        }
    }

    /// Counts a program for `cause` of the subpages `written` of a page with these logical numbers.
    #[inline]
    pub(super) fn programmed(&mut self, cause: Cause, written: SubpageMask, logical: &[u32]) {
        if matches!(cause, Cause::Metadata | Cause::Checkpoint | Cause::Parity) {
            return;
        }
        if written == first_subpages(logical.len() as u32) {
            self.programmed_page(logical);
        } else {
            let written = logical.iter().enumerate().filter(|(at, _)| written >> at & 1 == 1);
            written.for_each(|(_, &lsn)| self.programmed_one(lsn));
        }
    }

    /// Counts a program of a page with these logical numbers.
    #[inline]
    pub(super) fn programmed_page(&mut self, logical: &[u32]) {
        let (width, first) = (self.width.value(), logical[0]);
        let (tile, at) = self.width.split(first);
        let is_tile =
            at == 0 && logical.len() == width as usize && logical[logical.len() - 1] == first.wrapping_add(width - 1);
        match self.tiles.get(tile as usize) {
            Some(&number) if is_tile && number != MIXED => self.by_tile[usize::from(number)] += u64::from(width),
            _ => logical.iter().for_each(|&lsn| self.programmed_one(lsn)),
        }
    }

    #[inline]
    fn programmed_one(&mut self, lsn: u32) {
        match self.tiles.get(self.width.divide(lsn) as usize) {
            Some(&MIXED) => self.by_subpage[usize::from(self.subpages[lsn as usize])] += 1,
            Some(&number) => self.by_tile[usize::from(number)] += 1,
            None => {}
        }
    }

    /// Sets all counts to 0.
    pub fn restart(&mut self) {
        self.by_tile.fill(0);
        self.by_subpage.fill(0);
    }

    /// Subpages programmed of data of `owner`.
    pub fn programmed_of(&self, owner: u32) -> u64 {
        let number = self.numbers.get(&owner).filter(|&&number| number > 0);
        number.map_or(0, |&number| {
            self.by_subpage[usize::from(number)] + self.by_tile.get(usize::from(number)).unwrap_or(&0)
        })
    }
}

#[cfg(test)]
mod tests;
