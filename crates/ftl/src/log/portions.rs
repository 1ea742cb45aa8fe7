//! Portions of collection: the copies that a write plans are bounded, so that the memory of a run does not grow with
//! `ftl.gc_stop`.
//!
//! A write that has planned [`Portions::most`] copies ends collection of its plane below the stop threshold. Later
//! writes continue, once flash has done most of these copies. A victim is never split, so a plan exceeds the bound by
//! less than a block. Ignored: `ftl.gc_pace = paced`, which plans a few pages at a time.

use palimpsest_flash::geometry::Geometry;
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
    pub fn waits(&self, io: &Io, plane: u32) -> bool {
        let operations = || (0..io.geometry().dies()).map(|die| u64::from(io.load(die))).sum::<u64>();
        self.is_unfinished(plane) && operations() >= self.most
    }

    /// True if a write that has copied `subpages` must end collection.
    pub fn is_full(&self, subpages: u64) -> bool {
        subpages >= self.most_subpages
    }

    /// Records whether collection of `plane` ended below the stop threshold.
    pub fn set(&mut self, plane: u32, unfinished: bool) {
        let before = std::mem::replace(&mut self.unfinished[plane as usize], unfinished);
        self.count = self.count + u32::from(unfinished) - u32::from(before);
    }
}
