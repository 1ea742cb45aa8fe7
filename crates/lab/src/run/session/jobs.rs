//! Jobs that begin and end by the simulated clock, and each keep requests of their own outstanding: after every request
//! that ends the session requests what is due. `host.speedup` divides all their times. If the host has a depth of its
//! own, at most so many requests of all jobs are in flight.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::{Due, Jobs, Source};

impl Session<'_> {
    /// Runs at most `most` requests of the jobs of `source`, until all of them have completed.
    pub(super) fn jobs_loop(&mut self, source: &mut dyn Source, most: u64) -> Result<()> {
        let mut left = most;
        let depth = if self.config.host.iodepth == 0 { u32::MAX } else { self.config.host.iodepth };
        loop {
            let now = self.drive.engine.now();
            let due = if left == 0 || self.interrupted {
                Due::Nothing
            } else if self.drive.outstanding() >= depth {
                Due::Completion
            } else {
                jobs_of(source).due(self.scaled(now, self.config.host.speedup))?
            };
            match due {
                Due::Request(request, job) => {
                    left -= 1;
                    let next = self.prepare(source, request)?;
                    let arrival = self.scaled(request.arrival, 1.0 / self.config.host.speedup).min(now);
                    self.submitted += 1;
                    self.tally(next.kind, next.extent);
                    self.drive.set_stream(next.stream);
                    self.drive.job = Some(job);
                    self.drive.submit(next.command(), arrival, &mut self.verifier)?;
                    self.drive.harvest(&mut self.recorder, &mut self.verifier)?;
                    self.watch()?;
                }
                Due::At(time) => {
                    // Rounding must not stop the clock.
                    let time = self.scaled(time, 1.0 / self.config.host.speedup).max(now + 1);
                    self.check_arrival(source, time)?;
                    if self.drive.next_time().is_none_or(|event| time < event) {
                        self.idle_until(time)?;
                    }
                    if self.drive.next_time().is_some_and(|event| event <= time) {
                        self.advance_to(time.saturating_add(1))?;
                    } else {
                        self.drive.engine.advance_to(time.max(self.drive.engine.now()));
                    }
                }
                Due::Nothing if left == 0 && self.drive.warming_up => return Ok(()),
                Due::Nothing if self.drive.outstanding() == 0 => return self.drain(),
                Due::Nothing | Due::Completion => self.advance_to(Nanos::MAX)?,
            }
            while let Some(job) = self.drive.finished.pop() {
                jobs_of(source).completed(job);
            }
        }
    }

    fn scaled(&self, time: Nanos, factor: f64) -> Nanos {
        if self.config.host.speedup == 1.0 { time } else { (time as f64 * factor) as Nanos }
    }
}

fn jobs_of(source: &mut dyn Source) -> &mut dyn Jobs {
    source.jobs().expect("a workload that has jobs keeps them")
}
