//! Flash commands: each changes cells and counters at once, and adds an operation to the plan in timed runs.
//!
//! Ignored here: time, which the engine computes.

use super::ledger::{Over, Programmed};
use super::operations;
use super::rain;
use super::select;
use super::word_lines;
use super::{Cause, Erase, Gate, Io, Operation, OperationKind, Program, Read, SliceIo};
use palimpsest_flash::nand::errors::{Attempt, Wanted};
use palimpsest_flash::nand::part::{Part, ReadCommand, ReadMode};
use palimpsest_flash::nand::{Flash, Outcome, Own, SubpageMask, TORN, WordMask, count};
use palimpsest_flash::units::Nanos;
use std::ops::Range;

/// Bytes moved by one read command.
pub(super) struct Sensed {
    pub(super) sensed: u32,
    pub(super) moved: u32,
    pub(super) wanted: u32,
    /// Subpages that the host or the layer asked for.
    pub(super) subpages: u32,
}

impl Io {
    /// Reads subpages of a page, with one command unless the part's command can name only one run of code words
    /// ([`select`]). The content is available at once through [`Io::load_subpage`], before the simulated end of the
    /// operation. Subpages whose program has not ended are read from memory ([`super::under_way`]).
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::read`].
    #[inline(never)]
    pub fn read(&mut self, read: Read) -> Flash<()> {
        self.read_here(read)
    }

    /// Reads from memory the subpages under way, and from flash all others.
    #[inline(never)]
    pub(super) fn read_rest(&mut self, read: Read) -> Flash<()> {
        let left = self.read_from_memory(&read);
        if left == read.subpages {
            return self.read_flash(read);
        }
        if left == 0 {
            return Ok(());
        }
        let words = read.words & self.nand.part().words_of_subpages(left);
        self.read_flash(Read { subpages: left, words, ..read })
    }

    #[inline(always)]
    pub(super) fn read_flash(&mut self, read: Read) -> Flash<()> {
        if self.nand.part().pages_per_program > 1 { self.read_word_line(read) } else { self.read_page(read) }
    }

    /// Reads subpages of one sensed page.
    #[inline(always)]
    pub(super) fn read_page(&mut self, read: Read) -> Flash<()> {
        let Read { subpages, words, policy, .. } = read;
        if policy.mode == ReadMode::Page {
            let part = self.nand.part();
            let (whole, wanted) = (part.sensed_bytes(), wanted_bytes(part, subpages, words));
            let bytes = Sensed { sensed: whole, moved: whole, wanted: wanted.min(whole), subpages: count(subpages) };
            return self.sense(read, ReadCommand::PAGE, bytes);
        }
        self.read_part(read)
    }

    /// Reads code words of one page.
    #[inline(never)]
    fn read_part(&mut self, read: Read) -> Flash<()> {
        let Read { subpages, words, policy, .. } = read;
        let part = self.nand.part();
        let words = if words == 0 { part.words_of_subpages(subpages) } else { words };
        if select::one_command(part, policy.mode, words) {
            let command = ReadCommand { mode: policy.mode, words };
            return self.read_words(Read { words, ..read }, command, subpages.count_ones());
        }
        for command in select::commands(part, policy, words) {
            let part = self.nand.part();
            // Two commands read a subpage that spans two words; the subpage crosses the host link with the last.
            let touched = part.subpages_of_words(command.words & words) & subpages;
            let behind = part.subpages_of_words(words & !(u64::MAX >> command.words.leading_zeros()));
            let read = Read { subpages: touched, words: command.words & words, ..read };
            self.read_words(read, command, (touched & !behind).count_ones())?;
        }
        Ok(())
    }

    /// Sends one command that transfers only the wanted code words. With them, `subpages` subpages cross the host link.
    #[inline(always)]
    fn read_words(&mut self, read: Read, command: ReadCommand, subpages: u32) -> Flash<()> {
        let part = self.nand.part();
        let moved = read.words.count_ones() * part.word_bytes;
        let sensed = match command.mode {
            ReadMode::Spread => command.words.count_ones() * part.word_bytes,
            _ => part.sensed_bytes(),
        };
        self.sense(read, command, Sensed { sensed, moved, wanted: moved, subpages })
    }

    #[inline(always)]
    pub(super) fn sense(&mut self, read: Read, command: ReadCommand, bytes: Sensed) -> Flash<()> {
        let Read { ppn, subpages, mut after, .. } = read;
        let mut from = ppn;
        if self.guard.is_some() {
            let follows;
            (from, follows) = self.redirected(ppn);
            after = self.all_of(&[after, follows]);
        }
        if self.nand.reads_fail() {
            return self.sense_or_fail(Read { after, ..read }, from, command, bytes);
        }
        let cause = self.counted_as(read.cause);
        let retry = self.nand.read(from, subpages, command)?;
        let link_bytes = self.crossing(cause, bytes.subpages);
        self.sensed(&read, (from, after, cause), command, bytes, (retry, 0), link_bytes);
        Ok(())
    }

    /// As [`Self::sense`] from page `from`, in runs with uncorrectable reads.
    #[inline(never)]
    fn sense_or_fail(&mut self, read: Read, from: u32, command: ReadCommand, bytes: Sensed) -> Flash<()> {
        let (cause, parity) = (self.counted_as(read.cause), self.nand.has_parity());
        if parity && self.nand.is_unreadable(read.ppn) {
            return self.read_of_stripe(&read, read.after);
        }
        let retry = self.nand.read(from, read.subpages, command)?;
        let (steps, failed) = self.attempt_read(&read, from, cause);
        if failed != 0 {
            return self.read_again(read, failed, command, bytes, (retry, steps));
        }
        let link_bytes = self.crossing(cause, bytes.subpages);
        self.sensed_rarely(Read { cause, ..read }, from, command, bytes, (retry, steps), link_bytes);
        Ok(())
    }

    /// As [`Self::sensed`], out of line, because only one caller must be fast.
    #[inline(never)]
    pub(super) fn sensed_rarely(
        &mut self,
        read: Read,
        from: u32,
        command: ReadCommand,
        bytes: Sensed,
        retries: (bool, Nanos),
        link_bytes: u32,
    ) {
        self.sensed(&read, (from, read.after, read.cause), command, bytes, retries, link_bytes);
    }

    /// Counts `read` of page `from` for `cause`, and adds the operation to the plan, after the gate `after`.
    #[inline(always)]
    fn sensed(
        &mut self,
        read: &Read,
        (from, after, cause): (u32, Gate, Cause),
        command: ReadCommand,
        bytes: Sensed,
        (retry, steps): (bool, Nanos),
        link_bytes: u32,
    ) {
        let Read { ppn, subpages, signal, .. } = *read;
        let counters = &mut self.counters;
        counters.reads[cause as usize] += 1;
        counters.bus_bytes += u64::from(bytes.moved);
        counters.sensed[cause as usize] += u64::from(bytes.sensed);
        counters.wanted[cause as usize] += u64::from(bytes.wanted);
        if self.plan.timed {
            let (part, (block, page)) = (self.nand.part(), self.nand.place(from));
            let single = self.nand.is_single(self.nand.block_of(from));
            let array = match command.mode {
                ReadMode::Spread => part.t_read_words[(command.words.count_ones() - 1) as usize],
                _ if single => part.t_read_slc,
                _ => part.sensing_time(page, subpages.trailing_zeros()),
            };
            let retry = steps + if retry { part.retry_time(command.mode, array) } else { 0 };
            let operation = Operation {
                page: page as u16,
                block,
                bytes: part.bytes_on_bus(bytes.moved, single),
                link_bytes,
                array: (array + retry) as u32,
                retry: retry as u32,
                after,
                signal,
                ..self.plan.operation(OperationKind::Read, cause)
            };
            // The copy lets the compiler build the operation inside the plan. Loading a value just stored in parts is
            // slow.
            if self.is_checked() {
                return self.push_noted_read(&{ operation }, ppn, subpages);
            }
            self.push(signal, operation);
        }
    }

    /// Attempts to read page `from` in place of page `read.ppn`, with possible bit errors. Returns the time of the
    /// retries and, with parity, the uncorrectable subpages.
    #[cold]
    fn attempt_read(&mut self, read: &Read, from: u32, cause: Cause) -> (Nanos, SubpageMask) {
        let now = self.present.now + self.data_age;
        let parity = self.nand.has_parity();
        let keeps = parity || rain::keeps(read.cause);
        let wanted = self.wanted_of(read);
        let Attempt { steps, lost, failed } = self.nand.attempt_read(from, read.ppn, wanted, now, keeps);
        self.counters.lost[cause as usize] += u64::from(lost);
        (self.nand.retry_steps(steps), if parity { failed } else { 0 })
    }

    /// The subpages and code words that the controller must correct for `read`.
    pub(super) fn wanted_of(&self, read: &Read) -> Wanted {
        let all = self.nand.part().words_of_subpages(read.subpages);
        Wanted { subpages: read.subpages, words: if read.words == 0 { all } else { read.words } }
    }

    /// Bytes that a host read of `subpages` sends over the host link: at most the bytes of the request that no other
    /// read sends.
    #[inline]
    pub(super) fn crossing(&mut self, cause: Cause, subpages: u32) -> u32 {
        if cause != Cause::Host {
            return 0;
        }
        let crossing = u64::from(subpages * self.nand.part().subpage_bytes).min(self.present.link_left);
        self.present.link_left -= crossing;
        crossing as u32
    }

    /// Programs a page, or a word line of a part with a code of cells as the generation that the command names. After
    /// [`Outcome::Failed`] the block is bad and the subpages are unreadable: the layer must program them again in
    /// another block.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::program`].
    #[inline(never)]
    pub fn program(&mut self, program: Program<'_>) -> Flash<Outcome> {
        self.program_here(program)
    }

    /// Whether `program` programs the next page of a block and nothing else.
    #[inline(always)]
    pub(super) fn takes_next(&self, program: &Program<'_>) -> bool {
        let part = self.nand.part();
        let observed = self.nand.reads_fail() || self.nand.has_parity() || self.guard.is_some();
        let whole = part.pages_per_program == 1 && part.code.is_none() && program.padding == 0;
        let alone = whole && !observed && program.own.is_empty() && program.spare.is_empty();
        alone && self.nand.takes_next(program.ppn, program.written)
    }

    /// Any other program: of a word line by a code of cells, of a page with parity, of a page whose program can corrupt
    /// others and must follow copies of those, of a part of a page, or a program that may fail.
    #[inline(never)]
    pub(super) fn program_specially(&mut self, program: &Program<'_>) -> Flash<Outcome> {
        let own = Own { page: program.own, spare: program.spare };
        if self.nand.part().code.is_some() {
            return self.program_generation(program, own);
        }
        if self.rain.is_some() {
            return self.program_of_stripe(*program, own);
        }
        self.nand.note_single(program.ppn, program.single);
        if self.guard.is_none() {
            return self.program_alone(program, own);
        }
        let program = self.copy_mates(*program)?;
        let outcome = self.program_alone(&program, Own { page: program.own, spare: program.spare })?;
        if outcome == Outcome::Failed {
            self.rescue_mates(program.ppn);
        }
        Ok(outcome)
    }

    fn program_alone(&mut self, program: &Program<'_>, own: Own<'_>) -> Flash<Outcome> {
        self.time_program(program.ppn, program.written);
        let outcome = self.nand.program_own(program.ppn, program.written, program.logical, program.data, own)?;
        self.programmed(program, outcome, Over::Erased);
        Ok(outcome)
    }

    /// Stores the program time of the subpages `written` of page `ppn`, if the run models the age of data.
    #[inline]
    pub(super) fn time_program(&mut self, ppn: u32, written: SubpageMask) {
        if self.nand.reads_fail() {
            self.nand.note_program(ppn, written, self.present.now + self.data_age);
        }
    }

    #[inline(never)]
    pub(super) fn programmed(&mut self, program: &Program<'_>, outcome: Outcome, over: Over) {
        let cause = self.counted_as(program.cause);
        let part = self.nand.part();
        let padding = program.padding * part.subpage_bytes;
        let bytes = count(program.written) * part.subpage_bytes;
        let (mut moved, mut single) = (program.transferred * part.subpage_bytes, part.t_program_slc);
        if program.single && part.pages_per_program > 1 {
            let pages = word_lines::single_pages(part, &{ *program });
            (moved, single) = (pages * part.sensed_bytes(), Nanos::from(pages) * single);
        }
        let loads = if program.single { 1 } else { part.loads };
        let counters = &mut self.counters;
        counters.programs[cause as usize] += 1;
        counters.data_bytes += u64::from(bytes - padding);
        counters.padding_bytes += u64::from(padding);
        counters.bus_bytes += u64::from(moved);
        if let Some(owners) = &mut self.owners {
            owners.programmed(cause, program.written, program.logical);
        }
        if self.plan.timed {
            let (block, page) = self.nand.place(program.ppn);
            let array = if program.single { single } else { part.programming_time(page) };
            let operation = Operation {
                page: page as u16,
                block,
                bytes: part.bytes_on_bus(moved, program.single),
                array: array as u32,
                after: match over {
                    Over::Pass | Over::Data => self.all_of(&[program.after, self.plan.barrier]),
                    Over::Erased => program.after,
                },
                signal: program.signal,
                // A failed program is repeated, and its data stays in the buffer until then.
                frees: if outcome == Outcome::Done { program.frees } else { 0 },
                loads,
                again: over != Over::Erased,
                ..self.plan.operation(OperationKind::Program, cause)
            };
            if self.is_checked() {
                return self.push_noted_program(&{ operation }, &{ *program }, outcome, over);
            }
            self.push_program(operation, program, outcome);
        }
    }

    /// True if the times of operations are verified. Before a timed run the ledger records forgotten subpages only.
    #[inline]
    pub(super) fn is_checked(&self) -> bool {
        self.plan.timed && self.ledger.is_some()
    }

    #[inline(never)]
    fn push_noted_read(&mut self, operation: &Operation, ppn: u32, subpages: SubpageMask) {
        let Some(ledger) = &mut self.ledger else { return };
        let planned = ledger.read(operation, &self.nand, ppn, subpages);
        self.push(operation.signal, planned);
    }

    #[inline(never)]
    pub(super) fn push_noted_program(
        &mut self,
        operation: &Operation,
        program: &Program<'_>,
        outcome: Outcome,
        over: Over,
    ) {
        let Some(ledger) = &mut self.ledger else { return };
        let done = outcome == Outcome::Done;
        let planned = ledger.program(operation, &self.nand, program, Programmed { over, done }, &mut self.plan);
        self.push_program(planned, program, outcome);
    }

    #[inline(always)]
    fn push_program(&mut self, mut operation: Operation, program: &Program<'_>, outcome: Outcome) {
        let arrives = self.arrives(program);
        if outcome == Outcome::Done {
            let written = (0..).zip(program.logical).filter(|(index, _)| program.written >> index & 1 == 1);
            let logical = written.map(|(_, &lsn)| lsn);
            let stored = (program.ppn, program.written, program.after);
            self.note_stored(&mut operation, program.cause, stored, logical, arrives);
        }
        self.push(program.signal, operation);
    }

    /// The time at which the data of `program`, the next operation of the plan, is in the drive.
    #[inline(always)]
    pub(super) fn arrives(&mut self, program: &Program<'_>) -> Nanos {
        let from_host = program.from_host || self.present.is_from_host(program.cause);
        if from_host && self.present.arrival.until() > self.present.now { self.arrives_late(program) } else { 0 }
    }

    /// As [`Self::arrives`], while the host is still sending. A program of data that is late is marked in the plan.
    #[inline(never)]
    fn arrives_late(&mut self, program: &Program<'_>) -> Nanos {
        let written = (0..).zip(program.logical).filter(|(index, _)| program.written >> index & 1 == 1);
        let crossing = self.present.arrival.of_page(written.map(|(_, &lsn)| lsn));
        if crossing.last > self.present.now {
            self.plan.late.push((self.plan.operations.len() as u32, crossing));
        }
        crossing.last
    }

    /// Records that the program `operation` for `cause` stores `logical` in the subpages `written` of page `ppn`, after
    /// the gate `after`. The data is in the drive at `arrives`. The caller must add the operation to the plan next.
    #[inline(always)]
    pub(super) fn note_stored(
        &mut self,
        operation: &mut Operation,
        cause: Cause,
        (ppn, written, after): (u32, SubpageMask, Gate),
        logical: impl Iterator<Item = u32>,
        arrives: Nanos,
    ) {
        if !self.plan.protected && !matches!(cause, Cause::Gc | Cause::Checkpoint | Cause::Parity) {
            let number = operations::Program::Planned(self.plan.operations.len() as u32);
            let logical = logical.filter(|&lsn| lsn < TORN);
            operation.stored = self.plan.replacing.add(self.nand.block_of(ppn), number, logical);
        }
        if self.plan.reads_memory {
            operation.under_way = self.plan.under_way.add(ppn, written, after, arrives);
        }
    }

    /// Erases a block. After [`Outcome::Failed`] the block is bad.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::erase`].
    pub fn erase(&mut self, erase: Erase) -> Flash<Outcome> {
        if self.rain.is_some() {
            return self.erase_striped(erase);
        }
        let Erase { block, after, mut signal, .. } = erase;
        self.before_loss(self.pages_of(block), Some(block), after, erase.cause);
        if self.plan.timed && self.guard.is_some() {
            signal = self.erase_before_copies(block, signal);
        }
        let outcome = self.nand.erase(block)?;
        self.erased(Erase { signal, ..erase });
        Ok(outcome)
    }

    /// Counts the erase of a block and adds the operation to the plan.
    #[inline]
    pub(super) fn erased(&mut self, Erase { block, cause, after, signal }: Erase) {
        self.counters.erases += 1;
        if self.plan.timed {
            let operation = Operation {
                block,
                array: self.nand.part().t_erase as u32,
                codec: 0,
                after: self.all_of(&[after, self.plan.barrier]),
                signal,
                ..self.plan.operation(OperationKind::Erase, cause)
            };
            let planned = match &mut self.ledger {
                Some(ledger) => ledger.erase(&operation, &self.nand, &mut self.plan),
                None => operation,
            };
            self.push(operation.signal, planned);
        }
    }

    /// Energy of flash since the operation before; 0 without metering.
    #[inline]
    pub(super) fn taken(&mut self) -> i64 {
        let Some(metered) = &mut self.plan.metered else { return 0 };
        let energy = self.nand.counters().energy();
        energy.wrapping_sub(std::mem::replace(metered, energy)) as i64
    }

    /// Must be called before an operation for `cause` that destroys the content of `pages` and follows the gate
    /// `after`. The operation then also follows programs that replace that content, except in block `before`, where
    /// they end earlier anyway.
    #[inline]
    pub(super) fn before_loss(&mut self, pages: Range<u32>, before: Option<u32>, after: Gate, cause: Cause) {
        // Hold-up energy programs everything, so that no operation destroys the last copy of protected data.
        if self.plan.timed && !self.plan.protected {
            if let Some(ledger) = &mut self.ledger {
                ledger.before_loss(&self.nand, pages.clone());
            }
            self.plan.follow_replacing(&self.nand, pages, before, after, cause);
        }
    }

    #[inline]
    pub(super) fn pages_of(&self, block: u32) -> Range<u32> {
        let pages = self.nand.geometry().pages_per_block;
        block * pages..(block + 1) * pages
    }

    /// Adds `planned` to the plan. `signal` waits for the end of the operation, unless a mutation test dropped the
    /// signal.
    #[inline(always)]
    pub(super) fn push(&mut self, signal: Gate, mut planned: Operation) {
        planned.energy = self.taken();
        if planned.signal != signal && self.plan.gates.is_open(signal) {
            self.plan.delay(signal, self.present.now);
        }
        self.plan.gates.expect(planned.signal);
        self.plan.operations.push(planned);
        if self.undo.is_some() {
            self.log_undo();
        }
    }
}

/// Bytes of the code words that hold `subpages`, or of `words` if any are named.
#[inline(always)]
pub(super) fn wanted_bytes(part: &Part, subpages: SubpageMask, words: WordMask) -> u32 {
    match words {
        0 if part.subpage_bytes >= part.word_bytes => count(subpages) * part.subpage_bytes,
        0 => count(part.words_of_subpages(subpages)) * part.word_bytes,
        words => count(words) * part.word_bytes,
    }
}
