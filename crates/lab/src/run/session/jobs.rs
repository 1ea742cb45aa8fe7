//! Jobs that begin and end by the simulated clock, and each keep requests of their own outstanding. After every
//! completed request the session polls the jobs. `host.speedup` divides all their times. If the host has its own depth,
//! all jobs together have at most that many requests in flight. Ignored: contents of writes.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::{Due, Jobs, Request, Source};

impl Session<'_> {
    /// The next action of the jobs of `source`, with at most `depth` requests in flight.
    pub(super) fn due_of_jobs(&mut self, source: &mut dyn Source, depth: u32, left: &mut u64) -> Result<Due> {
        let now = self.drive.engine.now();
        let has_ramped = self.ramps && !jobs_of(source).is_ramping(self.scaled(now, self.config.host.speedup));
        *left = if has_ramped { 0 } else { *left };
        let due = if *left == 0 || self.watch.interrupted {
            Due::Nothing
        } else if self.drive.outstanding() >= depth {
            Due::Completion
        } else {
            jobs_of(source).due(self.scaled(now, self.config.host.speedup))?
        };
        while let (Some(job), Some(jobs)) = (jobs_of(source).take_restarted(), &mut self.recorder.jobs) {
            jobs.restart(job);
        }
        Ok(match due {
            Due::Request(request) => {
                *left -= 1;
                let prepared = self.prepare(source, request)?;
                let arrival = self.scaled(request.arrival, 1.0 / self.config.host.speedup).min(now);
                self.intake.submitted += 1;
                self.tally(prepared.command);
                Due::Request(Request { arrival, ..prepared })
            }
            Due::At(time) => {
                // Rounding must not stop the clock.
                let time = self.scaled(time, 1.0 / self.config.host.speedup).max(now + 1);
                self.check_arrival(source, time)?;
                Due::At(time)
            }
            other => other,
        })
    }

    fn scaled(&self, time: Nanos, factor: f64) -> Nanos {
        if self.config.host.speedup == 1.0 { time } else { (time as f64 * factor) as Nanos }
    }
}

pub(super) fn jobs_of(source: &mut dyn Source) -> &mut dyn Jobs {
    source.jobs().expect("a workload that has jobs keeps them")
}
