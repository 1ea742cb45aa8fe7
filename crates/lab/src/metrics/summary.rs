//! The schema of a result, as `run --json` prints it. Names never change; new ones may be added.

use palimpsest_ftl_api::{Durability, Guarantee};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Version of the schema; larger when the meaning of a name changes.
pub const SCHEMA_VERSION: u32 = 2;

/// A result. Counters are exact; times are nanoseconds.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Summary {
    pub schema_version: u32,
    pub ftl: String,
    pub ssd: String,
    pub workload: String,
    pub trace_format: Option<&'static str>,
    pub seed: u64,
    pub fidelity: &'static str,
    pub payload: &'static str,
    pub promise: Promise,
    pub config: Value,
    pub requests: Requests,
    pub host: Host,
    pub latency_ns: Option<Latencies>,
    /// Parts of the latencies at percentiles, if the run records the slowest requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<super::why::Explanations>,
    pub throughput: Throughput,
    /// Whether the figures are those of an endless run.
    pub steady: super::steady::Steady,
    /// The end of a run with `--until`; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<super::steady::Ended>,
    pub simulated_ns: u64,
    pub flash: Flash,
    pub write_amplification: Option<f64>,
    pub padding_bytes: u64,
    pub read_amplification: ReadAmplification,
    pub read_ahead: Option<ReadAhead>,
    pub gc: Gc,
    pub merge: Merge,
    pub mapping: MappingBytes,
    pub energy_uj: Energy,
    pub power_w: super::recorder::Watts,
    pub lifetime: Lifetime,
    /// The book of all services of a served drive; absent in runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<super::life::Life>,
    pub endurance: Endurance,
    pub power: Option<Power>,
    pub checkpoint: Option<Checkpoint>,
    pub rain: Option<Rain>,
    /// Reclaim unit handles, if the layer has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fdp: Option<super::fdp::Fdp>,
    /// Zones, if the layer has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zns: Option<super::zns::Zns>,
    pub reliability: Option<Reliability>,
    /// The cache of an object workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<palimpsest_workload::object_figures::Figures>,
    pub ftl_stats: Map<String, Value>,
    pub basis: super::basis::Basis,
    pub precondition: Precondition,
    /// Absent if the run had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_in: Option<RunIn>,
    /// Figures of the volumes of a trace; empty with one volume, or without volumes in the format.
    pub volumes: Vec<VolumeFigures>,
    /// Figures of the sections of a job file, or of a job that searches its depth; empty for one section without.
    pub jobs: Vec<JobFigures>,
    /// Figures of the tenants, and of all together: sections of a job file, or volumes; absent with one tenant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<super::tenants::TenantFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<super::tenants::Tenancy>,
    /// The user ended the run before the last request.
    pub interrupted: bool,
    pub notes: Vec<String>,
    pub sim: Sim,
}

/// The promise of the layer: the place of a write's data at the acknowledgement, and the moment from which no power cut
/// loses the data. Response times of two runs compare only if both fields are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Promise {
    pub acknowledged: &'static str,
    pub durable: &'static str,
}

impl Promise {
    /// The words for `guarantee`; `volatile`: the write buffer loses data when the power fails.
    pub fn of(guarantee: Guarantee, volatile: bool) -> Self {
        let acknowledged = match guarantee.protected {
            _ if volatile => "in a volatile buffer",
            true => "in a protected buffer",
            false => "when programmed",
        };
        let durable = match guarantee.durable {
            Durability::Flushed => "by flush",
            Durability::Programmed | Durability::Buffered => "when acknowledged",
        };
        Promise { acknowledged, durable }
    }
}

/// Requests completed in the measured part of the run.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Requests {
    pub read: u64,
    pub write: u64,
    pub trim: u64,
    pub flush: u64,
}

impl Requests {
    /// Requests of all kinds.
    pub fn all(&self) -> u64 {
        self.read + self.write + self.trim + self.flush
    }
}

/// Transfers of the host. `transferred` counts the blocks of the commands, read and written.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Host {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub subpages_read: u64,
    pub subpages_hit: u64,
    pub subpages_written: u64,
    pub bytes_transferred: u64,
    pub subpages_transferred: u64,
}

/// Latencies by kind of request; null for a kind without a measured request.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Latencies {
    pub all: Option<Latency>,
    pub read: Option<Latency>,
    pub write: Option<Latency>,
}

/// A distribution of times.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Latency {
    pub mean: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub max: u64,
}

impl Latency {
    /// The distribution of `times`; `None` if there are none.
    pub fn of(times: &super::histogram::Histogram) -> Option<Self> {
        (times.count() > 0).then(|| Latency {
            mean: times.mean(),
            p50: times.percentile(500),
            p90: times.percentile(900),
            p99: times.percentile(990),
            p999: times.percentile(999),
            p9999: times.percentile_of(9999, 10_000),
            max: times.max(),
        })
    }
}

/// Requests and bytes a second of simulated time; null at count fidelity.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Throughput {
    pub iops: Option<f64>,
    pub bytes_per_s: Option<f64>,
}

/// Operations of flash in the measured part of the run. `consumed_bytes` are the erases times the bytes of a block.
/// Unlike write amplification, they count pages that stay unused until an erase, and codes that program pages again.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Flash {
    pub page_reads: u64,
    pub page_programs: u64,
    pub partial_programs: u64,
    pub reprograms: u64,
    pub erases: u64,
    pub consumed_bytes: u64,
    pub bytes_sensed: u64,
    pub bytes_transferred: u64,
    pub read_retries: u64,
    pub failed_programs: u64,
    pub failed_erases: u64,
    pub pair_copies: u64,
    pub pair_rescues: u64,
    pub by_cause: BTreeMap<&'static str, ByCause>,
}

/// Page reads and programs of one cause.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct ByCause {
    pub reads: u64,
    pub programs: u64,
}

/// Bytes sensed over bytes wanted; null without wanted bytes.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct ReadAmplification {
    pub host: Option<f64>,
    pub gc: Option<f64>,
}

/// Subpages read ahead of sequential streams, hits among them, subpages dropped before any request, and the peak memory
/// of read-ahead; null without read-ahead.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct ReadAhead {
    pub subpages_read: u64,
    pub subpages_hit: u64,
    pub subpages_wasted: u64,
    pub buffer_bytes_peak: u64,
}

/// Garbage collection. Times are from the start of a collection to the end of the erase.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Gc {
    pub runs: u64,
    pub erased_blocks: u64,
    pub moved_subpages: u64,
    pub mean_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

/// Merges of scattered subpages.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Merge {
    pub count: u64,
    pub moved_subpages: u64,
}

/// DRAM of the layer's tables.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct MappingBytes {
    pub bytes: u64,
    pub bytes_peak: u64,
    pub tables: BTreeMap<&'static str, u64>,
}

/// Energy in microjoules. Null if the part has no energy of the operation. The total needs energies of reads, programs
/// and erases.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Energy {
    pub read: Option<f64>,
    pub program: Option<f64>,
    pub reprogram: Option<f64>,
    pub erase: Option<f64>,
    pub total: Option<f64>,
}

/// Wear of the drive since it was new, preconditioning included; reused blocks among those erased in the measured part;
/// and the bytes that the host can write before the mean block of a new drive reaches the limit of bit errors (null if
/// the run erased no block): see [`super::lifetime`]. `host_bytes` are host writes since the drive was new; `worn_out`:
/// the drive took all possible writes.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Lifetime {
    pub mean_erases: f64,
    pub min_erases: u32,
    pub max_erases: u32,
    pub reused_erases: u64,
    pub projected_host_bytes: Option<u64>,
    pub retired_blocks: u64,
    pub host_bytes: u64,
    pub worn_out: bool,
    /// The blocks that always hold one bit a cell, which the other figures leave out; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc_fixed: Option<SingleLife>,
}

/// Wear of the fixed share of the fast cache: blocks, erases since the drive was new, the consumed share of the mean
/// block's endurance (`part.endurance_slc`), and the bytes that the host can write until all of it is consumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct SingleLife {
    pub blocks: u32,
    pub mean_erases: f64,
    pub min_erases: u32,
    pub max_erases: u32,
    pub worn: f64,
    pub projected_host_bytes: Option<u64>,
}

/// Endurance: WAF (write amplification), TBW in terabytes, drive writes a day at the workload's own rate and at the
/// rate that ends the drive's life after five years, years of life at the workload's rate, and writes of the run in
/// multiples of the drive: see [`super::endurance`]. Null if no block was erased, nothing was written, or there is no
/// rate. `full_load`: the rate is the drive's throughput, because the drive never was without a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Endurance {
    pub waf: Option<f64>,
    pub tbw: Option<f64>,
    pub dwpd: Option<f64>,
    pub dwpd_5_years: Option<f64>,
    pub years: Option<f64>,
    pub host_bytes_per_day: Option<f64>,
    pub full_load: Option<bool>,
    pub drive_writes: f64,
}

/// Power cuts since the drive was new. Of recovery: time (null in counted runs and without a cut), pages whose
/// out-of-band areas were read, bytes of data programmed, and these over host bytes. Losses among acknowledged
/// unflushed writes: writes with a loss, and subpages with older data. Null if no cut was scheduled.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Power {
    pub cuts: u64,
    pub recovery_ns: Option<Latency>,
    pub pages_scanned: u64,
    pub bytes_programmed: u64,
    pub write_amplification: Option<f64>,
    pub unflushed_writes_lost: u64,
    pub unflushed_subpages_lost: u64,
}

/// Checkpoints of the layer's tables (`ftl.checkpoint`) in the measured part: number begun, bytes programmed for them,
/// and these over host bytes. Null without checkpoints.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Checkpoint {
    pub begun: u64,
    pub page_programs: u64,
    pub bytes_programmed: u64,
    pub write_amplification: Option<f64>,
}

/// A section of a job file: its measured requests, those of all copies together, and their rate from the first arrival
/// to the last completion.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct JobFigures {
    pub job: String,
    pub copies: u32,
    pub requests: Requests,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub latency_ns: Option<Latencies>,
    pub throughput: Throughput,
    pub latency_target: Option<TargetFigures>,
}

/// The search for a depth (`latency_target`): the longest time of a fast request, the time for which a depth is tried,
/// the percentage of requests that must be fast, the last depth of each copy, and whether all of these met the target.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct TargetFigures {
    pub target_ns: u64,
    pub window_ns: u64,
    pub percentile: f64,
    pub depths: Vec<u32>,
    pub met: bool,
}

/// A volume of a trace: its range on the drive (`size_bytes` null if unknown), and its measured requests.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct VolumeFigures {
    pub volume: u32,
    pub name: String,
    pub offset_bytes: u64,
    pub size_bytes: Option<u64>,
    pub requests: Requests,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub latency_ns: Option<VolumeLatencies>,
}

/// Latencies of a volume by kind of request; null for a kind without a measured request.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct VolumeLatencies {
    pub read: Option<VolumeLatency>,
    pub write: Option<VolumeLatency>,
}

/// A distribution of times, percentiles within 1.6 %.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct VolumeLatency {
    pub mean: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// Parity across dies (`ftl.rain`). Bytes of parity programmed in the measured part, and these over host bytes; stripes
/// with parity in memory at the end; reads served from the other pages of their stripes, and reads that could not be;
/// pages moved from failed dies, the time from the failure to the last of them (null in counted runs, and without
/// moves), latencies of requests that completed meanwhile, and whether the rebuild is done (null without a failure).
/// Null without parity.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Rain {
    pub parity_programs: u64,
    pub bytes_programmed: u64,
    pub write_amplification: Option<f64>,
    pub open_stripes: u64,
    pub rebuilt_reads: u64,
    pub failed_rebuilds: u64,
    pub moved_pages: u64,
    pub rebuild_ns: Option<u64>,
    pub rebuild_latency_ns: Option<Latency>,
    pub rebuild_done: Option<bool>,
}

/// Uncorrectable reads in the measured part, if reads have errors (`ecc.strength`), else null: lost subpages by the
/// cause of the read that found the loss, reads of the host that returned an error (null if contents are not stored),
/// and failed dies.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Reliability {
    pub lost_subpages: BTreeMap<&'static str, u64>,
    pub failed_reads: Option<u64>,
    pub failed_dies: u64,
}

/// The preconditioning.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct Precondition {
    pub spec: String,
    pub bytes_written: u64,
    pub last_write_amplification: Option<f64>,
    pub converged: Option<bool>,
}

/// The run-in: the load before the measurement, which brought the drive to the level of this load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct RunIn {
    pub requests: u64,
    pub ns: u64,
    /// Rates and the level of the write buffer changed no more at its end.
    pub stationary: bool,
}

/// The simulation itself: the only figures that differ between two runs.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Sim {
    pub wall_s: f64,
    pub requests_per_s: f64,
    pub peak_rss_bytes: u64,
}
