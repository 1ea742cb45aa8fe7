//! Replay of jobs: each play begins when all requests of the previous play have completed.

use super::Replay;
use crate::request::{Command, Due, Jobs};
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;

impl Replay {
    fn inner_jobs(&mut self) -> &mut dyn Jobs {
        self.inner.jobs().expect("a workload that has jobs keeps them, opened again too")
    }
}

impl Jobs for Replay {
    fn due(&mut self, now: Nanos) -> Result<Due> {
        loop {
            if self.is_written() {
                return Ok(Due::Nothing);
            }
            match self.inner_jobs().due(now)? {
                Due::Request(mut request) => {
                    let layout = &mut self.layout;
                    if layout.turn_to(request.owner(), self.reopen.as_ref(), &*self.inner)?
                        && layout.place(&mut request)
                    {
                        self.play.requests += 1;
                        self.count(&request);
                        return Ok(Due::Request(request));
                    }
                    self.inner_jobs().completed(&request.command, 0);
                }
                Due::Nothing if self.play_again()? => {
                    if self.has_no_depths {
                        self.inner_jobs().lift_depths()?;
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn lift_depths(&mut self) -> Result<bool> {
        self.has_no_depths = self.inner_jobs().lift_depths()?;
        Ok(self.has_no_depths)
    }

    fn completed(&mut self, command: &Command, latency: Nanos) {
        self.inner_jobs().completed(command, latency);
    }

    fn is_ramping(&mut self, now: Nanos) -> bool {
        self.inner_jobs().is_ramping(now)
    }

    fn take_restarted(&mut self) -> Option<u32> {
        self.inner_jobs().take_restarted()
    }
}
