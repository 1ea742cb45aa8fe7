//! The error type of the core: a mistake of the user, or the reason why the simulated drive stopped.
//!
//! Bugs of the simulator are assertions, not errors. The Python binding maps each variant to one exception class, and
//! the command line maps each class to one exit status. No other code decides how a failure is shown.

use std::fmt;

/// The reason why a run could not start or continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The user's input is wrong. `place` is `FILE:LINE`, `FILE` or `--option value`; `what` is one line with the
    /// mistake and the expected input. Exit status 2.
    Input {
        /// The place of the mistake.
        place: String,
        /// The mistake and the expected input.
        what: String,
        /// True for values that are possible alone and make no drive together: a sweep leaves out such a point.
        unfit: bool,
    },
    /// The simulated drive failed: it serves no more requests (no good blocks left, say). Exit status 1.
    DriveFailed(String),
    /// The drive is worn out: no block is left for writes, and reads still work. Exit status 1, except in a
    /// measurement, which ends here.
    WornOut(String),
    /// A translation layer broke a rule of flash: a bug of that layer, with the history of the block. Exit status 1.
    Rule(String),
    /// A decision outside of the drive failed, such as a policy of the user. The text names the request and the work of
    /// the drive; the program that decides has the reason. Exit status 1.
    Outside(String),
    /// Reading the workload failed in the operating system. Exit status 1.
    Io {
        /// The file.
        place: String,
        /// The message of the operating system.
        what: String,
    },
    /// The user interrupted the run. Exit status 130.
    Interrupted,
}

impl Error {
    /// A mistake of the user at `place`.
    pub fn input(place: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Input { place: place.into(), what: what.into(), unfit: false }
    }

    /// Settings at `place` that make no drive together.
    pub fn unfit(place: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Input { place: place.into(), what: what.into(), unfit: true }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input { place, what, .. } | Error::Io { place, what } if place.is_empty() => write!(f, "{what}"),
            Error::Input { place, what, .. } | Error::Io { place, what } => write!(f, "{place}: {what}"),
            Error::DriveFailed(what) | Error::WornOut(what) | Error::Rule(what) | Error::Outside(what) => {
                write!(f, "{what}")
            }
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// Result of an operation that the user or the simulated drive may make fail.
pub type Result<T> = std::result::Result<T, Error>;
