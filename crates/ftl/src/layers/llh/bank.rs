//! Banks: the life cycle of blocks (LLH paper, Fig. 6), and the next page of each stream.
//!
//! A block is written in one of four rounds:
//! - all pages in the standard order (`write L1 H`);
//! - low pages only (`write L1`);
//! - low pages again if all their data is invalid, each followed by the high page (`write L2 H`);
//! - high pages only (`write H`). The paper describes this round without using it. Here it serves only if a bank has no
//!   clean block left and cleaning gains none.

use super::settings::ThresholdPu;
use super::threshold::{Threshold, ThresholdRule};
use super::{COLD, HOT, Llh};
use crate::log::blocks::NO_BLOCK;
use crate::log::settings::WearLeveling;
use palimpsest_flash::nand::TORN;
use palimpsest_flash::nand::part::ProgramOrder;
use palimpsest_flash::nand::{Flash, Halt, first_subpages};
use palimpsest_ftl_api::plan::{Cause, CodedIo, Gate, Io, Read};

/// Clean blocks of a bank that only cleaning may take.
pub(super) const RESERVE: u32 = 1;

/// State of a block in Fig. 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UseState {
    Clean,
    PartiallyUsed,
    Used,
    Reused,
}

palimpsest_flash::state_of_words!(UseState { Clean, PartiallyUsed, Used, Reused });

/// Pages written into a block, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// `write L1 H`.
    Whole,
    /// `write L1`.
    Low,
    /// `write L2 H`.
    Again,
    /// `write H`.
    High,
}

palimpsest_flash::state_of_words!(Round { Whole, Low, Again, High });

/// The block that a stream writes to, and the next page there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frontier {
    pub block: u32,
    pub round: Round,
    /// Position of the next page in the order of the round.
    pub step: u32,
    /// The next page.
    pub page: u32,
    /// True if the next page is programmed for the second time.
    pub again: bool,
    /// Closes when the present content of the next page is in memory.
    pub arrived: Gate,
    /// True if the block waits for invalid low pages after the round.
    pub kept: bool,
    /// Low pages that were programmed again.
    pub rewritten: u32,
}

palimpsest_flash::state!(Frontier { block, round, step, page, again, arrived, kept, rewritten });

pub(super) const NO_FRONTIER: Frontier = Frontier {
    block: NO_BLOCK,
    round: Round::Whole,
    step: 0,
    page: 0,
    again: false,
    arrived: Gate::NONE,
    kept: false,
    rewritten: 0,
};

pub(super) struct Bank {
    /// Frontier of hot data, and of cold and moved data.
    pub frontiers: [Frontier; 2],
    /// Blocks that wait for reuse of their low pages, by stream.
    pub waiting: [Vec<u32>; 2],
    pub threshold: Threshold,
}

palimpsest_flash::state!(Bank { frontiers, waiting, threshold });

/// Transitions of Fig. 6, and two that only an ideal part has; and what second writes do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Transitions {
    pub clean_partially_used: u64,
    pub clean_used: u64,
    pub partially_used_reused: u64,
    pub partially_used_used: u64,
    pub used_reused: u64,
    pub used_clean: u64,
    pub reused_clean: u64,
    /// Low pages programmed again, and skipped ones that held valid data.
    pub reused_low: u64,
    pub skipped_low: u64,
    pub second_units: u64,
    pub wom_failures: u64,
}

palimpsest_flash::state!(Transitions {
    clean_partially_used,
    clean_used,
    partially_used_reused,
    partially_used_used,
    used_reused,
    used_clean,
    reused_clean,
    reused_low,
    skipped_low,
    second_units,
    wom_failures
});

/// Turns the frontier `hot` of hot data into a frontier of cold data, which stores whole pages.
fn as_cold(hot: Frontier) -> Frontier {
    match hot.round {
        Round::Whole => Frontier { kept: false, ..hot },
        // The high pages, which come after all low ones.
        Round::Low => Frontier { round: Round::High, step: 0, kept: false, ..hot },
        Round::Again | Round::High => Frontier { round: Round::High, kept: false, ..hot },
    }
}

impl Llh {
    #[inline]
    pub(super) fn frontier(&self, bank: u32, stream: u32) -> &Frontier {
        &self.banks[bank as usize].frontiers[stream as usize]
    }

    /// Spare blocks of `bank` on a full drive.
    pub(super) fn spare_blocks(&self, bank: u32) -> u32 {
        let units = self.map.len() as u32;
        let own = match self.lost.is_empty() {
            true => units / self.banks_count() + u32::from(bank < units % self.banks_count()),
            false => units.div_ceil((self.working().count() as u32).max(1)),
        };
        self.blocks.usable(bank).saturating_sub(own.div_ceil(self.blocks.units_per_block()))
    }

    /// The most blocks of `bank` that may wait: each stream needs one, and so does cleaning.
    fn waiting_limit(&self, bank: u32) -> u32 {
        self.spare_blocks(bank).saturating_sub(2 + RESERVE)
    }

    pub(super) fn threshold_limit(&self, bank: u32) -> u32 {
        self.blocks_of(bank, self.settings.threshold_cap).min(self.waiting_limit(bank))
    }

    pub(super) fn first_threshold(&self, bank: u32) -> u32 {
        self.blocks_of(bank, self.settings.threshold_pu).min(self.waiting_limit(bank))
    }

    fn blocks_of(&self, bank: u32, threshold: ThresholdPu) -> u32 {
        match threshold {
            ThresholdPu::SpareOver(parts) => self.spare_blocks(bank) / parts,
            ThresholdPu::Blocks(blocks) => blocks,
        }
    }

    /// Subpages that the next page of `stream` takes.
    #[inline]
    pub(super) fn capacity(&self, io: &Io, bank: u32, stream: u32) -> u32 {
        let frontier = self.frontier(bank, stream);
        match frontier {
            Frontier { block: NO_BLOCK, .. } => self.subpages,
            Frontier { again: true, .. } => self.coder.second,
            Frontier { kept: true, page, .. } if !io.nand().is_high(*page) => self.coder.first,
            _ => self.subpages,
        }
    }

    /// Page number `step` in the order of `round`. The dies of a superblock take turns at each position.
    pub(super) fn page_at(&self, io: &Io, round: Round, step: u32) -> u32 {
        if matches!(round, Round::Whole | Round::Low) {
            return step;
        }
        let (dies, part) = (io.nand().dies_in_turn(), io.nand().part());
        let (position, die) = (step / dies, step % dies);
        let low = (position / 2 * 2).saturating_sub(1);
        (if position.is_multiple_of(2) { low } else { part.partner(low) }) * dies + die
    }

    /// True if low page `page` of `block` may be programmed again: all data there is invalid, and the cells are as
    /// programmed.
    fn reusable(&self, io: &Io, block: u32, page: u32) -> bool {
        let ppn = block * self.pages_per_block + page;
        self.blocks.valid_bits(block, page * self.subpages, self.subpages) == 0
            && io.nand().logical(ppn * self.subpages) != TORN
            && io.nand().copy_of(ppn) == ppn
    }

    /// True if the high page of low page `page` of `block` rules out a second program: after a power cut, a die of a
    /// superblock may be ahead of the others.
    fn is_behind_high(&self, io: &Io, block: u32, page: u32) -> bool {
        let high = block * self.pages_per_block + io.nand().partner(page);
        io.nand().part().order == ProgramOrder::LowLowHigh && io.nand().programs(high) > 0
    }

    /// Moves the frontier of `stream` to the first programmable page from position `step` on, and prefetches the
    /// present content. Ends the round if there is none.
    pub(super) fn seek(&mut self, io: &mut Io, bank: u32, stream: u32, step: u32) -> Flash<()> {
        let Frontier { block, round, .. } = *self.frontier(bank, stream);
        let first = block * self.pages_per_block;
        for step in step..self.pages_per_block {
            let page = self.page_at(io, round, step);
            let (high, programs) = (io.nand().is_high(page), io.nand().programs(first + page));
            let mut again = false;
            let possible = match (round, programs, high) {
                (Round::Low, 0, high) => !high,
                (_, 0, _) => true,
                (Round::Again, 1, false) if !self.is_behind_high(io, block, page) => {
                    again = self.reusable(io, block, page);
                    self.transitions.skipped_low += u64::from(!again);
                    again
                }
                _ => false,
            };
            if !possible {
                continue;
            }
            let mut arrived = Gate::NONE;
            if again {
                // Prefetched before the new data arrives (paper, Sec. 4), and not transferred over the host link.
                arrived = io.gate();
                let all = first_subpages(self.subpages);
                io.read_coded(Read { signal: arrived, ..Read::new(first + page, all, Cause::Prefetch) }, 0)?;
            }
            let frontier = &mut self.banks[bank as usize].frontiers[stream as usize];
            (frontier.step, frontier.page, frontier.again, frontier.arrived) = (step, page, again, arrived);
            return Ok(());
        }
        self.finish_round(bank, stream);
        Ok(())
    }

    fn finish_round(&mut self, bank: u32, stream: u32) {
        let frontiers = &mut self.banks[bank as usize].frontiers;
        let Frontier { block, round, kept, rewritten, .. } =
            std::mem::replace(&mut frontiers[stream as usize], NO_FRONTIER);
        let use_state = &mut self.use_states[block as usize];
        let next = match round {
            Round::Low => UseState::PartiallyUsed,
            Round::Again if rewritten > 0 => UseState::Reused,
            _ => UseState::Used,
        };
        let transitions = &mut self.transitions;
        match (*use_state, next) {
            (UseState::Clean, UseState::PartiallyUsed) => transitions.clean_partially_used += 1,
            (UseState::Clean, _) => transitions.clean_used += 1,
            (UseState::PartiallyUsed, UseState::Reused) => transitions.partially_used_reused += 1,
            (UseState::PartiallyUsed, _) => transitions.partially_used_used += 1,
            (UseState::Used, UseState::Reused) => transitions.used_reused += 1,
            _ => {}
        }
        *use_state = next;
        if kept {
            self.banks[bank as usize].waiting[stream as usize].push(block);
        } else {
            self.blocks.close(block);
        }
    }

    /// Ensures that `stream` has a page to program, with cleaning if necessary, unless the die of `bank` fails.
    #[inline]
    pub(super) fn ensure_page(&mut self, io: &mut Io, bank: u32, stream: u32) -> Flash<()> {
        let opened = self.frontier(bank, stream).block != NO_BLOCK;
        if opened && self.blocks.free_count(bank) >= RESERVE {
            return Ok(());
        }
        self.ensure_page_slowly(io, bank, stream)
    }

    #[cold]
    fn ensure_page_slowly(&mut self, io: &mut Io, bank: u32, stream: u32) -> Flash<()> {
        if self.frontier(bank, stream).block != NO_BLOCK {
            // A failed program, or a victim that is not empty yet, used the reserve of cleaning.
            self.make_space(io, bank, RESERVE)?;
        }
        while self.frontier(bank, stream).block == NO_BLOCK && !self.is_lost(bank) {
            self.acquire(io, bank, stream)?;
        }
        self.any_works()
    }

    /// Finds a block for `stream` (paper, Sec. 4; the sentence in Sec. 5.2 has the two cases swapped).
    fn acquire(&mut self, io: &mut Io, bank: u32, stream: u32) -> Flash<()> {
        if self.reuse_now(bank, stream) {
            return self.begin_again(io, bank, stream);
        }
        if self.settings.policy.open_before && self.blocks.free_count(bank) > RESERVE {
            self.open_clean(io, bank, stream, self.keeps(bank, stream))?;
            if self.is_due(bank) {
                self.collect_until(io, bank)?;
            }
            return Ok(());
        }
        if self.is_due(bank) {
            self.collect_until(io, bank)?;
        }
        if self.blocks.free_count(bank) <= RESERVE {
            self.make_space(io, bank, RESERVE + 1)?;
        }
        // Cleaning may have opened a block for moved units, and moves the threshold.
        if self.frontier(bank, stream).block != NO_BLOCK || self.is_lost(bank) {
            return Ok(());
        }
        if self.settings.threshold_rule != ThresholdRule::Published && self.reuse_now(bank, stream) {
            return self.begin_again(io, bank, stream);
        }
        if self.blocks.free_count(bank) > RESERVE {
            return self.open_clean(io, bank, stream, self.keeps(bank, stream));
        }
        if !self.banks[bank as usize].waiting[stream as usize].is_empty() {
            return self.begin_again(io, bank, stream);
        }
        // If only blocks of cold data wait, hot data reuses those.
        match (stream, self.banks[bank as usize].waiting[COLD as usize].is_empty()) {
            (COLD, _) => self.use_waiting(io, bank),
            (_, false) => self.begin_again(io, bank, stream),
            _ => Err(Halt::NoSpace),
        }
    }

    /// True if `bank` is to be collected for the host.
    fn is_due(&self, bank: u32) -> bool {
        self.blocks.free_count(bank) <= self.gc_start || self.portions.is_unfinished(bank)
    }

    /// True if as many blocks wait as the threshold allows.
    fn enough_waiting(&self, bank: u32) -> bool {
        self.waiting_blocks(bank) >= self.banks[bank as usize].threshold.now
    }

    /// True if more blocks wait than the threshold.
    fn more_waiting(&self, bank: u32) -> bool {
        self.waiting_blocks(bank) > self.banks[bank as usize].threshold.now
    }

    pub(super) fn waiting_blocks(&self, bank: u32) -> u32 {
        self.banks[bank as usize].waiting.iter().map(Vec::len).sum::<usize>() as u32
    }

    /// True if `stream` should reuse a waiting block rather than open a clean one.
    fn reuse_now(&mut self, bank: u32, stream: u32) -> bool {
        let published = self.settings.threshold_rule == ThresholdRule::Published;
        // Clean blocks first: cleaning leaves one more than `gc_stop`.
        if published && self.blocks.free_count(bank) > self.gc_stop + 1 {
            return false;
        }
        let waiting = &self.banks[bank as usize].waiting[stream as usize];
        let empty = |&block: &u32| self.blocks.valid_count(block) == 0;
        if self.settings.reuse_empty && waiting.iter().any(empty) {
            return true;
        }
        if published && self.may_keep(stream) {
            self.judge(bank);
            return !self.banks[bank as usize].waiting[stream as usize].is_empty() && self.more_waiting(bank);
        }
        !waiting.is_empty() && self.enough_waiting(bank)
    }

    /// Adapts the threshold to the cheapest victim available now.
    fn judge(&mut self, bank: u32) {
        let (limit, full, window) =
            (self.threshold_limit(bank), self.blocks.units_per_block(), self.settings.threshold_window as usize);
        if let Some(cheapest) = self.blocks.fewest_valid(bank) {
            let valid = self.blocks.valid_count(cheapest);
            self.banks[bank as usize].threshold.judge(valid, window, full, limit);
        }
    }

    /// True if blocks of `stream` may be partially used at all.
    fn may_keep(&self, stream: u32) -> bool {
        stream == HOT || self.settings.reuse_cold
    }

    /// True if `stream` should use the next clean block partially.
    fn keeps(&self, bank: u32, stream: u32) -> bool {
        let few = self.settings.threshold_rule == ThresholdRule::Published || !self.enough_waiting(bank);
        self.may_keep(stream) && few
    }

    /// Opens a clean block of `bank` for `stream`. `NoSpace` if none is clean.
    pub(super) fn open_clean(&mut self, io: &mut Io, bank: u32, stream: u32, keep: bool) -> Flash<()> {
        let (nand, level) = (io.nand(), self.settings.log.wear_leveling != WearLeveling::None);
        let opened = self.blocks.open(bank, |block| if level { nand.erases(block) } else { 0 });
        let Some(block) = opened else { return Err(Halt::NoSpace) };
        let kept = keep && nand.erases(block) < self.safe_erases;
        let ideal = nand.part().order == ProgramOrder::LowHighLow;
        let round = if kept && !ideal { Round::Low } else { Round::Whole };
        self.begin(io, bank, stream, Frontier { block, round, kept, ..NO_FRONTIER })
    }

    fn begin(&mut self, io: &mut Io, bank: u32, stream: u32, frontier: Frontier) -> Flash<()> {
        self.banks[bank as usize].frontiers[stream as usize] = frontier;
        self.seek(io, bank, stream, frontier.step)
    }

    /// Reuses the waiting block with the fewest valid units, of another stream if none of this stream waits.
    fn begin_again(&mut self, io: &mut Io, bank: u32, stream: u32) -> Flash<()> {
        let own = self.take_waiting(bank, stream);
        let block = own.or_else(|| self.take_waiting(bank, HOT + COLD - stream)).expect("a block waits");
        self.begin(io, bank, stream, Frontier { block, round: Round::Again, ..NO_FRONTIER })
    }

    /// Opens the high pages of a waiting block for cold and moved data, because no block is clean.
    pub(super) fn use_waiting(&mut self, io: &mut Io, bank: u32) -> Flash<()> {
        while let Some(block) = self.take_waiting(bank, HOT).or_else(|| self.take_waiting(bank, COLD)) {
            self.begin(io, bank, COLD, Frontier { block, round: Round::High, ..NO_FRONTIER })?;
            if self.frontier(bank, COLD).block != NO_BLOCK {
                return Ok(());
            }
        }
        Err(Halt::NoSpace)
    }

    /// Continues the block of hot data with cold and moved data, in pages that were not programmed, as in waiting
    /// blocks.
    pub(super) fn take_hot_block(&mut self, io: &mut Io, bank: u32) -> Flash<()> {
        let frontiers = &mut self.banks[bank as usize].frontiers;
        let hot = std::mem::replace(&mut frontiers[HOT as usize], NO_FRONTIER);
        if hot.block != NO_BLOCK {
            self.begin(io, bank, COLD, as_cold(hot))?;
        }
        if self.frontier(bank, COLD).block == NO_BLOCK { Err(Halt::NoSpace) } else { Ok(()) }
    }

    fn take_waiting(&mut self, bank: u32, stream: u32) -> Option<u32> {
        let waiting = &mut self.banks[bank as usize].waiting[stream as usize];
        let fewest = (0..waiting.len()).min_by_key(|&index| self.blocks.valid_count(waiting[index]))?;
        // Keeps the order of writing of the others.
        Some(waiting.remove(fewest))
    }

    /// Whole pages that cold and moved data can take in the present block.
    pub(super) fn pages_left(&self, io: &Io, bank: u32) -> u32 {
        let mut frontier = *self.frontier(bank, COLD);
        if frontier.block == NO_BLOCK && self.blocks.free_count(bank) == 0 {
            frontier = as_cold(*self.frontier(bank, HOT));
        }
        if frontier.block == NO_BLOCK {
            return 0;
        }
        let first = frontier.block * self.pages_per_block;
        let whole = |step: u32| {
            let page = self.page_at(io, frontier.round, step);
            let wanted = match frontier.round {
                Round::Whole => !frontier.kept || self.coder.first == self.subpages || io.nand().is_high(page),
                Round::Low => self.coder.first == self.subpages && !io.nand().is_high(page),
                Round::Again | Round::High => true,
            };
            wanted && io.nand().programs(first + page) == 0
        };
        (frontier.step..self.pages_per_block).filter(|&step| whole(step)).count() as u32
    }
}
