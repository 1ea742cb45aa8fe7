//! Jobs that begin and end by the simulated clock, and each keep requests of their own outstanding. After every
//! completed request the session polls the jobs. `host.speedup` divides all their times. If the host has its own depth,
//! all jobs together have at most that many requests in flight. Ignored: contents of writes.

use super::Session;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::owners::Owners;
use palimpsest_sim::queues::Class;
use palimpsest_workload::request::{Due, Jobs, Request, Source};

impl Session<'_> {
    /// Gives the submission queues of the tenants their classes, and starts to record the owners of data.
    ///
    /// # Errors
    /// [`Error::Input`] for more classes than tenants.
    pub(super) fn name_tenants(&mut self, source: &dyn Source) -> Result<()> {
        let (sections, classes) = (source.sections(), &self.config.controller.queues.classes.0);
        if !source.has_volumes() && classes.len() > sections.len().max(1) {
            let what = format!("{} classes; the workload has {} tenants", classes.len(), sections.len().max(1));
            return Err(Error::input("host.classes", format!("{what}; expected at most one class for each")));
        }
        let of = |at: usize| classes.get(at).copied().unwrap_or(Class::Medium);
        let by_job = sections.iter().enumerate().flat_map(|(at, section)| (0..section.copies).map(move |_| of(at)));
        let classes = if sections.len() > 1 { by_job.collect() } else { classes.clone() };
        self.drive.set_tenants(classes, source.has_volumes());
        let has_tenants = source.has_volumes() || sections.len() > 1;
        if has_tenants && !self.drive.surface.is_files() && !self.loses_power() {
            let logical = self.config.logical_subpages();
            self.drive.io.owners = Some(Box::new(Owners::new(logical, self.drive.ftl.unit_subpages())));
        }
        self.drive.reports.owners = has_tenants || self.recorder.jobs.is_some();
        Ok(())
    }

    /// The next action of the jobs of `source`, with at most `depth` requests in flight.
    pub(super) fn due_of_jobs(&mut self, source: &mut dyn Source, depth: u32, left: &mut u64) -> Result<Due> {
        let now = self.drive.engine.now();
        let since = now - self.addresses.begin;
        let has_ramped = self.lead.ramps && !self.is_ramping(source);
        *left = if has_ramped { 0 } else { *left };
        let due = if *left == 0 || self.watch.is_over() {
            Due::Nothing
        } else if self.drive.outstanding() >= depth {
            Due::Completion
        } else {
            jobs_of(source).due(self.scaled(since, self.config.host.speedup))?
        };
        while let (Some(job), Some(jobs)) = (jobs_of(source).take_restarted(), &mut self.recorder.jobs) {
            jobs.restart(job);
        }
        Ok(match due {
            Due::Request(mut request) => {
                *left -= 1;
                let arrival =
                    self.scaled(request.arrival, 1.0 / self.config.host.speedup).min(since) + self.addresses.begin;
                self.prepare(source, &mut request)?;
                self.classify(&[now], std::slice::from_mut(&mut request.command));
                self.intake.submitted += 1;
                self.tally(request.command);
                Due::Request(Request { arrival, ..request })
            }
            Due::At(time) => {
                // Rounding must not stop the clock.
                let time = self.scaled(time, 1.0 / self.config.host.speedup).max(since + 1);
                self.check_arrival(source, time)?;
                Due::At(time + self.addresses.begin)
            }
            other => other,
        })
    }

    /// True if the first jobs of `source` have a `ramp_time` that is not over.
    pub(super) fn is_ramping(&self, source: &mut dyn Source) -> bool {
        let since = self.drive.engine.now() - self.addresses.begin;
        jobs_of(source).is_ramping(self.scaled(since, self.config.host.speedup))
    }

    fn scaled(&self, time: Nanos, factor: f64) -> Nanos {
        if self.config.host.speedup == 1.0 { time } else { (time as f64 * factor) as Nanos }
    }
}

pub(super) fn jobs_of(source: &mut dyn Source) -> &mut dyn Jobs {
    source.jobs().expect("a workload that has jobs keeps them")
}
