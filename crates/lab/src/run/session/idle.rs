//! Background work of the drive while the host is idle. Ignored: prediction of idle time.

use super::Session;
use crate::config::DriveConfig;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;

/// The settings of background work.
pub(super) struct Idle {
    /// Idle time of the host before background work; `None` without it.
    after: Option<Nanos>,
    /// Whether background work includes collection.
    collects: bool,
}

impl Idle {
    pub(super) fn new(config: &DriveConfig) -> Self {
        Idle { after: config.log.background_after(), collects: config.log.gc_background }
    }
}

impl Session<'_> {
    /// Background collection while the host is idle.
    pub(in crate::run) fn idle_until(&mut self, arrival: Nanos) -> Result<()> {
        let Some(idle) = self.idle.after else { return Ok(()) };
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
        if self.idle.collects && self.drive.background()? {
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
