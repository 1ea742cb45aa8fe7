//! A drive: flash, translation layer and engine behind a host interface.
//!
//! The host submits requests; the layer plans them, the engine times the plans, and the requests complete. In counted
//! runs a request completes when its plan is made. A request first passes the [controller](super::controller), if that
//! takes time. Writes of buffered layers wait, in order, until the write buffer has room; reads overtake them. Ignored:
//! requests that the host aborts.

mod admission;
mod carried;
mod fill;
mod idle;
pub mod patrol;
mod power;
pub mod read_ahead;
mod recorded;
mod steps;
mod verifier;
mod write_back;

pub use power::{Recovery, explain};
pub use steps::Upcoming;
pub use verifier::Verifier;

use super::causality::Causality;
use super::controller::Controller;
use super::engine::Engine;
use super::settings::ControllerTimes;
use crate::timeline::Recording;
pub use palimpsest_flash::command::{Command, Directives};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::ledger::{Ledger, Mutation, Promise};
use palimpsest_ftl_api::plan::{Gate, Io};
use palimpsest_ftl_api::{Ftl, Guarantee};
use std::collections::VecDeque;
use std::ops::Range;
pub use write_back::Buffer;
use write_back::WriteBack;

#[derive(Clone, Copy)]
struct InFlight {
    command: Command,
    arrival: Nanos,
    /// True if submitted before the measurement began.
    warmup: bool,
    /// Number of requests planned before, this one included.
    planned: u64,
    /// Number of the data change of this request, or of the last before it.
    change: u64,
    /// Subpages of the write buffer that this entry holds; above 0 the entry is no request.
    held: u32,
}

/// A drive.
pub struct Drive {
    /// Flash and plan.
    pub io: Io,
    /// The translation layer.
    pub ftl: Box<dyn Ftl>,
    /// The engine of timed runs.
    pub engine: Engine,
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
    outstanding: u32,
    /// Subpages of the write buffer; `None` without one.
    buffer: Option<u64>,
    buffer_used: u64,
    waiting: VecDeque<u32>,
    times: ControllerTimes,
    controller: Option<Controller>,
    write_back: Option<WriteBack>,
    /// True if the write buffer acknowledges writes.
    acknowledges: bool,
    /// Time at which all writes so far are in the buffer.
    buffered_at: Nanos,
    subpage_bytes: u64,
    unit_sectors: u64,
    /// True if requests submitted now are not measured: the observer must not see them.
    pub warming_up: bool,
    /// True if the observer receives the owners of requests.
    pub reports_owners: bool,
    /// Queues of completed requests that the host has not taken yet; `None` if the host never takes them.
    pub finished: Option<Vec<u32>>,
    guarantee: Guarantee,
    /// True for a file system, which commits on flushes and trims addresses of the layer below itself.
    pub is_file_system: bool,
    /// Writes whose data is still on the host link, with the arrival times, in order.
    arriving: VecDeque<(Extent, Nanos)>,
    /// Promise of the present call.
    promise: Promise,
    /// Recording of a timeline whose window has passed.
    recording: Option<Recording>,
    /// Data that travels with requests of a server.
    carried: Option<Box<carried::Carried>>,
    /// Number of requests planned.
    plans: u64,
    /// True if a power cut is scheduled in a timed run.
    cut_ahead: bool,
    /// Number of power cuts.
    pub power_cuts: u64,
    streams: Option<Box<read_ahead::Streams>>,
    patrol: Option<patrol::Patrol>,
    /// Cost of each recovery.
    pub recoveries: Vec<Recovery>,
    /// Cuts since the last completed request, and flash operations that have not run or belong to the verifier.
    futile: u32,
    not_run: u64,
    /// Scheduled cuts after the next.
    to_come: power::ToCome,
    /// Number of logical subpages that are read back after a power cut, without time or counts.
    pub read_back_after_cut: Option<u64>,
    /// True if a power cut drops requests in flight, and the host knows; false if they are repeated.
    pub drops_requests: bool,
}

impl Drive {
    /// A drive of these parts that gives `guarantee`, without a write buffer.
    pub fn new(mut io: Io, ftl: Box<dyn Ftl>, engine: Engine, guarantee: Guarantee) -> Self {
        io.plan.protected = guarantee.protected;
        io.plan.reads_memory = engine.reads_memory();
        io.host.transfer_subpages = ftl.transfer_subpages();
        let subpage_bytes = u64::from(io.geometry().subpage_bytes);
        let unit_sectors = u64::from(ftl.unit_subpages()) * subpage_bytes / SECTOR_BYTES;
        Drive {
            io,
            ftl,
            engine,
            in_flight: Vec::new(),
            free: Vec::new(),
            outstanding: 0,
            buffer: None,
            buffer_used: 0,
            waiting: VecDeque::new(),
            times: ControllerTimes::default(),
            controller: None,
            write_back: None,
            acknowledges: false,
            buffered_at: 0,
            subpage_bytes,
            unit_sectors,
            warming_up: false,
            reports_owners: false,
            finished: None,
            guarantee,
            is_file_system: false,
            arriving: VecDeque::new(),
            promise: Promise::default(),
            recording: None,
            carried: None,
            plans: 0,
            cut_ahead: false,
            power_cuts: 0,
            streams: None,
            patrol: None,
            recoveries: Vec::new(),
            futile: 0,
            not_run: 0,
            to_come: power::ToCome::default(),
            read_back_after_cut: None,
            drops_requests: false,
        }
    }

    /// Verifies the times of this drive against the guarantee of its layer, if the run models contents. Tests of the
    /// check pass a `mutation` of plans.
    pub fn verify_times(&mut self, mutation: Option<Mutation>) {
        if self.io.has_contents() {
            self.io.ledger = Some(Box::new(Ledger::new(&self.io.nand, mutation)));
        }
    }

    /// Requests that have not completed.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The units wholly inside `extent`, which a trim unmaps.
    pub fn whole_units(&self, extent: Extent) -> Option<Extent> {
        let first = extent.sector.div_ceil(self.unit_sectors) * self.unit_sectors;
        let end = extent.end() / self.unit_sectors * self.unit_sectors;
        (end > first).then(|| Extent { sector: first, sectors: (end - first) as u32 })
    }

    /// Passes `command` to the layer, without time, verifier and read-ahead, and journals its writes and trims. A trim
    /// must cover whole units.
    ///
    /// # Errors
    /// Halts of flash.
    pub fn serve_plainly(&mut self, command: Command) -> Flash<()> {
        self.io.present.directives = command.directives;
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
                if self.io.nand.keeps_trims() {
                    let unit = self.unit_sectors;
                    let sectors = extent.sector / unit * unit..extent.end().next_multiple_of(unit);
                    self.io.nand.note_written(self.lsns(sectors));
                }
                self.ftl.write(&mut self.io, extent)
            }
            RequestKind::Trim => {
                let lsns = self.lsns(extent.sector..extent.end());
                self.io.nand.note_trimmed(lsns.clone(), false)?;
                self.ftl.trim(&mut self.io, extent)?;
                self.io.nand.note_trimmed(lsns, true)
            }
            RequestKind::Flush => {
                self.io.nand.commit_trims()?;
                self.ftl.flush(&mut self.io)
            }
        }
    }

    /// The logical subpages of the whole units in `sectors`.
    #[inline]
    fn lsns(&self, sectors: Range<u64>) -> Range<u32> {
        let per_subpage = self.subpage_bytes / SECTOR_BYTES;
        (sectors.start / per_subpage) as u32..(sectors.end / per_subpage) as u32
    }

    /// Journals trims of the `logical` logical subpages from now on, because power cuts may come. Must not be called
    /// for a file system, which commits trims itself.
    pub fn keep_trims(&mut self, logical: u64) {
        // A trim drops data from a buffer: data that a protected buffer acknowledged, or whose write then ends without
        // a program.
        let drops = self.buffer.is_some() && self.write_back.is_none();
        self.io.nand.keep_trims(logical as u32, self.ftl.unit_subpages(), drops);
    }

    /// Serves `command` without time.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline]
    pub fn count(&mut self, command: Command, verifier: &mut dyn Verifier) -> Result<()> {
        self.io.present.directives = command.directives;
        self.serve_verified(command.kind, command.extent, verifier)?;
        self.io.present.buffer_taken = 0;
        self.futile = 0;
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
        self.io.present.buffer_taken = 0;
        self.plan_in_time();
        if let Some(cut) = cut {
            self.time_power_cut(cut);
        }
        Ok(())
    }

    /// Plans for the engine from now on, and verifies times if requested.
    fn plan_in_time(&mut self) {
        self.io.plan.timed = true;
        if let Some(ledger) = &mut self.io.ledger {
            let next = self.engine.next_order();
            ledger.restart(next);
            let mut causality = Causality::new(&self.io.nand, next, self.guarantee);
            causality.flushed = self.write_back.as_ref().map_or(u32::MAX, WriteBack::logical);
            self.engine.causality = Some(Box::new(causality));
        }
    }

    /// Ends a call of the layer and passes its operations to the check.
    #[inline]
    fn close_call(&mut self) {
        if let (Some(ledger), Some(causality)) = (&mut self.io.ledger, &mut self.engine.causality) {
            let call = ledger.close(self.io.present.now, self.io.host.delivered(), causality.is_buffered());
            self.promise = causality.accept(call, ledger, self.io.present.now);
        }
    }

    /// Registers the planned request `id` with the check.
    #[cold]
    fn pledge(&mut self, id: u32, kind: RequestKind) {
        let promise = std::mem::take(&mut self.promise);
        let Some(causality) = &mut self.engine.causality else { return };
        match kind {
            RequestKind::Read => causality.read(id, promise),
            // The buffer holds a part of a unit before the rest is read. Flushes and read-back verify the data.
            RequestKind::Write if self.acknowledges => {}
            RequestKind::Write => causality.write(id, promise),
            RequestKind::Flush => causality.flush(id),
            RequestKind::Trim => {}
        }
    }

    /// Reports broken laws of time.
    ///
    /// # Errors
    /// [`Error::Rule`] with the first broken law.
    #[inline]
    fn verified(&mut self) -> Result<()> {
        match self.engine.causality.as_mut().and_then(|causality| causality.violation()) {
            Some(what) => Err(Error::Rule(what)),
            None => Ok(()),
        }
    }

    // Kind and extent are separate parameters because they then stay in registers. Loading a value just stored in parts
    // is slow.
    #[inline]
    fn serve_verified(&mut self, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        if kind == RequestKind::Trim {
            // The verifier must see only the units that the layer unmaps.
            let Some(extent) = self.whole_units(extent) else { return Ok(()) };
            // A file system trims addresses of the layer below itself.
            if !self.is_file_system {
                let lsns = self.lsns(extent.sector..extent.end());
                self.io.forget(lsns.start, lsns.end);
            }
            return self.serve_units(kind, extent, verifier);
        }
        self.serve_units(kind, extent, verifier)
    }

    /// Serves a request; a trim must cover whole units.
    #[inline]
    fn serve_units(&mut self, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        if self.io.has_contents() {
            self.io.host.begin(kind);
        }
        if let Err(halt) = self.serve(kind, extent) {
            return self.halted(halt, Command::new(kind, extent), verifier);
        }
        self.close_call();
        if self.io.has_contents() {
            verifier.served(&mut self.io, Command::new(kind, extent))?;
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
        self.lsns(extent.sector..extent.end()).for_each(|lsn| self.io.buffers().overwrite(lsn, Data::ZERO));
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
        self.power_cycle(command, verifier)?;
        self.io.present.directives = directives;
        if self.drops_requests { Ok(()) } else { self.serve_verified(command.kind, command.extent, verifier) }
    }

    /// Submits `command`, which arrived at `arrival`.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline(always)]
    pub fn submit(&mut self, command: Command, arrival: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let entry = InFlight { command, arrival, warmup: self.warming_up, planned: 0, change: 0, held: 0 };
        let id = self.enter_flight(entry);
        self.outstanding += 1;
        if self.carried.is_some() {
            self.load(id);
        }
        let now = self.engine.now();
        if let Some(timeline) = &mut self.engine.timeline {
            timeline.submitted(id, command.kind, command.extent, arrival, now);
        }
        if let Some(controller) = &mut self.controller {
            controller.submit(now, command.directives.queue, command.kind, id);
            return Ok(());
        }
        if self.has_room(command) {
            self.io.present.directives = command.directives;
            self.plan_command(id, command.kind, command.extent, verifier)
        } else {
            self.waiting.push_back(id);
            Ok(())
        }
    }

    /// Stores `entry` and returns its number.
    #[inline(always)]
    fn enter_flight(&mut self, entry: InFlight) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.in_flight[id as usize] = entry;
                id
            }
            None => {
                self.in_flight.push(entry);
                self.in_flight.len() as u32 - 1
            }
        }
    }

    fn plan(&mut self, id: u32, verifier: &mut dyn Verifier) -> Result<()> {
        let InFlight { command, .. } = self.in_flight[id as usize];
        self.io.present.directives = command.directives;
        self.plan_command(id, command.kind, command.extent, verifier)
    }

    /// Plans request `id`. The caller must have set the present directives.
    fn plan_command(&mut self, id: u32, kind: RequestKind, extent: Extent, verifier: &mut dyn Verifier) -> Result<()> {
        let gate = self.io.plan.gates.open();
        self.engine.watch(&mut self.io, gate, id);
        let own = self.own_gate(id);
        self.io.present.now = self.engine.now();
        (self.io.present.gate, self.io.present.stored) = match own {
            own if self.is_file_system => (gate, own.unwrap_or(Gate::NONE)),
            Some(own) => (own, Gate::NONE),
            // Open pages in a protected buffer: neither their programs nor reads for them delay the request.
            None if self.acknowledges && kind == RequestKind::Write => (Gate::NONE, Gate::NONE),
            None => (gate, Gate::NONE),
        };
        let now = self.engine.now();
        let mut data_at = match kind {
            RequestKind::Write => {
                let received = self.engine.receive(self.link_bytes(extent)) + self.t_buffer(extent);
                // In order, as over the link: a page may hold data of several writes, and waits for the last.
                self.buffered_at = self.buffered_at.max(received);
                self.buffered_at
            }
            RequestKind::Read => self.arrives(extent),
            _ => now,
        };
        if kind == RequestKind::Write {
            self.io.present.data_at = data_at;
            if data_at > now {
                while self.arriving.front().is_some_and(|&(_, at)| at <= now) {
                    self.arriving.pop_front();
                }
                self.arriving.push_back((extent, data_at));
            }
        }
        let asked = self.link_bytes(extent);
        self.io.present.link_left = if kind == RequestKind::Read { asked } else { 0 };
        if self.carried.is_some() {
            self.bring_carried(id);
        }
        // A file system commits on each flush, so only the buffer's part of a flush can be free.
        let is_free = kind == RequestKind::Flush && self.io.plan.flush_is_free;
        if !is_free || self.is_file_system {
            self.serve_verified(kind, extent, verifier)?;
        }
        if self.carried.is_some() {
            self.end_bringing(id, verifier);
        }
        if kind == RequestKind::Flush && !is_free {
            self.await_writes(gate);
        }
        if self.engine.causality.is_some() {
            self.pledge(id, kind);
        }
        self.plans += 1;
        let entry = &mut self.in_flight[id as usize];
        (entry.planned, entry.change) = (self.plans, self.io.host.changes());
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

    /// Time at which all data that the host has written to `extent` has arrived over the link.
    #[inline]
    fn arrives(&mut self, extent: Extent) -> Nanos {
        let now = self.engine.now();
        if self.arriving.is_empty() {
            return now;
        }
        let unit = self.unit_sectors;
        let begin = extent.sector / unit * unit;
        let end = extent.end().next_multiple_of(unit);
        let overlaps = |written: &Extent| written.sector < end && begin < written.end();
        self.arriving.iter().filter(|(written, _)| overlaps(written)).fold(now, |last, &(_, at)| last.max(at))
    }

    /// Bytes of `extent` on the host link, rounded to whole units if the layer transfers more than subpages.
    #[inline]
    pub fn link_bytes(&self, extent: Extent) -> u64 {
        if self.io.host.transfer_subpages == 1 {
            return u64::from(extent.sectors) * SECTOR_BYTES;
        }
        let unit = u64::from(self.io.host.transfer_subpages) * self.subpage_bytes / SECTOR_BYTES;
        (extent.end().div_ceil(unit) - extent.sector / unit) * unit * SECTOR_BYTES
    }

    /// Passes the plan to the engine.
    #[inline]
    fn settle(&mut self) {
        self.buffer_used += u64::from(std::mem::take(&mut self.io.present.buffer_taken));
        self.engine.accept(&mut self.io);
        self.engine.check_erases(&self.io);
        if let Some(timeline) = &mut self.engine.timeline {
            timeline.end_plan();
        }
        (self.io.present.gate, self.io.present.stored) = (Gate::NONE, Gate::NONE);
    }
}
