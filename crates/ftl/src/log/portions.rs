//! Portions of collection: the copies that a write plans are bounded, so that the memory of a run does not grow with
//! `ftl.gc_stop`.
//!
//! A write that has planned [`Portions::most`] copies ends collection of its plane below the stop threshold. Later
//! writes continue, once flash has done most of these copies. A victim is never split, so a plan exceeds the bound by
//! less than a block. Ignored: `ftl.gc_pace = paced`, which plans a few pages at a time.

use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::Io;

/// Pages that a write may copy on any drive. Collection between usual thresholds copies less.
const LEAST: u32 = 1 << 14;

/// The share of a plane that a write may copy: one of so many pages. The copies of a plan that is checked take 60 times
/// the memory of their pages in all tables.
const SHARE: u32 = 256;

/// Planes whose collection continues.
pub(crate) struct Portions {
    /// Pages, and the subpages of these, after whose copies a write ends collection.
    most: u64,
    most_subpages: u64,
    /// Per plane: true if collection ended below the stop threshold.
    unfinished: Vec<bool>,
    /// Number of such planes.
    count: u32,
}

palimpsest_flash::state!(Portions { unfinished, count } built { most, most_subpages });

impl Portions {
    /// For the planes of `geometry`.
    pub fn new(geometry: &Geometry) -> Self {
        let most = u64::from((geometry.blocks_per_plane * geometry.pages_per_block / SHARE).max(LEAST));
        let most_subpages = most * u64::from(geometry.subpages_per_page);
        Portions { most, most_subpages, unfinished: vec![false; geometry.planes() as usize], count: 0 }
    }

    /// True if collection of `plane` ended below the stop threshold.
    #[inline]
    pub fn is_unfinished(&self, plane: u32) -> bool {
        self.count > 0 && self.unfinished[plane as usize]
    }

    /// True if flash has not done most of the copies that earlier writes planned for `plane`.
    fn waits(&self, io: &Io, plane: u32) -> bool {
        let operations = || (0..io.geometry().dies()).map(|die| u64::from(io.load(die))).sum::<u64>();
        self.is_unfinished(plane) && operations() >= self.most
    }

    /// Records whether collection of `plane` ended below the stop threshold.
    fn set(&mut self, plane: u32, unfinished: bool) {
        let before = std::mem::replace(&mut self.unfinished[plane as usize], unfinished);
        self.count = self.count + u32::from(unfinished) - u32::from(before);
    }
}

/// A layer, or the part of one, that collects planes in portions.
pub(crate) trait InPortions: Sized {
    fn portions(&mut self) -> &mut Portions;

    /// Subpages that collection has copied so far.
    fn copied(&self) -> u64;

    /// Number of closed blocks of `plane`.
    fn closed_blocks(&self, plane: u32) -> usize;

    /// Cleans one block of `plane`. False if no block is worth cleaning.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    fn collect_one(&mut self, io: &mut Io, plane: u32) -> Flash<bool>;

    /// Collects while `plane` is short of space, until no victim gains or the portion of this write is full.
    ///
    /// # Errors
    /// As [`Self::collect_one`].
    fn collect_while(&mut self, io: &mut Io, plane: u32, is_short: impl Fn(&Self) -> bool) -> Flash<()> {
        if self.portions().waits(io, plane) {
            return Ok(());
        }
        let full = self.copied() + self.portions().most_subpages;
        let mut left = 2 * self.closed_blocks(plane) + 2;
        while is_short(self) && left > 0 && self.copied() < full && self.collect_one(io, plane)? {
            left -= 1;
        }
        let unfinished = self.copied() >= full && is_short(self);
        self.portions().set(plane, unfinished);
        Ok(())
    }
}
