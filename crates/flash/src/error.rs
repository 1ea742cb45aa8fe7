//! The one error type of the core: what the user did wrong, or why the simulated device stopped.
//!
//! Our own bugs are not errors: they are assertions. The Python shim maps each variant to one exception class, and the
//! command line to one exit status; nothing else in the project decides how a failure is shown.

use std::fmt;

/// Why a run could not be set up or could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The user's input is wrong. `place` is `FILE:LINE`, `FILE` or `--option value`; `what` says what was wrong and what
    /// was expected, in one line. Exit status 2.
    Input {
        /// Where the mistake stands.
        place: String,
        /// What is wrong and what was expected.
        what: String,
    },
    /// The simulated device cannot serve any more requests (no good blocks left, say). Exit status 1.
    Device(String),
    /// A translation layer broke a rule of flash: a bug of that layer, with the history of the block. Exit status 1.
    Rule(String),
    /// Reading the workload failed in the operating system. Exit status 1.
    Io {
        /// The file.
        place: String,
        /// What the operating system said.
        what: String,
    },
    /// The user interrupted the run. Exit status 130.
    Interrupted,
}

impl Error {
    /// A mistake of the user's at `place`.
    pub fn input(place: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Input { place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input { place, what } | Error::Io { place, what } if place.is_empty() => write!(f, "{what}"),
            Error::Input { place, what } | Error::Io { place, what } => write!(f, "{place}: {what}"),
            Error::Device(what) | Error::Rule(what) => write!(f, "{what}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// Result of everything that can fail because of the user or the simulated device.
pub type Result<T> = std::result::Result<T, Error>;
