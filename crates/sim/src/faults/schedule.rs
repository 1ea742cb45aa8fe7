//! The schedule of a fault: the one notation `never | at:N,.. | every:N | poisson:N`, and the operations drawn from it.
//!
//! Numbers are flash operations from 1 and may end with k or M; `at:N@DIE` names a die. Ignored: schedules in time,
//! because a fault interrupts flash work.

use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::Parsed;

/// Longest list of `at`.
const MOST: usize = 10_000;

/// Largest number of an operation.
const LARGEST: u64 = 1 << 50;

/// The schedule of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Schedule {
    /// No faults.
    #[default]
    Never,
    /// Faults in these operations since the start, in ascending order, each with the die if one is named.
    At(Vec<(u64, Option<u32>)>),
    /// A fault in the operation of this number, counted from the start or the last fault.
    Every(u64),
    /// Faults after exponentially distributed numbers of operations with this mean, drawn anew each time.
    Poisson(u64),
}

impl Schedule {
    /// Parses a schedule of `faults`; only with `of_dies` may an operation name a die, each die once.
    ///
    /// # Errors
    /// One line that ends with `expected`.
    pub fn parse(text: &str, of_dies: bool, faults: &str, expected: &str) -> Parsed<Schedule> {
        let known = |schedule: &Schedule| match schedule {
            Schedule::At(list) => is_in_order(list) && (of_dies || list.iter().all(|(_, die)| die.is_none())),
            _ => true,
        };
        let shown: String = text.chars().take(40).collect();
        let wrong = || format!("\"{shown}\" is no schedule of {faults}; expected {expected}");
        Self::read(text).filter(known).ok_or_else(wrong)
    }

    fn read(text: &str) -> Option<Schedule> {
        match text.split_once(':') {
            None if text == "never" => Some(Schedule::Never),
            Some(("every", apart)) => number(apart).map(Schedule::Every),
            Some(("poisson", mean)) => number(mean).map(Schedule::Poisson),
            Some(("at", list)) => list.split(',').map(operation).collect::<Option<Vec<_>>>().map(Schedule::At),
            _ => None,
        }
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        let one = |&(at, die): &(u64, Option<u32>)| match die {
            Some(die) => format!("{at}@{die}"),
            None => at.to_string(),
        };
        match self {
            Schedule::Never => "never".into(),
            Schedule::Every(apart) => format!("every:{apart}"),
            Schedule::Poisson(mean) => format!("poisson:{mean}"),
            Schedule::At(all) => format!("at:{}", all.iter().map(one).collect::<Vec<_>>().join(",")),
        }
    }

    /// The operations that name a die, or may.
    pub fn listed(&self) -> &[(u64, Option<u32>)] {
        if let Schedule::At(list) = self { list } else { &[] }
    }
}

/// True if operations ascend and each die is named once.
fn is_in_order(list: &[(u64, Option<u32>)]) -> bool {
    let named_before = |index: usize| list[index].1.is_some() && list[..index].iter().any(|it| it.1 == list[index].1);
    list.windows(2).all(|pair| pair[0].0 < pair[1].0) && list.len() <= MOST && !(0..list.len()).any(named_before)
}

/// Parses an operation and an optional die.
fn operation(text: &str) -> Option<(u64, Option<u32>)> {
    let Some((at, die)) = text.split_once('@') else { return Some((number(text)?, None)) };
    let digits = die.bytes().all(|byte| byte.is_ascii_digit());
    Some((number(at)?, Some(die.parse().ok().filter(|_| digits)?)))
}

/// Parses a number of operations, at least 1, which may end with k or M.
fn number(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|number| (1..=LARGEST).contains(number))
}

/// The faults of a run, drawn from a schedule.
#[derive(Debug, Clone)]
pub struct Draws {
    schedule: Schedule,
    pub(super) rng: Rng,
    /// Number of operations at the start.
    start: u64,
}

impl Draws {
    /// The faults of `schedule`, which starts after `operations` flash operations.
    pub fn new(schedule: Schedule, rng: Rng, operations: u64) -> Self {
        Draws { schedule, rng, start: operations }
    }

    /// The operation of the next fault after `operations` operations.
    pub fn next(&mut self, operations: u64) -> Option<u64> {
        self.next_with_die(operations).map(|(at, _)| at)
    }

    /// As [`Self::next`], with the die if one is named.
    pub fn next_with_die(&mut self, operations: u64) -> Option<(u64, Option<u32>)> {
        match &self.schedule {
            Schedule::Never => None,
            Schedule::Every(apart) => Some((operations + apart, None)),
            Schedule::Poisson(mean) => {
                let apart = -(1.0 - self.rng.unit()).ln() * *mean as f64;
                Some((operations + (apart as u64).max(1), None))
            }
            Schedule::At(list) => {
                let mut absolute = list.iter().map(|&(at, die)| (self.start + at, die));
                absolute.find(|&(at, _)| at > operations)
            }
        }
    }
}

#[cfg(test)]
mod tests;
