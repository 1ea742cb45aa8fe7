//! The number of blocks of a bank that may wait partially used, adapted to the valid counts of victims (LLH paper, Sec.
//! 4 and 5.2).
//!
//! Two rules move that number, by one block at a time. By the paper's text, each victim is compared with earlier
//! victims. The published FTL of the authors (the paper's reference 1) compares only if hot data needs a block and
//! clean ones are few. The cheapest victim at that moment is then compared with the last victims, and missing victims
//! count as full.
//!
//! A program may add policies to [`OUTSIDE`], such as those in Python, which choose the number after each victim.
//! Blocks are then reused as by the paper's rule.

use crate::log::outside::{Added, notation};
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::ValueType;
use palimpsest_ftl_api::words;
use std::cmp::Ordering;

/// The kind of `ftl.threshold_rule`.
pub(super) const KIND: ValueType = ValueType::Notation(notation!(OUTSIDE, ThresholdRule::WORDS));

/// A victim, and the blocks of its bank.
pub struct Cleaned {
    /// Number of the bank.
    pub bank: u32,
    /// Time of the drive; 0 in counted runs.
    pub now: Nanos,
    /// Valid units of the victim.
    pub valid: u32,
    /// Units of a block.
    pub units: u32,
    /// The threshold now.
    pub threshold: u32,
    /// The largest possible threshold.
    pub most: u32,
    /// Partially-used blocks that wait for reuse.
    pub waiting: u32,
    /// Clean blocks.
    pub clean: u32,
}

/// A rule outside of this crate.
pub trait Adapt: Send + State {
    /// The threshold of the bank from now on; `None` for no change.
    fn adapt(&mut self, victim: &Cleaned) -> Option<u32>;
}

palimpsest_flash::state_of_box!(dyn Adapt);

/// Rules outside of this crate.
pub static OUTSIDE: Added<dyn Adapt> = Added::new("ftl.threshold_rule");

words! {
    /// Rule that moves the threshold and decides on reuse.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ThresholdRule {
        /// Compares each victim with the mean of earlier ones; reuses once as many blocks wait as the threshold allows.
        Paper = "paper",
        /// Compares the cheapest victim now with the mean of the last ones, if hot data needs a block and at most
        /// `ftl.gc_stop` + 1 blocks are clean. Then reuses if more blocks wait than the threshold. Clean blocks first.
        Published = "published",
    } else
    /// A policy outside of this crate chooses the threshold after each victim.
    Outside
}

/// The number of blocks that may wait partially used, and the valid counts of the last victims.
#[derive(Debug, Clone, Default)]
pub(super) struct Threshold {
    pub now: u32,
    pub least: u32,
    pub most: u32,
    recent: Vec<u32>,
    next: usize,
    /// Comparisons in a row with the same result before the number moves.
    steps: u32,
    /// Lower limit of the number.
    floor: u32,
    /// Comparisons in a row that pointed up, negative if down.
    run: i64,
}

palimpsest_flash::state!(Threshold { now, recent, next, run } built { least, most, steps, floor });

impl Threshold {
    pub fn new(start: u32) -> Self {
        Threshold { now: start, least: start, most: start, steps: 1, ..Threshold::default() }
    }

    /// The same threshold, which moves after `steps` comparisons in a row with the same result, and never falls below
    /// `floor`.
    pub fn slowed(self, steps: u32, floor: u32) -> Self {
        Threshold { steps: steps.max(1), floor, ..self }
    }

    /// By [`ThresholdRule::Paper`]: a victim had `valid` valid units. The number falls if that exceeds the mean of the
    /// last `window` victims, and rises to at most `limit` if below. A window of 0 fixes the number.
    pub fn update(&mut self, valid: u32, window: usize, limit: u32) {
        if window > 0 {
            self.step(self.compare(valid, self.recent.len(), 0), limit);
            self.record(valid, window);
        }
    }

    /// By [`ThresholdRule::Published`]: as [`Self::update`], for the cheapest victim now. Missing victims among the
    /// last `window` count as `full`.
    pub fn judge(&mut self, cheapest: u32, window: usize, full: u32, limit: u32) {
        if window > 0 {
            self.step(self.compare(cheapest, window, full), limit);
        }
    }

    /// Sets the number.
    pub fn set(&mut self, number: u32) {
        self.now = number;
        (self.least, self.most) = (self.least.min(number), self.most.max(number));
    }

    /// Records a victim with `valid` valid units; only the last `window` stay.
    pub fn record(&mut self, valid: u32, window: usize) {
        if self.recent.len() < window {
            self.recent.push(valid);
        } else if window > 0 {
            self.recent[self.next] = valid;
            self.next = (self.next + 1) % window;
        }
    }

    /// Compares `valid` with the mean of `count` victims; unknown ones count as `missing`.
    fn compare(&self, valid: u32, count: usize, missing: u32) -> Ordering {
        let known: u64 = self.recent.iter().map(|&valid| u64::from(valid)).sum();
        let unknown = (count - self.recent.len()) as u64 * u64::from(missing);
        (u64::from(valid) * count as u64).cmp(&(known + unknown))
    }

    fn step(&mut self, points: Ordering, limit: u32) {
        match points {
            Ordering::Greater => self.run = self.run.min(0) - 1,
            Ordering::Less => self.run = self.run.max(0) + 1,
            Ordering::Equal => {}
        }
        if self.run.unsigned_abs() >= u64::from(self.steps) {
            let up = self.run > 0;
            self.run = 0;
            if up {
                self.now = (self.now + 1).min(limit.max(self.now));
            } else if self.now > self.floor {
                self.now -= 1;
            }
        }
        (self.least, self.most) = (self.least.min(self.now), self.most.max(self.now));
    }
}

#[cfg(test)]
mod tests;
