//! Bit errors of reads: how many there are, what an error-correcting code (ECC) corrects, and reads that fail for good.
//!
//! The raw bit error rate of a page is that of its block's wear ([`super::wear`]), times 1 + age / `retention`, times 1 + reads of its block
//! since the erase / `disturb`. A code word is lost where more of its bits are wrong than the code corrects; bits are wrong independently,
//! so that a page has a rate above which some word of it is lost. How lucky a page is with its bits is drawn from the seed for each program,
//! so a page that was lost stays lost. A read that fails is repeated with shifted references, step by step; each step leaves a share of the
//! wrong bits. Ignored: temperature, differences between pages of a word line, what programming low pages again wears, and errors of
//! out-of-band areas and of the layer's own records, which are taken as stored twice.

use super::part::Part;
use super::wear::{Bias, Wear};
use super::{Nand, SubpageMask};
use crate::rng::Rng;
use crate::units::Nanos;
use std::collections::BTreeSet;

/// Errors of reads, and what corrects them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorSettings {
    /// Bits that the code corrects of a code word; 0: reads have no errors.
    pub strength: u32,
    /// Extra time of each step of a retry.
    pub retries: Vec<Nanos>,
    /// Share of the raw errors that each step leaves.
    pub retry_rates: Vec<f64>,
    /// Age at which the rate has doubled; 0: it does not grow.
    pub retention: Nanos,
    /// Age of what was written before the measurement, beside the simulated time.
    pub data_age: Nanos,
    /// Reads of a block at which the rate has doubled; 0: it does not grow.
    pub disturb: u32,
    /// A block is to be refreshed when a read of it needs so many steps; 0: never.
    pub refresh_retries: u32,
}

/// Points of the table of rates.
const POINTS: usize = 600;
/// Its smallest rate, and the factor from one to the next: it ends above 0.5.
const LEAST: f64 = 1e-9;
const STEP: f64 = 1.035;

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Steps of the retry.
    pub steps: u32,
    /// Subpages that cannot be read, and could before.
    pub lost: u32,
    /// It failed for good.
    pub failed: bool,
}

/// The state that errors depend on.
pub(super) struct ReadErrors {
    settings: ErrorSettings,
    seed: u64,
    wear: Wear,
    /// For each rate of the table, the share of pages that a read loses.
    losses: Vec<f64>,
    programmed_at: Vec<Nanos>,
    reads: Vec<u32>,
    lost: BTreeSet<u32>,
    due: BTreeSet<u32>,
    /// The highest rate that a read met since this was last taken.
    most: f64,
}

crate::state!(ReadErrors { programmed_at, reads, lost, due } built { settings, seed, wear, losses, most });

impl ReadErrors {
    pub fn new(settings: ErrorSettings, part: &Part, pages: usize, blocks: usize, seed: u64) -> Self {
        let bits = u64::from(part.word_bytes) * 8;
        let losses = (0..POINTS).map(|point| {
            let word = tail(bits, settings.strength.into(), LEAST * libm::pow(STEP, point as f64));
            // At least one word of the page: 1 - (1 - p)^n, exact for small p too.
            -libm::expm1(f64::from(part.words_per_page()) * libm::log1p(-word.min(1.0 - 1e-16)))
        });
        ReadErrors {
            losses: losses.collect(),
            wear: Wear::new(part, Bias::None),
            programmed_at: vec![0; pages],
            reads: vec![0; blocks],
            lost: BTreeSet::new(),
            due: BTreeSet::new(),
            most: 0.0,
            settings,
            seed,
        }
    }

    /// The rate above which a page with this luck, from 0 to 1, is lost.
    fn tolerated(&self, luck: f64) -> f64 {
        let above = self.losses.partition_point(|&loss| loss < luck);
        LEAST * libm::pow(STEP, above as f64)
    }

    /// Pages that a read has found lost.
    pub fn lost(&self) -> &BTreeSet<u32> {
        &self.lost
    }

    pub fn set_lost(&mut self, lost: BTreeSet<u32>) {
        self.lost = lost;
    }

    /// A read has found page `home` lost. False where one had before.
    pub fn find_lost(&mut self, home: u32) -> bool {
        self.lost.insert(home)
    }

    /// Block `block` of layers, which is `on` these of the drive, is erased.
    pub fn erased(&mut self, block: u32, on: &[u32], pages: std::ops::Range<u32>) {
        on.iter().for_each(|&block| self.reads[block as usize] = 0);
        self.due.remove(&block);
        if !self.lost.is_empty() {
            self.lost.extract_if(pages, |_| true).for_each(drop);
        }
    }
}

/// The probability of more than `most` of `bits` bits being wrong, each with probability `rate`.
fn tail(bits: u64, most: u64, rate: f64) -> f64 {
    if most >= bits {
        return 0.0;
    }
    if rate >= 0.5 {
        return 1.0;
    }
    let (n, p) = (bits as f64, rate);
    if (most as f64) < n * p {
        // Few bits, or many errors: the sum of what is corrected is the shorter one.
        return 1.0 - terms(n, p, (0..=most).rev());
    }
    terms(n, p, most + 1..=bits)
}

/// The sum of binomial probabilities over `range`, whose terms fall.
fn terms(n: f64, p: f64, mut range: impl Iterator<Item = u64>) -> f64 {
    let term = |k: f64| {
        let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(ways + k * libm::log(p) + (n - k) * libm::log1p(-p))
    };
    let mut sum = 0.0;
    for k in &mut range {
        let next = term(k as f64);
        sum += next;
        if next < sum * 1e-12 {
            break;
        }
    }
    sum.min(1.0)
}

impl Nand {
    /// From now on reads have errors.
    pub fn set_read_errors(&mut self, settings: ErrorSettings, seed: u64) {
        let (pages, blocks) = (self.all_pages(), self.physical().blocks() as usize);
        self.errors = Some(Box::new(ReadErrors::new(settings, &self.part, pages, blocks, seed)));
        self.reads_fail = true;
    }

    /// Whether reads may fail for good: they have errors, or a die has failed.
    #[inline]
    pub fn reads_fail(&self) -> bool {
        self.reads_fail
    }

    /// Whether reads have errors.
    #[inline]
    pub fn has_read_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// When page `ppn` was programmed; 0 where reads have no errors.
    pub(super) fn programmed_at(&self, ppn: u32) -> Nanos {
        self.errors.as_ref().map_or(0, |errors| errors.programmed_at[ppn as usize])
    }

    /// Reads of `block` since its erase; 0 where reads have no errors.
    pub fn reads(&self, block: u32) -> u32 {
        self.errors.as_ref().map_or(0, |errors| errors.reads[block as usize])
    }

    /// `block` was read so often since its erase, as the image says.
    pub(super) fn found_reads(&mut self, block: u32, reads: u32) {
        if let Some(errors) = &mut self.errors {
            errors.reads[block as usize] = reads;
        }
    }

    /// Page `ppn` was programmed then, as the image says.
    pub(super) fn found_program(&mut self, ppn: u32, at: Nanos) {
        if let Some(errors) = &mut self.errors {
            errors.programmed_at[ppn as usize] = at;
        }
    }

    /// Page `ppn` is programmed at `now`.
    pub fn note_program(&mut self, ppn: u32, now: Nanos) {
        if let Some(errors) = &mut self.errors {
            errors.programmed_at[ppn as usize] = now;
            errors.lost.remove(&ppn);
        }
    }

    /// Page `ppn` was read at `now`: what that came to. Where it fails for good and `keeps` is not set, the subpages `wanted` of page `home`
    /// are lost.
    pub fn attempt_read(&mut self, ppn: u32, home: u32, wanted: SubpageMask, now: Nanos, keeps: bool) -> Attempt {
        let (block, (on, page)) = (self.block_of(ppn), self.place(ppn));
        let (erases, worn, programs) = (self.erases(block), self.worn(block), self.programs(ppn));
        let striped = self.has_parity();
        let energy = self.part.read_energy(page, super::ReadCommand::PAGE);
        if self.is_unreadable(ppn) {
            let steps = self.errors.as_ref().map_or(0, |errors| errors.settings.retry_rates.len() as u32);
            self.counters.retries += u64::from(steps);
            self.counters.read_energy += u64::from(steps) * energy;
            return Attempt { steps, lost: if keeps { 0 } else { self.lose(home, wanted) }, failed: true };
        }
        let Some(errors) = &mut self.errors else { return Attempt { steps: 0, lost: 0, failed: false } };
        let reads = errors.reads[on as usize].saturating_add(1);
        errors.reads[on as usize] = reads;
        let mut draw = Rng::new(errors.seed ^ u64::from(ppn) << 32 ^ u64::from(erases), 0xb17 + u64::from(programs));
        let tolerated = errors.tolerated(draw.unit().max(1e-300));
        let (set, age) = (&errors.settings, now.saturating_sub(errors.programmed_at[ppn as usize]));
        let share = |of: u64, double: u64| if double == 0 { 1.0 } else { 1.0 + of as f64 / double as f64 };
        let rate = errors.wear.rate_after(worn, 0.0)
            * share(age, set.retention)
            * share(errors.reads[on as usize].into(), set.disturb.into());
        errors.most = errors.most.max(rate);
        let fits = |share: f64| rate * share <= tolerated;
        let ladder = &set.retry_rates;
        let steps = if fits(1.0) { Some(0) } else { ladder.iter().position(|&left| fits(left)).map(|step| step + 1) };
        let taken = steps.unwrap_or(ladder.len()) as u32;
        let asked = set.refresh_retries > 0;
        if (asked && taken >= set.refresh_retries) || ((asked || striped) && steps.is_none()) {
            errors.due.insert(block);
        }
        self.counters.retries += u64::from(taken);
        self.counters.read_energy += u64::from(taken) * energy;
        let failed = steps.is_none();
        let fails = failed && !keeps && !errors.lost.contains(&home);
        let lost = if fails { self.lose(home, wanted) } else { 0 };
        if self.payload.image.is_some() {
            self.keep_reads(block, reads);
        }
        Attempt { steps: taken, lost, failed }
    }

    /// Of the wrong bits that are expected in a code word and those that are corrected, the largest ratio that a read met, in its first step, since the
    /// last call.
    pub fn take_worst_read(&mut self) -> Option<f64> {
        let bits = f64::from(self.part.word_bytes) * 8.0;
        let errors = self.errors.as_mut()?;
        let most = std::mem::take(&mut errors.most);
        (most > 0.0).then(|| most * bits / f64::from(errors.settings.strength))
    }

    /// Extra time of `steps` steps of a retry.
    pub fn retry_steps(&self, steps: u32) -> Nanos {
        self.errors.as_ref().map_or(0, |errors| errors.settings.retries.iter().take(steps as usize).sum())
    }

    /// Whether some block is to be refreshed, or holds what was on a die that failed.
    #[inline]
    pub fn has_due(&self) -> bool {
        let errors = |nand: &Self| nand.errors.as_ref().is_some_and(|errors| !errors.due.is_empty());
        (self.reads_fail && (self.is_rebuilding() || errors(self))) || self.has_rescued_due()
    }

    /// A block that is to be refreshed; it is not any more.
    pub fn take_due(&mut self) -> Option<u32> {
        let due = self.errors.as_mut().and_then(|errors| errors.due.pop_first());
        due.or_else(|| self.take_rescued())
    }
}

#[cfg(test)]
mod tests {
    use super::super::part::samples::slc;
    use super::*;

    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        // Of two bits: none wrong (1 - p)^2, both wrong p^2.
        assert!((tail(2, 0, 0.1) - 0.19).abs() < 1e-12);
        assert!((tail(2, 1, 0.1) - 0.01).abs() < 1e-12);
        assert_eq!(tail(2, 2, 0.1), 0.0);
        // Far out, the first term is nearly all: 72 of 16384 bits at 1e-5.
        let first = libm::exp(
            libm::lgamma(16385.0) - libm::lgamma(74.0) - libm::lgamma(16312.0)
                + 73.0 * libm::log(1e-5)
                + 16311.0 * libm::log1p(-1e-5),
        );
        assert!((tail(16384, 72, 1e-5) / first - 1.0).abs() < 0.01);
        assert!(tail(16384, 72, 1e-2) > 1.0 - 1e-9, "164 wrong bits are expected");
    }

    #[test]
    fn what_a_page_tolerates_is_where_its_share_of_pages_is_lost() {
        let settings = ErrorSettings { strength: 10, ..ErrorSettings::default() };
        let part = slc();
        let errors = ReadErrors::new(settings, &part, 1, 1, 1);
        for luck in [1e-12, 1e-3, 0.5, 0.999] {
            let rate = errors.tolerated(luck);
            let share = |rate: f64| {
                let word = tail(u64::from(part.word_bytes) * 8, 10, rate);
                1.0 - libm::pow(1.0 - word, part.words_per_page().into())
            };
            let (below, above) = (share(rate / STEP), share(rate * STEP));
            assert!(below <= luck && luck <= above, "{luck}: {below} to {above}");
        }
    }
}
