//! Requests read from the workload ahead of their service, so that memory can be prefetched. Several are read at a
//! time, directly to their final place, because loading a whole request right after storing its parts is slow. A
//! classifier outside of the drive gets some thousand requests at a time ([`CLASSIFIED`]). Ignored: jobs, whose
//! requests depend on completions.

use super::Session;
use palimpsest_flash::command::Command;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::{Request, Source};
use std::collections::VecDeque;

/// Most requests between reading and service.
pub(in crate::run) const AHEAD: usize = 16;

/// Most requests that a classifier outside of the drive gets at a time.
pub(in crate::run) const CLASSIFIED: usize = 4096;

/// A ring of read requests, and the number of requests so far.
pub(super) struct Intake {
    ring: [Request; AHEAD],
    first: usize,
    length: usize,
    /// Requests with a class, before the ring.
    classified: VecDeque<Request>,
    /// Requests read from the workload.
    pub(super) taken: u64,
    /// Requests submitted to the drive.
    pub(super) submitted: u64,
}

impl Intake {
    pub(super) fn new() -> Self {
        let ring = [Request::new(0, Command::FLUSH); AHEAD];
        Intake { ring, first: 0, length: 0, classified: VecDeque::new(), taken: 0, submitted: 0 }
    }

    /// The place of the request `index` behind the first.
    #[inline]
    fn at(&self, index: usize) -> usize {
        self.first.wrapping_add(index) % AHEAD
    }
}

impl Session<'_> {
    /// Begins another workload at `now`; requests that were read ahead are dropped.
    pub(super) fn restart_intake(&mut self, now: Nanos) {
        self.intake = Intake::new();
        self.addresses.begin = now;
    }

    /// The next request, with its arrival on the engine's clock. The request counts as submitted.
    #[inline(always)]
    pub(super) fn next(&mut self, source: &mut dyn Source) -> Result<Option<Request>> {
        if self.watch.is_over() {
            return Ok(None);
        }
        if self.intake.length <= AHEAD / 2 {
            self.look_ahead(source)?;
        }
        if self.intake.length > AHEAD / 2 {
            let coming = self.intake.ring[self.intake.at(AHEAD / 2)];
            self.foresee(coming.extent, true);
        } else if self.intake.length == 0 {
            return Ok(None);
        }
        let next = self.intake.ring[self.intake.at(0)];
        self.intake.first = self.intake.at(1);
        self.intake.length -= 1;
        self.intake.submitted += 1;
        self.tally.arrived(next.arrival);
        self.tally(next.command);
        Ok(Some(next))
    }

    /// Fills the ring.
    #[inline(never)]
    fn look_ahead(&mut self, source: &mut dyn Source) -> Result<()> {
        while self.intake.length < AHEAD {
            let next = if self.classifies { self.next_classified(source)? } else { self.read_next(source)? };
            let Some(request) = next else { return Ok(()) };
            let place = self.intake.at(self.intake.length);
            self.intake.ring[place] = request;
            self.intake.length += 1;
            self.foresee(request.extent, false);
        }
        Ok(())
    }

    /// The next request of the workload, unless the run has all.
    #[inline(always)]
    fn read_next(&mut self, source: &mut dyn Source) -> Result<Option<Request>> {
        if self.intake.taken >= self.options.requests.unwrap_or(u64::MAX) {
            return Ok(None);
        }
        let Some(mut request) = source.next_request()? else { return Ok(None) };
        self.prepare(source, &mut request)?;
        Ok(Some(request))
    }

    /// As [`Self::read_next`], with a class. The workload is read up to [`CLASSIFIED`] requests ahead.
    fn next_classified(&mut self, source: &mut dyn Source) -> Result<Option<Request>> {
        if self.intake.classified.is_empty() {
            let (mut arrivals, mut commands) = (Vec::new(), Vec::new());
            while commands.len() < CLASSIFIED
                && let Some(request) = self.read_next(source)?
            {
                arrivals.push(request.arrival);
                commands.push(request.command);
            }
            self.classify(&arrivals, &mut commands);
            let classified = arrivals.into_iter().zip(commands);
            self.intake.classified.extend(classified.map(|(arrival, command)| Request::new(arrival, command)));
        }
        Ok(self.intake.classified.pop_front())
    }

    /// Sets the classes of `commands`, if a classifier outside of the drive does that.
    #[inline]
    pub(in crate::run) fn classify(&mut self, arrivals: &[Nanos], commands: &mut [Command]) {
        if self.classifies
            && !commands.is_empty()
            && let Some(classifier) = self.drive.ftl.classifier_ahead()
        {
            classifier.classify_ahead(arrivals, commands);
        }
    }
}
