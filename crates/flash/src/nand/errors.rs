//! Bit errors of reads: their number, the correction by an error-correcting code (ECC), and uncorrectable reads.
//!
//! The raw bit error rate of a page is the rate of its block's wear ([`super::wear`]), times the growth by age,
//! temperature, reads and height ([`growth`]). A code word is lost if more of its bits are wrong than the code
//! corrects. Bits are wrong independently, so each word has a rate above which it is lost ([`tolerance`]). Each
//! program draws from the seed how lucky each word of its page is, so a lost word stays lost. A read fails if a needed
//! word fails: a read of n words fails with the probability 1 - (1 - p)^n. The controller repeats a failed read with
//! shifted references, step by step; each step leaves a share of the wrong bits.
//!
//! Ignored: wear by programming low pages again, and errors of out-of-band areas and of the layer's own records, which
//! are assumed stored twice.

pub mod growth;
mod tolerance;

use super::part::Part;
use super::wear::{Bias, Wear};
use super::{Nand, SubpageMask, WordMask};
use crate::keys::value::LONGEST_OPERATION;
use crate::keys::{Rule, Value};
use crate::rng::Rng;
use crate::units::Nanos;
use growth::{CellSettings, EARLY, Growth, LATE};
use std::collections::BTreeSet;
use tolerance::Tolerance;

crate::keys! {
    /// Errors of reads, and their correction.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct ErrorSettings;

    /// The keys of read errors.
    group pub KEYS {
        /// wrong bits of a code word (part.word_size) that are corrected; 0: reads have no errors but those of
        /// faults.read_fail
        pub strength: u32 = "ecc.strength", Count { min: 0, max: 1 << 20 }, "0";
        /// extra time of each step of a retry, until a read succeeds or fails for good
        pub retries: Vec<Nanos> = "ecc.t_retries", Times, "[]", rules[SHORT], needs["ecc.strength > 0"];
        /// share of the wrong bits that each of these steps leaves
        pub retry_rates: Vec<f64> = "ecc.retry_rates", Ratios, "[]", rules[NONE_ABOVE], needs["ecc.strength > 0"];
        /// age of data at which the rate of wrong bits has doubled; 0ns: it does not grow
        pub retention: Nanos = "ecc.t_retention", Age, "0ns", needs["ecc.strength > 0"];
        /// age that what preconditioning wrote has when the measurement begins
        pub data_age: Nanos = "ecc.data_age", Age, "0ns", read_by[LATE, EARLY], needs["ecc.strength > 0"];
        /// reads of a block since its erase at which the rate of wrong bits has doubled; 0: it does not grow
        pub disturb: u32 = "ecc.disturb_reads", Count { min: 0, max: u32::MAX as u64 }, "0", needs["ecc.strength > 0"];
        /// a block of which a read needed so many steps is moved; 0: never
        pub refresh_retries: u32 = "ecc.refresh_retries", Count { min: 0, max: 1000 }, "0", needs["ecc.strength > 0"];
    }

    with settings {
        /// Growth of the rate in early retention, with temperature, and by stacked layers.
        pub cells: CellSettings = CellSettings::new(settings);
    }
}

const SHORT: Rule = Rule {
    holds: |value| matches!(value, Value::Times(steps) if steps.iter().sum::<Nanos>() <= LONGEST_OPERATION / 2),
    expected: "all steps together take at most 1s",
};
const NONE_ABOVE: Rule = Rule {
    holds: |value| matches!(value, Value::Ratios(rates) if rates.is_sorted_by(|one, next| one >= next)),
    expected: "expected rates of which none is above the one before",
};

/// The part of a page that a read needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Subpages for the host or the layer.
    pub subpages: SubpageMask,
    /// Code words that the controller must correct for them.
    pub words: WordMask,
}

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Steps of the retry.
    pub steps: u32,
    /// Subpages that this read lost.
    pub lost: u32,
    /// Wanted subpages that are uncorrectable.
    pub failed: SubpageMask,
}

/// The state that errors depend on.
pub(super) struct ReadErrors {
    settings: ErrorSettings,
    seed: u64,
    wear: Wear,
    growth: Growth,
    tolerance: Tolerance,
    programmed_at: Vec<Nanos>,
    reads: Vec<u32>,
    due: BTreeSet<u32>,
    /// The highest rate that a read met since the last call of [`Nand::take_worst_read`].
    most: f64,
}

crate::state!(ReadErrors { programmed_at, reads, due } built { settings, seed, wear, growth, tolerance, most });

impl ReadErrors {
    pub fn new(settings: ErrorSettings, part: &Part, pages: usize, blocks: usize, seed: u64) -> Self {
        ReadErrors {
            tolerance: Tolerance::new(u64::from(part.word_bytes) * 8, settings.strength.into()),
            wear: Wear::new(part, Bias::None),
            growth: Growth::new(&settings.cells, settings.retention, settings.disturb, part),
            programmed_at: vec![0; pages],
            reads: vec![0; blocks],
            due: BTreeSet::new(),
            most: 0.0,
            settings,
            seed,
        }
    }

    /// Each of `words` of page `ppn` with its highest tolerated rate. The page was programmed `programs` times since
    /// erase number `erases`.
    fn tolerated(&self, (ppn, erases, programs): (u32, u32, u32), words: WordMask) -> impl Iterator<Item = (u32, f64)> {
        let mut draw = Rng::new(self.seed ^ u64::from(ppn) << 32 ^ u64::from(erases), 0xb17 + u64::from(programs));
        let luck = (0..64 - words.leading_zeros()).map(move |word| (word, draw.unit()));
        luck.filter(move |(word, _)| words >> word & 1 == 1).map(|(word, luck)| (word, self.tolerance.of(luck)))
    }

    /// Forgets reads of the erased block `block` of the layer, which is `on` these blocks of the drive.
    pub fn erased(&mut self, block: u32, on: &[u32]) {
        on.iter().for_each(|&block| self.reads[block as usize] = 0);
        self.due.remove(&block);
    }
}

impl Nand {
    /// Enables read errors.
    pub fn set_read_errors(&mut self, settings: ErrorSettings, seed: u64) {
        let (pages, blocks) = (self.all_pages(), self.physical().blocks() as usize);
        self.failures.errors = Some(Box::new(ReadErrors::new(settings, &self.part, pages, blocks, seed)));
        self.failures.reads_fail = true;
    }

    /// Whether reads may be uncorrectable: read errors are enabled, or a die has failed.
    #[inline]
    pub fn reads_fail(&self) -> bool {
        self.failures.reads_fail
    }

    /// Whether read errors are enabled.
    #[inline]
    pub fn has_read_errors(&self) -> bool {
        self.failures.errors.is_some()
    }

    /// Time of the last program of page `ppn`; 0 without read errors.
    pub(super) fn programmed_at(&self, ppn: u32) -> Nanos {
        self.failures.errors.as_ref().map_or(0, |errors| errors.programmed_at[ppn as usize])
    }

    /// Reads of `block` since its erase; 0 without read errors.
    pub fn reads(&self, block: u32) -> u32 {
        self.failures.errors.as_ref().map_or(0, |errors| errors.reads[block as usize])
    }

    /// Restores the reads of `block` from an image.
    pub(super) fn found_reads(&mut self, block: u32, reads: u32) {
        if let Some(errors) = &mut self.failures.errors {
            errors.reads[block as usize] = reads;
        }
    }

    /// Restores the time of a program from an image.
    pub(super) fn found_program(&mut self, ppn: u32, at: Nanos) {
        if let Some(errors) = &mut self.failures.errors {
            errors.programmed_at[ppn as usize] = at;
        }
    }

    /// Notes the program of the subpages `written` of page `ppn` at `now`.
    pub fn note_program(&mut self, ppn: u32, written: SubpageMask, now: Nanos) {
        let first = ppn * self.geometry.subpages_per_page;
        if let Some(errors) = &mut self.failures.errors {
            errors.programmed_at[ppn as usize] = now;
        }
        let page = first..first + self.geometry.subpages_per_page;
        self.failures.lost.extract_if(page, |psn| written >> (*psn - first) & 1 == 1).for_each(drop);
    }

    /// Reads the words `wanted` of page `ppn` at `now`. If words are uncorrectable, the wanted subpages of page `home`
    /// in these words are lost, unless `keeps` is set.
    pub fn attempt_read(&mut self, ppn: u32, home: u32, wanted: Wanted, now: Nanos, keeps: bool) -> Attempt {
        let (block, (on, page)) = (self.block_of(ppn), self.place(ppn));
        let (erases, worn, programs) = (self.erases(block), self.worn(block), self.programs(ppn));
        let single = self.is_single(block);
        let striped = self.has_parity();
        let energy = self.part.read_energy(page, super::ReadCommand::PAGE);
        if self.is_unreadable(ppn) {
            let steps = self.failures.errors.as_ref().map_or(0, |errors| errors.settings.retry_rates.len() as u32);
            self.count_retries(steps, energy);
            let lost = if keeps { 0 } else { self.lose(home, wanted.subpages) };
            return Attempt { steps, lost, failed: wanted.subpages };
        }
        let Some(errors) = &mut self.failures.errors else { return Attempt { steps: 0, lost: 0, failed: 0 } };
        let reads = errors.reads[on as usize].saturating_add(1);
        errors.reads[on as usize] = reads;
        let (set, age) = (&errors.settings, now.saturating_sub(errors.programmed_at[ppn as usize]));
        let rate = errors.growth.rate(errors.wear.rate_after(worn, 0.0), age, reads, page, single);
        errors.most = errors.most.max(rate);
        let program = (ppn, erases, programs);
        let least = errors.tolerated(program, wanted.words).map(|(_, most)| most).fold(f64::INFINITY, f64::min);
        let fits = |share: f64| rate * share <= least;
        let ladder = &set.retry_rates;
        let steps = if fits(1.0) { Some(0) } else { ladder.iter().position(|&left| fits(left)).map(|step| step + 1) };
        let taken = steps.unwrap_or(ladder.len()) as u32;
        let asked = set.refresh_retries > 0;
        let is_due = (asked && taken >= set.refresh_retries) || ((asked || striped) && steps.is_none());
        let mut failed = 0;
        if steps.is_none() {
            // The last step leaves the fewest wrong bits.
            let last = rate * ladder.last().copied().unwrap_or(1.0);
            let lost = errors.tolerated(program, wanted.words).filter(|&(_, most)| most < last);
            failed = self.part.subpages_of_words(lost.fold(0, |words, (word, _)| words | 1 << word)) & wanted.subpages;
        }
        if is_due {
            errors.due.insert(block);
        }
        self.count_retries(taken, energy);
        let lost = if failed != 0 && !keeps { self.lose(home, failed) } else { 0 };
        if self.payload.image.is_some() {
            self.keep_reads(block, reads);
        }
        Attempt { steps: taken, lost, failed }
    }

    /// Expected wrong bits of a code word divided by the corrected bits: the largest ratio that the first step of a
    /// read met since the last call.
    pub fn take_worst_read(&mut self) -> Option<f64> {
        let bits = f64::from(self.part.word_bytes) * 8.0;
        let errors = self.failures.errors.as_mut()?;
        let most = std::mem::take(&mut errors.most);
        (most > 0.0).then(|| most * bits / f64::from(errors.settings.strength))
    }

    /// Extra time of `steps` steps of a retry.
    pub fn retry_steps(&self, steps: u32) -> Nanos {
        self.failures.errors.as_ref().map_or(0, |errors| errors.settings.retries.iter().take(steps as usize).sum())
    }

    /// Whether some block needs a refresh, or holds data of a failed die.
    #[inline]
    pub fn has_due(&self) -> bool {
        let errors = |nand: &Self| nand.failures.errors.as_ref().is_some_and(|errors| !errors.due.is_empty());
        (self.failures.reads_fail && (self.is_rebuilding() || errors(self))) || self.has_rescued_due()
    }

    /// Removes and returns a block that needs a refresh.
    pub fn take_due(&mut self) -> Option<u32> {
        let due = self.failures.errors.as_mut().and_then(|errors| errors.due.pop_first());
        due.or_else(|| self.take_rescued())
    }
}

#[cfg(test)]
mod tests;
