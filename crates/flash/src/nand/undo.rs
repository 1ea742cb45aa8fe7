//! Rollback at a power cut: reverts operations that were planned and had not started.
//!
//! Cells change when an operation is planned, ahead of its time. If a cut is scheduled in a timed run, flash logs the
//! changes of each operation until its end. The cut rolls back operations that had not started in the array, the last
//! first, and tears operations in the array. Operations of a block run in the order of their plan, so a rollback never
//! reaches below an operation that ran. Ignored: images, because their drives have no scheduled cuts.

use super::data::SavedPayload;
use super::generations::SavedGenerations;
use super::own::SavedOwn;
use super::pairs::SavedPairs;
use super::part::ReadCommand;
use super::{Block, Nand, NandCounters, SubpageMask, TORN};
use crate::units::Picojoules;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The changes of one operation.
pub(super) struct Undo {
    block: u32,
    /// Pages with changed cells; empty for a read.
    pages: Range<u32>,
    /// Subpages that a program wrote; empty for an erase.
    written: SubpageMask,
    state: Block,
    programs: Box<[u8]>,
    logical: Box<[u32]>,
    payload: SavedPayload,
    own: SavedOwn,
    generations: SavedGenerations,
    pairs: SavedPairs,
    /// Parity pages of an erase.
    parity: Option<Box<Undo>>,
    /// The former state of the stripe.
    known: (bool, u64),
    /// For an erase in a superblock: the operation of the first block's erase, and the number of blocks.
    part_of: Option<(u64, u32)>,
    /// The former counters; once the operation is done, the difference.
    counters: NandCounters,
}

/// Operations that have not ended, by number.
#[derive(Default)]
pub(super) struct UndoLog(BTreeMap<u64, Undo>);

/// The counters at the start of the measurement, without operations that a power cut rolled back since.
#[derive(Default)]
pub(super) struct Measured {
    /// Operations begun before.
    operations: u64,
    counters: NandCounters,
}

impl Nand {
    /// The operation of the scheduled power cut.
    pub fn power_cut_at(&self) -> Option<u64> {
        Some(self.schedule.power_cut_at).filter(|&cut| cut != u64::MAX)
    }

    /// Schedules a power cut in operation number `operation` (1 = the first of the run), or none.
    pub fn set_power_cut_at(&mut self, operation: Option<u64>) {
        self.schedule.power_cut_at = operation.unwrap_or(u64::MAX);
        self.plan_event();
    }

    /// Starts to log changes until [`Self::ended`], for [`Self::lose_power`].
    pub fn keep_undo(&mut self) {
        self.records.undo = Some(Box::default());
    }

    /// Starts the measurement.
    pub fn measure(&mut self) {
        let operations = self.schedule.operations;
        let counters = self.counters.clone();
        self.records.measured = Measured { operations, counters };
    }

    /// The counters at the start of the measurement. An operation planned before that a power cut rolled back counts
    /// in neither these nor the present counters.
    pub fn counters_before(&self) -> &NandCounters {
        &self.records.measured.counters
    }

    /// True if operation `number` was planned before the measurement.
    pub fn precedes_measurement(&self, number: u64) -> bool {
        number <= self.records.measured.operations
    }

    /// Subtracts the counts of operation `number`, which did not end.
    fn take_back(&mut self, number: u64, counts: &NandCounters) {
        self.counters.take_back(counts);
        if self.precedes_measurement(number) {
            self.records.measured.counters.take_back(counts);
        }
    }

    /// Stops to log. The reads with the numbers `dropped` never happen, and are subtracted from the counters. Returns
    /// their number.
    pub fn drop_undo(&mut self, dropped: impl Iterator<Item = u64>) -> u64 {
        let mut log = self.records.undo.take().unwrap_or_default();
        let undone: Vec<_> = dropped.filter_map(|number| Some((number, log.0.remove(&number)?))).collect();
        undone.iter().for_each(|(number, undo)| self.take_back(*number, &undo.counters));
        undone.len() as u64
    }

    /// Drops the log of operation `number`, which has ended.
    pub fn ended(&mut self, number: u64) {
        if let Some(log) = &mut self.records.undo {
            log.0.remove(&number);
        }
    }

    /// Saves `pages` of `block` before an operation that programs their subpages `written`.
    #[cold]
    #[inline(never)]
    pub(super) fn save(&mut self, block: u32, pages: Range<u32>, written: SubpageMask) -> Box<Undo> {
        let width = self.geometry.subpages_per_page;
        let subpages = (pages.start * width) as usize..(pages.end * width) as usize;
        Box::new(Undo {
            block,
            written,
            state: self.blocks[block as usize],
            programs: self.programs[pages.start as usize..pages.end as usize].into(),
            logical: self.logical[subpages.clone()].into(),
            payload: self.payload.save(subpages),
            own: self.own.save(pages.clone(), width),
            generations: self.generations.save(pages.clone()),
            pairs: self.pairs.take(pages.clone()),
            counters: self.counters.clone(),
            parity: None,
            known: self.stripes.as_ref().filter(|_| !pages.is_empty()).map_or((false, 0), |all| all.known(pages.start)),
            part_of: None,
            pages,
        })
    }

    /// [`Self::save`] before an erase of `block`.
    #[cold]
    pub(super) fn save_erase(&mut self, block: u32, pages: Range<u32>) -> Box<Undo> {
        let mut undo = self.save(block, pages, 0);
        if self.has_stripes() {
            undo.parity = Some(self.save(block, self.parity_of(block), 0));
            undo.part_of = Some((self.schedule.operations, self.erases_together()));
        }
        undo
    }

    /// [`Self::save`] before an erase of a further block of the superblock `block`, after the first in operation
    /// `first`.
    #[cold]
    pub(super) fn save_part(&mut self, block: u32, first: u64) -> Box<Undo> {
        let mut undo = self.save(block, 0..0, 0);
        undo.part_of = Some((first, self.erases_together()));
        undo
    }

    /// Logs `undo` once the operation is done.
    #[cold]
    #[inline(never)]
    pub(super) fn log_undo(&mut self, mut undo: Box<Undo>) {
        undo.counters = self.counters.since(&undo.counters);
        if let Some(log) = &mut self.records.undo {
            log.0.insert(self.schedule.operations, *undo);
        }
    }

    /// Counts `steps` retries of the last read, each of `energy`. A rollback of the read must subtract them too.
    pub(super) fn count_retries(&mut self, steps: u32, energy: Picojoules) {
        if steps == 0 {
            return;
        }
        let log = self.records.undo.as_mut();
        let undo = log.and_then(|log| log.0.get_mut(&self.schedule.operations)).map(|undo| &mut undo.counters);
        for counters in [&mut self.counters].into_iter().chain(undo) {
            counters.retries += u64::from(steps);
            counters.read_energy += u64::from(steps) * energy;
        }
    }

    /// Reads the out-of-band area of page `ppn` for recovery; the numbers are at [`Self::logical_of`]. Any page may be
    /// scanned, and erased or torn pages show.
    pub fn scan(&mut self, ppn: u32) {
        let page = self.split(ppn).1;
        self.schedule.operations += 1;
        self.counters.reads += 1;
        self.counters.read_energy += self.part.read_energy(self.page_of_die(page), ReadCommand::PAGE);
    }

    /// Replaces the counters, after reads that must not count.
    pub fn set_counters(&mut self, counters: NandCounters) {
        self.counters = counters;
    }

    /// Cuts the power. Operations that have not ended are rolled back and not counted. Operations with the numbers
    /// `running` are torn: their cells are unreadable. Returns the number of rolled back operations.
    pub fn lose_power(&mut self, running: &[u64]) -> u64 {
        let Some(log) = self.records.undo.take() else { return 0 };
        let (mut undone, mut erased) = (0, BTreeSet::new());
        let mut erases: BTreeMap<u64, u32> = BTreeMap::new();
        let parts = log.0.iter().filter(|(number, _)| !running.contains(number)).filter_map(|(_, undo)| undo.part_of);
        parts.for_each(|(first, _)| *erases.entry(first).or_default() += 1);
        let blocks: BTreeSet<u32> = log.0.values().filter(|_| self.has_stripes()).map(|undo| undo.block).collect();
        for (number, undo) in log.0.into_iter().rev() {
            undone += u64::from(!running.contains(&number));
            self.take_back(number, &undo.counters);
            if let Some((first, all)) = undo.part_of {
                let is_all = erases.get(&first) == Some(&all);
                erased.extend((!is_all).then_some(undo.block));
                self.undo_part(number, undo, is_all, first);
                continue;
            }
            // An erase on other dies of a superblock also destroys pages that a die had not programmed.
            let is_gone = undo.pages.is_empty() || erased.contains(&undo.block);
            match (is_gone, running.contains(&number)) {
                (true, _) => {}
                (false, false) => self.restore(number, undo),
                (false, true) => self.tear(number, undo),
            }
        }
        blocks.into_iter().for_each(|block| self.settle_striped(block));
        undone
    }

    /// Rolls back an erase of a superblock, which began with operation `first`. If the erase had begun on any die, all
    /// data is lost, and the superblock must be erased again.
    fn undo_part(&mut self, number: u64, mut undo: Undo, all: bool, first: u64) {
        let (block, before) = (undo.block, undo.state);
        if number != first {
            self.stripes.iter_mut().for_each(|stripes| stripes.also_erased -= 1);
            self.blocks[block as usize].torn |= !all;
            return;
        }
        if all {
            if let Some(parity) = undo.parity.take() {
                self.restore(number, *parity);
            }
            return self.restore(number, undo);
        }
        let state = &mut self.blocks[block as usize];
        (state.bad, state.erases, state.torn) = (before.bad, before.erases, true);
    }

    fn restore(&mut self, number: u64, undo: Undo) {
        let Undo { block, pages, state, programs, logical, payload, own, generations, pairs, known, .. } = undo;
        if let Some(stripes) = &mut self.stripes {
            stripes.set_known(pages.start, known);
        }
        self.undo_corruption(number);
        drop(self.pairs.take(pages.clone()));
        self.pairs.put(pairs);
        let width = self.geometry.subpages_per_page;
        let first = (pages.start * width) as usize;
        self.blocks[block as usize] = state;
        self.programs[pages.start as usize..pages.end as usize].copy_from_slice(&programs);
        self.logical[first..first + logical.len()].copy_from_slice(&logical);
        self.payload.restore(first, payload);
        self.generations.restore(pages.clone(), generations);
        self.own.restore(pages, width, own);
    }

    /// Leaves cells as [`Self::program`] and [`Self::erase`] do at a power cut.
    fn tear(&mut self, number: u64, undo: Undo) {
        let Undo { block, pages, written, state: before, payload, own, .. } = undo;
        let width = self.geometry.subpages_per_page;
        let state = &mut self.blocks[block as usize];
        (state.bad, state.erases) = (before.bad, before.erases);
        if written == 0 {
            state.torn = true;
            return;
        }
        state.gaps = true;
        let first = (pages.start * width) as usize;
        for index in (0..width as usize).filter(|index| written >> index & 1 == 1) {
            self.logical[first + index] = TORN;
        }
        self.payload.restore(first, payload);
        drop(self.pairs.take(pages.clone()));
        let ppn = pages.start;
        self.own.restore(pages, width, own);
        // Word lines of pages with parity are programmed at once.
        if !self.has_stripes() {
            self.corrupt_mates(ppn, number);
        }
    }
}
