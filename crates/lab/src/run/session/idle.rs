//! Background work of the drive while the host is idle. Ignored: prediction of idle time.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;

impl Session<'_> {
    /// Background collection while the host is idle.
    pub(in crate::run) fn idle_until(&mut self, arrival: Nanos) -> Result<()> {
        let Some(idle) = self.background_after else { return Ok(()) };
        if self.drive.outstanding() > 0 || self.drive.next_time().is_some() {
            return Ok(());
        }
        let from = self.drive.engine.now() + idle;
        if from >= arrival {
            return Ok(());
        }
        self.pass_to(from);
        while self.drive.next_time().is_none() && self.drive.engine.now() < arrival {
            if !self.works_beside(arrival)? {
                return Ok(());
            }
            while self.drive.next_time().is_some_and(|event| event <= arrival) {
                self.advance()?;
            }
        }
        Ok(())
    }

    /// Lets the drive, idle until `arrival`, collect or patrol. Returns false without work.
    fn works_beside(&mut self, arrival: Nanos) -> Result<bool> {
        if self.collects && self.drive.background()? {
            return Ok(true);
        }
        let Some(at) = self.drive.patrol_at().filter(|&at| at < arrival) else { return Ok(false) };
        if at > self.drive.engine.now() {
            self.pass_to(at);
        }
        self.drive.patrol()?;
        Ok(true)
    }
}
