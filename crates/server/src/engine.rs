//! A drive with or without a time, as the service uses either.

use crate::drive::Drive;
use crate::timed::Timed;
use palimpsest_lab::error::Result;
use palimpsest_lab::run::Outcome;
use palimpsest_lab::run::served::Served;

/// A drive with or without a time.
pub enum Engine<'a> {
    /// Requests are counted: each thread serves its own.
    Counted(Drive<'a>),
    /// Requests are in flight together.
    Timed(Timed<'a>),
}

impl Engine<'_> {
    /// How often the power failed so far.
    pub fn power_cuts(&self) -> u64 {
        match self {
            Engine::Counted(drive) => drive.power_cuts(),
            Engine::Timed(drive) => drive.power_cuts(),
        }
    }

    /// Whether a thread panicked while it used the drive.
    pub fn is_broken(&self) -> bool {
        match self {
            Engine::Counted(drive) => drive.is_broken(),
            Engine::Timed(drive) => drive.is_broken(),
        }
    }

    /// Looks at the drive.
    pub fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        match self {
            Engine::Counted(drive) => drive.look(look),
            Engine::Timed(drive) => drive.look(look),
        }
    }

    /// Every later request is refused.
    pub fn end(&self) {
        match self {
            Engine::Counted(drive) => drive.end(),
            Engine::Timed(drive) => drive.end(),
        }
    }

    /// The result.
    ///
    /// # Errors
    /// The first error of the drive, and laws that do not hold.
    pub fn finish(self) -> Result<Outcome> {
        match self {
            Engine::Counted(drive) => drive.finish(),
            Engine::Timed(drive) => drive.finish(),
        }
    }
}
