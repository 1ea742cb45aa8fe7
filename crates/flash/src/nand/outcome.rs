//! How operations of flash end.

use super::rules::Refusal;

/// Why flash did not do an operation.
#[derive(Debug)]
pub enum Halt {
    /// The power failed during this operation.
    PowerCut,
    /// The operation breaks a rule of the part: a bug of the translation layer.
    Refused(Box<Refusal>),
    /// The translation layer found no block to write to: the drive is at the end of its life.
    NoSpace,
    /// The layer cannot continue, for this reason.
    Ended(&'static str),
    /// What was to be kept in the image could not be, for this reason of the operating system.
    Image(Box<str>),
}

/// Result of flash operations.
pub type Flash<T> = std::result::Result<T, Halt>;

/// Whether a program or erase reported success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The operation did what it should.
    Done,
    /// The part reported failure; the block must not be used again.
    Failed,
}
