//! Requests that are read from the workload ahead of their service, so that memory can be prefetched. They are read some at a time, into the
//! place where they stay: a request that was just stored in parts is slow to load as a whole.

use super::{QueuedRequest, Session};
use palimpsest_flash::command::Command;
use palimpsest_flash::error::Result;
use palimpsest_workload::request::Source;

/// Requests are read from the workload at most this far ahead of their service.
pub(in crate::run) const AHEAD: usize = 16;

/// Requests that are read, the next of them first.
pub(super) struct Ahead {
    ring: [QueuedRequest; AHEAD],
    first: usize,
    length: usize,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Ahead { ring: [QueuedRequest { arrival: 0, command: Command::FLUSH }; AHEAD], first: 0, length: 0 }
    }

    /// The place of the request `index` behind the first.
    #[inline]
    fn at(&self, index: usize) -> usize {
        self.first.wrapping_add(index) % AHEAD
    }
}

impl Session<'_> {
    /// The next request, with its arrival on the engine's clock. It counts as submitted.
    #[inline(always)]
    pub(super) fn next(&mut self, source: &mut dyn Source) -> Result<Option<QueuedRequest>> {
        if self.interrupted {
            return Ok(None);
        }
        if self.ahead.length <= AHEAD / 2 {
            self.look_ahead(source)?;
        }
        if self.ahead.length > AHEAD / 2 {
            let QueuedRequest { command, .. } = self.ahead.ring[self.ahead.at(AHEAD / 2)];
            self.drive.ftl.expect(command.extent, true);
        } else if self.ahead.length == 0 {
            return Ok(None);
        }
        let next = self.ahead.ring[self.ahead.at(0)];
        self.ahead.first = self.ahead.at(1);
        self.ahead.length -= 1;
        self.submitted += 1;
        self.arrivals = (self.arrivals.0.or(Some(next.arrival)), next.arrival);
        self.tally(next.command);
        Ok(Some(next))
    }

    /// Reads as many requests as there is room for.
    #[inline(never)]
    fn look_ahead(&mut self, source: &mut dyn Source) -> Result<()> {
        let limit = self.options.requests.unwrap_or(u64::MAX);
        while self.ahead.length < AHEAD && self.taken < limit {
            let Some(request) = source.next_request()? else { return Ok(()) };
            let QueuedRequest { arrival, command } = self.prepare(source, request)?;
            self.drive.ftl.expect(command.extent, false);
            let place = self.ahead.at(self.ahead.length);
            self.ahead.ring[place] = QueuedRequest { arrival, command };
            self.ahead.length += 1;
        }
        Ok(())
    }
}
