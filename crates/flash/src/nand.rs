//! Flash: the only code that changes cells.
//!
//! Models the contents of pages, the erases of blocks, the energy of operations, and the operations that the part
//! allows. `probe_*` checks an operation; `read`, `program` and `erase` execute it, or refuse it with the broken rule.
//! Flash has no time. Ignored: voltage distributions. Faults are drawn from probabilities instead ([`faults`]), and bit
//! errors of reads follow from wear, age and reads ([`errors`]).

pub mod cells;
mod counters;
pub mod data;
mod dies;
pub mod errors;
pub mod faults;
mod filled;
mod generations;
pub mod history;
pub mod image;
mod masks;
pub mod outcome;
pub mod own;
mod pairs;
pub mod part;
mod prefetches;
mod probes;
pub mod rules;
mod runs;
mod single;
pub mod stripes;
#[cfg(test)]
mod tests;
mod trims;
mod undo;
pub mod wear;

use crate::geometry::{Divisor, Geometry};
pub use counters::NandCounters;
use data::{Data, Payload, PayloadStore};
use faults::Faults;
pub use filled::Fill;
use generations::{Change, Generations};
use history::History;
pub use masks::{SubpageMask, WordMask, count, first_subpages, mask_of};
pub use outcome::{Flash, Halt, Outcome};
pub use own::Own;
use own::OwnStore;
use part::{Part, ReadCommand};
use rules::{Refusal, Rule};
pub use runs::Row;
use std::collections::BTreeSet;

/// Logical number of a subpage that was not written since the erase.
pub const UNWRITTEN: u32 = u32::MAX;
/// Logical number of a subpage that was programmed as padding.
pub const PADDING: u32 = u32::MAX - 1;
/// Logical number of an unreadable subpage, whose program failed or was cut off.
pub const TORN: u32 = u32::MAX - 2;

/// The state of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Pages before this one are programmed, or were skipped and cannot be programmed any more.
    next_page: u32,
    erases: u32,
    bad: bool,
    /// Whether some page below `next_page` has unreadable subpages: unwritten, or torn.
    gaps: bool,
    /// Whether the last erase was cut off, so that the block must be erased again.
    torn: bool,
    /// Progress of low and high pages; only if pages are paired.
    reached: rules::Reached,
    /// Whether the low pages are, or were, programmed before the high pages.
    low_first: bool,
    /// Whether some low page was programmed again over data.
    reused: bool,
    /// The highest generation of a page's program, under a code of cells.
    pass: u8,
    single: bool,
    /// Whether the controller reserves the block for copies of pages.
    kept: bool,
}

crate::state!(Block { next_page, erases, bad, gaps, torn, reached, low_first, reused, pass, single, kept });

/// All flash of a drive.
pub struct Nand {
    geometry: Geometry,
    part: Part,
    widths: Widths,
    blocks: Vec<Block>,
    /// Programs of each page since its erase.
    programs: Vec<u8>,
    /// Logical number in the out-of-band area of each subpage; meaningless in unprogrammed pages.
    logical: Vec<u32>,
    payload: PayloadStore,
    own: OwnStore,
    generations: Generations,
    counters: NandCounters,
    schedule: Schedule,
    pairs: pairs::Pairs,
    failures: Failures,
    records: Records,
    /// The mapping of pages to dies, if blocks are superblocks.
    stripes: Option<Box<stripes::Stripes>>,
}

/// Widths of blocks and pages.
struct Widths {
    pages_per_block: Divisor,
    subpages_per_page: Divisor,
    word_bytes: Divisor,
    all_subpages: SubpageMask,
}

/// Operations begun, and the operations at which power cuts and die failures come.
struct Schedule {
    operations: u64,
    power_cut_at: u64,
    /// The operation of the next power cut or die failure.
    event_at: u64,
}

crate::state!(Schedule { operations } built { power_cut_at, event_at });

/// Causes of failed operations.
#[derive(Default)]
struct Failures {
    faults: Option<Faults>,
    /// Errors of reads; `None`: reads have no errors.
    errors: Option<Box<errors::ReadErrors>>,
    /// Erases that each block endures; empty if blocks do not wear out.
    endurances: Vec<u32>,
    /// Number of leading blocks in each plane that always hold one bit a cell.
    always_single: u32,
    /// Whether reads may be uncorrectable.
    reads_fail: bool,
    /// Subpages that reads have found lost since the last program.
    lost: BTreeSet<u32>,
}

crate::state!(Failures { lost } parts { faults, errors } built { endurances, always_single, reads_fail });

/// Records of past operations.
#[derive(Default)]
struct Records {
    history: History,
    /// Changes of operations that have not ended; `None` if no power cut is scheduled in a timed run.
    undo: Option<Box<undo::UndoLog>>,
    measured: undo::Measured,
    /// The journal of trims; `None` if no power cut is possible, or the layer journals trims itself.
    trims: Option<Box<trims::Trims>>,
}

// After a state is loaded, the history explains refused operations only in part. States are never stored in runs with
// power cuts.
crate::state!(Nand {
    blocks, programs, logical, payload, own, generations, counters, schedule, pairs, failures
} built { geometry, part, widths, records, stripes });

impl Nand {
    /// Erased flash of `geometry` made of `part`, storing `payload`, with the factory's bad blocks by `faults`.
    pub fn new(geometry: Geometry, part: Part, payload: Payload, mut faults: Option<Faults>) -> Self {
        let mut blocks = vec![Block::default(); geometry.blocks() as usize];
        let mut power_cut_at = u64::MAX;
        let mut endurances = Vec::new();
        if let Some(faults) = &mut faults {
            for block in &mut blocks {
                block.bad = faults.bad_from_factory();
            }
            power_cut_at = faults.power_cut_at().unwrap_or(u64::MAX);
            endurances = faults.endurances(geometry.blocks(), part.endurance, part.endurance_deviation);
        }
        Nand {
            blocks,
            programs: vec![0; geometry.pages() as usize],
            logical: vec![0; geometry.subpages() as usize],
            payload: PayloadStore::new(payload, &geometry),
            own: OwnStore::default(),
            generations: Generations::new(part.code, payload, &geometry),
            counters: NandCounters::default(),
            schedule: Schedule { operations: 0, power_cut_at, event_at: power_cut_at },
            pairs: pairs::Pairs::default(),
            failures: Failures { faults, endurances, ..Failures::default() },
            records: Records::default(),
            stripes: None,
            widths: Widths {
                pages_per_block: Divisor::new(geometry.pages_per_block),
                subpages_per_page: Divisor::new(geometry.subpages_per_page),
                word_bytes: Divisor::new(part.word_bytes),
                all_subpages: u64::MAX >> (64 - geometry.subpages_per_page),
            },
            geometry,
            part,
        }
    }

    /// Shape of the drive.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The part.
    #[inline]
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Counts and energies of operations.
    pub fn counters(&self) -> &NandCounters {
        &self.counters
    }

    /// Flash operations begun so far.
    pub fn operations(&self) -> u64 {
        self.schedule.operations
    }

    /// Erases of `block`.
    #[inline]
    pub fn erases(&self, block: u32) -> u32 {
        self.blocks[block as usize].erases
    }

    /// Whether the layer must not use `block`: bad, or reserved by the controller.
    #[inline]
    pub fn is_bad(&self, block: u32) -> bool {
        let state = &self.blocks[block as usize];
        state.bad || state.kept
    }

    /// Whether an erase of `block` was cut off.
    pub fn is_torn(&self, block: u32) -> bool {
        self.blocks[block as usize].torn
    }

    /// The first page of `block` that may still be programmed in ascending order.
    #[inline]
    pub fn next_page(&self, block: u32) -> u32 {
        self.blocks[block as usize].next_page
    }

    /// Programs of physical page `ppn` since its erase.
    #[inline]
    pub fn programs(&self, ppn: u32) -> u32 {
        u32::from(self.programs[ppn as usize])
    }

    /// Logical number in the out-of-band area of physical subpage `psn`; [`UNWRITTEN`] in an erased page.
    #[inline]
    pub fn logical(&self, psn: u32) -> u32 {
        let ppn = self.widths.subpages_per_page.divide(psn);
        if self.programs[ppn as usize] == 0 { UNWRITTEN } else { self.logical[psn as usize] }
    }

    /// Logical numbers in the out-of-band areas of page `ppn`; empty if erased.
    #[inline]
    pub fn logical_of(&self, ppn: u32) -> &[u32] {
        let width = if self.programs[ppn as usize] == 0 { 0 } else { self.geometry.subpages_per_page as usize };
        &self.logical[ppn as usize * self.geometry.subpages_per_page as usize..][..width]
    }

    /// Logical numbers in the out-of-band areas of the `count` pages from page `ppn` on, which must be programmed.
    #[inline]
    pub fn logical_of_pages(&self, ppn: u32, count: u32) -> &[u32] {
        let width = self.geometry.subpages_per_page as usize;
        &self.logical[ppn as usize * width..][..count as usize * width]
    }

    /// Number of the program that wrote physical subpage `psn`; later programs have larger numbers. 0 with
    /// [`Payload::None`], which stores no numbers.
    pub fn sequence(&self, psn: u32) -> u64 {
        self.payload.sequence(psn)
    }

    /// Loads the content of physical subpage `psn` into controller memory.
    #[inline]
    pub fn load(&mut self, psn: u32) -> Data {
        self.payload.load(psn)
    }

    /// Controller memory for payload bytes.
    pub fn buffers(&mut self) -> &mut data::Buffers {
        self.payload.buffers()
    }

    /// The bytes of `data` in controller memory; `None`: zeros.
    pub fn buffered(&self, data: Data) -> Option<&[u8]> {
        self.payload.buffered(data)
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> Payload {
        self.payload.kind()
    }

    #[inline]
    fn begin(&mut self) -> bool {
        self.schedule.operations += 1;
        self.schedule.operations >= self.schedule.event_at && self.event()
    }

    #[cold]
    fn refuse(&self, rule: Rule, block: u32, page: u32) -> Halt {
        Halt::Refused(Box::new(Refusal {
            rule,
            block,
            page,
            operation: self.schedule.operations,
            history: self.records.history.of(block),
        }))
    }

    /// Reads the subpages `wanted` of `ppn` with `command`. Returns whether a retry was needed, which senses the same
    /// again.
    ///
    /// # Errors
    /// [`Halt::Refused`] if a wanted subpage holds no data or the part lacks the command, [`Halt::PowerCut`].
    #[inline(always)]
    pub fn read(&mut self, ppn: u32, wanted: SubpageMask, command: ReadCommand) -> Flash<bool> {
        let cut = self.begin();
        let (block, page) = self.split(ppn);
        self.records.history.note(history::RecordKind::Read, block, page, wanted);
        if let Err(rule) = self.probe_read_of((block, page), ppn, wanted, command) {
            return Err(self.refuse(rule, block, page));
        }
        if cut {
            return Err(Halt::PowerCut);
        }
        let undo = self.records.undo.is_some().then(|| self.save(block, 0..0, 0));
        self.counters.reads += 1;
        let energy = self.part.read_energy(self.page_of_die(page), command);
        self.counters.read_energy += energy;
        let retry = self.failures.faults.as_mut().is_some_and(Faults::read_fails);
        if retry {
            self.counters.retries += 1;
            self.counters.read_energy += energy;
        }
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(retry)
    }

    /// Programs the subpages `written` of `ppn`. `logical` and `data` have one entry a subpage of the page; subpages
    /// outside `written` do not change. `logical` entries may be [`PADDING`].
    ///
    /// # Errors
    /// [`Halt::Refused`] with the broken rule, [`Halt::PowerCut`].
    #[inline]
    pub fn program(&mut self, ppn: u32, written: SubpageMask, logical: &[u32], data: &[Data]) -> Flash<Outcome> {
        self.program_own(ppn, written, logical, data, Own::NONE)
    }

    /// [`Self::program`] with bytes of the layer's own.
    ///
    /// # Errors
    /// As [`Self::program`].
    #[inline]
    pub fn program_own(
        &mut self,
        ppn: u32,
        written: SubpageMask,
        logical: &[u32],
        data: &[Data],
        own: Own<'_>,
    ) -> Flash<Outcome> {
        self.change_cells(ppn, written, logical, data, own, Change::First)
    }

    /// Programs cells that hold data already, from 1 to 0 only, by a write-once-memory code. With payload bytes every
    /// bit is checked, also in the spare area (`spare`; empty: unchanged).
    ///
    /// # Errors
    /// As [`Self::program`]; [`Rule::OneToZero`] if a cell would have to change from 0 to 1.
    pub fn reprogram(
        &mut self,
        ppn: u32,
        written: SubpageMask,
        logical: &[u32],
        data: &[Data],
        spare: &[u8],
    ) -> Flash<Outcome> {
        self.change_cells(ppn, written, logical, data, Own { page: &[], spare }, Change::Over)
    }

    /// Whether `ppn` is the next page of a block and `written` are all of its subpages, and whether a program without
    /// bytes of the layer changes nothing but these cells.
    #[inline(always)]
    pub fn takes_next(&self, ppn: u32, written: SubpageMask) -> bool {
        let recorded = self.records.undo.is_some() || self.records.trims.is_some();
        let alone = self.schedule.operations + 1 < self.schedule.event_at && self.failures.faults.is_none();
        let plain = alone && !recorded && self.payload.kind() != Payload::Bytes;
        plain && written == self.widths.all_subpages && self.is_next(self.split(ppn), ppn)
    }

    /// Programs page `ppn` as [`Self::program`] would. The caller must have checked [`Self::takes_next`].
    #[inline(always)]
    pub fn program_next(&mut self, ppn: u32, logical: &[u32], data: &[Data]) {
        self.schedule.operations += 1;
        let (block, page) = self.split(ppn);
        self.records.history.note(history::RecordKind::Program, block, page, self.widths.all_subpages);
        let count = self.geometry.subpages_per_page as usize;
        let first = ppn as usize * count;
        if let ([cell], [logical, ..]) = (&mut self.logical[first..first + count], logical) {
            *cell = *logical;
        } else {
            self.logical[first..first + count].copy_from_slice(&logical[..count]);
        }
        if self.payload.kind() != Payload::None {
            self.store_next(first, data);
        }
        self.programs[ppn as usize] = 1;
        self.blocks[block as usize].next_page = page + 1;
        self.count_program((block, page), self.widths.all_subpages, false);
    }

    /// Stores the contents of a page out of line, because most runs have none.
    #[inline(never)]
    fn store_next(&mut self, first: usize, data: &[Data]) {
        self.payload.store(first, self.widths.all_subpages, data, self.schedule.operations);
    }

    #[inline(never)]
    fn change_cells(
        &mut self,
        ppn: u32,
        written: SubpageMask,
        logical: &[u32],
        data: &[Data],
        own: Own<'_>,
        change: Change,
    ) -> Flash<Outcome> {
        if change == Change::First && own.is_none() && self.takes_next(ppn, written) {
            self.program_next(ppn, logical, data);
            return Ok(Outcome::Done);
        }
        if self.records.trims.is_some() {
            self.commit_trims()?;
        }
        let cut = self.begin();
        let (block, page) = self.split(ppn);
        self.records.history.note(history::RecordKind::Program, block, page, written);
        let first = (ppn * self.geometry.subpages_per_page) as usize;
        let reuse = change == Change::Over;
        let mut levels = None;
        let mut allowed = match change {
            Change::Generation(generation) => self.raised(ppn, generation, written, data).map(|raised| levels = raised),
            _ => self.probe_page((block, page), ppn, written, reuse),
        };
        let again = self.programs[ppn as usize] > 0;
        let clears = |nand: &Nand| !reuse || nand.payload.only_clears(first, written, data);
        if again && allowed.is_ok() && !(clears(self) && self.own.spare_only_clears(ppn, own.spare)) {
            allowed = Err(Rule::OneToZero);
        }
        if let Err(rule) = allowed {
            return Err(self.refuse(rule, block, page));
        }
        let undo = self.records.undo.is_some().then(|| self.save(block, ppn..ppn + 1, written));
        if again {
            self.pairs.erase(ppn..ppn + 1);
        }
        let kept = self.payload.image.is_some().then(|| self.kept_before(ppn, change, again, levels.as_deref()));
        if let Change::Generation(generation) = change {
            self.enter_generation(ppn, generation, levels);
        }
        let count = self.geometry.subpages_per_page as usize;
        let cells = &mut self.logical[first..first + count];
        for (index, cell) in cells.iter_mut().enumerate() {
            if written >> index & 1 == 1 {
                *cell = logical[index];
            } else if !again {
                *cell = UNWRITTEN;
            }
        }
        self.programs[ppn as usize] += 1;
        let state = &mut self.blocks[block as usize];
        state.gaps |= written != self.widths.all_subpages || page > state.next_page;
        state.next_page = state.next_page.max(page + 1);
        if self.part.paired() {
            self.note_pair(block, page, reuse && again);
        }
        let failed = self.failures.faults.is_some() && self.program_fails(ppn);
        let outcome = if cut || failed {
            self.spoil(ppn, written, cut)?
        } else {
            self.payload.store(first, written, data, self.schedule.operations);
            if !own.is_none() {
                self.store_own(ppn, written, own);
            }
            self.count_program((block, page), written, again);
            Outcome::Done
        };
        if let Some(before) = kept {
            self.keep_program(ppn, written, outcome == Outcome::Done, before)?;
        }
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(outcome)
    }

    #[inline]
    fn count_program(&mut self, (block, page): (u32, u32), written: SubpageMask, again: bool) {
        let (part, Block { low_first, kept, single, .. }) = (&self.part, self.blocks[block as usize]);
        let high = !single && self.is_high(page);
        let counters = &mut self.counters;
        counters.programs += 1;
        counters.pair_copies += u64::from(kept);
        counters.partial_programs += u64::from(count(written) < self.geometry.subpages_per_page);
        if again {
            counters.reprograms += 1;
            counters.reprogram_energy += part.e_reprogram;
        } else {
            counters.program_energy += match (high, low_first) {
                (false, false) => part.e_program,
                (false, true) => part.e_program_low_first,
                (true, false) => part.e_program_high,
                (true, true) => part.e_program_high_second,
            };
        }
    }

    /// Erases `block`.
    ///
    /// # Errors
    /// [`Halt::Refused`] for a bad block, [`Halt::PowerCut`].
    pub fn erase(&mut self, block: u32) -> Flash<Outcome> {
        self.commit_trims()?;
        let cut = self.begin();
        self.records.history.note(history::RecordKind::Erase, block, 0, 0);
        if self.blocks[block as usize].bad {
            return Err(self.refuse(Rule::BadBlock, block, 0));
        }
        let first = self.first_page(block);
        let pages = first as u32..first as u32 + self.geometry.pages_per_block;
        let undo = self.records.undo.is_some().then(|| self.save_erase(block, pages.clone()));
        self.programs[first..first + self.geometry.pages_per_block as usize].fill(0);
        let state = &mut self.blocks[block as usize];
        state.next_page = 0;
        state.gaps = false;
        let reused = std::mem::take(&mut state.reused);
        (state.low_first, state.reached, state.pass) = (false, rules::Reached::default(), 0);
        self.generations.erase(pages.clone());
        if self.stripes.is_some() {
            self.erase_parity(block, reused);
        }
        let state = &mut self.blocks[block as usize];
        state.torn = cut;
        if cut {
            return Err(Halt::PowerCut);
        }
        state.erases += 1;
        self.counters.erases += 1;
        self.counters.reused_erases += u64::from(reused);
        self.counters.single_erases += u64::from(self.is_always_single(block));
        self.counters.erase_energy += if reused { self.part.e_erase_reused } else { self.part.e_erase };
        let subpages = self.geometry.subpages_per_page as usize;
        self.payload.erase(first * subpages, self.geometry.pages_per_block as usize * subpages);
        self.own.erase(pages.clone(), self.geometry.subpages_per_page);
        self.pairs.erase(pages.clone());
        let on = if self.failures.errors.is_some() { self.members(block) } else { Vec::new() };
        if let Some(errors) = &mut self.failures.errors {
            errors.erased(block, &on);
        }
        self.forget_lost(&pages);
        let worn = self
            .failures
            .endurances
            .get(block as usize)
            .is_some_and(|&most| self.blocks[block as usize].erases >= most);
        let failed = self.failures.faults.as_mut().is_some_and(|faults| faults.erase_fails(block)) || worn;
        if failed {
            self.counters.failed_erases += 1;
            self.blocks[block as usize].bad = true;
        }
        if self.payload.image.is_some() {
            self.keep_erase(block)?;
        }
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(if failed { Outcome::Failed } else { Outcome::Done })
    }

    /// The block of page `ppn`, and the number of the page in it.
    #[inline]
    pub fn split(&self, ppn: u32) -> (u32, u32) {
        self.widths.pages_per_block.split(ppn)
    }

    #[inline]
    fn first_page(&self, block: u32) -> usize {
        block as usize * self.geometry.pages_per_block as usize
    }
}
