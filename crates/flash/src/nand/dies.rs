//! Dies that fail: from a flash operation on, no read of the die can be corrected, and its programs and erases fail.
//!
//! What the controller keeps in its memory is there still, and so are out-of-band areas and the layer's own records, which are taken as
//! stored twice (as in [`super::errors`]), on two dies. A command to a dead die takes the time that it would have taken. Ignored: dies that
//! fail for a while, planes that fail alone, and channels.

use super::faults::{FaultSettings, Faults};
use super::{Nand, SubpageMask};
use crate::geometry::Geometry;
use std::collections::BTreeSet;

/// What a nand knows of failing dies.
#[derive(Debug, Clone, Default)]
pub(super) struct Dies {
    /// Failures to come, the last first: the operation before which a die fails.
    to_come: Vec<(u64, u32)>,
    failed: Vec<u32>,
    /// Whether the die of each block has failed; empty while none has.
    dead: Vec<bool>,
    /// Subpages of theirs that a read has found lost.
    lost: BTreeSet<u32>,
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
    /// Dies will fail, but for those that have: each of `failures` in the operation with this number (1 = the first of the run), in ascending order.
    pub fn fail_dies(&mut self, failures: &[(u64, u32)]) {
        let faults = self.faults.get_or_insert_with(|| Faults::new(FaultSettings::default(), 0));
        let to_come = failures.iter().rev().filter(|(_, die)| !faults.dies.failed.contains(die));
        faults.dies.to_come = to_come.copied().collect();
        self.plan_event();
    }

    /// Dies that have failed, in the order in which they did.
    pub fn failed_dies(&self) -> &[u32] {
        self.faults.as_ref().map_or(&[], |faults| &faults.dies.failed)
    }

    /// Whether the die of `block` has failed.
    #[inline]
    pub fn is_dead(&self, block: u32) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.dies.is_dead(block))
    }

    /// The operation in which something happens next: the power fails, or a die does.
    pub(super) fn plan_event(&mut self) {
        let cut = Some(self.power_cut_at).filter(|&cut| cut > self.operations);
        let failure = self.faults.as_ref().and_then(|faults| faults.dies.to_come.last()).map(|&(at, _)| at);
        self.event_at = cut.into_iter().chain(failure).min().unwrap_or(u64::MAX);
    }

    /// The planes of the die that holds `block`; none where that die has not failed.
    pub fn planes_lost_with(&self, block: u32) -> Option<impl Iterator<Item = u32> + use<>> {
        let geometry = &self.geometry;
        let die = geometry.die_of_plane(geometry.plane_of_block(block));
        self.is_dead(block).then(|| (die..geometry.planes()).step_by(geometry.dies() as usize))
    }

    /// `die` had failed when its image was closed.
    pub(super) fn found_dead(&mut self, die: u32) {
        let geometry = self.geometry;
        let dies = &mut self.faults.get_or_insert_with(|| Faults::new(FaultSettings::default(), 0)).dies;
        if !dies.failed.contains(&die) {
            dies.fail(die, &geometry);
            self.reads_fail = true;
        }
    }

    /// The moment that [`Self::plan_event`] found has come. Returns whether the power fails in the present operation.
    #[cold]
    pub(super) fn event(&mut self) -> bool {
        let (geometry, mut stripes) = (self.geometry, self.stripes.take());
        while let Some(faults) = &mut self.faults
            && let Some((_, die)) = faults.dies.to_come.pop_if(|&mut (at, _)| at <= self.operations)
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
            self.reads_fail = true;
            // If the image fails, the next write reports the failure.
            let _ = self.commit_trims();
            if self.has_image() {
                let _ = self.keep_mark(die * geometry.blocks_per_plane, false);
            }
        }
        self.stripes = stripes;
        self.plan_event();
        self.operations == self.power_cut_at
    }

    /// Subpages that a read has found lost: each is counted once.
    pub fn found_lost(&self) -> [BTreeSet<u32>; 2] {
        let of_dies = self.faults.as_ref().map(|faults| faults.dies.lost.clone());
        [self.errors.as_ref().map(|errors| errors.lost().clone()).unwrap_or_default(), of_dies.unwrap_or_default()]
    }

    /// What reads have found since [`Self::found_lost`] was for the verifier alone.
    pub fn set_found_lost(&mut self, [of_errors, of_dies]: [BTreeSet<u32>; 2]) {
        self.errors.iter_mut().zip([of_errors]).for_each(|(errors, lost)| errors.set_lost(lost));
        self.faults.iter_mut().zip([of_dies]).for_each(|(faults, lost)| faults.dies.lost = lost);
    }

    /// Whether the next program, which is one of page `ppn`, fails.
    pub(super) fn program_fails(&mut self, ppn: u32) -> bool {
        let block = self.split(ppn).0;
        let fails = self.faults.as_mut().is_some_and(|faults| faults.program_fails(block));
        let parity = self.stripe_of(ppn).map(|(_, parity)| self.programs(parity) > 0);
        // Where the parity was programmed already, its place cannot be taken.
        fails || self.stripes.as_mut().is_some_and(|stripes| !stripes.take_place(ppn, parity == Some(true)))
    }

    /// The subpages `wanted` of page `home` are lost, as its die has failed or its bits are wrong. Returns how many could be read before.
    pub fn lose(&mut self, home: u32, wanted: SubpageMask) -> u32 {
        self.payload.lose((home * self.geometry.subpages_per_page) as usize, wanted);
        // Where that fails, the next write does, which says so.
        let _ = self.keep_record(home);
        let first = home * self.geometry.subpages_per_page;
        let mut find = |psn| match (&mut self.errors, &mut self.faults) {
            (Some(errors), _) => errors.find_lost(psn),
            (None, Some(faults)) => faults.dies.lost.insert(psn),
            (None, None) => false,
        };
        (0..64).filter(|index| wanted >> index & 1 == 1).filter(|index| find(first + index)).count() as u32
    }
}
