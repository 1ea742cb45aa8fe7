//! A drive under a workload: the loop between host and drive. Ignored: contents of writes.

mod address;
mod ahead;
mod fill;
mod idle;
mod jobs;
mod laws;
mod life;
mod power;
mod run_in;
mod tally;
mod watch;
mod zoned;

use super::until::Until;
use super::{Fidelity, Options, Phase, Watcher, build, check_options, registered};
use crate::config::DriveConfig;
use crate::metrics::curve::Curve;
use crate::metrics::jobs::JobRecorder;
use crate::metrics::recorder::{FlashTotals, Recorder, subtract};
use crate::metrics::snapshots::Snapshots;
use crate::metrics::steady::{self, Collected, Steady};
use crate::metrics::summary::RunIn;
use crate::metrics::volumes::VolumeRecorder;
use address::Addresses;
use ahead::Intake;
pub(super) use ahead::{AHEAD, CLASSIFIED};
use idle::Idle;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::NandCounters;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::LayerFigures;
use palimpsest_ftl_api::plan::checkpoint::CheckpointFigures;
use palimpsest_ftl_api::plan::{Cause, CheckpointIo, IoCounters, PowerIo};
use palimpsest_ftl_api::zones::Zones;
use palimpsest_sim::drive::read_ahead::ReadAheadFigures;
use palimpsest_sim::drive::{Drive, Outside};
use palimpsest_sim::faults::{self, Power, Start};
use palimpsest_sim::shadow::Shadow;
use palimpsest_workload::request::{Arrivals, Due, Locality, Request, Source};
use palimpsest_workload::settings::Acknowledge;
use power::ShadowVerifier;
use std::sync::Arc;
use tally::Tally;
use watch::Watch;

/// A load that writes this share of the data writes all of it.
const MOST_OF_DATA: f64 = 0.8;

/// The time of requests that the host submits.
#[derive(Clone, Copy)]
enum Pace {
    /// At their arrivals.
    Open,
    /// When fewer than this many are in flight.
    Closed(u32),
    /// When a job of the workload is due, and fewer than this many are in flight.
    Jobs(u32),
}

/// Counters at the start of the measurement.
#[derive(Default, Clone)]
pub(super) struct Baseline {
    pub(super) nand: NandCounters,
    pub(super) io: IoCounters,
    pub(super) ftl: LayerFigures,
    pub(super) time: Nanos,
    pub(super) read_ahead: ReadAheadFigures,
    pub(super) checkpoints: CheckpointFigures,
    /// Power cuts that the counters include.
    power_cuts: u64,
    pub(super) bus_busy: Vec<Nanos>,
    pub(super) die_busy: Vec<Nanos>,
    /// Bytes in the write buffer.
    pub(super) buffered: u64,
}

/// Properties of the requests of a workload.
#[derive(Clone, Copy)]
struct Traits {
    /// They change during a pass over the addresses.
    use_up_addresses: bool,
    locality: Locality,
}

/// The part of the load before the measurement.
#[derive(Default, Clone, Copy)]
pub(super) struct Lead {
    /// The run-in, if there was one.
    pub(super) run_in: Option<RunIn>,
    /// The jobs have a ramp, and it is not over.
    pub(super) ramps: bool,
    /// Requests in the ramp.
    ramped: u64,
}

/// A drive under a workload.
pub struct Session<'a> {
    pub(super) config: Arc<DriveConfig>,
    pub(super) options: Arc<Options>,
    pub(super) drive: Drive,
    pub(super) verifier: ShadowVerifier,
    pub(super) recorder: Recorder,
    pub(super) baseline: Baseline,
    pub(super) tally: Tally,
    pub(super) addresses: Addresses,
    pub(super) watch: Watch<'a>,
    intake: Intake,
    /// A classifier outside of the drive gets the requests first.
    classifies: bool,
    idle: Idle,
    /// Properties of the workload.
    traits: Traits,
    /// The part of the load before the measurement.
    pub(super) lead: Lead,
    /// The reason why the drive is worn out.
    pub(super) worn_out: Option<String>,
}

impl<'a> Session<'a> {
    /// A new drive.
    ///
    /// # Errors
    /// [`Error::Input`] for contradictory options.
    pub fn new(config: &DriveConfig, options: &Options, watcher: Watcher<'a>) -> Result<Self> {
        Self::with(Arc::new(config.clone()), Arc::new(options.clone()), watcher)
    }

    /// [`Self::new`] for a configuration and options that others share.
    pub(super) fn with(config: Arc<DriveConfig>, options: Arc<Options>, watcher: Watcher<'a>) -> Result<Self> {
        check_options(&config, &options)?;
        let entry = registered(&config);
        let mut shadow = Shadow::new(options.payload, config.logical_subpages(), config.geometry.subpage_bytes);
        if let Some(fault) = config.power_fault() {
            // In counted runs a layer loses open pages that no buffer protects.
            let durable = match config.host.acknowledge {
                Acknowledge::Buffer => !entry.is_file_system(),
                Acknowledge::Program => !entry.is_file_system() && !entry.gathers,
                Acknowledge::Volatile => false,
            };
            match fault.power {
                Power::FailsAgain => shadow.expect_power_cuts(durable),
                _ => shadow.expect_power_cut(durable),
            }
        }
        let mut drive = build::drive(&config, entry, options.payload, options.seed);
        if config.loses_power() && !entry.is_file_system() {
            drive.keep_trims(config.logical_subpages());
        }
        drive.power.read_back = config.loses_power().then(|| config.logical_subpages());
        if options.fidelity == Fidelity::Timed {
            drive.set_controller(config.controller.clone());
            drive.verify_times(None);
        }
        let subpage = config.geometry.subpage_bytes / SECTOR_BYTES as u32;
        let classifies = drive.ftl.classifier_ahead().is_some();
        Ok(Session {
            drive,
            verifier: ShadowVerifier::new(shadow),
            recorder: Recorder::new(0, FlashTotals::default(), false),
            baseline: Baseline::default(),
            tally: Tally::new(subpage),
            addresses: Addresses::new(config.logical_bytes() / SECTOR_BYTES),
            watch: Watch::new(watcher),
            intake: Intake::new(),
            classifies,
            idle: Idle::new(&config),
            config,
            options,
            // Of a program's requests nothing is known.
            traits: Traits { use_up_addresses: false, locality: Locality::Favoured },
            lead: Lead::default(),
            worn_out: None,
        })
    }

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Logical units of the layer's map.
    pub fn units(&self) -> u64 {
        self.config.logical_bytes() / self.unit_bytes()
    }

    /// Announces an extent that is read or written after some others (`soon`: after a few) to the layer and the shadow.
    #[inline]
    pub(super) fn foresee(&self, extent: Extent, soon: bool) {
        self.drive.ftl.expect(extent, soon);
        if !self.verified() {
            return;
        }
        if !soon {
            self.verifier.shadow.expect(self.tally.subpage_of(extent.sector));
        } else if let Some(psn) = self.drive.ftl.locate_ahead(extent) {
            self.drive.prefetch_content(psn);
        }
    }

    /// Bytes of a unit.
    #[inline]
    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.drive.ftl.unit_subpages()) * u64::from(self.config.geometry.subpage_bytes)
    }

    /// Bytes the host wrote, and bytes of data programmed, so far.
    pub(super) fn written(&self) -> (u64, u64) {
        (self.tally.precondition_bytes, self.drive.io.counters.data_bytes)
    }

    /// Bytes of the drive.
    pub(super) fn capacity(&self) -> u64 {
        self.config.logical_bytes()
    }

    /// Divisor of arrival times.
    pub(super) fn speedup(&self) -> f64 {
        self.config.host.speedup
    }

    pub(super) fn amplification_since(&self, before: (u64, u64)) -> Option<f64> {
        let (host, flash) = self.written();
        (host > before.0).then(|| (flash - before.1) as f64 / (host - before.0) as f64)
    }

    /// Starts timing, in timed runs.
    pub(super) fn start_timing(&mut self) -> Result<()> {
        if self.options.fidelity == Fidelity::Timed {
            self.verifier.shadow.start_timing();
            self.drive.start_timing()?;
        }
        self.drive.reports.outside.iter_mut().for_each(Outside::begin_workload);
        self.drive.io.begin_checkpoints();
        self.drive.read_ahead(self.config.read_ahead, self.config.logical_subpages());
        Ok(())
    }

    /// Starts scheduled faults.
    pub(super) fn start_faults(&mut self) {
        let config = Arc::clone(&self.config);
        let start = Start { settings: &config.ftl, dies: config.physical.dies(), seed: self.options.seed };
        faults::of(&config.ftl).for_each(|fault| (fault.start)(&start, &mut self.drive));
    }

    /// Ends preconditioning, and runs the run-in with `endless`, the load without end, and the warm-up.
    pub(super) fn begin(&mut self, source: &mut dyn Source, endless: Option<&mut dyn Source>) -> Result<()> {
        self.start_timing()?;
        self.lead.run_in = self.run_in(endless)?;
        self.start_faults();
        self.traits = Traits { use_up_addresses: source.uses_up_addresses(), locality: source.locality() };
        self.recorder.volumes = source.has_volumes().then(VolumeRecorder::default);
        self.recorder.jobs = JobRecorder::new(&source.sections());
        self.name_tenants(source)?;
        let warmup = self.options.warmup_requests(source.expected_requests())?;
        if warmup > 0 {
            self.expect(Phase::Warmup, warmup)?;
            self.drive.reports.warming_up = true;
            self.drive_some(source, warmup)?;
            self.drive.reports.warming_up = false;
            if self.intake.submitted < warmup && !self.watch.interrupted {
                let what =
                    format!("the workload ends after {} requests, in the warm-up of {warmup}", self.intake.submitted);
                return Err(Error::input("--warmup", format!("{what}; expected fewer")));
            }
        }
        self.ramp(source)?;
        self.start_measuring();
        Ok(())
    }

    /// Runs the `ramp_time` of the first jobs, whose requests `--requests` does not count.
    fn ramp(&mut self, source: &mut dyn Source) -> Result<()> {
        let is_timed = self.options.fidelity == Fidelity::Timed;
        self.lead.ramps = is_timed && source.jobs().is_some() && self.is_ramping(source);
        if !self.lead.ramps {
            return Ok(());
        }
        if self.intake.submitted > 0 {
            let what = "the workload has a ramp_time, its own warm-up; expected only one of the two";
            return Err(Error::input("--warmup", what));
        }
        self.expect(Phase::Warmup, 0)?;
        self.drive.reports.warming_up = true;
        self.drive_some(source, u64::MAX)?;
        self.drive.reports.warming_up = false;
        self.lead = Lead { ramps: false, ramped: self.intake.submitted, ..self.lead };
        Ok(())
    }

    /// Starts the measurement: resets the counters.
    pub(super) fn start_measuring(&mut self) {
        (self.drive.io.data_age, self.verifier.failed) = (self.config.errors.data_age, 0);
        self.drive.io.nand.take_worst_read();
        self.drive.ftl.zones_mut().into_iter().for_each(Zones::clear_changed);
        self.drive.io.measure();
        self.drive.engine.measure();
        let drive = &self.drive;
        self.baseline = Baseline {
            nand: drive.io.nand.counters_before().clone(),
            io: drive.io.counters_before.clone(),
            ftl: drive.figures(),
            time: drive.engine.now(),
            read_ahead: drive.read_ahead_figures().unwrap_or_default(),
            checkpoints: drive.io.checkpoint_figures().unwrap_or_default(),
            power_cuts: drive.power.cuts,
            bus_busy: drive.engine.bus_busy(),
            die_busy: drive.engine.die_busy(),
            buffered: drive.buffer_level().0 * u64::from(self.config.geometry.subpage_bytes),
        };
        self.tally.start_measuring();
        let (volumes, mut jobs) = (self.recorder.volumes.is_some(), self.recorder.jobs.take());
        jobs.iter_mut().for_each(JobRecorder::restart_all);
        self.drive.io.owners.iter_mut().for_each(|owners| owners.restart());
        self.recorder = Recorder::new(self.drive.engine.now(), self.totals(), self.options.series);
        self.drive.io.plan.meter(self.drive.io.nand.counters());
        (self.recorder.volumes, self.recorder.jobs) = (volumes.then(VolumeRecorder::default), jobs);
        self.options.operations.into_iter().for_each(|window| self.drive.engine.record(window));
        self.watch.snapshots = self.options.series.then(|| Snapshots::new(&self.config.geometry));
    }

    /// Totals of all planned operations.
    pub(super) fn planned(&self) -> FlashTotals {
        let io = &self.drive.io.counters;
        let by = |counts: &[u64]| counts.iter().sum::<u64>();
        FlashTotals {
            reads: by(&io.reads),
            programs: by(&io.programs),
            gc_programs: io.programs[Cause::Gc as usize] + io.programs[Cause::Merge as usize],
            erases: io.erases,
            data_bytes: io.data_bytes,
            host_bytes: self.tally.host.bytes_written,
            retries: self.drive.io.nand.counters().retries,
            lost: self.drive.io.counters.lost.iter().sum(),
        }
    }

    /// Totals of the measurement: ended operations, and bytes and errors of the planned ones.
    fn totals(&self) -> FlashTotals {
        let ended = self.drive.engine.ended();
        let planned = self.planned();
        let untimed = self.tally.timed_until.map_or(FlashTotals::default(), |(timed, _)| subtract(planned, timed));
        FlashTotals {
            reads: ended.reads + untimed.reads,
            programs: ended.programs + untimed.programs,
            gc_programs: ended.gc_programs + untimed.gc_programs,
            erases: ended.erases + untimed.erases,
            data_bytes: planned.data_bytes - self.baseline.io.data_bytes,
            host_bytes: planned.host_bytes,
            retries: planned.retries - self.baseline.nand.retries,
            lost: planned.lost - self.baseline.io.lost.iter().sum::<u64>(),
        }
    }

    /// Picojoules of flash up to `time`.
    fn energy_at(&self, time: Nanos) -> i64 {
        let untimed = self.tally.timed_until.map_or(0, |(_, timed)| self.energy_planned() - timed);
        self.drive.engine.energy_at(time) + untimed
    }

    /// Picojoules of all planned operations of the measurement.
    fn energy_planned(&self) -> i64 {
        self.drive.io.nand.counters().energy().wrapping_sub(self.baseline.nand.energy()) as i64
    }

    /// Ends timing: operations count without time from now on.
    pub(super) fn end_timing(&mut self) {
        if self.drive.io.plan.timed {
            self.tally.timed_until = Some((self.planned(), self.energy_planned()));
        }
        self.drive.end_life();
    }

    /// Runs the rest of the workload.
    pub(super) fn drive_all(&mut self, source: &mut dyn Source) -> Result<()> {
        let most = self.watch.until.as_ref().map(Until::most_requests).or(self.options.requests);
        let limit = most.map_or(u64::MAX, |requests| requests.saturating_add(self.lead.ramped));
        let rest = limit.saturating_sub(self.intake.submitted);
        let expected = source.expected_requests().map_or(0, |all| all.saturating_sub(self.intake.submitted));
        let expected = if expected == 0 { most.map_or(0, |_| rest) } else { expected.min(rest) };
        self.expect(Phase::Run, expected)?;
        let driven = self.drive_some(source, rest);
        self.or_worn_out(driven)?;
        self.end_series();
        Ok(())
    }

    /// Ends the last window of the series, and runs the observers once more.
    pub(super) fn end_series(&mut self) {
        if self.options.fidelity == Fidelity::Timed {
            self.note_worst_read();
            let (now, totals) = (self.drive.engine.now(), self.totals());
            self.recorder.sample(now, now, totals);
            self.recorder.meter(now, |at| self.drive.engine.energy_at(at));
            self.recorder.meter_rest(now, self.energy_at(now));
        }
        self.take_snapshot();
        self.add_point();
    }

    /// Runs at most `most` requests, until all of them have completed.
    fn drive_some(&mut self, source: &mut dyn Source, most: u64) -> Result<()> {
        if !self.drive.io.plan.timed {
            return self.count_some(source, most);
        }
        // The host's depth replaces the depths of jobs, but not their rates.
        let depth = self.config.host.iodepth;
        let has_jobs = match source.jobs() {
            Some(jobs) => depth == 0 || jobs.lift_depths()?,
            None => false,
        };
        let pace = match (depth, source.arrivals()) {
            (0, _) if has_jobs => Pace::Jobs(u32::MAX),
            _ if has_jobs => Pace::Jobs(depth),
            (0, Arrivals::Open) => Pace::Open,
            (0, Arrivals::Closed { depth }) | (depth, _) => Pace::Closed(depth),
        };
        self.host_loop(source, pace, most)
    }

    fn count_some(&mut self, source: &mut dyn Source, most: u64) -> Result<()> {
        for _ in 0..most {
            let Some(next) = self.next(source)? else { return Ok(()) };
            if let Err(error) = self.drive.count(next.command, &mut self.verifier) {
                self.subtract(next.command);
                return Err(error);
            }
            self.subtract_refused(source)?;
            self.watch_one()?;
        }
        Ok(())
    }

    /// The loop of the host: submits at most `most` requests, each when it is due, until all have completed.
    fn host_loop(&mut self, source: &mut dyn Source, pace: Pace, most: u64) -> Result<()> {
        self.drive.reports.finished = matches!(pace, Pace::Jobs(_)).then(Vec::new);
        let mut waiting = None;
        let done = self.host_steps(source, pace, most, &mut waiting);
        if let Some(request) = waiting.filter(|_| done.is_err()) {
            self.subtract(request.command);
        }
        done
    }

    /// [`Self::host_loop`]; `waiting` is the next request of an open loop before its arrival.
    fn host_steps(
        &mut self,
        source: &mut dyn Source,
        pace: Pace,
        most: u64,
        waiting: &mut Option<Request>,
    ) -> Result<()> {
        let mut left = most;
        loop {
            match self.due(source, pace, &mut left, waiting)? {
                Due::Request(Request { arrival, command, .. }) => {
                    self.drive.submit(command, arrival, &mut self.verifier)?;
                    self.drive.harvest(&mut self.recorder, &mut self.verifier)?;
                    self.watch_one()?;
                }
                Due::At(time) => {
                    self.tally.was_idle |= self.drive.outstanding() == 0;
                    // A job receives completions of the same moment first.
                    let until = time.saturating_add(u64::from(matches!(pace, Pace::Jobs(_))));
                    if self.drive.next_time().is_none_or(|event| until <= event) {
                        self.idle_until(time)?;
                    }
                    match self.drive.next_time().is_some_and(|event| event < until) {
                        true => self.advance_to(until)?,
                        false => self.pass_to(time.max(self.drive.engine.now())),
                    }
                }
                Due::Nothing if left == 0 && self.drive.reports.warming_up => return Ok(()),
                Due::Nothing if self.drive.outstanding() == 0 => return self.drain(),
                Due::Nothing | Due::Completion => self.advance_to(Nanos::MAX)?,
            }
            self.subtract_refused(source)?;
            while let Some((command, latency)) = self.drive.reports.finished.as_mut().and_then(Vec::pop) {
                jobs::jobs_of(source).completed(&command, latency);
            }
        }
    }

    /// The next action of the host. `waiting` is the next request of an open loop before its arrival.
    #[inline]
    fn due(
        &mut self,
        source: &mut dyn Source,
        pace: Pace,
        left: &mut u64,
        waiting: &mut Option<Request>,
    ) -> Result<Due> {
        let now = self.drive.engine.now();
        let next = match pace {
            Pace::Jobs(depth) => return self.due_of_jobs(source, depth, left),
            _ if waiting.is_some() => waiting.take(),
            _ if *left == 0 => None,
            Pace::Closed(depth) if self.drive.outstanding() >= depth => return Ok(Due::Completion),
            _ => self.next(source)?,
        };
        let Some(next) = next else {
            *left = 0;
            return Ok(Due::Nothing);
        };
        match pace {
            Pace::Open if next.arrival > now => *waiting = Some(next),
            Pace::Open => *left -= 1,
            _ => {
                *left -= 1;
                return Ok(Due::Request(Request { arrival: now, ..next }));
            }
        }
        Ok(if waiting.is_some() { Due::At(next.arrival) } else { Due::Request(next) })
    }

    /// Runs the next event; without one, flushes the write buffer.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<()> {
        self.advance_to(0)
    }

    /// [`Self::advance`], and further events before `until` that the session need not see.
    pub(super) fn advance_to(&mut self, until: Nanos) -> Result<()> {
        let next = self.drive.upcoming();
        if let Some(time) = next.time() {
            self.sample_before(time);
            self.recorder.rebuilding = self.drive.io.nand.is_rebuilding();
            let until = until.min(self.recorder.next_sample());
            self.drive.run(next, until, &mut self.recorder, &mut self.verifier)?;
            if self.drive.power.cuts > self.baseline.power_cuts {
                self.note_power_cut();
            }
            return Ok(());
        }
        self.drive.push_out()?;
        self.drive.harvest(&mut self.recorder, &mut self.verifier)
    }

    /// Waits for all running operations of flash.
    pub(super) fn drain(&mut self) -> Result<()> {
        while self.drive.engine.outstanding() > 0 {
            self.advance_to(Nanos::MAX)?;
        }
        Ok(())
    }

    /// The addresses of the writes among those with data.
    fn locality(&self) -> Locality {
        let data = self.tally.precondition_bytes.min(self.config.logical_bytes());
        let is_part = (self.tally.span_bytes() as f64) < MOST_OF_DATA * data as f64;
        if is_part { Locality::Favoured } else { self.traits.locality }
    }

    /// The evidence for the figures of the measurement so far.
    pub(super) fn steady(&self) -> Steady {
        let (samples, window) = match (&self.watch.curve, self.options.fidelity) {
            (_, Fidelity::Timed) => self.recorder.samples(),
            (curve, Fidelity::Count) => (curve.as_ref().map_or_else(Vec::new, Curve::samples), 0),
        };
        let planned = self.planned();
        let before = self.baseline.io.programs;
        let collected = Collected {
            erases: planned.erases - self.baseline.io.erases,
            blocks: u64::from(self.config.geometry.blocks()),
            programs: planned.programs - before.iter().sum::<u64>(),
            copies: planned.gc_programs - before[Cause::Gc as usize] - before[Cause::Merge as usize],
            written: self.tally.bytes_since_precondition(),
            span: self.tally.span_bytes(),
            locality: self.locality(),
            used_up: self.traits.use_up_addresses.then(|| self.tally.passed()),
            requests: self.tally.requests.all(),
        };
        steady::judge(&samples, window, collected)
    }

    /// Whether contents were verified.
    pub(super) fn verified(&self) -> bool {
        self.options.payload != Payload::None
    }
}
