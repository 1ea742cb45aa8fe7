//! The end of a drive's life in the measured part of a run: writes are refused, and the figures up to then are the
//! result. In timed runs the drive first finishes the operations that it has planned.
//!
//! Ignored: warnings before the end. Requests without an answer are not counted.

use super::Session;
use palimpsest_flash::error::{Error, Result};
use palimpsest_sim::drive::Command;

impl Session<'_> {
    /// Passes `driven` on; if the drive is worn out, ends the run here instead.
    pub(super) fn or_worn_out(&mut self, driven: Result<()>) -> Result<()> {
        let Err(Error::WornOut(why)) = driven else { return driven };
        self.end_life(why, true)
    }

    /// Ends the life of the drive, which can only be read from now on. If `answers`, requests complete whose operations
    /// end.
    ///
    /// # Errors
    /// [`Error::Rule`] for an operation that never ends.
    pub(in crate::run) fn end_life(&mut self, why: String, answers: bool) -> Result<()> {
        if self.drive.io.plan.timed {
            self.finish_planned(answers)?;
        }
        self.end_timing();
        self.worn_out = Some(why);
        Ok(())
    }

    fn finish_planned(&mut self, answers: bool) -> Result<()> {
        self.drive.stop_planning();
        self.finish_all(answers)?;
        if answers {
            let unanswered: Vec<Command> = self.drive.unanswered().collect();
            unanswered.into_iter().for_each(|command| self.subtract(command));
        }
        self.drive.drop_requests();
        if self.drive.engine.outstanding() > 0 {
            self.drive.engine.signal_unplanned(&mut self.drive.io);
            self.finish_all(false)?;
        }
        // The request that found no space fails now.
        self.recorder.end_at(self.drive.engine.now());
        match self.drive.engine.outstanding() {
            0 => Ok(()),
            left => Err(Error::Rule(format!("{left} planned operations never run at the end of the drive's life"))),
        }
    }

    /// Processes all events of flash.
    fn finish_all(&mut self, answers: bool) -> Result<()> {
        while let Some(time) = self.drive.engine.next_time() {
            self.sample_before(time);
            let until = self.recorder.next_sample();
            self.drive.finish_some(until, answers, &mut self.recorder, &mut self.verifier)?;
        }
        Ok(())
    }
}
