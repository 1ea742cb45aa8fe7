//! Die failures: from a given flash operation on, all reads of the die are uncorrectable, and its programs and erases
//! fail.
//!
//! Contents of controller memory survive. Out-of-band areas and the layer's own records survive too, because they are
//! assumed stored twice (as in [`super::errors`]), on two dies. A command to a dead die takes its usual time. Ignored:
//! temporary failures, failures of single planes, and channels.

use super::faults::{FaultSettings, Faults};
use super::{Nand, SubpageMask};
use crate::geometry::Geometry;
use std::collections::BTreeSet;
use std::ops::Range;

/// Failed and failing dies.
#[derive(Debug, Clone, Default)]
pub(super) struct Dies {
    /// Failures to come, the last one first: a die fails before the operation.
    to_come: Vec<(u64, u32)>,
    failed: Vec<u32>,
    /// Whether the die of each block has failed; empty if no die has.
    dead: Vec<bool>,
}

impl Dies {
    /// Whether the die of `block` has failed.
    #[inline]
    pub fn is_dead(&self, block: u32) -> bool {
        self.dead.get(block as usize).is_some_and(|&dead| dead)
    }

    fn fail(&mut self, die: u32, geometry: &Geometry) {
        self.failed.push(die);
        self.dead.resize(geometry.blocks() as usize, false);
        let of_die = |block: &u32| geometry.die_of_plane(geometry.plane_of_block(*block)) == die;
        (0..geometry.blocks()).filter(of_die).for_each(|block| self.dead[block as usize] = true);
    }
}

impl Nand {
    /// Schedules `failures` in ascending order: a die fails in the operation with this number (1 = the first of the
    /// run). Dies that have failed already are skipped.
    pub fn fail_dies(&mut self, failures: &[(u64, u32)]) {
        let faults = self.failures.faults.get_or_insert_with(|| Faults::new(FaultSettings::default(), 0));
        let to_come = failures.iter().rev().filter(|(_, die)| !faults.dies.failed.contains(die));
        faults.dies.to_come = to_come.copied().collect();
        self.plan_event();
    }

    /// Failed dies, in the order of their failures.
    pub fn failed_dies(&self) -> &[u32] {
        self.failures.faults.as_ref().map_or(&[], |faults| &faults.dies.failed)
    }

    /// Whether the die of `block` has failed.
    #[inline]
    pub fn is_dead(&self, block: u32) -> bool {
        self.failures.faults.as_ref().is_some_and(|faults| faults.dies.is_dead(block))
    }

    /// Computes the operation of the next power cut or die failure.
    pub(super) fn plan_event(&mut self) {
        let cut = Some(self.schedule.power_cut_at).filter(|&cut| cut > self.schedule.operations);
        let failure = self.failures.faults.as_ref().and_then(|faults| faults.dies.to_come.last()).map(|&(at, _)| at);
        self.schedule.event_at = cut.into_iter().chain(failure).min().unwrap_or(u64::MAX);
    }

    /// The planes of the die of `block`; `None` if the die works.
    pub fn planes_lost_with(&self, block: u32) -> Option<impl Iterator<Item = u32> + use<>> {
        let geometry = &self.geometry;
        let die = geometry.die_of_plane(geometry.plane_of_block(block));
        self.is_dead(block).then(|| (die..geometry.planes()).step_by(geometry.dies() as usize))
    }

    /// Restores the failure of `die` from an image.
    pub(super) fn found_dead(&mut self, die: u32) {
        let geometry = self.geometry;
        let dies = &mut self.failures.faults.get_or_insert_with(|| Faults::new(FaultSettings::default(), 0)).dies;
        if !dies.failed.contains(&die) {
            dies.fail(die, &geometry);
            self.failures.reads_fail = true;
        }
    }

    /// Handles the event of [`Self::plan_event`]. Returns whether the power fails in the present operation.
    #[cold]
    pub(super) fn event(&mut self) -> bool {
        let (geometry, mut stripes) = (self.geometry, self.stripes.take());
        while let Some(faults) = &mut self.failures.faults
            && let Some((_, die)) = faults.dies.to_come.pop_if(|&mut (at, _)| at <= self.schedule.operations)
        {
            let dies = &mut faults.dies;
            match &mut stripes {
                Some(stripes) => {
                    dies.failed.push(die);
                    dies.dead.resize(geometry.blocks() as usize, false);
                    stripes.lose(die).for_each(|block| dies.dead[block as usize] = true);
                }
                None => dies.fail(die, &geometry),
            }
            self.failures.reads_fail = true;
            // If the image fails, the next write reports the failure.
            let _ = self.commit_trims();
            if self.has_image() {
                let _ = self.keep_mark(die * geometry.blocks_per_plane, false);
            }
        }
        self.stripes = stripes;
        self.plan_event();
        self.schedule.operations == self.schedule.power_cut_at
    }

    /// Subpages that reads have found lost, by bit errors and by dead dies; each is counted once.
    pub fn found_lost(&self) -> &BTreeSet<u32> {
        &self.failures.lost
    }

    /// Forgets the lost subpages of erased pages.
    pub(super) fn forget_lost(&mut self, pages: &Range<u32>) {
        if !self.failures.lost.is_empty() {
            let width = self.geometry.subpages_per_page;
            self.failures.lost.extract_if(pages.start * width..pages.end * width, |_| true).for_each(drop);
        }
    }

    /// Restores the lost subpages of [`Self::found_lost`], because the reads since then served the verifier alone.
    pub fn set_found_lost(&mut self, lost: BTreeSet<u32>) {
        self.failures.lost = lost;
    }

    /// Whether the next program, of page `ppn`, fails.
    pub(super) fn program_fails(&mut self, ppn: u32) -> bool {
        let block = self.split(ppn).0;
        let fails = self.failures.faults.as_mut().is_some_and(|faults| faults.program_fails(block));
        let parity = self.stripe_of(ppn).map(|(_, parity)| self.programs(parity) > 0);
        // A programmed parity page cannot give its place to a data page.
        fails || self.stripes.as_mut().is_some_and(|stripes| !stripes.take_place(ppn, parity == Some(true)))
    }

    /// Marks the subpages `wanted` of page `home` as lost to a dead die or wrong bits. Returns the number that was
    /// readable before.
    pub fn lose(&mut self, home: u32, wanted: SubpageMask) -> u32 {
        self.payload.lose((home * self.geometry.subpages_per_page) as usize, wanted);
        // If the image fails, the next write reports the failure.
        let _ = self.keep_record(home);
        let first = home * self.geometry.subpages_per_page;
        let lost = &mut self.failures.lost;
        (0..64).filter(|index| wanted >> index & 1 == 1).filter(|index| lost.insert(first + index)).count() as u32
    }
}
