//! Requests read from the workload ahead of their service, so that memory can be prefetched. Several are read at a
//! time, directly to their final place, because loading a whole request right after storing its parts is slow. Ignored:
//! jobs, whose requests depend on completions.

use super::Session;
use palimpsest_flash::command::Command;
use palimpsest_flash::error::Result;
use palimpsest_workload::request::{Request, Source};

/// Most requests between reading and service.
pub(in crate::run) const AHEAD: usize = 16;

/// A ring of read requests, and the number of requests so far.
pub(super) struct Intake {
    ring: [Request; AHEAD],
    first: usize,
    length: usize,
    /// Requests read from the workload.
    pub(super) taken: u64,
    /// Requests submitted to the drive.
    pub(super) submitted: u64,
}

impl Intake {
    pub(super) fn new() -> Self {
        let ring = [Request::new(0, Command::FLUSH); AHEAD];
        Intake { ring, first: 0, length: 0, taken: 0, submitted: 0 }
    }

    /// The place of the request `index` behind the first.
    #[inline]
    fn at(&self, index: usize) -> usize {
        self.first.wrapping_add(index) % AHEAD
    }
}

impl Session<'_> {
    /// The next request, with its arrival on the engine's clock. The request counts as submitted.
    #[inline(always)]
    pub(super) fn next(&mut self, source: &mut dyn Source) -> Result<Option<Request>> {
        if self.watch.interrupted {
            return Ok(None);
        }
        if self.intake.length <= AHEAD / 2 {
            self.look_ahead(source)?;
        }
        if self.intake.length > AHEAD / 2 {
            let coming = self.intake.ring[self.intake.at(AHEAD / 2)];
            self.drive.ftl.expect(coming.extent, true);
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
        let limit = self.options.requests.unwrap_or(u64::MAX);
        while self.intake.length < AHEAD && self.intake.taken < limit {
            let Some(request) = source.next_request()? else { return Ok(()) };
            let request = self.prepare(source, request)?;
            self.drive.ftl.expect(request.extent, false);
            let place = self.intake.at(self.intake.length);
            self.intake.ring[place] = request;
            self.intake.length += 1;
        }
        Ok(())
    }
}
