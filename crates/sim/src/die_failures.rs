//! The schedule of die failures: a key of the configuration, and the failures drawn from it. Flash models the effect of
//! a failure.
//!
//! Schedules count planned flash operations, from the start of the measured part of the run or of its warm-up. Power
//! cuts count operations that have run.

use crate::power_cuts::{number, shown};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::Notated;

/// Longest list of `at`.
const MOST: usize = 10_000;

/// The schedule of die failures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DieFailures {
    /// No failures.
    #[default]
    Never,
    /// Operations since the start, in ascending order, each with the die if one is named.
    At(Vec<(u64, Option<u32>)>),
    /// One failure after another, each after an exponentially distributed number of operations with this mean.
    Poisson(u64),
}

impl Notated for DieFailures {
    const WORDS: &'static [&'static str] = &["never"];
    const EXPECTED: &'static str = "never, at:50k@3,80k (operations in ascending order, a die once), or poisson:50k, \
                                    with whole numbers of flash operations from 1";

    /// Numbers of operations may end with k or M.
    fn parse(text: &str) -> Parsed<DieFailures> {
        let wrong = || format!("\"{}\" is no schedule of failing dies; expected {}", shown(text), Self::EXPECTED);
        match text.split_once(':') {
            None if text == "never" => Ok(DieFailures::Never),
            Some(("poisson", mean)) => number(mean).map(DieFailures::Poisson).ok_or_else(wrong),
            Some(("at", list)) => {
                let all = list.split(',').map(failure).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
                let ascending = all.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let named = |index: usize| all[index].1.filter(|die| all[..index].iter().any(|it| it.1 == Some(*die)));
                let once = (0..all.len()).all(|index| named(index).is_none());
                if ascending && once && all.len() <= MOST { Ok(DieFailures::At(all)) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }

    fn text(&self) -> String {
        match self {
            DieFailures::Never => "never".into(),
            DieFailures::Poisson(mean) => format!("poisson:{mean}"),
            DieFailures::At(all) => {
                let one = |&(at, die): &(u64, Option<u32>)| match die {
                    Some(die) => format!("{at}@{die}"),
                    None => at.to_string(),
                };
                format!("at:{}", all.iter().map(one).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl DieFailures {
    /// The least number of failures in this schedule.
    pub fn count(&self) -> u32 {
        if let DieFailures::At(all) = self { all.len() as u32 } else { 0 }
    }

    /// The highest die named.
    pub fn last_die(&self) -> Option<u32> {
        if let DieFailures::At(all) = self { all.iter().filter_map(|&(_, die)| die).max() } else { None }
    }

    /// Draws the failures of a drive of `dies` dies from `seed`: pairs of operation and die, counted from `operations`
    /// flash operations on. Each die fails at most once.
    pub fn draw(&self, dies: u32, seed: u64, operations: u64) -> Vec<(u64, u32)> {
        let mut rng = Rng::new(seed, 0xd1ef);
        let named: Vec<u32> = match self {
            DieFailures::At(all) => all.iter().filter_map(|&(_, die)| die).collect(),
            _ => Vec::new(),
        };
        let mut left: Vec<u32> = (0..dies).filter(|die| !named.contains(die)).collect();
        let mut any = |rng: &mut Rng| {
            let drawn = (!left.is_empty()).then(|| rng.below(left.len() as u64) as usize);
            drawn.map(|index| left.swap_remove(index))
        };
        match self {
            DieFailures::Never => Vec::new(),
            DieFailures::At(all) => {
                let die = |&(at, die): &(u64, Option<u32>)| Some((operations + at, die.or_else(|| any(&mut rng))?));
                all.iter().filter_map(die).collect()
            }
            DieFailures::Poisson(mean) => {
                let mut at = operations;
                std::iter::from_fn(|| {
                    let apart = -(1.0 - rng.unit()).ln() * *mean as f64;
                    at += (apart as u64).max(1);
                    Some((at, any(&mut rng)?))
                })
                .collect()
            }
        }
    }
}

/// Parses an operation and an optional die.
fn failure(text: &str) -> Option<(u64, Option<u32>)> {
    let (at, die) = text.split_once('@').map_or((text, None), |(at, die)| (at, Some(die)));
    let digits = |die: &str| die.bytes().all(|byte| byte.is_ascii_digit()).then(|| die.parse().ok())?;
    Some((number(at)?, die.map(|die| digits(die).ok_or(())).transpose().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        for (text, read) in [
            ("never", "never"),
            ("at:2k@3", "at:2000@3"),
            ("at:7,9@0,1M", "at:7,9@0,1000000"),
            ("poisson:5", "poisson:5"),
        ] {
            assert_eq!(DieFailures::parse(text).unwrap().text(), read);
        }
        for text in
            ["", "at:", "at:0", "at:5@", "at:5@-1", "at:5@1,7@1", "at:7,5", "at:@3", "every:5", "poisson:", "at:5@3@4"]
        {
            assert!(DieFailures::parse(text).unwrap_err().contains("expected never, at:50k@3"), "{text} was taken");
        }
    }

    #[test]
    fn a_die_fails_once() {
        let drawn = |text: &str, seed| DieFailures::parse(text).unwrap().draw(4, seed, 100);
        assert_eq!(drawn("at:5@2", 1), [(105, 2)]);
        let mut of_two = drawn("at:5,6@2,7,8", 1);
        assert_eq!((of_two[1], of_two.len()), ((106, 2), 4));
        of_two.sort_unstable_by_key(|&(_, die)| die);
        assert!(of_two.iter().map(|&(_, die)| die).eq(0..4));
        let mean = (0..2000).map(|seed| drawn("poisson:1k", seed)[3].0 - 100).sum::<u64>() as f64 / 2000.0;
        assert!((mean / 4000.0 - 1.0).abs() < 0.05, "four failures, each 1000 operations after the other: {mean}");
    }
}
