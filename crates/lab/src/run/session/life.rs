//! The end of a drive's life in the measured part of a run: writes are refused, and the figures up to then are the
//! result.
//!
//! Ignored: warnings before the end. Requests without an answer are not counted.

use super::super::Fidelity;
use super::Session;
use palimpsest_flash::error::{Error, Result};
use palimpsest_sim::drive::Command;

impl Session<'_> {
    /// Passes `driven` on; if the drive is worn out, ends the run here instead.
    pub(super) fn or_worn_out(&mut self, driven: Result<()>) -> Result<()> {
        let Err(Error::WornOut(why)) = driven else { return driven };
        self.end_life(why);
        Ok(())
    }

    /// Ends the life of the drive, which can only be read from now on.
    pub(in crate::run) fn end_life(&mut self, why: String) {
        if self.options.fidelity == Fidelity::Timed {
            let unanswered: Vec<Command> = self.drive.unanswered().collect();
            unanswered.into_iter().for_each(|command| self.tally.subtract(command));
        }
        self.drive.end_life();
        self.worn_out = Some(why);
    }
}
