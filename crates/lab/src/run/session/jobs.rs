//! Jobs that begin and end by the simulated clock, and each keep requests of their own outstanding. After every
//! completed request the session polls the jobs. `host.speedup` divides all their times. If the host has its own depth,
//! all jobs together have at most that many requests in flight. Ignored: contents of writes.

use super::{Due, QueuedRequest, Session};
use palimpsest_flash::command::Directives;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::{self as jobs, Jobs, Source};

impl Session<'_> {
    /// The next action of the jobs of `source`, with at most `depth` requests in flight.
    pub(super) fn due_of_jobs(&mut self, source: &mut dyn Source, depth: u32, left: &mut u64) -> Result<Due> {
        let now = self.drive.engine.now();
        let due = if *left == 0 || self.watch.interrupted {
            jobs::Due::Nothing
        } else if self.drive.outstanding() >= depth {
            jobs::Due::Completion
        } else {
            jobs_of(source).due(self.scaled(now, self.config.host.speedup))?
        };
        Ok(match due {
            jobs::Due::Request(request, queue) => {
                *left -= 1;
                let QueuedRequest { command, .. } = self.prepare(source, request)?;
                let arrival = self.scaled(request.arrival, 1.0 / self.config.host.speedup).min(now);
                self.intake.submitted += 1;
                self.tally(command);
                let directives = Directives { queue, ..command.directives };
                Due::Request(QueuedRequest { arrival, command: command.with(directives) })
            }
            jobs::Due::At(time) => {
                // Rounding must not stop the clock.
                let time = self.scaled(time, 1.0 / self.config.host.speedup).max(now + 1);
                self.check_arrival(source, time)?;
                Due::At(time)
            }
            jobs::Due::Completion => Due::Completion,
            jobs::Due::Nothing => Due::Nothing,
        })
    }

    fn scaled(&self, time: Nanos, factor: f64) -> Nanos {
        if self.config.host.speedup == 1.0 { time } else { (time as f64 * factor) as Nanos }
    }
}

pub(super) fn jobs_of(source: &mut dyn Source) -> &mut dyn Jobs {
    source.jobs().expect("a workload that has jobs keeps them")
}
