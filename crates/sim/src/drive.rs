//! A drive: flash, translation layer and engine behind a host interface.
//!
//! The host submits requests; the layer plans them, the engine times the plans, and the requests complete. In counted
//! runs a request completes when its plan is made. A request first passes the [controller](super::controller), if that
//! takes time. Writes of buffered layers wait, in order, until the write buffer has room; reads overtake them. Ignored:
//! requests that the host aborts.

mod admission;
mod carried;
mod fill;
mod flight;
mod idle;
mod last;
mod laws;
mod link;
mod outside;
pub mod patrol;
mod power;
pub mod read_ahead;
mod reports;
mod steps;
mod units;
mod verifier;
mod write_back;
mod zoned;

pub use carried::Completed;
pub use outside::Outside;
pub use power::{Power, Recovery, explain};
pub use reports::{Refused, Reports};
pub use steps::Upcoming;
pub use units::Units;
pub use verifier::Verifier;
pub use write_back::Buffer;

use super::controller::Controller;
use super::engine::Engine;
use super::settings::ControllerTimes;
use flight::Flight;
use laws::Laws;
use link::Link;
use palimpsest_flash::command::ZoneAction;
pub use palimpsest_flash::command::{Command, Directives};
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::arrival::Arrival;
use palimpsest_ftl_api::plan::{FileSystemIo, Gate, Io};
use palimpsest_ftl_api::{Ftl, Guarantee};
use write_back::WriteBuffer;

/// The kind of addresses that the host of a drive uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Logical blocks.
    Blocks,
    /// Zones, whose layer may refuse requests.
    Zones,
    /// Files: the file system commits on flushes and trims addresses of the layer below itself.
    Files,
}

impl Surface {
    /// True for a layer with zones.
    #[inline]
    pub fn is_zoned(self) -> bool {
        self == Surface::Zones
    }

    /// True for a file system.
    #[inline]
    pub fn is_files(self) -> bool {
        self == Surface::Files
    }
}

/// A drive.
pub struct Drive {
    /// Flash and plan.
    pub io: Io,
    /// The translation layer.
    pub ftl: Box<dyn Ftl>,
    /// The engine of timed runs.
    pub engine: Engine,
    /// Sizes of subpages and units.
    pub units: Units,
    /// Power cuts and recoveries.
    pub power: Power,
    /// The receivers of completions.
    pub reports: Reports,
    /// The kind of addresses that the host uses.
    pub surface: Surface,
    flight: Flight,
    controller: Controller,
    buffer: WriteBuffer,
    link: Link,
    laws: Laws,
    /// Data that travels with requests of a server.
    carried: Option<Box<carried::Carried>>,
    patrol: Option<patrol::Patrol>,
    /// Read-ahead; `None` without.
    pub ahead: Option<Box<read_ahead::Streams>>,
}

impl Drive {
    /// A drive of these parts that gives `guarantee`, without a write buffer.
    pub fn new(mut io: Io, ftl: Box<dyn Ftl>, engine: Engine, guarantee: Guarantee) -> Self {
        io.plan.protected = guarantee.protected;
        io.plan.reads_memory = engine.reads_memory();
        let surface = if ftl.zones().is_some() { Surface::Zones } else { Surface::Blocks };
        let units = Units::new(io.geometry().subpage_bytes, ftl.unit_subpages(), ftl.trim_subpages());
        Drive {
            io,
            ftl,
            engine,
            units,
            power: Power::default(),
            reports: Reports::default(),
            surface,
            flight: Flight::default(),
            controller: Controller::new(ControllerTimes::default()),
            buffer: WriteBuffer::default(),
            link: Link::default(),
            laws: Laws::new(guarantee),
            carried: None,
            patrol: None,
            ahead: None,
        }
    }

    /// Requests that have not completed.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.flight.outstanding
    }

    /// Prefetches the content and the records of physical subpage `psn`, except bytes.
    #[inline]
    pub fn prefetch_content(&self, psn: u32) {
        self.io.nand.prefetch_content(psn);
        self.io.ledger.iter().for_each(|ledger| ledger.prefetch(psn));
    }

    /// Passes `command` to the layer, without time, verifier and read-ahead, and journals its writes and trims. A trim
    /// must cover whole units.
    ///
    /// # Errors
    /// Halts of flash.
    pub fn serve_plainly(&mut self, command: Command) -> Flash<()> {
        self.io.present.directives = command.directives;
        if self.surface.is_zoned() {
            return self.serve_zoned(command.kind, command.extent);
        }
        self.serve_layer(command.kind, command.extent)
    }

    #[inline]
    fn serve_layer(&mut self, kind: RequestKind, extent: Extent) -> Flash<()> {
        match kind {
            RequestKind::Read => self.ftl.read(&mut self.io, extent),
            RequestKind::Write => {
                if self.io.nand.has_due() {
                    self.refresh()?;
                }
                if self.io.owners.is_some() {
                    self.own(extent);
                }
                if self.io.nand.keeps_trims() {
                    self.io.nand.note_written(self.units.lsns(self.units.touched(extent)));
                }
                self.ftl.write(&mut self.io, extent)?;
                if self.io.present.directives.fua { self.program_at_once() } else { Ok(()) }
            }
            RequestKind::Trim => {
                let lsns = self.units.lsns(extent.sector..extent.end());
                self.io.nand.note_trimmed(lsns.clone(), false)?;
                self.ftl.trim(&mut self.io, extent)?;
                self.io.nand.note_trimmed(lsns, true)
            }
            RequestKind::Flush => {
                self.io.nand.commit_trims()?;
                self.ftl.flush(&mut self.io)?;
                if self.io.present.directives.updates { self.ftl.update_handle(&mut self.io) } else { Ok(()) }
            }
        }
    }

    /// Records the owner of a write.
    fn own(&mut self, extent: Extent) {
        let (lsns, owner) = (self.units.written(extent), self.io.present.directives.owner);
        self.io.owners.iter_mut().for_each(|owners| owners.wrote(lsns.clone(), owner));
    }

    /// Journals trims of the `logical` logical subpages from now on, because power cuts may come. Must not be called
    /// for a file system, which commits trims itself.
    pub fn keep_trims(&mut self, logical: u64) {
        self.io.nand.keep_trims(logical as u32, self.ftl.trim_subpages(), self.buffer.trims_drop_data());
    }

    /// Serves `command` without time.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline]
    pub fn count(&mut self, command: Command, verifier: &mut dyn Verifier) -> Result<()> {
        self.io.present.directives = command.directives;
        self.serve_verified(command.kind, command.extent, verifier)?;
        if let Some(error) = self.io.present.refused.filter(|_| self.surface.is_zoned()) {
            self.reports.refused.push(Refused { command, error, measured: true });
        }
        (self.io.present.buffer_taken, self.io.present.buffer_freed) = (0, 0);
        self.power.progressed();
        Ok(())
    }

    /// Times operations from now on. First programs all open pages, so that no timed operation depends on an untimed
    /// one. A power cut scheduled for these programs comes in the first timed operation.
    ///
    /// # Errors
    /// Errors of flash.
    pub fn start_timing(&mut self) -> Result<()> {
        let cut = self.io.nand.power_cut_at();
        self.io.nand.set_power_cut_at(None);
        self.io.nand.commit_trims().map_err(explain)?;
        // The buffer must be empty, because its present content is not counted from here on.
        self.empty_buffers()?;
        (self.io.present.buffer_taken, self.io.present.buffer_freed) = (0, 0);
        self.plan_in_time();
        if let Some(cut) = cut {
            self.time_power_cut(cut);
        }
        Ok(())
    }

    // Kind and extent are separate parameters because they then stay in registers. Loading a value just stored in parts
    // is slow.
    #[inline(always)]
    fn serve_verified(&mut self, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        if kind == RequestKind::Trim && self.io.present.directives.zone != ZoneAction::Commit {
            // The verifier must see only the units that the layer unmaps.
            let Some(extent) = self.units.whole(extent) else { return Ok(()) };
            // A file system trims addresses of the layer below itself.
            if !self.surface.is_files() && !self.io.present.directives.zone.manages() {
                let lsns = self.units.lsns(extent.sector..extent.end());
                self.io.forget(lsns.start, lsns.end);
            }
            return self.serve_units(kind, extent, verifier);
        }
        self.serve_units(kind, extent, verifier)
    }

    /// Serves a request; a trim must cover whole units.
    #[inline(always)]
    fn serve_units(&mut self, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        if self.io.host.has_contents() {
            self.io.host.begin(kind);
        }
        let served = self.serve(kind, extent);
        self.check_request(kind, extent)?;
        if let Err(halt) = served {
            return self.halted(halt, Command::new(kind, extent), verifier);
        }
        self.close_call();
        if self.io.host.has_contents() {
            let mut command = Command::new(kind, extent).with(self.io.present.directives);
            if self.surface.is_zoned() {
                if self.io.present.refused.is_some() || command.directives.zone.manages() {
                    self.io.buffers().end_request();
                    return Ok(());
                }
                command.extent = self.io.present.placed;
            }
            verifier.served(&mut self.io, command)?;
            if kind == RequestKind::Trim {
                self.give_away(extent);
            }
            self.io.buffers().end_request();
        }
        Ok(())
    }

    /// Frees trimmed data, if no power cut could restore it.
    #[cold]
    fn give_away(&mut self, extent: Extent) {
        self.units.lsns(extent.sector..extent.end()).for_each(|lsn| self.io.buffers().overwrite(lsn, Data::ZERO));
    }

    /// Plans programs of all buffered data, even if a flush of the host is free.
    fn empty_buffers(&mut self) -> Result<()> {
        let is_free = std::mem::replace(&mut self.io.plan.flush_is_free, false);
        let flushed = self.ftl.flush(&mut self.io).map_err(explain);
        self.io.plan.flush_is_free = is_free;
        flushed
    }

    /// Handles a halt during `command`. After a power cut the command is repeated, unless the host drops requests.
    #[cold]
    fn halted(&mut self, halt: Halt, command: Command, verifier: &mut dyn Verifier) -> Result<()> {
        let Halt::PowerCut = halt else { return Err(explain(halt)) };
        let directives = self.io.present.directives;
        let placed = if self.surface.is_zoned() { self.io.present.placed } else { command.extent };
        self.power_cycle(Command { extent: placed, ..command }, verifier)?;
        self.io.present.directives = directives;
        let Some(extent) = self.rest_of(command.kind, command.extent) else { return Ok(()) };
        if self.power.drops_requests { Ok(()) } else { self.serve_verified(command.kind, extent, verifier) }
    }

    /// Submits `command`, which arrived at `arrival`.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline(always)]
    pub fn submit(&mut self, command: Command, arrival: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let id = self.flight.submit(command, arrival, self.reports.warming_up);
        if self.carried.is_some() {
            self.load(id);
        }
        let now = self.engine.now();
        if let Some(timeline) = &mut self.engine.timeline {
            timeline.submitted(id, &command, arrival, now);
        }
        if self.controller.takes_time() {
            self.controller.submit(now, &command, id);
            return Ok(());
        }
        if self.has_room(command) {
            self.io.present.directives = command.directives;
            self.plan_command(id, command.kind, command.extent, verifier)
        } else {
            self.wait_for_room(id);
            Ok(())
        }
    }

    #[inline(always)]
    fn plan(&mut self, id: u32, verifier: &mut dyn Verifier) -> Result<()> {
        let command = self.flight.get(id).command;
        self.io.present.directives = command.directives;
        self.plan_command(id, command.kind, command.extent, verifier)
    }

    /// Plans request `id`. The caller must have set the present directives.
    #[inline(always)]
    fn plan_command(&mut self, id: u32, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        let gate = self.io.plan.gates.open();
        self.engine.watch(&mut self.io, gate, id);
        let on_link = if self.surface.is_zoned() { self.on_link(kind, extent) } else { extent };
        let (own, is_forced) = (self.own_gate(id), self.is_forced(kind));
        self.io.present.now = self.engine.now();
        (self.io.present.gate, self.io.present.stored) = match own {
            own if self.surface.is_files() => (gate, own.unwrap_or(Gate::NONE)),
            Some(own) => (own, Gate::NONE),
            // Open pages in a protected buffer: neither their programs nor reads for them delay the request.
            None if self.buffer.acknowledges && kind == RequestKind::Write && !is_forced => (Gate::NONE, Gate::NONE),
            None => (gate, Gate::NONE),
        };
        let now = self.engine.now();
        let mut data_at = match kind {
            RequestKind::Write => {
                self.receive(on_link);
                self.link.buffered_at()
            }
            RequestKind::Read => self.link.arrives(|| self.units.touched(extent), now),
            _ => now,
        };
        self.io.present.link_left = if kind == RequestKind::Read { extent.bytes() } else { 0 };
        if self.carried.is_some() {
            self.bring_carried(id);
        }
        // A file system commits on each flush, so only the buffer's part of a flush can be free.
        let is_free = kind == RequestKind::Flush && self.io.plan.flush_is_free && !self.io.present.directives.updates;
        if !is_free || self.surface.is_files() {
            self.serve_verified(kind, extent, verifier)?;
        } else {
            (self.io.present.refused, self.io.present.placed) = (None, extent);
        }
        if self.carried.is_some() {
            self.end_bringing(id, verifier);
        }
        if kind == RequestKind::Flush && !is_free {
            self.buffer.await_writes(&mut self.io, gate);
        }
        if is_forced && let Some(own) = own {
            self.io.link(own, gate);
        }
        let refused = self.io.present.refused.filter(|_| self.surface.is_zoned());
        if self.engine.causality.is_some() && refused.is_none() {
            self.pledge(id, kind, is_forced);
        }
        self.flight.planned(id, if refused.is_some() { 0 } else { self.io.host.changes() });
        if self.surface.is_zoned() {
            let entry = self.flight.get_mut(id);
            (entry.command.extent, entry.refused) = (self.io.present.placed, refused);
        }
        let left = std::mem::take(&mut self.io.present.link_left);
        if left > 0 {
            // Data that needed no flash read crosses the link too.
            data_at = self.engine.send(data_at, left);
        }
        if let Some(timeline) = &mut self.engine.timeline {
            timeline.begin_plan(id, kind, now);
        }
        self.settle();
        self.engine.planned(&mut self.io, gate, data_at);
        if let Some(own) = own {
            self.engine.planned(&mut self.io, own, data_at);
        }
        Ok(())
    }

    /// Starts the transfer of a write of `extent` over the host link.
    #[inline]
    fn receive(&mut self, extent: Extent) {
        let crossing = self.engine.receive(extent.bytes());
        let arrival = Arrival::new(extent, crossing, self.link.buffered_at(), self.pace());
        self.link.receive(arrival, self.engine.now());
        self.io.present.arrival = if self.surface.is_files() { arrival.in_files() } else { arrival };
    }

    /// Passes the plan to the engine.
    #[inline]
    fn settle(&mut self) {
        self.buffer.take(u64::from(std::mem::take(&mut self.io.present.buffer_taken)));
        self.buffer.release(u64::from(std::mem::take(&mut self.io.present.buffer_freed)));
        self.engine.accept(&mut self.io);
        self.engine.check_erases(&self.io);
        if let Some(timeline) = &mut self.engine.timeline {
            timeline.end_plan();
        }
        (self.io.present.gate, self.io.present.stored) = (Gate::NONE, Gate::NONE);
    }
}
