//! Outcomes of flash operations. Ignored: uncorrectable reads, see [`super::errors`].

use super::rules::Refusal;

/// The reason why flash did not execute an operation.
#[derive(Debug)]
pub enum Halt {
    /// The power failed during this operation.
    PowerCut,
    /// The operation breaks a rule of the part: a bug of the translation layer.
    Refused(Box<Refusal>),
    /// The translation layer found no block for a write: the drive is worn out.
    NoSpace,
    /// The layer cannot continue, for this reason.
    Ended(&'static str),
    /// The image could not be written, for this reason of the operating system.
    Image(Box<str>),
}

/// Result of flash operations.
pub type Flash<T> = std::result::Result<T, Halt>;

/// Whether a program or erase reported success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Success.
    Done,
    /// The part reported failure; the block must not be used again.
    Failed,
}
