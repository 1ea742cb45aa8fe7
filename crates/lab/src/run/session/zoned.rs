//! Drives with zones: their zones for the workload, and requests that they refuse. Ignored: the reaction of a host.

use super::Session;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_sim::drive::Refused;
use palimpsest_workload::request::Source;

impl Session<'_> {
    /// Checks that a workload that writes zones in order has the zones of the drive.
    ///
    /// # Errors
    /// [`Error::Input`]: the drive has no zones, or others.
    pub(in crate::run) fn expect_same_zones(&self, source: &mut dyn Source) -> Result<()> {
        let (place, drive) = (source.place(), self.drive.zones());
        let Some(host) = source.zones() else { return Ok(()) };
        let Some(drive) = drive else {
            let what = format!("the jobs write zones, and {} has none; expected ftl.name = zns", self.config.ftl.name);
            return Err(Error::input(place, what));
        };
        if host.sizes() != (drive.size, drive.capacity) {
            // In bytes, because a unit has another meaning in a job file than in a specification.
            let [size, capacity] = [drive.size, drive.capacity].map(|sectors| sectors * SECTOR_BYTES);
            let what =
                format!("these are not the zones of the drive; expected zonesize={size} and zonecapacity={capacity}");
            return Err(Error::input(place, what));
        }
        Ok(())
    }

    /// Gives the zones of the drive to a workload that writes zones in order.
    pub(in crate::run) fn set_zones(&mut self, source: &mut dyn Source) {
        // Preconditioning may write to zones that have failed.
        self.drive.reports.refused.clear();
        let (Some(drive), Some(host)) = (self.drive.zones(), source.zones()) else { return };
        let zones = (0..drive.len()).map(|zone| drive.zone(zone));
        host.found(zones.map(|zone| (zone.written, zone.state.is_open())), drive.max_open);
    }

    /// Refuses a command on a zone for a drive without zones.
    ///
    /// # Errors
    /// [`Error::Input`].
    #[cold]
    pub(super) fn expect_zones(&self, source: &dyn Source) -> Result<()> {
        match self.drive.zones() {
            Some(_) => Ok(()),
            None => {
                let what =
                    format!("a command on a zone, and {} has none; expected ftl.name = zns", self.config.ftl.name);
                Err(Error::input(source.place(), what))
            }
        }
    }

    /// Requests that a drive with zones refused count as errors alone.
    ///
    /// # Errors
    /// [`Error::Input`] for the first of them, if the run is strict.
    #[inline]
    pub(super) fn subtract_refused(&mut self, source: &dyn Source) -> Result<()> {
        while let Some(refused) = self.drive.reports.refused.pop() {
            self.subtract_one(source, refused)?;
        }
        Ok(())
    }

    #[cold]
    fn subtract_one(&mut self, source: &dyn Source, refused: Refused) -> Result<()> {
        if self.options.strict {
            return Err(self.failed_command(source, refused));
        }
        if refused.measured {
            self.subtract(refused.command);
        }
        Ok(())
    }

    /// The error of a strict run: the zone, the address and the status of the failed command.
    fn failed_command(&self, source: &dyn Source, refused: Refused) -> Error {
        let (command, status) = (refused.command, refused.error.name());
        let what = match (command.kind, command.directives.zone) {
            (RequestKind::Write, ZoneAction::Append) => "append",
            (RequestKind::Write, _) => "write",
            (RequestKind::Read, _) => "read",
            (RequestKind::Flush, _) => "flush",
            (RequestKind::Trim, ZoneAction::None | ZoneAction::Append) => "reset",
            (RequestKind::Trim, ZoneAction::Open) => "open",
            (RequestKind::Trim, ZoneAction::OpenRandom) => "open with a random write area",
            (RequestKind::Trim, ZoneAction::Commit) => "commit",
            (RequestKind::Trim, ZoneAction::Close) => "close",
            (RequestKind::Trim, ZoneAction::Finish) => "finish",
            (RequestKind::Trim, ZoneAction::Offline) => "offline",
        };
        let zone = self.drive.zones().map_or(0, |zones| zones.zone_of(command.extent.sector));
        let [size, at] =
            [u64::from(command.extent.sectors), command.extent.sector].map(|sectors| sectors * SECTOR_BYTES);
        // Without a line, because the reader is ahead of the drive.
        let place = source.place();
        let place = match place.rsplit_once(':') {
            Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => file.to_owned(),
            _ => place,
        };
        let text = format!(
            "the {what} of {} at byte {at}, in zone {zone}, fails with {status}; expected no failed command with \
             --strict, or the run without it, which counts them",
            format_bytes(size)
        );
        Error::input(place, text)
    }
}
