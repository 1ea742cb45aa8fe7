//! The part of a run that a timeline shows, and its notation.
//!
//! Ignored: more than one window per run.

use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::{Nanos, parse::parse_time};

/// A part of a run. Numbers and times count from the start of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The measured requests `first` to `last`, both included, with the operations of their plans, and operations
    /// without a request planned while one of these was outstanding.
    Requests {
        /// At least 1.
        first: u64,
        last: u64,
    },
    /// Requests and operations under way at some time from `from` on and before `until`.
    Time { from: Nanos, until: Nanos },
    /// So many of the slowest requests of each kind, with the operations of their plans and of their critical paths
    /// that have ended when they complete.
    Slowest(usize),
}

/// Most requests of each kind in [`Window::Slowest`].
const MOST_SLOWEST: usize = 1000;

impl Window {
    /// Parses `1..1000` (requests), `10ms..12ms` or `slowest:20`.
    ///
    /// # Errors
    /// [`Error::Input`] that names the expected notation.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let expected = "expected requests such as 1..1000, times such as 10ms..12ms, or slowest:20";
            Error::input(format!("--operations-window {text}"), format!("{why}{expected}"))
        };
        if let Some(number) = text.strip_prefix("slowest:") {
            let number = number.parse().ok().filter(|number| (1..=MOST_SLOWEST).contains(number));
            let why = format!("a number of requests lies in 1..{MOST_SLOWEST}; ");
            return number.map(Window::Slowest).ok_or_else(|| wrong(&why));
        }
        let (first, last) = text.split_once("..").ok_or_else(|| wrong(""))?;
        let (first, last) = (first.trim(), last.trim());
        let window = match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => Window::Requests { first, last },
            _ => match (parse_time(first), parse_time(last)) {
                (Ok(from), Ok(until)) => Window::Time { from, until },
                (Err(why), _) | (_, Err(why)) => return Err(wrong(&format!("{why}; "))),
            },
        };
        match window {
            Window::Requests { first: 0, .. } => Err(wrong("requests are numbered from 1; ")),
            Window::Requests { first, last } if first > last => Err(wrong("nothing lies in this window; ")),
            Window::Time { from, until } if from >= until => Err(wrong("nothing lies in this window; ")),
            _ => Ok(window),
        }
    }
}

#[cfg(test)]
mod tests;
