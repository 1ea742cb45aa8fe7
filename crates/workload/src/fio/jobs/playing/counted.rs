//! Requests of jobs without a clock, and the step of a job on zones before each request.
//!
//! Ignored: times that depend on the drive.

use super::super::super::zoned::{Step, ZoneHost};
use super::{Phase, Playing};
use crate::request::Request;
use palimpsest_flash::units::Nanos;

impl Playing {
    /// Takes the request of job `number`, which is pending; of a job on zones, what its zone needs first. `None` if
    /// the job waits for its requests in flight, begins another pass, or has ended.
    pub(super) fn take(&mut self, number: u32, zones: &mut Option<ZoneHost>) -> Option<Request> {
        let request = self.pending.take().expect("it is pending");
        let (Some(host), Some(own)) = (zones, &mut self.zones) else { return Some(request) };
        let step = host.step(number, own, request, self.outstanding > 0);
        self.quiesces = matches!(step, Step::First(..) | Step::Wait);
        match step {
            Step::Issue(issued) => {
                self.source.placed(&request, &issued);
                return Some(issued);
            }
            Step::First(first, next) => {
                self.pending = Some(next);
                return Some(first);
            }
            Step::Wait => self.pending = Some(request),
            Step::EndPass if self.source.end_pass(&request) => {}
            Step::EndPass | Step::End => self.end(),
        }
        None
    }
}

impl Phase {
    /// The next request without a clock, and the job's number; `None` after the end.
    pub(super) fn next(&mut self, latest: Nanos, base: Nanos, zones: &mut Option<ZoneHost>) -> Option<(Request, u32)> {
        loop {
            self.begin_jobs(0);
            let next = self.next_now(latest, base, zones);
            if next.is_some() || !self.is_changed(0) {
                return next;
            }
        }
    }

    fn next_now(&mut self, latest: Nanos, base: Nanos, zones: &mut Option<ZoneHost>) -> Option<(Request, u32)> {
        let count = self.jobs.len();
        if self.has_times() {
            let mut first: Option<(Nanos, usize)> = None;
            for at in 0..count {
                let Some(arrival) = self.jobs[at].within(None) else { continue };
                first = Some(first.map_or((arrival, at), |best| best.min((arrival, at))));
            }
            let (arrival, at) = first?;
            let number = self.first + at as u32;
            let Some(request) = self.jobs[at].take(number, zones) else { return self.next_now(latest, base, zones) };
            return Some((Request { arrival: base.saturating_add(arrival), ..request }, number));
        }
        for _ in 0..=count {
            let at = self.turn;
            let job = &mut self.jobs[at];
            let begun = job.begin.is_some();
            let has = begun && if job.has_times { job.within(None).is_some() } else { job.fill(None).is_some() };
            if self.left > 0 && has && !self.is_ahead(at, 0) {
                let number = self.first + at as u32;
                let Some(request) = self.jobs[at].take(number, zones) else {
                    return self.next_now(latest, base, zones);
                };
                self.left -= 1;
                self.jobs[at].flowed += 1;
                return Some((Request { arrival: latest, ..request }, number));
            }
            self.turn = (at + 1) % count;
            self.left = self.jobs[self.turn].turn();
        }
        None
    }
}
