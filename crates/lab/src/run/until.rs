//! A run that goes on until its figures are known: `--until 1%`, `--until p99:5%`.
//!
//! The run is judged (`metrics::steady`) after numbers of requests that grow by a quarter, because each look at a
//! figure is another chance to end too early. The run ends when at two looks in a row each asked figure is that of a
//! steady drive, and half of its interval is at most the asked share; at the latest after the requests or the simulated
//! time of `--at-most`.
//! Ignored: the time that the host waits.

use crate::metrics::steady::{Ended, JUDGED, Steady, Verdict};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{format_time, parse_ratio, parse_time};

/// Figures of `--until 1%`, as far as the run has them.
const USUAL: [&str; 3] = ["iops", "mean", "wa"];
/// The figure that a counted run judges.
const COUNTED: &str = "wa";
/// Most requests without `--at-most`.
const MOST_REQUESTS: u64 = 10_000_000;
/// Requests at the first look, and the growth to the next one.
const FIRST_LOOK: u64 = 10_000;
const GROWTH: f64 = 1.25;
/// Narrower intervals would be narrower than the buckets of response times.
const LEAST_SHARE: f64 = 0.001;

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Until {
    text: String,
    /// Names of figures, and the largest half of their intervals as a share of the figure.
    targets: Vec<(&'static str, f64)>,
    /// The figures are the usual ones: those that the run has.
    usual: bool,
    most_requests: u64,
    most_time: Option<Nanos>,
    /// The run has at least this many requests.
    least: u64,
    /// The last look met the targets.
    met: bool,
}

impl Until {
    /// Reads `1%`, `p99:5%` or `iops:1%,read.p99:5%`, and the text of `--at-most`: requests such as `1e6`, or simulated
    /// time such as `20s`. The run has at least `least` requests.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str, at_most: Option<&str>, least: u64) -> Result<Until> {
        let wrong = |what: &str| {
            let names = JUDGED.join(", ");
            let what = format!("{what}; expected a share such as 1%, or figures with shares such as p99:5% ({names})");
            Error::input(format!("--until {text}"), what)
        };
        let share = |text: &str| {
            let share = parse_ratio(text).map_err(|_| wrong(&format!("\"{text}\" is no share")))?;
            if (LEAST_SHARE..0.5).contains(&share) { Ok(share) } else { Err(wrong("the share is not in 0.1% to 50%")) }
        };
        let usual = !text.contains(':');
        let targets = if usual {
            let share = share(text)?;
            USUAL.iter().map(|&name| (name, share)).collect()
        } else {
            let target = |part: &str| {
                let (name, of) = part.split_once(':').ok_or_else(|| wrong(&format!("\"{part}\" names no figure")))?;
                let name = JUDGED.iter().find(|known| **known == name.trim());
                Ok((*name.ok_or_else(|| wrong(&format!("\"{part}\" names no judged figure")))?, share(of)?))
            };
            text.split(',').map(target).collect::<Result<_>>()?
        };
        let (requests, most_time) = at_most.map_or(Ok((None, None)), parse_most)?;
        let most_requests = requests.unwrap_or(if most_time.is_some() { u64::MAX } else { MOST_REQUESTS });
        let least = least.min(most_requests);
        Ok(Until { text: text.to_owned(), targets, usual, most_requests, most_time, least, met: false })
    }

    /// The end of a counted run, which has no time and judges write amplification alone.
    ///
    /// # Errors
    /// [`Error::Input`] if the end is another figure, or a time.
    pub fn of_counted(mut self) -> Result<Until> {
        if self.usual {
            self.targets.retain(|&(name, _)| name == COUNTED);
        }
        if let Some((name, _)) = self.targets.iter().find(|&&(name, _)| name != COUNTED) {
            let what = format!("a counted run does not measure {name}; expected {COUNTED}, or --fidelity timed");
            return Err(Error::input(format!("--until {}", self.text), what));
        }
        match self.most_time {
            Some(time) => {
                let what = "a counted run has no time; expected a number of requests such as 1e6, or --fidelity timed";
                Err(Error::input(format!("--at-most {}", format_time(time)), what))
            }
            None => Ok(self),
        }
    }

    /// Most requests of the run.
    pub fn most_requests(&self) -> u64 {
        self.most_requests
    }

    /// The number of requests at the first look.
    pub fn first(&self) -> u64 {
        self.least.max(FIRST_LOOK)
    }

    /// The number of requests at the look after the one at `requests`.
    pub fn next(requests: u64) -> u64 {
        (requests as f64 * GROWTH) as u64
    }

    /// True if the run may not go on at this simulated time of its measurement.
    pub fn is_late(&self, time: Nanos) -> bool {
        self.most_time.is_some_and(|most| time >= most)
    }

    /// A look at the figures; true if each asked figure is known as well as asked, and was at the last look.
    pub fn look(&mut self, steady: &Steady) -> bool {
        let is_met = self.missing(steady).is_none();
        std::mem::replace(&mut self.met, is_met) && is_met
    }

    /// The first asked figure that is not known as well as asked, and why.
    pub fn missing(&self, steady: &Steady) -> Option<String> {
        self.targets.iter().find_map(|&(name, share)| {
            let Some(found) = steady.finding(name) else {
                return (!self.usual).then(|| format!("{name}: nothing of it was measured"));
            };
            match (found.verdict, found.half()) {
                (Verdict::Yes, Some(half)) if half <= share => None,
                (Verdict::Yes, Some(half)) => Some(format!("{name} is known within {:.2} %", 100.0 * half)),
                _ => Some(format!("{name}: {}", found.reason.as_deref().unwrap_or("there is no interval"))),
            }
        })
    }

    /// How the run ended.
    pub fn ended(&self, steady: &Steady) -> Ended {
        Ended { asked: self.text.clone(), met: self.missing(steady).is_none() }
    }

    /// The sentence of a run that ended without the asked intervals.
    pub fn note(&self, steady: &Steady) -> Option<String> {
        let why = self.missing(steady)?;
        let most = match self.most_time {
            Some(time) => format_time(time),
            None => self.most_requests.to_string(),
        };
        Some(format!("--until {} is not reached within --at-most {most}: {why}", self.text))
    }
}

/// Requests, or simulated time.
fn parse_most(text: &str) -> Result<(Option<u64>, Option<Nanos>)> {
    let number = text.trim().parse::<f64>().ok().filter(|number| *number >= 1.0 && number.fract() == 0.0);
    if let Some(requests) = number {
        return Ok((Some(requests as u64), None));
    }
    match parse_time(text) {
        Ok(time) if time > 0 => Ok((None, Some(time))),
        _ => {
            let what = "expected a number of requests such as 1e6, or simulated time such as 20s";
            Err(Error::input(format!("--at-most {text}"), what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_figures_are_read() {
        let usual = Until::parse("1%", None, 0).unwrap();
        assert_eq!(usual.targets, [("iops", 0.01), ("mean", 0.01), ("wa", 0.01)]);
        assert_eq!((usual.first(), usual.most_requests()), (10_000, 10_000_000));
        let named = Until::parse("p99:5%,read.mean:0.5%", Some("20s"), 50_000).unwrap();
        assert_eq!(named.targets, [("p99", 0.05), ("read.mean", 0.005)]);
        assert_eq!((named.first(), named.most_requests()), (50_000, u64::MAX));
        assert!(!named.is_late(19_999_999_999) && named.is_late(20_000_000_000));
    }

    #[test]
    fn other_texts_are_refused_with_an_expectation() {
        for text in ["", "%", "0%", "60%", "p99", "p98:5%", "p99:5%,", ":5%", "p99:", "worn"] {
            let error = Until::parse(text, None, 0).unwrap_err().to_string();
            assert!(error.contains(&format!("--until {text}")) && error.contains("expected"), "{error}");
        }
        for text in ["0", "-1", "1.5", "20", "20x", "0s"].into_iter().filter(|text| *text != "20") {
            let error = Until::parse("1%", Some(text), 0).unwrap_err().to_string();
            assert!(error.contains("--at-most") && error.contains("expected"), "{error}");
        }
        assert_eq!(Until::parse("1%", Some("20"), 1000).unwrap().first(), FIRST_LOOK);
    }

    #[test]
    fn counted_runs_end_with_write_amplification() {
        let counted = |text: &str, most| Until::parse(text, most, 0).unwrap().of_counted();
        assert_eq!(counted("1%", None).unwrap().targets, [("wa", 0.01)]);
        assert_eq!(counted("wa:2%", Some("1e6")).unwrap().targets, [("wa", 0.02)]);
        for (text, most) in [("p99:5%", None), ("wa:1%,iops:1%", None), ("1%", Some("20s"))] {
            let error = counted(text, most).unwrap_err().to_string();
            assert!(error.contains("a counted run") && error.contains("expected"), "{error}");
        }
    }
}
