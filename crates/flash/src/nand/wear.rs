//! Wear: growth of a block's raw bit error rate with its cycles, and the earlier end of life if low pages are
//! programmed again or the threshold voltage is raised (LLH paper, Sec. 3.3 and 3.4, Tables 2 to 4, Figs. 3 to 5).
//!
//! With usual programs the rate grows exponentially with the cycles, from `fresh_rate` when new to `limit_rate` after
//! `endurance` cycles, the T of Table 2. The tables give the share of T by which a block reaches the limit sooner if
//! the first 0.2, 0.4 or 0.6 T of its cycles were biased and the rest usual. This *lasting* loss acts like additional
//! cycles: linear between the rows, zero without biased cycles, and beyond the rows with the slope of the last two. The
//! row of T itself is a block with biased cycles only. Its additional loss acts only during biased programs (Sec. 3.4:
//! from the order of programs, not from wear), as a constant factor on the rate.
//!
//! Assumed: `fresh_rate`, because the paper's curves have no numbers except where they reach 1e-3. Ignored, as in the
//! paper: retention, and the nearly error-free low pages of the first round.
//!
//! `wear` and `part` use each other: a part has a table of wear, and wear reads other properties of the part.

use super::part::Part;
use crate::keys::{Rule, SHARE, Value};

crate::keys! {
    /// Measurements of a part, as lists by `shares`; empty if not measured.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct WearTable;

    /// The keys of a part's wear.
    group pub KEYS {
        /// raw bit error rate of a new block
        pub fresh_rate: f64 = "part.ber_fresh", SHARE, "0.001%";
        /// raw bit error rate that ends a block's life, reached after part.endurance
        pub limit_rate: f64 = "part.ber_limit", SHARE, "0.1%";
        /// shares of part.endurance spent programming low pages again, ascending to 100%, for the next two; none: not
        /// measured
        pub shares: Vec<f64> = "part.reuse_shares", Ratios, "[]", rules[UP_TO_ALL];
        /// share of part.endurance lost at each of them
        pub reprogram_loss: Vec<f64> = "part.reuse_loss", Ratios, "[]", rules[BELOW_ALL];
        /// share of it lost to the raised threshold voltage alone
        pub voltage_loss: Vec<f64> = "part.voltage_loss", Ratios, "[]", rules[BELOW_ALL];
    }
}

const UP_TO_ALL: Rule = Rule {
    holds: |value| match value {
        Value::Ratios(shares) => ascend(shares) && shares.first() != Some(&0.0) && ends(shares, |last| last >= 1.0),
        _ => false,
    },
    expected: "expected shares that ascend from above 0% to 100%, or none",
};
const BELOW_ALL: Rule = Rule {
    holds: |value| matches!(value, Value::Ratios(losses) if ascend(losses) && ends(losses, |last| last < 1.0)),
    expected: "expected losses that ascend and stay below 100%",
};

fn ascend(list: &[f64]) -> bool {
    list.is_sorted_by(|one, next| one < next)
}

/// Whether the last of `list` fits; true if there is none.
fn ends(list: &[f64], fit: impl Fn(f64) -> bool) -> bool {
    list.last().is_none_or(|&last| fit(last))
}

/// The bias of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// No bias.
    None,
    /// Low pages are programmed, and again with their high pages.
    Reprogram,
    /// Random data with three zeros of four bits in low pages, in the usual order.
    Voltage,
}

/// The model of one part under one bias.
#[derive(Debug, Clone)]
pub struct Wear {
    endurance: f64,
    fresh_rate: f64,
    limit_rate: f64,
    /// Biased cycles and lasting loss, both in shares of the endurance, from (0, 0) on.
    lasting: Vec<(f64, f64)>,
    /// Share of the endurance by which a block acts older during biased programs.
    passing: f64,
}

/// The life of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endurance {
    /// Cycles until the rate reaches the limit.
    pub cycles: f64,
    /// Cycles in which biased cycles are allowed.
    pub window: f64,
    /// Whether a biased cycle reaches the limit.
    pub ends_biased: bool,
}

impl Wear {
    /// The model of `part` under `bias`.
    pub fn new(part: &Part, bias: Bias) -> Self {
        let table = &part.wear;
        let losses: &[f64] = match bias {
            Bias::None => &[],
            Bias::Reprogram => &table.reprogram_loss,
            Bias::Voltage => &table.voltage_loss,
        };
        let mut lasting = vec![(0.0, 0.0)];
        let rows = losses.len().saturating_sub(1);
        lasting.extend(table.shares.iter().copied().zip(losses.iter().copied()).take(rows));
        let (fresh_rate, limit_rate) = (table.fresh_rate, table.limit_rate);
        let mut wear = Wear { endurance: f64::from(part.endurance), fresh_rate, limit_rate, lasting, passing: 0.0 };
        if let Some(&whole) = losses.last() {
            wear.passing = (whole - wear.lasting_loss(1.0 - whole)).max(0.0);
        }
        wear
    }

    /// Share of the endurance lost permanently to biased cycles, given as a share of the endurance.
    pub fn lasting_loss(&self, biased: f64) -> f64 {
        let after = self.lasting.iter().position(|&(share, _)| share >= biased).unwrap_or(self.lasting.len());
        let upper = after.clamp(1, self.lasting.len().max(2) - 1);
        match (self.lasting.get(upper - 1), self.lasting.get(upper)) {
            (Some(&(from, low)), Some(&(to, high))) => low + (high - low) * (biased - from) / (to - from),
            _ => 0.0,
        }
    }

    /// Raw bit error rate after `cycles`, of which `biased` were biased; `now`: the block is programmed with bias now.
    pub fn bit_error_rate(&self, cycles: f64, biased: f64, now: bool) -> f64 {
        let age = self.age(cycles / self.endurance, biased / self.endurance) + if now { self.passing } else { 0.0 };
        self.fresh_rate * libm::pow(self.limit_rate / self.fresh_rate, age)
    }

    /// Raw bit error rate after `cycles` of a block whose first `window` cycles were, or are, biased.
    pub fn rate_after(&self, cycles: f64, window: f64) -> f64 {
        self.bit_error_rate(cycles, cycles.min(window), window > 0.0 && cycles <= window)
    }

    /// Usual cycles with the same wear, all in shares of the endurance.
    fn age(&self, cycles: f64, biased: f64) -> f64 {
        cycles + self.lasting_loss(biased)
    }

    /// The life of a block if up to `window` (a share of the endurance) the share `biased` of its cycles is biased.
    pub fn endurance(&self, window: f64, biased: f64) -> Endurance {
        let at_limit = |age: f64| {
            // The loss is piecewise linear and grows, so bisection finds the cycles at which cycles plus loss reach
            // `age`.
            let (mut low, mut high) = (0.0, age);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if self.age(middle, biased * middle) < age { low = middle } else { high = middle }
            }
            high
        };
        let in_window = at_limit(1.0 - self.passing);
        let ends_biased = biased > 0.0 && in_window < window;
        let share = if ends_biased { in_window } else { (1.0 - self.lasting_loss(biased * window)).max(0.0) };
        Endurance { cycles: share * self.endurance, window: share.min(window) * self.endurance, ends_biased }
    }
}

#[cfg(test)]
mod tests;
