//! Writes of preconditioning: counted, one request at a time, or many units of a new drive at once. Ignored: time.

use super::{CLASSIFIED, Session};
use crate::config::uses_most;
use palimpsest_flash::error::Result;
use palimpsest_flash::state::State;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_sim::drive::Command;
use palimpsest_workload::request::{Request, Source};

/// Most units of one batch, after which progress is reported.
const MOST_UNITS: u64 = 1 << 22;

impl Session<'_> {
    /// Backs the tables of this new drive with huge pages, if a run with `requests` requests will use most of them.
    pub(in crate::run) fn in_huge_pages(&self, requests: Option<u64>) {
        if uses_most(&self.config, &self.options.touches(requests)) {
            self.drive.io.in_huge_pages();
            self.drive.ftl.state().into_iter().for_each(State::in_huge_pages);
            self.verifier.shadow.in_huge_pages();
        }
    }

    /// Serves a command of preconditioning.
    #[inline]
    pub(in crate::run) fn count(&mut self, mut command: Command) -> Result<()> {
        self.classify(&[0], std::slice::from_mut(&mut command));
        self.count_classified(command)
    }

    /// Serves the commands of `next`, up to the first `None`.
    #[inline]
    pub(in crate::run) fn count_all(&mut self, mut next: impl FnMut(&Self) -> Option<Command>) -> Result<()> {
        while !self.classifies {
            let Some(command) = next(self) else { return Ok(()) };
            self.count_classified(command)?;
        }
        loop {
            let mut commands: Vec<Command> = std::iter::from_fn(|| next(self)).take(CLASSIFIED).collect();
            if commands.is_empty() {
                return Ok(());
            }
            self.classify(&[0; CLASSIFIED][..commands.len()], &mut commands);
            commands.into_iter().try_for_each(|command| self.count_classified(command))?;
        }
    }

    #[inline]
    fn count_classified(&mut self, command: Command) -> Result<()> {
        self.tally.precondition_bytes += u64::from(command.extent.sectors) * SECTOR_BYTES;
        self.drive.count(command, &mut self.verifier)?;
        self.watch_one()
    }

    /// Serves a request of preconditioning that has a file.
    pub(in crate::run) fn count_request(&mut self, source: &mut dyn Source, mut request: Request) -> Result<()> {
        request.name();
        let mut command = request.command;
        if !self.addresses.contain(command.extent) {
            command.extent = self.fold(source, command.extent)?;
        }
        self.count(command)
    }

    /// Writes whole pages of the `units` units from `first` on, none of which may have been written before, each page
    /// by a request of its own. Returns the number of written units: 0 if the layer takes single requests only.
    pub(in crate::run) fn fill(&mut self, first: u64, units: u64) -> Result<u64> {
        let most = units.min(MOST_UNITS) as u32;
        let done = u64::from(self.drive.fill(first, most, &mut self.verifier)?);
        self.tally.precondition_bytes += done * self.unit_bytes();
        self.watch_many(done)?;
        Ok(done)
    }
}
