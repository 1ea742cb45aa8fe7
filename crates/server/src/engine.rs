//! A drive with or without a clock, as the service uses either.

use crate::drive::Drive;
use crate::timed::Timed;
use palimpsest_lab::error::Result;
use palimpsest_lab::run::Outcome;
use palimpsest_lab::run::served::Served;

/// A drive with or without a clock.
pub enum Engine<'a> {
    /// Requests are counted: each thread serves one connection.
    Counted(Drive<'a>),
    /// Requests are in flight together.
    Timed(Timed<'a>),
}

macro_rules! either {
    ($engine:ident, $drive:ident => $done:expr) => {
        match $engine {
            Engine::Counted($drive) => $done,
            Engine::Timed($drive) => $done,
        }
    };
}

impl Engine<'_> {
    /// Number of power cuts so far.
    pub fn power_cuts(&self) -> u64 {
        either!(self, drive => drive.power_cuts())
    }

    /// Whether a thread panicked while using the drive.
    pub fn is_broken(&self) -> bool {
        either!(self, drive => drive.is_broken())
    }

    /// Shows a drive to `look`, except a broken one.
    pub fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        either!(self, drive => drive.look(look));
    }

    /// Notes seconds of this service and failed commands of its NVMe hosts in the book of the drive's life.
    pub fn note_controller(&self, powered_s: u64, error_entries: u64) {
        either!(self, drive => drive.note_controller(powered_s, error_entries));
    }

    /// Refuses every later request.
    pub fn end(&self) {
        either!(self, drive => drive.end());
    }

    /// The result of the drive.
    ///
    /// # Errors
    /// The first error of the drive, and laws that do not hold.
    pub fn finish(self) -> Result<Outcome> {
        either!(self, drive => drive.finish())
    }
}
