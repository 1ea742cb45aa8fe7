//! Power cuts of a drive, and recovery.
//!
//! Data that is neither programmed nor in a protected buffer is lost. The layer recovers, the verifier reads everything
//! back, and the host repeats unanswered requests unless it drops them. Host and link keep their power. Recovery reads
//! all out-of-band areas ([`Io::scan`]), then the layer rebuilds its tables. In timed runs the engine times these
//! operations, and requests wait. Ignored: the time without power, the layer's work on tables in the controller, and
//! writes that must wait for the scan of another die.
//!
//! [`Io::scan`]: palimpsest_ftl_api::plan::Io::scan

use super::Drive;
use crate::drive::{Command, Verifier};
use crate::faults::schedule::Draws;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::Durability;
use palimpsest_ftl_api::plan::arrival::Arrival;
use palimpsest_ftl_api::plan::rain::ParityIo;
use palimpsest_ftl_api::plan::{CheckpointIo, IoCounters, PairedIo, PowerIo};

/// Subpages per read of [`Drive::read_back`].
const READ_BACK: u64 = 64;

/// Largest number of scan operations that wait or run.
const SCAN_AHEAD: usize = 1 << 15;

/// Largest number of power cuts in a row without a completed request.
const MOST_FUTILE: u32 = 100;

/// Cost of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// From the return of the power to the end of the last operation; `None` in counted runs.
    pub time: Option<Nanos>,
    /// Pages whose out-of-band areas were read.
    pub scanned: u64,
    /// Bytes of data programmed.
    pub programmed: u64,
    /// Flash operations of the layer after the scan.
    pub operations: u64,
}

/// Power cuts so far, and those to come.
#[derive(Default)]
pub struct Power {
    /// Number of power cuts.
    pub cuts: u64,
    /// Cost of each recovery.
    pub recoveries: Vec<Recovery>,
    /// Number of logical subpages that are read back after a power cut, without time or counts.
    pub read_back: Option<u64>,
    /// True if a power cut drops requests in flight, and the host knows; false if they are repeated.
    pub drops_requests: bool,
    /// True if a power cut is scheduled in a timed run.
    ahead: bool,
    /// Cuts since the last completed request.
    futile: u32,
    /// Flash operations that were rolled back or belong to the verifier.
    not_run: u64,
    /// Scheduled cuts after the next.
    schedule: Option<Draws>,
    /// Operations of the layer at which each recovery from the next cut is interrupted.
    in_recovery: Vec<u64>,
}

impl Power {
    /// Records that a request has completed.
    #[inline]
    pub(super) fn progressed(&mut self) {
        self.futile = 0;
    }

    /// True if a power cut is scheduled in a timed run.
    #[inline]
    pub(super) fn is_cut_ahead(&self) -> bool {
        self.ahead
    }

    /// Counts a recovery.
    ///
    /// # Errors
    /// [`Error::DriveFailed`] after too many without a completed request.
    fn begin_recovery(&mut self) -> Result<()> {
        self.futile += 1;
        if self.futile > MOST_FUTILE {
            let what = format!("the power failed {MOST_FUTILE} times, and no request completed between");
            return Err(Error::DriveFailed(format!("{what}; expected fewer cuts (faults.power_cuts)")));
        }
        Ok(())
    }
}

impl Drive {
    /// Interrupts the recoveries from the next cut of a counted run: each entry is the operation of the layer at which
    /// the power fails again.
    pub fn cut_recoveries(&mut self, operations: Vec<u64>) {
        self.power.in_recovery = operations;
    }

    /// Schedules power cuts by `schedule`, after any cut that is already scheduled.
    pub fn schedule_power_cuts(&mut self, schedule: Draws) {
        self.power.schedule = Some(schedule);
        if self.io.nand.power_cut_at().is_none() && !self.power.ahead {
            self.schedule_next();
        }
    }

    /// Flash operations that have run, the unit of schedules. Operations rolled back by a cut, and the verifier's
    /// read-back, do not count.
    pub fn operations_run(&self) -> u64 {
        self.io.nand.operations() - self.power.not_run
    }

    /// Mounts flash of a drive that was off: the new layer rebuilds its tables, without time.
    ///
    /// # Errors
    /// Errors of flash.
    pub fn mount(&mut self) -> Result<()> {
        self.recover()?;
        self.power.futile = 0;
        self.power.recoveries.clear();
        self.io.buffers().end_request();
        Ok(())
    }

    fn schedule_next(&mut self) {
        let run = self.operations_run();
        let Some(cut) = self.power.schedule.as_mut().and_then(|schedule| schedule.next(run)) else { return };
        if self.io.plan.timed {
            self.time_power_cut(cut + self.power.not_run);
        } else {
            self.io.nand.set_power_cut_at(Some(cut + self.power.not_run));
        }
    }

    /// Reads the out-of-band areas, and lets the layer rebuild its tables.
    fn recover(&mut self) -> Result<()> {
        self.power.begin_recovery()?;
        let (begin, programmed) = (self.engine.now(), self.io.counters.data_bytes);
        self.io.present.now = begin;
        let mut scanned = 0;
        for after in std::mem::take(&mut self.power.in_recovery) {
            scanned += self.scan_all()?;
            let cut = self.io.nand.operations() + after;
            self.io.nand.set_power_cut_at(Some(cut));
            match self.ftl.recover(&mut self.io) {
                // The next pass recovers again. A recovery that ends before its cut is repeated too, without effect.
                Ok(()) | Err(Halt::PowerCut) => {}
                Err(halt) => return Err(explain(halt)),
            }
            self.io.nand.set_power_cut_at(None);
        }
        scanned += self.scan_all()?;
        let before = self.io.nand.operations();
        self.ftl.recover(&mut self.io).map_err(explain)?;
        let operations = self.io.nand.operations() - before;
        self.io.drop_tables();
        self.engine.accept(&mut self.io);
        self.run_engine(0);
        let time = self.io.plan.timed.then(|| self.engine.now() - begin);
        let programmed = self.io.counters.data_bytes - programmed;
        self.power.recoveries.push(Recovery { time, scanned, programmed, operations });
        Ok(())
    }

    /// Reads the out-of-band areas of all blocks. Returns the number of pages read.
    fn scan_all(&mut self) -> Result<u64> {
        let (planes, blocks) = (self.io.geometry().planes(), self.io.geometry().blocks_per_plane);
        let mut scanned = 0;
        self.io.restore_pages();
        if self.io.checkpoint_figures().is_some() {
            scanned += self.io.find_checkpoint().map_err(explain)?;
            self.engine.accept(&mut self.io);
            self.run_engine(0);
        }
        for block in 0..blocks {
            scanned += (0..planes).map(|plane| self.io.scan_since(plane * blocks + block)).sum::<u64>();
            if self.io.plan.operations.len() >= SCAN_AHEAD / 2 {
                self.engine.accept(&mut self.io);
                self.run_engine(SCAN_AHEAD as u32);
            }
        }
        Ok(scanned)
    }

    /// Writes a checkpoint of the layer's tables, or the next pages of one.
    #[cold]
    pub fn checkpoint(&mut self) -> Flash<()> {
        let Drive { io, ftl, engine, .. } = self;
        let follows = io.write_checkpoint(|io, bytes| ftl.save_tables(io, bytes))?;
        // A protected buffer programs everything planned, even after a power cut.
        if io.is_open(follows) && !io.plan.protected {
            engine.follow_programs(io, follows);
        }
        Ok(())
    }

    /// Restarts metering, because rolled-back operations and the untimed read-back belong to no later operation.
    fn meter_again(&mut self) {
        if self.io.plan.metered.is_some() {
            self.io.plan.meter(self.io.nand.counters());
        }
    }

    /// Measured requests that have not completed.
    pub fn unanswered(&self) -> impl Iterator<Item = Command> {
        self.flight.requests().filter(|(_, entry)| !entry.warmup).map(|(_, entry)| entry.command)
    }

    /// Ends timing, as at the end of the drive's life: operations count without time from now on.
    pub fn end_life(&mut self) {
        self.io.plan.timed = false;
        self.ahead = None;
        self.io.host.take_delivered();
        self.io.buffers().end_request();
    }

    /// Runs the engine until at most `most` operations have not ended.
    fn run_engine(&mut self, most: u32) {
        while self.engine.outstanding() > most && self.engine.next_time().is_some() {
            self.engine.step(&mut self.io);
        }
    }

    /// Schedules a power cut during operation `cut`, in a run that is timed from now on.
    pub(super) fn time_power_cut(&mut self, cut: u64) {
        let left = cut.saturating_sub(self.io.nand.operations());
        self.io.keep_undo();
        self.engine.cut_power_in(left.max(1), &self.io);
        self.power.ahead = true;
    }

    /// Reports the durability that a completed request implies: `change` and all changes before, as far as the layer
    /// guarantees. A flush need not wait for writes that it overtakes.
    #[cold]
    #[inline(never)]
    pub(super) fn note_durable(&self, command: Command, change: u64, verifier: &mut dyn Verifier) {
        let by_flush = self.laws.guarantee.durable == Durability::Flushed;
        match command.kind {
            RequestKind::Write if !by_flush || command.directives.fua => verifier.durable(Some(command.extent), change),
            RequestKind::Flush if by_flush => verifier.durable(None, change),
            RequestKind::Flush => verifier.trims_durable(change),
            _ => {}
        }
    }

    /// Handles a power cut during `command` in a counted run: the layer rebuilds its tables.
    #[cold]
    pub(super) fn power_cycle(&mut self, command: Command, verifier: &mut dyn Verifier) -> Result<()> {
        self.io.nand.set_power_cut_at(None);
        self.io.host.take_delivered();
        self.lose_streams();
        self.recover()?;
        self.power.cuts += 1;
        if self.io.host.has_contents() {
            verifier.power_failed(&mut self.io, command);
            self.io.buffers().end_request();
            self.read_back(verifier)?;
        }
        self.schedule_next();
        Ok(())
    }

    /// Handles a power cut in a timed run: the layer recovers, and requests in flight are dropped, or repeated in
    /// order.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[cold]
    pub(super) fn lose_power(&mut self, verifier: &mut dyn Verifier) -> Result<()> {
        self.power.not_run += self.engine.power_off(&mut self.io);
        self.meter_again();
        self.buffer.lose(self.engine.take_buffer_freed(), self.laws.guarantee.protected);
        self.flight.release_held();
        self.power.ahead = false;
        self.engine.causality = None;
        if self.laws.guarantee.protected {
            // The host completes its transfers all the same, and recovery may have to wait for them.
            self.io.present.arrival = Arrival::complete(self.link.buffered_at());
        } else {
            self.link.lose();
        }
        self.lose_streams();
        self.io.host.take_delivered();
        let taken = |id: &u32| !self.buffer.waiting.contains(id) && !self.controller.holds(*id);
        let mut planned: Vec<u32> = self.flight.requests().map(|(id, _)| id).filter(taken).collect();
        self.flight.sort_by_plan(&mut planned);
        let written = planned.iter().map(|&id| self.flight.get(id));
        let unanswered = written.filter(|entry| entry.command.kind == RequestKind::Write).map(|entry| entry.change);
        verifier.power_lost(&unanswered.collect::<Vec<_>>());
        // The laws of time hold again from the first request on. Only forgotten subpages are recorded during recovery.
        if let Some(ledger) = &mut self.io.ledger {
            ledger.pause();
        }
        self.recover()?;
        self.buffer.take(u64::from(std::mem::take(&mut self.io.present.buffer_taken)));
        self.io.present.buffer_freed = 0;
        self.buffer.recovered(self.engine.take_buffer_freed());
        self.io.buffers().end_request();
        self.io.plan.timed = false;
        self.read_back(verifier)?;
        self.power.cuts += 1;
        self.meter_again();
        self.plan_in_time();
        self.schedule_next();
        if self.power.drops_requests {
            self.drop_requests();
            return Ok(());
        }
        planned.into_iter().try_for_each(|id| self.repeat(id, verifier))
    }

    /// Reads the logical subpages of [`Power::read_back`], without time. The verifier reads, not the host, so
    /// only erases count: a layer may have to program and erase to serve reads, and blocks keep their wear.
    fn read_back(&mut self, verifier: &mut dyn Verifier) -> Result<()> {
        let Some(all) = self.power.read_back else { return Ok(()) };
        let (io, nand, operations) =
            (self.io.counters.clone(), self.io.nand.counters().clone(), self.io.nand.operations());
        let (futile, sectors, streams) =
            (self.power.futile, self.units.subpage_bytes / SECTOR_BYTES, self.ahead.take());
        let found = self.io.nand.found_lost().clone();
        let refused = self.reports.refused.len();
        let rain = self.io.rain_figures();
        for first in (0..all).step_by(READ_BACK as usize) {
            let count = READ_BACK.min(all - first);
            let extent = Extent { sector: first * sectors, sectors: (count * sectors) as u32 };
            self.count(Command::new(RequestKind::Read, extent), verifier)?;
        }
        (self.power.futile, self.ahead) = (futile, streams);
        self.reports.refused.truncate(refused);
        let now = self.io.nand.counters();
        self.engine.count_erases(now.erases - nand.erases, now.erase_energy - nand.erase_energy);
        let counters = nand.with_erases_of(now);
        self.io.counters = IoCounters { erases: self.io.counters.erases, ..io };
        self.io.nand.set_counters(counters);
        self.io.nand.set_found_lost(found);
        self.io.set_rain_figures(rain);
        self.power.not_run += self.io.nand.operations() - operations;
        Ok(())
    }
}

/// The error for a halt of flash.
pub fn explain(halt: Halt) -> Error {
    match halt {
        Halt::PowerCut => Error::DriveFailed("the power failed".into()),
        Halt::NoSpace => Error::WornOut(
            "the drive is at the end of its life: no plane has a block left to write to (bad blocks, or pages that \
             power cuts spoiled, took its over-provisioning)"
                .into(),
        ),
        Halt::Ended(why) => Error::WornOut(why.into()),
        Halt::Image(why) => Error::DriveFailed(format!(
            "the image cannot be written: {why}; what was flushed is in it: expected room for more, and to \
             serve it again"
        )),
        Halt::Refused(refusal) => Error::Rule(format!("the translation layer broke a rule of flash: {refusal}")),
    }
}
