//! The schedule of power cuts: a key of the configuration, and the cuts drawn from it.
//!
//! Schedules count flash operations that have run since their start, because a cut interrupts flash work, not time.
//! Operations of a timed run that are planned but not begun do not count. Ignored: cuts during recovery (the model
//! suite has them), and the time without power.

use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::Notated;

/// Longest list of `at`.
const MOST: usize = 10_000;

/// Largest number of an operation.
const LARGEST: u64 = 1 << 50;

/// The schedule of power cuts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PowerCuts {
    /// No cuts.
    #[default]
    Never,
    /// A cut in the operation of this number, counted from the start or the last recovery.
    Every(u64),
    /// Cuts in these operations since the start, in ascending order.
    At(Vec<u64>),
    /// Cuts after exponentially distributed numbers of operations with this mean, drawn anew each time.
    Poisson(u64),
}

impl Notated for PowerCuts {
    const WORDS: &'static [&'static str] = &["never"];
    const EXPECTED: &'static str =
        "never, every:50k, at:1000,2000 (ascending), or poisson:50k, with whole numbers of flash operations from 1";

    /// Numbers may end with k or M.
    fn parse(text: &str) -> Parsed<PowerCuts> {
        let wrong = || format!("\"{}\" is no schedule of power cuts; expected {}", shown(text), Self::EXPECTED);
        let numbers = |list: &str| list.split(',').map(number).collect::<Option<Vec<u64>>>().ok_or_else(wrong);
        match text.split_once(':') {
            None if text == "never" => Ok(PowerCuts::Never),
            Some(("every", apart)) => number(apart).map(PowerCuts::Every).ok_or_else(wrong),
            Some(("poisson", mean)) => number(mean).map(PowerCuts::Poisson).ok_or_else(wrong),
            Some(("at", list)) => {
                let numbers = numbers(list)?;
                let ascending = numbers.windows(2).all(|pair| pair[0] < pair[1]);
                if ascending && numbers.len() <= MOST { Ok(PowerCuts::At(numbers)) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }

    fn text(&self) -> String {
        match self {
            PowerCuts::Never => "never".into(),
            PowerCuts::Every(apart) => format!("every:{apart}"),
            PowerCuts::Poisson(mean) => format!("poisson:{mean}"),
            PowerCuts::At(numbers) => {
                format!("at:{}", numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Parses a number of operations, at least 1, which may end with k or M.
pub(crate) fn number(text: &str) -> Option<u64> {
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

/// The beginning of `text`, for a message.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The cuts of a run.
#[derive(Debug, Clone)]
pub struct Schedule {
    cuts: PowerCuts,
    rng: Rng,
    /// Number of operations at the start.
    start: u64,
}

impl Schedule {
    /// A schedule of `cuts`, drawn from `seed`, that starts after `operations` flash operations.
    pub fn new(cuts: PowerCuts, seed: u64, operations: u64) -> Self {
        Schedule { cuts, rng: Rng::new(seed, 0xc075), start: operations }
    }

    /// The operation in which the power fails next, after `operations` have run.
    pub fn next(&mut self, operations: u64) -> Option<u64> {
        match &self.cuts {
            PowerCuts::Never => None,
            PowerCuts::Every(apart) => Some(operations + apart),
            PowerCuts::Poisson(mean) => {
                let apart = -(1.0 - self.rng.unit()).ln() * *mean as f64;
                Some(operations + (apart as u64).max(1))
            }
            PowerCuts::At(numbers) => numbers.iter().map(|number| self.start + number).find(|&cut| cut > operations),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read() {
        for (text, read) in [
            ("never", "never"),
            ("every:50k", "every:50000"),
            ("poisson:2M", "poisson:2000000"),
            ("at:7,10,1k", "at:7,10,1000"),
        ] {
            assert_eq!(PowerCuts::parse(text).unwrap().text(), read);
        }
        for text in [
            "",
            "every",
            "every:",
            "every:0",
            "every:-1",
            "at:",
            "at:2,1",
            "at:1,,2",
            "every:1e3",
            "often",
            "poisson:9999999999999M",
        ] {
            assert!(PowerCuts::parse(text).unwrap_err().contains("expected never, every:50k"), "{text} was taken");
        }
    }

    #[test]
    fn cuts_come_as_scheduled() {
        let cuts = |text: &str| Schedule::new(PowerCuts::parse(text).unwrap(), 1, 100);
        assert_eq!(cuts("never").next(100), None);
        assert_eq!(cuts("every:10").next(117), Some(127));
        let mut at = cuts("at:10,20");
        assert_eq!([100, 110, 119, 120].map(|done| at.next(done)), [Some(110), Some(120), Some(120), None]);
        let mut poisson = cuts("poisson:1k");
        let mean = (0..10_000).map(|_| poisson.next(0).unwrap()).sum::<u64>() as f64 / 10_000.0;
        assert!((mean / 1000.0 - 1.0).abs() < 0.03, "{mean}");
    }
}
