//! Requests of a drive with zones: the layer admits them first, or refuses them with a status.
//!
//! After a power cut a host reads the write pointers. It repeats an interrupted write from the write pointer on,
//! because the drive refuses the part that is written. Ignored: zone reports as commands, with their time.

use super::{Command, Drive, Verifier};
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::zones::Zones;

impl Drive {
    /// Serves a request of `kind` with the present directives, if the layer admits it.
    pub(super) fn serve_zoned(&mut self, kind: RequestKind, extent: Extent) -> Flash<()> {
        let present = &mut self.io.present;
        (present.refused, present.placed) = (None, extent);
        match self.ftl.admit(&self.io, kind, extent) {
            Err(error) => {
                self.io.present.refused = Some(error);
                Ok(())
            }
            Ok(_) if self.io.present.directives.zone.programs() => self.ftl.finish(&mut self.io, extent),
            Ok(_) if self.io.present.directives.zone.manages() => Ok(()),
            Ok(placed) => {
                self.io.present.placed = placed;
                self.io.host.place(placed.sector);
                if self.ahead.is_some() { self.serve_ahead(kind, placed) } else { self.serve_layer(kind, placed) }
            }
        }
    }

    /// The sectors whose data crosses the host link: of a Zone Append those at the write pointer.
    pub(super) fn on_link(&self, kind: RequestKind, extent: Extent) -> Extent {
        let appends = kind == RequestKind::Write && self.io.present.directives.zone == ZoneAction::Append;
        let pointer = self.ftl.zones().filter(|_| appends).map(|zones| zones.pointer(zones.zone_of(extent.sector)));
        Extent { sector: pointer.unwrap_or(extent.sector), ..extent }
    }

    /// The part of an interrupted request that the host repeats; `None` if nothing is left. A Zone Append is repeated
    /// whole, wherever its first part is.
    pub(super) fn rest_of(&self, kind: RequestKind, extent: Extent) -> Option<Extent> {
        let moves_pointer = match self.io.present.directives.zone {
            ZoneAction::None => kind == RequestKind::Write,
            action => action == ZoneAction::Commit,
        };
        let zones = self.ftl.zones().filter(|_| moves_pointer);
        let pointer = zones.map_or(extent.sector, |zones| zones.pointer(zones.zone_of(extent.sector)));
        let first = if (extent.sector..=extent.end()).contains(&pointer) { pointer } else { extent.sector };
        let sectors = (extent.end() - first) as u32;
        (sectors > 0 || kind == RequestKind::Flush).then_some(Extent { sector: first, sectors })
    }

    /// Plans request `id` again after a power cut: of a write that a protected buffer kept in part, the rest.
    pub(super) fn repeat(&mut self, id: u32, verifier: &mut dyn Verifier) -> Result<()> {
        if !self.surface.is_zoned() || !self.laws.guarantee.protected {
            return self.plan(id, verifier);
        }
        let command = self.flight.get(id).command;
        self.io.present.directives = command.directives;
        match self.rest_of(command.kind, command.extent) {
            Some(extent) => self.plan_command(id, command.kind, extent, verifier)?,
            // Nothing is left to do, as in a free flush.
            None => self.plan_command(id, RequestKind::Flush, Command::FLUSH.extent, verifier)?,
        }
        self.flight.get_mut(id).command = command;
        Ok(())
    }

    /// The zones, if the drive has some.
    pub fn zones(&self) -> Option<&Zones> {
        self.ftl.zones()
    }
}
