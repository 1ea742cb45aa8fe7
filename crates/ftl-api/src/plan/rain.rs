//! Parity across dies ("RAIN"): the controller keeps the parity of each open stripe in memory, programs it after the
//! last page of the stripe, and rebuilds unreadable pages from it.
//!
//! Flash places pages on dies ([`palimpsest_flash::nand::Nand::stripe_of`]). Parity is the exclusive or of a stripe's
//! pages. The program of parity must follow the gates of all programs of the stripe, because parity needs their data.
//! No write waits for parity. An unreadable page is rebuilt from the other pages of its stripe and the parity, all read
//! in parallel. An open stripe is protected only while the power is on. After a power cut the controller reads the
//! written pages of open stripes again, and programs missing parity of full stripes. Pages that the cut skipped must be
//! programmed before the parity of their stripe and of later stripes. If parity was programmed before a page that the
//! cut skipped, the parity of the present content stays in memory.
//!
//! Ignored: the size of that memory, the time of the exclusive or, and that rebuilt data crosses the host link after
//! the last of the reads (here: together with one of them).
//!
//! `rain` and `flash` use each other: each operation on flash may need parity, and parity is read and programmed by
//! such operations.

use super::flash::Sensed;
use super::ledger::Over;
use super::{Cause, Erase, Gate, Io, Program, Read};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Outcome, Own, PADDING, SubpageMask, first_subpages};
use palimpsest_flash::units::Nanos;
use std::collections::BTreeMap;

/// Results of parity since the drive was new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RainFigures {
    /// Pages that reads rebuilt.
    pub rebuilt: u64,
    /// Pages that could not be rebuilt, so that the wanted data is lost.
    pub failed: u64,
    /// Pages of a failed die that were moved to others.
    pub moved: u64,
    /// Time of the last die failure, and time when all data of that die had been moved.
    pub failed_at: Option<Nanos>,
    pub moved_at: Option<Nanos>,
}

/// Open stripes, which have no parity on flash yet.
pub struct Rain {
    /// Open stripes by page of parity.
    open: BTreeMap<u32, Open>,
    /// For each superblock, the gate that closes when all of its blocks are erased; with a code of cells, when the pass
    /// has begun.
    erasing: Vec<Gate>,
    pub figures: RainFigures,
}

impl Rain {
    /// Superblocks of the shape `geometry`, without an open stripe.
    pub(super) fn new(geometry: &Geometry) -> Self {
        let erasing = vec![Gate::NONE; geometry.blocks() as usize];
        Rain { open: BTreeMap::new(), erasing, figures: RainFigures::default() }
    }
}

/// An open stripe.
struct Open {
    /// Parity so far, one entry per subpage.
    content: Vec<Content>,
    /// Bit mask of the pages in the parity.
    covers: u64,
    /// Origin of each subpage.
    origins: Vec<Data>,
    /// Gates that the page programs follow, and the arrival time of their data over the host link.
    after: Vec<Gate>,
    data_at: Nanos,
}

/// Content of a subpage, in words to combine.
type Content = Box<[u64]>;

/// The side of an [`Io`] for owners of blocks whose pages have parity.
pub trait ParityIo {
    /// Results of parity; `None` without parity.
    fn rain_figures(&self) -> Option<RainFigures>;

    /// Restores the results of [`Self::rain_figures`], because the reads since then served the verifier alone.
    fn set_rain_figures(&mut self, figures: Option<RainFigures>);

    /// Stripes whose parity is in memory.
    fn open_stripes(&self) -> usize;

    /// Declares that the layer will never program the pages of `block` that a power cut skipped. Programs the parity of
    /// the open stripes before the next page.
    ///
    /// # Errors
    /// Every [`palimpsest_flash::nand::Halt`] of flash.
    fn leave_out(&mut self, block: u32) -> Flash<()>;

    /// Reads the written pages of stripes without parity after a power cut. Programs parity of each stripe where no
    /// page is missing, neither in it nor in an earlier stripe. Must be called before a layer reads.
    ///
    /// # Errors
    /// Every [`palimpsest_flash::nand::Halt`] of flash.
    fn recover_stripes(&mut self) -> Flash<()>;

    /// Records the failure of a die, whose data must be moved.
    fn note_failure(&mut self);

    /// Records that a page of a failed die was moved; `None`: no block holds data of the die any more.
    fn note_moved(&mut self, page: Option<u32>);
}

impl ParityIo for Io {
    fn rain_figures(&self) -> Option<RainFigures> {
        self.rain.as_ref().filter(|_| self.nand.has_parity()).map(|rain| rain.figures)
    }

    fn set_rain_figures(&mut self, figures: Option<RainFigures>) {
        self.rain.iter_mut().zip(figures).for_each(|(rain, figures)| rain.figures = figures);
    }

    fn open_stripes(&self) -> usize {
        self.rain.as_ref().map_or(0, |rain| rain.open.len())
    }

    fn leave_out(&mut self, block: u32) -> Flash<()> {
        self.close_stripes(block, self.nand.next_page(block))
    }

    fn recover_stripes(&mut self) -> Flash<()> {
        let Some(rain) = &mut self.rain else { return Ok(()) };
        rain.open.clear();
        rain.erasing.fill(Gate::NONE);
        self.nand.rebuild_again();
        for block in 0..self.geometry().blocks() {
            let next = self.nand.next_page(block);
            if next == 0 || self.nand.is_torn(block) {
                continue;
            }
            let (left_out, full) = (self.nand.left_out(block), self.nand.written_up_to(block));
            for parity in self.nand.parity_of(block) {
                let Some((pages, _)) = self.nand.stripe_of(parity) else { continue };
                let begin = block * self.geometry().pages_per_block;
                // Pages still to be programmed may invalidate existing parity.
                let is_done =
                    self.nand.holds_parity(parity) && !left_out.iter().any(|page| pages.contains(&(begin + page)));
                if pages.start >= begin + next || is_done || self.nand.is_bare(parity) {
                    continue;
                }
                self.reopen(pages.clone(), parity)?;
                if pages.end <= begin + full {
                    self.close_stripe(parity)?;
                }
            }
        }
        Ok(())
    }

    fn note_failure(&mut self) {
        let now = self.present.now;
        self.rain.iter_mut().for_each(|rain| (rain.figures.failed_at, rain.figures.moved_at) = (Some(now), None));
    }

    fn note_moved(&mut self, page: Option<u32>) {
        let now = self.present.now;
        if page.is_none() {
            self.nand.rebuilt();
        }
        let Some(rain) = &mut self.rain else { return };
        match page {
            Some(_) => rain.figures.moved += 1,
            None => rain.figures.moved_at = rain.figures.moved_at.or(Some(now)),
        }
    }
}

impl Io {
    /// Words of a subpage.
    fn words(&self) -> usize {
        match self.nand.payload() {
            Payload::None => 0,
            Payload::Tag => 1,
            Payload::Bytes => self.geometry().subpage_bytes as usize / 8,
        }
    }

    /// Combines `content` with `data`. Lost data counts as zeros.
    fn combine(&self, content: &mut [u64], data: Data) {
        match self.nand.payload() {
            _ if data == Data::LOST => {}
            Payload::None => {}
            Payload::Tag => content[0] ^= data.value,
            Payload::Bytes => {
                let bytes = self.nand.buffered(data).unwrap_or_default();
                for (word, bytes) in content.iter_mut().zip(bytes.chunks_exact(8)) {
                    *word ^= u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                }
            }
        }
    }

    /// Stores `content` in memory.
    fn data_of(&mut self, content: &[u64]) -> Data {
        match self.nand.payload() {
            Payload::None => Data::ZERO,
            Payload::Tag => Data::new(content[0]),
            Payload::Bytes if content.iter().all(|&word| word == 0) => Data::ZERO,
            Payload::Bytes => {
                let bytes: Vec<u8> = content.iter().flat_map(|word| word.to_le_bytes()).collect();
                self.nand.buffers().keep(&bytes)
            }
        }
    }

    fn nothing(&self) -> Open {
        let width = self.geometry().subpages_per_page as usize;
        let zeros = vec![0u64; self.words()].into_boxed_slice();
        Open { content: vec![zeros; width], covers: 0, origins: vec![Data::ZERO; width], after: Vec::new(), data_at: 0 }
    }

    /// Loads of the dies in group `group`.
    pub(super) fn dies_of(&self, group: u32) -> &[super::DieLoad] {
        let size = self.dies.len() / self.geometry().dies() as usize;
        &self.dies[group as usize * size..(group as usize + 1) * size]
    }

    /// As [`Self::program`], with superblocks.
    #[cold]
    #[inline(never)]
    pub(super) fn program_of_stripe(&mut self, mut program: Program<'_>, own: Own<'_>) -> Flash<Outcome> {
        self.nand.note_single(program.ppn, program.single);
        program.after = self.behind_erases(program.ppn, program.after);
        self.time_program(program.ppn, program.written);
        let (block, page) = self.nand.split(program.ppn);
        let left_out = page < self.nand.next_page(block);
        let outcome = self.nand.program_own(program.ppn, program.written, program.logical, program.data, own)?;
        self.programmed(&program, outcome, Over::Erased);
        if outcome == Outcome::Done {
            self.protect(&program)?;
            if left_out {
                self.close_stripes(block, self.nand.written_up_to(block))?;
            }
        }
        Ok(outcome)
    }

    /// Programs the parity of the open stripes of `block` that end at or before page `end`, in order.
    fn close_stripes(&mut self, block: u32, end: u32) -> Flash<()> {
        let begin = block * self.geometry().pages_per_block;
        let open =
            self.rain.as_ref().map(|rain| rain.open.range(self.nand.parity_of(block)).map(|(&parity, _)| parity));
        let full = |&parity: &u32| self.nand.stripe_of(parity).is_some_and(|(pages, _)| pages.end <= begin + end);
        let full: Vec<u32> = open.into_iter().flatten().filter(full).collect();
        full.into_iter().try_for_each(|parity| self.close_stripe(parity))
    }

    /// The gate that a program of page `ppn` must follow: `after`, and the erases of all blocks of its superblock.
    /// Otherwise a power cut could leave the page in a partly erased superblock.
    #[inline]
    pub(super) fn behind_erases(&mut self, ppn: u32, after: Gate) -> Gate {
        match self.erasing(ppn) {
            Gate::NONE => after,
            erased => self.all_of(&[after, erased]),
        }
    }

    /// The gate that closes when all blocks of the superblock of page `ppn` are erased; [`Gate::NONE`] if they are.
    #[inline]
    pub(super) fn erasing(&self, ppn: u32) -> Gate {
        let gate = self.rain.as_ref().map_or(Gate::NONE, |rain| rain.erasing[self.nand.block_of(ppn) as usize]);
        if self.plan.gates.is_open(gate) { gate } else { Gate::NONE }
    }

    /// The program `program` of a superblock with a code of cells, which follows the first program of the pass, and
    /// erases. With `first`, the program is the first.
    pub(super) fn in_turn<'a>(&mut self, program: Program<'a>, first: bool) -> Program<'a> {
        let after = self.behind_erases(program.ppn, program.after);
        if !first {
            return Program { after, ..program };
        }
        let signal = self.gate();
        self.link(signal, program.signal);
        let block = self.nand.block_of(program.ppn);
        if let Some(rain) = self.rain.as_mut().filter(|_| !signal.is_none()) {
            rain.erasing[block as usize] = signal;
        }
        Program { after, signal, ..program }
    }

    /// Adds `program` to its stripe, and programs the parity of a full stripe.
    fn protect(&mut self, program: &Program<'_>) -> Flash<()> {
        let Some((data, parity)) = self.nand.stripe_of(program.ppn) else { return Ok(()) };
        let Some(mut rain) = self.rain.take() else { return Ok(()) };
        let whole = program.written.count_ones() == self.geometry().subpages_per_page;
        assert!(whole && self.nand.programs(program.ppn) == 1, "pages with parity are programmed whole, and once");
        let last = program.ppn + 1 == data.end;
        if self.nand.is_bare(parity) {
            rain.open.remove(&parity);
        } else {
            let open = rain.open.entry(parity).or_insert_with(|| self.nothing());
            self.add(open, program.ppn - data.start, program.data);
            if self.plan.gates.is_open(program.after) {
                open.after.push(program.after);
            }
            if program.from_host || self.present.is_from_host(program.cause) {
                let arrives = self.present.arrival.of_page(program.logical.iter().copied());
                open.data_at = open.data_at.max(arrives.last);
            }
        }
        self.rain = Some(rain);
        if last { self.close_stripe(parity) } else { Ok(()) }
    }

    /// Adds page number `place` of the stripe, with content `data`, to the parity.
    fn add(&mut self, open: &mut Open, place: u32, data: &[Data]) {
        open.covers |= 1 << place;
        for (index, &data) in data.iter().enumerate() {
            self.combine(&mut open.content[index], data);
            if let Some(ledger) = &mut self.ledger {
                open.origins[index] = match (open.origins[index].origin, data.origin) {
                    (0, _) => Data { value: 0, ..data },
                    (_, 0) => open.origins[index],
                    _ => ledger.derived(Data::ZERO, &[open.origins[index], data]),
                };
            }
        }
    }

    /// Programs the parity of a full stripe.
    fn close_stripe(&mut self, parity: u32) -> Flash<()> {
        if !self.nand.takes_parity(parity) {
            return Ok(());
        }
        let Some(open) = self.rain.as_mut().and_then(|rain| rain.open.remove(&parity)) else { return Ok(()) };
        let content: Vec<Data> = open.content.iter().map(|content| self.data_of(content)).collect();
        let data: Vec<Data> =
            content.into_iter().zip(&open.origins).map(|(data, from)| Data { origin: from.origin, ..data }).collect();
        let mut after = self.all_of(&open.after);
        if self.plan.timed && open.data_at > self.present.now {
            let arrived = self.gate();
            self.plan.delay(arrived, open.data_at);
            after = self.all_of(&[after, arrived]);
        }
        self.nand.program_parity(parity, &data, open.covers)?;
        let logical = vec![PADDING; data.len()];
        let program = Program { after, ..Program::new(parity, &logical, &data, Cause::Parity) };
        self.programmed(&program, Outcome::Done, Over::Erased);
        Ok(())
    }

    /// Serves `read` of an unreadable page from the other pages of its stripe, after the gate `after`. Returns false if
    /// the page cannot be rebuilt.
    #[cold]
    #[inline(never)]
    pub(super) fn rebuild(&mut self, read: &Read, after: Gate) -> Flash<bool> {
        let Some((pages, parity)) = self.nand.stripe_of(read.ppn) else { return Ok(false) };
        let width = self.geometry().subpages_per_page;
        let mut others: Vec<u32> = pages.filter(|&ppn| ppn != read.ppn && self.nand.is_whole(ppn)).collect();
        let covers = self.rain.as_ref().and_then(|rain| rain.open.get(&parity)).map(|open| open.covers);
        let in_memory = covers == Some(self.nand.whole_of(parity));
        if !in_memory {
            if !self.nand.holds_parity(parity) {
                return Ok(false);
            }
            others.push(parity);
        }
        let mut orders = Vec::new();
        let mut rebuilt = true;
        for (index, &ppn) in others.iter().enumerate() {
            let link =
                if index + 1 == others.len() { self.crossing(read.cause, read.subpages.count_ones()) } else { 0 };
            let next = self.ledger.as_ref().map(|ledger| ledger.next_order());
            rebuilt &= self.read_member(read, ppn, after, link)?;
            let planned = self.ledger.as_ref().map(|ledger| ledger.next_order());
            orders.extend(next.filter(|_| next != planned));
        }
        if in_memory {
            // Parity in memory may still wait for data. The delay makes sure that the gate is signalled.
            let open = self.rain.as_ref().and_then(|rain| rain.open.get(&parity));
            let (arrive, data_at) = open.map_or((Vec::new(), 0), |open| (open.after.clone(), open.data_at));
            arrive.into_iter().chain([after]).for_each(|gate| self.link(gate, read.signal));
            self.plan.delay(read.signal, data_at.max(self.present.now));
        }
        for index in (0..width).filter(|index| read.subpages >> index & 1 == 1) {
            rebuilt = rebuilt && self.rebuild_subpage(read.ppn, index, &others, in_memory.then_some(parity));
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.rebuilt(read.ppn * width, read.subpages, &orders);
        }
        if let Some(rain) = &mut self.rain {
            let of = if rebuilt { &mut rain.figures.rebuilt } else { &mut rain.figures.failed };
            *of += 1;
        }
        Ok(rebuilt)
    }

    fn rebuild_subpage(&mut self, ppn: u32, index: u32, others: &[u32], in_memory: Option<u32>) -> bool {
        let width = self.geometry().subpages_per_page;
        let found_lost = |ppn| self.nand.found_lost().contains(&(ppn * width + index));
        if others.iter().chain([&ppn]).copied().any(found_lost) {
            return false;
        }
        let stored = self.nand.load(ppn * width + index);
        let mut content = vec![0; self.words()];
        if let Some(open) = in_memory.and_then(|parity| self.rain.as_ref()?.open.get(&parity)) {
            content.copy_from_slice(&open.content[index as usize]);
        }
        let mut has_lost = stored == Data::LOST;
        for &other in others {
            let data = self.nand.load(other * width + index);
            has_lost |= data == Data::LOST;
            self.combine(&mut content, data);
        }
        // Flash still holds the unreadable data, so the rebuilt data must equal it.
        let mut difference = content.clone();
        self.combine(&mut difference, stored);
        let equal = difference.iter().all(|&word| word == 0);
        if has_lost {
            // Lost data that was copied is in the parity as zeros; data that was lost after its program is not.
            if !equal {
                return false;
            }
            if stored == Data::LOST {
                return true;
            }
        }
        debug_assert!(
            equal,
            "page {ppn} of stripe {:?} is rebuilt wrongly, in memory {in_memory:?}, others {others:?}, op {}",
            self.nand.stripe_of(ppn),
            self.nand.operations()
        );
        let data = self.data_of(&content);
        self.nand.set_rebuilt(ppn, index, data);
        true
    }

    /// Reads page `ppn` of a stripe, to rebuild `read` of another page. Returns false if the page is unreadable.
    fn read_member(&mut self, read: &Read, ppn: u32, after: Gate, link_bytes: u32) -> Flash<bool> {
        if self.nand.is_unreadable(ppn) {
            return Ok(false);
        }
        let cause = Cause::Rebuild;
        let member = Read { ppn, after, cause, ..*read };
        if self.read_from_memory(&member) == 0 {
            // The page is in memory, because its program has not ended.
            self.present.link_left += u64::from(link_bytes);
            return Ok(true);
        }
        let (part, subpages) = (self.nand.part(), read.subpages.count_ones());
        let whole = part.sensed_bytes();
        let bytes =
            Sensed { sensed: whole, moved: whole, wanted: (subpages * part.subpage_bytes).min(whole), subpages };
        let retry = self.nand.read_member(ppn, read.subpages)?;
        let now = self.present.now + self.data_age;
        let attempt = self.nand.attempt_read(ppn, ppn, self.wanted_of(read), now, true);
        let steps = self.nand.retry_steps(attempt.steps);
        self.sensed_rarely(member, ppn, ReadCommand::PAGE, bytes, (retry, steps), link_bytes);
        Ok(attempt.failed == 0)
    }

    /// Serves a read of a page on a failed die from the other pages of its stripe.
    pub(super) fn read_of_stripe(&mut self, read: &Read, after: Gate) -> Flash<()> {
        if self.rebuild(read, after)? {
            return Ok(());
        }
        self.link(after, read.signal);
        self.plan.delay(read.signal, self.present.now);
        let first = read.ppn * self.geometry().subpages_per_page;
        self.ledger.iter_mut().for_each(|ledger| ledger.rebuilt(first, read.subpages, &[]));
        let lost = if keeps(read.cause) { 0 } else { self.nand.lose(read.ppn, read.subpages) };
        let cause = self.counted_as(read.cause);
        self.counters.lost[cause as usize] += u64::from(lost);
        Ok(())
    }

    /// Rebuilds the subpages `failed` of `read`, uncorrectable after `retries`, from the other pages of the stripe. All
    /// other subpages cross the host link.
    #[cold]
    #[inline(never)]
    pub(super) fn read_again(
        &mut self,
        read: Read,
        failed: SubpageMask,
        command: ReadCommand,
        bytes: Sensed,
        retries: (bool, Nanos),
    ) -> Flash<()> {
        let (tried, cause) = (self.gate(), self.counted_as(read.cause));
        self.link(tried, read.signal);
        let crossing = self.crossing(cause, bytes.subpages.saturating_sub(failed.count_ones()));
        self.sensed_rarely(Read { signal: tried, cause, ..read }, read.ppn, command, bytes, retries, crossing);
        let words = self.wanted_of(&read).words & self.nand.part().words_of_subpages(failed);
        self.read_of_stripe(&Read { subpages: failed, words, ..read }, tried)
    }

    /// Erases all blocks of the superblock of `erase`.
    pub(super) fn erase_striped(&mut self, erase: Erase) -> Flash<Outcome> {
        let block = erase.block;
        let (members, parity) = (self.nand.members(block), self.nand.parity_of(block));
        self.rain.iter_mut().for_each(|rain| rain.open.retain(|ppn, _| !parity.contains(ppn)));
        let (mut outcome, erased) = (Outcome::Done, self.gate());
        self.link(erased, erase.signal);
        // Each erase must follow the programs that replace data of the superblock, because the first erase destroys it.
        self.before_loss(self.pages_of(block), Some(block), erase.after, erase.cause);
        let first = self.plan.operations.len() as u32;
        let follows: Vec<_> =
            self.plan.follows.iter().filter(|(at, _)| *at == first).map(|&(_, program)| program).collect();
        let held = self.ledger.as_ref().map(|ledger| ledger.held());
        self.nand.erase_together(members.len() as u32);
        for (index, &member) in members.iter().enumerate() {
            if index > 0 && self.plan.timed {
                let at = self.plan.operations.len() as u32;
                self.plan.follows.extend(follows.iter().map(|&program| (at, program)));
            }
            if let (Some(ledger), Some(held)) = (&mut self.ledger, &held) {
                ledger.hold(held.clone());
            }
            if index == 0 {
                outcome = self.nand.erase(block)?;
            } else {
                self.nand.erase_also(block)?;
            }
            self.erased(Erase { block: member, signal: erased, ..erase });
        }
        if !erased.is_none()
            && let Some(rain) = &mut self.rain
        {
            rain.erasing[block as usize] = erased;
        }
        Ok(outcome)
    }

    /// Reads the pages of a stripe into memory again.
    fn reopen(&mut self, pages: std::ops::Range<u32>, parity: u32) -> Flash<()> {
        let width = self.geometry().subpages_per_page;
        let sensed = self.nand.part().sensed_subpages();
        let (mut open, arrived) = (self.nothing(), self.gate());
        let mut whole = true;
        let first = pages.start;
        for ppn in pages.filter(|&ppn| self.nand.is_whole(ppn)).collect::<Vec<u32>>() {
            // A read senses only one page of a word line that is programmed in one shot.
            for at in (0..width).step_by(sensed as usize) {
                let part = first_subpages(sensed) << at;
                let read = Read { signal: arrived, ..Read::new(ppn, part, Cause::Rebuild) };
                whole &= self.read_member(&read, ppn, Gate::NONE, 0)?;
            }
            let data: Vec<Data> = (ppn * width..(ppn + 1) * width).map(|psn| self.load_subpage(psn)).collect();
            self.add(&mut open, ppn - first, &data);
        }
        open.after.extend(Some(self.used(arrived)).filter(|gate| !gate.is_none()));
        if whole && let Some(rain) = &mut self.rain {
            rain.open.insert(parity, open);
        }
        Ok(())
    }
}

/// True if reads for `cause` are of data that is assumed to be stored twice.
pub(super) fn keeps(cause: Cause) -> bool {
    matches!(cause, Cause::Metadata | Cause::Prefetch | Cause::Checkpoint)
}
