//! The result of a run, from its counters. Ignored: the schema, which [`crate::metrics::summary`] defines.

mod basis;
mod tenants;
mod wear;

use super::until::Until;
use super::{Buckets, Detail, Fidelity, Histograms, Options, Outcome, Session, Wear, registered};
use crate::config::{DriveConfig, Resolved};
use crate::metrics::curve::Curve;
use crate::metrics::endurance::{Load, endurance};
use crate::metrics::fdp::{self, Fdp};
use crate::metrics::histogram::Histogram;
use crate::metrics::lifetime::unsafe_after;
use crate::metrics::operations::columns;
use crate::metrics::recorder::Recorder;
use crate::metrics::snapshots::Snapshots;
use crate::metrics::steady::{Steady, about};
use crate::metrics::summary::{
    ByCause, Checkpoint, Energy, Flash, Gc, Latencies, Latency, MappingBytes, Merge, Power, Precondition, Promise,
    Rain, ReadAhead, ReadAmplification, Reliability, SCHEMA_VERSION, Sim, Summary, Throughput,
};
use crate::metrics::zns::Zns;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::units::parse::{format_bytes, format_ratio};
use palimpsest_flash::units::{Nanos, Picojoules};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, CAUSES, Cause, CheckpointIo, IoCounters, ParityIo};
use palimpsest_ftl_api::{Figure, LayerFigures};
use palimpsest_sim::faults;
use palimpsest_sim::timeline::MOST_OPERATIONS;
use palimpsest_workload::in_order::Disorder;
use palimpsest_workload::object_figures::Figures;
use palimpsest_workload::replay::Volume;
use palimpsest_workload::request::{Arrivals, Section, Source};
use palimpsest_workload::settings::Acknowledge;
use serde_json::{Map, Value};

/// Facts from reading the workload, if it is a trace.
#[derive(Debug, Clone, Default)]
pub(super) struct TraceRead {
    /// The format.
    pub format: Option<&'static str>,
    /// Malformed lines that were skipped.
    pub skipped_lines: u64,
    /// Records that were not in order of time.
    pub disorder: Disorder,
    /// Ranges of the volumes.
    pub volumes: Vec<Volume>,
    /// Sections of a job file, with the depths found.
    pub sections: Vec<Section>,
    /// Figures of a cache of objects.
    pub objects: Option<Figures>,
    /// Notes on the replay.
    pub notes: Vec<String>,
    /// Whether requests arrive at times of their own.
    pub is_open: bool,
    /// Whether `--repeat` can play the workload again; never true for requests to a served drive.
    pub can_repeat: bool,
}

impl TraceRead {
    /// The facts of `source` at its end.
    pub fn of(source: &dyn Source) -> TraceRead {
        TraceRead {
            format: source.format(),
            skipped_lines: source.skipped_lines(),
            disorder: source.disorder(),
            volumes: source.volumes(),
            sections: source.sections(),
            objects: source.objects(),
            notes: source.notes(),
            is_open: source.arrivals() == Arrivals::Open,
            can_repeat: source.can_repeat(),
        }
    }
}

/// Subpages that the host read from the controller's memory.
fn hits(session: &Session<'_>) -> u64 {
    let of = |io: &IoCounters| io.memory_reads[Cause::Host as usize];
    of(&session.drive.io.counters) - of(&session.baseline.io)
}

/// Bytes of a block; of a superblock, those of each of its blocks, because flash counts their erases.
fn block_bytes(config: &DriveConfig) -> u64 {
    u64::from(config.physical.pages_per_block) * u64::from(config.geometry.page_bytes())
}

/// The result of a finished session.
pub(super) fn outcome(
    resolved: &Resolved,
    session: &Session<'_>,
    options: &Options,
    trace: TraceRead,
    precondition: Precondition,
) -> Outcome {
    let (config, timed) = (&resolved.drive, options.fidelity == Fidelity::Timed);
    let simulated = session.recorder.last_completion().saturating_sub(session.baseline.time);
    let figures = session.drive.figures();
    let (flash, before) = (flash(session), &session.baseline.ftl);
    let (io, io_before) = (&session.drive.io.counters, &session.baseline.io);
    let data_bytes = io.data_bytes - io_before.data_bytes;
    let written = session.tally.host.bytes_written;
    let recorder = &session.recorder;
    let measured = wear::measured(session, flash.erases, data_bytes);
    let life = wear::lifetime(session, &figures, figures.safe_life, &measured);
    let amplification = (written > 0).then(|| data_bytes as f64 / written as f64);
    let (tenants, tenancy) = tenants::tenants(session, (&trace.sections, &trace.volumes), timed, data_bytes);
    let unsafe_after = unsafe_after(&config.part, figures.safe_life, &measured);
    let steady = session.steady();
    let until = session.watch.until.as_ref().map(|until| (&steady, until));
    let summary = Summary {
        schema_version: SCHEMA_VERSION,
        ftl: config.ftl.name.clone(),
        ssd: config.name.clone(),
        workload: options.workload.clone(),
        trace_format: trace.format,
        seed: options.seed,
        fidelity: if timed { "timed" } else { "count" },
        payload: payload_name(options.payload),
        basis: basis::basis(session, timed.then_some(simulated), trace.is_open, &figures),
        promise: Promise::of(config.guarantee(registered(config)), config.host.acknowledge == Acknowledge::Volatile),
        config: resolved.to_json(),
        requests: session.tally.requests.clone(),
        host: session.tally.host(hits(session)),
        latency_ns: timed.then(|| latencies(recorder)),
        why: recorder.why.explanations(),
        throughput: throughput(session, timed, simulated),
        until: until.map(|(steady, until)| until.ended(steady)),
        simulated_ns: simulated,
        write_amplification: amplification,
        padding_bytes: io.padding_bytes - io_before.padding_bytes,
        read_amplification: read_amplification(io, io_before),
        read_ahead: read_ahead(session),
        gc: gc(&figures, before, &recorder.collections),
        merge: Merge {
            count: figures.merges - before.merges,
            moved_subpages: figures.merge_moved_subpages - before.merge_moved_subpages,
        },
        mapping: mapping(&figures),
        energy_uj: energy(session),
        power_w: if timed && session.config.part.has_energies() { recorder.power() } else { Default::default() },
        endurance: endurance(&load(session, amplification, life.projected_host_bytes, timed.then_some(simulated))),
        lifetime: life,
        life: None,
        checkpoint: checkpoint(session),
        rain: rain(session),
        fdp: fdp(session, &figures, &flash),
        zns: zns(session, &figures),
        power: session.loses_power().then(|| power(session)),
        reliability: reads_may_fail(session).then(|| reliability(session)),
        ftl_stats: own_figures(&figures, before),
        volumes: recorder.volumes.as_ref().map_or_else(Vec::new, |volumes| volumes.figures(&trace.volumes, timed)),
        objects: trace.objects.clone(),
        jobs: recorder.jobs.as_ref().map_or_else(Vec::new, |jobs| jobs.figures(&trace.sections, timed)),
        tenants,
        tenancy,
        notes: notes(session, &trace, &precondition, unsafe_after, &figures.remarks, until),
        steady,
        precondition,
        run_in: session.lead.run_in,
        interrupted: session.watch.interrupted,
        flash,
        sim: Sim::default(),
    };
    Outcome { summary, detail: detail(session, timed, simulated) }
}

fn mapping(figures: &LayerFigures) -> MappingBytes {
    let of = &figures.mapping;
    let (bytes, tables) = (of.tables.iter().map(|table| table.1).sum(), of.tables.iter().copied().collect());
    MappingBytes { bytes, bytes_peak: of.peak_bytes, tables }
}

fn latencies(recorder: &Recorder) -> Latencies {
    let [all, read, write] = [&recorder.all(), &recorder.read, &recorder.write].map(Latency::of);
    Latencies { all, read, write }
}

fn payload_name(payload: Payload) -> &'static str {
    match payload {
        Payload::None => "none",
        Payload::Tag => "tag",
        Payload::Bytes => "bytes",
    }
}

fn throughput(session: &Session<'_>, timed: bool, simulated: u64) -> Throughput {
    if !timed || simulated == 0 {
        return Throughput::default();
    }
    let seconds = simulated as f64 / 1e9;
    let requests = &session.tally.requests;
    let all = requests.read + requests.write + requests.trim + requests.flush;
    let bytes = session.tally.host.bytes_read + session.tally.host.bytes_written;
    Throughput { iops: Some(all as f64 / seconds), bytes_per_s: Some(bytes as f64 / seconds) }
}

fn flash(session: &Session<'_>) -> Flash {
    let (nand, before) = (session.drive.io.nand.counters(), &session.baseline.nand);
    let (io, io_before) = (&session.drive.io.counters, &session.baseline.io);
    let by_cause = CAUSE_NAMES.iter().enumerate().map(|(cause, &name)| {
        let reads = io.reads[cause] - io_before.reads[cause];
        (name, ByCause { reads, programs: io.programs[cause] - io_before.programs[cause] })
    });
    let erases = nand.erases - before.erases;
    Flash {
        page_reads: nand.reads - before.reads,
        page_programs: nand.programs - before.programs,
        partial_programs: nand.partial_programs - before.partial_programs,
        reprograms: nand.reprograms - before.reprograms,
        erases,
        consumed_bytes: erases * block_bytes(&session.config),
        bytes_sensed: io.sensed.iter().sum::<u64>() - io_before.sensed.iter().sum::<u64>(),
        bytes_transferred: io.bus_bytes - io_before.bus_bytes,
        read_retries: nand.retries - before.retries,
        failed_programs: nand.failed_programs - before.failed_programs,
        failed_erases: nand.failed_erases - before.failed_erases,
        pair_copies: nand.pair_copies - before.pair_copies,
        pair_rescues: nand.pair_rescues - before.pair_rescues,
        by_cause: by_cause.collect(),
    }
}

/// Read-ahead in the measured part; earlier read-ahead may be hit or dropped here.
fn read_ahead(session: &Session<'_>) -> Option<ReadAhead> {
    let (now, before) = (session.drive.read_ahead_figures()?, session.baseline.read_ahead);
    Some(ReadAhead {
        subpages_read: now.read - before.read,
        subpages_hit: now.hit - before.hit,
        subpages_wasted: now.wasted - before.wasted,
        buffer_bytes_peak: now.pages_peak * u64::from(session.config.geometry.page_bytes()),
    })
}

/// Reads of the host, and reads of cleaning and merging; without reads of read-modify-writes.
fn read_amplification(io: &IoCounters, before: &IoCounters) -> ReadAmplification {
    let ratio = |causes: &[Cause]| {
        let of = |counts: &[u64; CAUSES]| causes.iter().map(|&cause| counts[cause as usize]).sum::<u64>();
        let (sensed, wanted) = (of(&io.sensed) - of(&before.sensed), of(&io.wanted) - of(&before.wanted));
        (wanted > 0).then(|| sensed as f64 / wanted as f64)
    };
    ReadAmplification { host: ratio(&[Cause::Host, Cause::ReadAhead]), gc: ratio(&[Cause::Gc, Cause::Merge]) }
}

fn gc(figures: &LayerFigures, before: &LayerFigures, times: &Histogram) -> Gc {
    Gc {
        runs: figures.gc_runs - before.gc_runs,
        erased_blocks: figures.gc_erased - before.gc_erased,
        moved_subpages: figures.gc_moved_subpages - before.gc_moved_subpages,
        mean_ns: (times.count() > 0).then(|| times.mean()),
        p99_ns: (times.count() > 0).then(|| times.percentile(990)),
    }
}

fn energy(session: &Session<'_>) -> Energy {
    let (nand, before) = (session.drive.io.nand.counters(), &session.baseline.nand);
    let part = &session.config.part;
    let microjoules =
        |modelled: bool, now: Picojoules, before: Picojoules| modelled.then(|| (now - before) as f64 / 1e6);
    let all = |counters: &palimpsest_flash::nand::NandCounters| {
        counters.read_energy + counters.program_energy + counters.reprogram_energy + counters.erase_energy
    };
    Energy {
        read: microjoules(part.e_read > 0, nand.read_energy, before.read_energy),
        program: microjoules(part.e_program > 0, nand.program_energy, before.program_energy),
        reprogram: microjoules(part.e_reprogram > 0, nand.reprogram_energy, before.reprogram_energy),
        erase: microjoules(part.e_erase > 0, nand.erase_energy, before.erase_energy),
        total: microjoules(part.has_energies(), all(nand), all(before)),
    }
}

/// A note on the space of the fast cache's fixed share.
fn cache_note(session: &Session<'_>) -> Option<String> {
    let (config, geometry) = (&session.config, session.drive.io.geometry());
    let fixed = config.fixed_single();
    let pages = fixed * geometry.planes() * (geometry.pages_per_block / config.part.stored_bits());
    (fixed > 0).then(|| {
        format!(
            "{fixed} blocks of each plane always hold one bit a cell, {} of fast cache: over-provisioning is {} \
             without them",
            format_bytes(u64::from(pages) * u64::from(geometry.page_bytes())),
            // Rounded to a hundredth of a percent.
            format_ratio((config.effective_over_provisioning() * 1e4).round() / 1e4)
        )
    })
}

/// The inputs of endurance. The time is the arrivals' with the gap after the last, or else simulated time.
fn load(session: &Session<'_>, waf: Option<f64>, life_bytes: Option<u64>, simulated: Option<Nanos>) -> Load {
    let requests = &session.tally.requests;
    let gaps = (requests.read + requests.write + requests.trim + requests.flush).saturating_sub(1);
    let (first, last) = (session.tally.arrivals.0.unwrap_or(0), session.tally.arrivals.1);
    let span = (last - first) as f64 * session.speedup();
    let own = (last > first && gaps > 0).then(|| (span * (gaps + 1) as f64 / gaps as f64) as Nanos);
    Load {
        waf,
        life_bytes,
        host_bytes: session.tally.host.bytes_written,
        time: own.or(simulated),
        full: own.is_none() && !session.tally.was_idle,
        capacity: session.capacity(),
    }
}

/// A note if write amplification is still dominated by preconditioning, with a remedy.
fn aging_note(session: &Session<'_>, precondition: &Precondition, trace: &TraceRead) -> Option<String> {
    // A cache of objects wrote the drive with the same workload.
    let is_same = trace.objects.is_some() && session.options.precondition == super::precondition::Precondition::Layout;
    let capacity = session.capacity() as f64;
    let drives = session.tally.bytes_since_precondition() as f64 / capacity;
    let erased = session.drive.io.nand.counters().erases > session.baseline.nand.erases;
    (precondition.bytes_written > 0 && erased && drives < 1.0 && !is_same).then(|| {
        let how = if trace.can_repeat { " (--repeat 2dw plays the workload until it was written twice)" } else { "" };
        format!(
            "write amplification still depends on the preconditioning: the run wrote the drive {drives:.3} times{how}"
        )
    })
}

fn power(session: &Session<'_>) -> Power {
    let (lost, recoveries) = (session.verifier.shadow.lost(), &session.drive.power.recoveries);
    let mut times = Histogram::new();
    recoveries.iter().filter_map(|recovery| recovery.time).for_each(|time| times.record(time));
    let bytes_programmed = recoveries.iter().map(|recovery| recovery.programmed).sum();
    let written = session.tally.host.bytes_written;
    Power {
        cuts: session.drive.power.cuts,
        recovery_ns: Latency::of(&times),
        pages_scanned: recoveries.iter().map(|recovery| recovery.scanned).sum(),
        bytes_programmed,
        write_amplification: (written > 0).then(|| bytes_programmed as f64 / written as f64),
        unflushed_writes_lost: lost.writes.len() as u64,
        unflushed_subpages_lost: lost.subpages,
    }
}

fn checkpoint(session: &Session<'_>) -> Option<Checkpoint> {
    let (now, before) = (session.drive.io.checkpoint_figures()?, session.baseline.checkpoints);
    let (bytes, written) = (now.bytes - before.bytes, session.tally.host.bytes_written);
    Some(Checkpoint {
        begun: now.begun - before.begun,
        page_programs: now.pages - before.pages,
        bytes_programmed: bytes,
        write_amplification: (written > 0).then(|| bytes as f64 / written as f64),
    })
}

/// Whether reads have errors, or a fault may lose data.
fn reads_may_fail(session: &Session<'_>) -> bool {
    session.drive.io.nand.has_read_errors() || faults::of(&session.config.ftl).any(|fault| fault.loses_data)
}

fn rain(session: &Session<'_>) -> Option<Rain> {
    let (drive, before, written) = (&session.drive, &session.baseline.io, session.tally.host.bytes_written);
    let figures = drive.io.rain_figures()?;
    let programs = drive.io.counters.programs[Cause::Parity as usize] - before.programs[Cause::Parity as usize];
    let bytes = programs * u64::from(session.config.geometry.page_bytes());
    let moved_in = figures.moved_at.zip(figures.failed_at).map(|(moved, failed)| moved.saturating_sub(failed));
    Some(Rain {
        parity_programs: programs,
        bytes_programmed: bytes,
        write_amplification: (written > 0).then(|| bytes as f64 / written as f64),
        open_stripes: drive.io.open_stripes() as u64,
        rebuilt_reads: figures.rebuilt,
        failed_rebuilds: figures.failed,
        moved_pages: figures.moved,
        rebuild_ns: moved_in.filter(|_| session.options.fidelity == Fidelity::Timed),
        rebuild_latency_ns: Latency::of(&session.recorder.rebuild),
        rebuild_done: figures.failed_at.map(|_| figures.moved_at.is_some()),
    })
}

/// Zones, if the layer has them.
fn zns(session: &Session<'_>, figures: &LayerFigures) -> Option<Zns> {
    let before = session.baseline.ftl.zones.clone().unwrap_or_default();
    Some(Zns::new(figures.zones.as_ref()?, &before))
}

/// Reclaim unit handles, if the layer has them.
fn fdp(session: &Session<'_>, figures: &LayerFigures, flash: &Flash) -> Option<Fdp> {
    let config = &session.config;
    let page_bytes = u64::from(config.geometry.page_bytes());
    let drive = fdp::Drive {
        isolation: config.ftl.get("fdp.isolation"),
        units: config.geometry.blocks().into(),
        subpage_bytes: config.geometry.subpage_bytes.into(),
        statistics: fdp::Statistics {
            host_bytes: session.tally.host.bytes_written,
            media_bytes: flash.page_programs * page_bytes,
            media_erased_bytes: flash.consumed_bytes,
        },
    };
    let before = session.baseline.ftl.placement.clone().unwrap_or_default();
    Some(Fdp::new(figures.placement.as_ref()?, &before, drive))
}

fn reliability(session: &Session<'_>) -> Reliability {
    let (lost, before) = (&session.drive.io.counters.lost, &session.baseline.io.lost);
    let lost_subpages = CAUSE_NAMES.iter().enumerate().map(|(cause, &name)| (name, lost[cause] - before[cause]));
    Reliability {
        lost_subpages: lost_subpages.filter(|(_, lost)| *lost > 0).collect(),
        failed_reads: session.verified().then_some(session.verifier.failed),
        failed_dies: session.drive.io.nand.failed_dies().len() as u64,
    }
}

/// A note on the scheduled power cuts.
fn power_note(session: &Session<'_>) -> String {
    let Power { cuts, unflushed_writes_lost: writes, unflushed_subpages_lost: subpages, .. } = power(session);
    let times = if cuts == 1 { "once" } else { &format!("{cuts} times") };
    match (cuts, writes) {
        (0, _) => {
            let operations = session.drive.io.nand.operations();
            format!(
                "the power did not fail: the run ended before, after {operations} flash operations \
                 since the drive was new"
            )
        }
        (_, 0) => format!("the power failed {times}, and everything acknowledged was read back"),
        _ => format!(
            "the power failed {times}, and lost {subpages} subpages of {writes} writes that were acknowledged and not \
             flushed; everything else acknowledged was read back"
        ),
    }
}

/// The layer's own figures of the measured part.
fn own_figures(figures: &LayerFigures, before: &LayerFigures) -> Map<String, Value> {
    let earlier = |name: &str| before.own.iter().find(|figure| figure.0 == name).map(|figure| figure.1);
    let value = |name: &str, figure: Figure| match (figure, earlier(name)) {
        (Figure::Count(now), Some(Figure::Count(then))) => Value::from(now - then),
        (Figure::Count(level), _) | (Figure::Level(level), _) => Value::from(level),
        (Figure::ShareOfLevel(_, 0), _) => Value::Null,
        (Figure::ShareOfLevel(part, whole), _) => Value::from(part as f64 / whole as f64),
        (Figure::ShareOfCount(part, whole), then) => {
            let (part_before, whole_before) = match then {
                Some(Figure::ShareOfCount(part, whole)) => (part, whole),
                _ => (0, 0),
            };
            let whole = whole - whole_before;
            if whole == 0 { Value::Null } else { Value::from((part - part_before) as f64 / whole as f64) }
        }
    };
    figures.own.iter().map(|&(name, figure)| (name.to_owned(), value(name, figure))).collect()
}

/// A share of the written bytes beyond which an empty write buffer decides the figures.
const SHARE_OF_BUFFER: f64 = 0.05;

/// The note of a preconditioned drive that begins with an empty write buffer.
fn empty_buffer(session: &Session<'_>) -> Option<String> {
    let (_, size) = session.drive.buffer_level();
    let size = size * u64::from(session.config.geometry.subpage_bytes);
    let written = session.tally.host.bytes_written;
    let is_empty = session.baseline.buffered < size / 10 && session.options.fidelity == Fidelity::Timed;
    let taken = size.min(written);
    let matters = is_empty && session.tally.precondition_bytes > 0 && taken as f64 > SHARE_OF_BUFFER * written as f64;
    matters.then(|| {
        let percent = 100 * taken / written.max(1);
        format!(
            "the write buffer is empty at the start and has room for {percent} % of the {} that the run writes",
            about(written)
        )
    })
}

/// Notes on the run for the user.
fn notes(
    session: &Session<'_>,
    trace: &TraceRead,
    precondition: &Precondition,
    unsafe_after: Option<u64>,
    remarks: &[String],
    until: Option<(&Steady, &Until)>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if session.watch.interrupted {
        notes.push("interrupted: these are the figures up to then".into());
    }
    if let Some(why) = &session.worn_out {
        let bytes = session.tally.precondition_bytes + session.tally.host.bytes_written;
        notes
            .push(format!("{why}; the host had written {}, and these are the figures up to then", format_bytes(bytes)));
    }
    notes.extend(until.and_then(|(steady, until)| until.note(steady)));
    notes.extend(empty_buffer(session));
    if session.addresses.folded > 0 {
        notes.push(format!(
            "{} requests were beyond the drive and were folded into it (host.fold = true)",
            session.addresses.folded
        ));
    }
    if let Some(format) = trace.format {
        notes.push(format!("the trace was read as {format}"));
    }
    notes.extend_from_slice(&trace.notes);
    if trace.skipped_lines > 0 {
        notes.push(format!("{} malformed lines of the trace were skipped", trace.skipped_lines));
    }
    notes.extend(trace.disorder.note());
    let unwritten = session.drive.io.counters.unwritten_subpages - session.baseline.io.unwritten_subpages;
    if unwritten > 0 && session.tally.host.subpages_read > 0 {
        notes.push(format!(
            "{unwritten} of {} subpages read had never been written, and needed no flash read (see --precondition)",
            session.tally.host.subpages_read
        ));
    }
    notes.extend(faults::of(&session.config.ftl).filter_map(|fault| (fault.note)(&session.drive)));
    notes.extend(cache_note(session));
    notes.extend(aging_note(session, precondition, trace));
    if precondition.converged == Some(false) {
        notes.push("preconditioning reached its bound before the write amplification was steady".into());
    }
    if let Some(cycles) = unsafe_after {
        let part = session.drive.io.nand.part();
        notes.push(format!(
            "blocks of part {} exceed their limit of bit errors after {cycles} of {} cycles while their low pages are \
             reused: less of ftl.safe_life is safe",
            part.name, part.endurance
        ));
    }
    notes.extend_from_slice(remarks);
    if session.drive.recording().is_some_and(|found| found.truncated) {
        notes.push(format!("the timeline has the first {MOST_OPERATIONS} operations of its window only"));
    }
    notes.extend(session.loses_power().then(|| power_note(session)));
    notes.extend(session.verified().then(|| verified_note(session)).flatten());
    notes
}

/// The note on verification; `None` if nothing was verified.
fn verified_note(session: &Session<'_>) -> Option<String> {
    let failed = session.verifier.failed;
    let reads = if failed > 0 {
        let what = "reads of the host failed for good, as bits were wrong that could not be corrected";
        Some(format!("{failed} {what}; every other read verified"))
    } else {
        (session.tally.host.subpages_read > 0).then(|| "every read verified".into())
    };
    let times = session.drive.io.plan.timed.then(|| "every acknowledgement checked".into());
    let said: Vec<String> = reads.into_iter().chain(times).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn detail(session: &Session<'_>, timed: bool, simulated: u64) -> Detail {
    let recorder = &session.recorder;
    let all = recorder.all();
    let buckets = |histogram: &Histogram| {
        let (lower_ns, count) = histogram.occupied().unzip();
        Buckets { lower_ns, count }
    };
    let sketch = |histogram: &Histogram| {
        let (lower_ns, count) = histogram.sketch();
        Buckets { lower_ns, count }
    };
    let of = |bucketed: &dyn Fn(&Histogram) -> Buckets| Histograms {
        all: bucketed(&all),
        read: bucketed(&recorder.read),
        write: bucketed(&recorder.write),
    };
    let nand = &session.drive.io.nand;
    let blocks = 0..nand.geometry().blocks();
    let (operations, requests) = session.drive.recording().map(|found| columns(&found)).unzip();
    Detail {
        time: timed.then(|| recorder.series(session.config.part.has_energies())),
        latency: timed.then(|| of(&buckets)),
        sketch: timed.then(|| of(&sketch)),
        wear: Wear {
            erases: blocks.clone().map(|block| nand.erases(block)).collect(),
            plane: blocks.map(|block| nand.geometry().plane_of_block(block)).collect(),
        },
        utilization: timed.then(|| basis::utilization(session, simulated)),
        writes: session.watch.curve.as_ref().filter(|_| session.options.series).map(Curve::points),
        blocks: session.watch.snapshots.as_ref().map(Snapshots::series),
        operations,
        requests,
    }
}
