//! The parsed, validated specification with all defaults.

use std::str::FromStr;

use super::distribution::Distribution;
use super::groups::{FileGroup, GroupLayout, RequestClass};
use super::keys::{self, Key};
use super::pattern::{PATTERNS, Pattern};
use super::quantity::{Amount, Units};
use super::rules;
use super::values::{HandleChoice, PlacedRange};
use super::zoned::Zoned;
use crate::request::{Lifetime, RequestKind};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::parse::shown;
use palimpsest_flash::units::{KIB, Nanos};

/// A size of a split, with the share of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeShare {
    /// Bytes of a request, a multiple of 512.
    pub bytes: u64,
    /// Tenths of a percent of the requests.
    pub permille: u32,
}

/// The most requests in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Requests in 1000 seconds.
    Requests(u64),
    /// Bytes a second.
    Bytes(u64),
}

/// The gaps between requests at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Equal gaps.
    Linear,
    /// Exponential gaps.
    Poisson,
}

/// The pauses of a job: fio's `thinktime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Think {
    /// `thinktime`: the length of a pause, which begins when no request of the job is in flight; 0: no pauses.
    pub time: Nanos,
    /// `thinktime_blocks`: requests between two pauses.
    pub requests: u64,
    /// `thinktime_blocks_type`: whether requests count when issued, or when complete.
    pub of_issued: bool,
    /// `thinktime_iotime`: the time between two pauses; 0: requests alone count.
    pub after: Nanos,
}

/// How a job fills its queue again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refill {
    /// `iodepth_low`: the most requests in flight at which a queue that was full gets requests again; 65,536.
    pub low: u32,
    /// `iodepth_batch`: requests that are submitted together; 1, and 0 for all of the depth.
    pub submit: u32,
    /// `iodepth_batch_complete`: completions for which a full queue waits; 1.
    pub complete: u32,
}

/// Reading back the writes of a job: fio's `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// `verify`: the writes of the job are read back.
    pub on: bool,
    /// `do_verify`; true.
    pub reads: bool,
    /// `verify_backlog`: writes before a read-back; 0: all of a pass.
    pub backlog: u64,
    /// `verify_backlog_batch`: reads of such a read-back; 0: the backlog.
    pub batch: u64,
}

/// Jobs that end with a job: fio's `exit_what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitScope {
    /// The jobs of the same group of reports.
    Group,
    /// The jobs that run.
    Phase,
    /// All jobs.
    All,
}

/// Begin and end of a job among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// `stonewall`: the job begins after all jobs before.
    pub stonewall: bool,
    /// `wait_for`: the job begins after this one.
    pub after: Option<String>,
    /// `new_group`: the job begins a group of reports.
    pub new_group: bool,
    /// `exitall`: other jobs end with the job.
    pub exits: bool,
    /// `exit_what`; the group.
    pub scope: ExitScope,
}

/// The share of a job in the requests of the jobs of the same `flow_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// `flow`; 0: none.
    pub weight: u64,
    /// `flow_id`.
    pub id: u64,
    /// `flow_sleep`: the pause of a job that is ahead, after its requests in flight; 0: none.
    pub sleep: Nanos,
}

/// Strided requests: after `bytes` in a window of `range` the window moves on by `range` and `skip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strides {
    /// `zonemode=strided`.
    pub strided: bool,
    /// `zonesize`, in bytes.
    pub bytes: u64,
    /// `zonerange`, in bytes; `zonesize`.
    pub range: u64,
    /// `zoneskip`, in bytes.
    pub skip: u64,
}

/// The search for the highest depth whose requests are fast enough: fio's `latency_target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// `latency_target`: the longest response time of a request that counts as fast; 0: no search.
    pub time: Nanos,
    /// `latency_window`: the time for which a depth is tried.
    pub window: Nanos,
    /// `latency_percentile`: the fast share of the requests of a window, in thousandths of a percent; 100 %.
    pub share: u64,
    /// `latency_run`: the job continues, and searches again, once a depth is found.
    pub continues: bool,
}

/// The least rates of a job: fio's `rate_min` or `rate_iops_min`. A job that is slower ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Rates of reads, writes and trims; none.
    pub rates: [Option<Rate>; 3],
    /// `rate_cycle`: the time over which a rate is averaged; 1 s.
    pub cycle: Nanos,
}

/// The generator of random addresses, if each block comes once a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// `tausworthe`, of 32 bits.
    Short,
    /// `tausworthe64`.
    Long,
    /// `lfsr`: a shift register, without a map.
    Lfsr,
}

/// A workload in fio's language. Three-element fields are for reads, writes and trims.
#[derive(Debug, Clone, PartialEq)]
pub struct FioSpec {
    /// `rw`; read.
    pub pattern: Pattern,
    /// Bytes added after a sequential request, as in `rw=read:-8k`; 0.
    pub skip: i64,
    /// Requests for each random address, as in `rw=randread:8`; 1.
    pub run: u64,
    /// `rw_sequencer=identical`: the requests of a run repeat the address; false: each follows the one before.
    pub identical: bool,
    /// `bs`, `bssplit`, or both ends of `bsrange`; 4 KiB.
    pub block_sizes: [Vec<SizeShare>; 3],
    /// Sizes are uniform between the two of `block_sizes`, in steps of the least.
    pub uniform: [bool; 3],
    /// `bs_unaligned`: in steps of 512 bytes instead.
    pub unaligned: bool,
    /// `offset` of the region from the drive's start; 0.
    pub offset: Amount,
    /// `offset_increment`: added for each copy before; 0.
    pub offset_increment: Amount,
    /// `size` of the region; default: the drive from the offset on.
    pub size: Option<Amount>,
    /// `n`, not counting flushes; 100,000 if neither `io_size`, `loops` nor `runtime` bounds the run.
    pub requests: Option<u64>,
    /// `io_size`: stop after this amount; percentages of the region.
    pub io_size: Option<Amount>,
    /// `loops`: stop after this many times the region's size.
    pub loops: Option<u64>,
    /// `iodepth`; 1.
    pub iodepth: u32,
    /// `ioengine` waits for each request, so that the depth is 1; false.
    pub waits: bool,
    /// `iodepth_low`, `iodepth_batch` and `iodepth_batch_complete`: requests follow each completion.
    pub refill: Refill,
    /// `random_distribution`; uniform.
    pub distribution: Distribution,
    /// `rwmixread`, in tenths of a percent; 50 %.
    pub read_permille: u32,
    /// `rate_iops` or `rate`: the most of each direction; none.
    pub rates: [Option<Rate>; 3],
    /// `open_loop`: requests arrive at one rate, regardless of the number in flight.
    pub open_loop: bool,
    /// `rate_process`; linear.
    pub pacing: Pacing,
    /// `rate_min`, `rate_iops_min` and `rate_cycle`; none.
    pub floor: Floor,
    /// `runtime`: no request after this simulated time; none.
    pub runtime: Option<Nanos>,
    /// `time_based`: `runtime` alone ends the workload.
    pub time_based: bool,
    /// `startdelay`: delay of the first request; 0.
    pub start_delay: Nanos,
    /// A range of `startdelay`: the most that is added for a copy; 0.
    pub delay_spread: Nanos,
    /// `ramp_time`: the time before the figures begin; 0.
    pub ramp: Nanos,
    /// `thinktime`, `thinktime_blocks` and `thinktime_blocks_type`; no pauses.
    pub think: Think,
    /// `latency_target`, `latency_window`, `latency_percentile` and `latency_run`; `iodepth` is the depth of the job.
    pub target: Target,
    /// `blockalign` of random requests; the smallest size of their direction.
    pub block_align: Option<u64>,
    /// `fsync`: a flush after this many writes; none.
    pub writes_per_flush: Option<u64>,
    /// `end_fsync`: a flush follows the last request; false.
    pub end_flush: bool,
    /// `random_sequence_stride`: each cycle of a sequence begins after the one before; false.
    pub stride: bool,
    /// `zonemode`, `zonesize`, `zonerange` and `zoneskip`; none.
    pub zones: Strides,
    /// Keys of `zonemode=zbd`; off.
    pub zoned: Zoned,
    /// `percentage_random` of random patterns, in tenths of a percent; 100 %.
    pub random_permille: [u32; 3],
    /// `sequential_from`: requests of this size and more of a random pattern are sequential; none.
    pub sequential_from: Option<u64>,
    /// `sequential_size`: the end of the region for these requests only; default: all share the region.
    pub sequential_size: Option<Amount>,
    /// `norandommap`: random requests are independent draws; else each block comes once a pass.
    pub no_map: bool,
    /// `random_generator`; tausworthe.
    pub generator: Generator,
    /// `randrepeat`: passes of `loops` and `io_size` repeat each other; true.
    pub repeat: bool,
    /// `randseed`, in place of the run's seed.
    pub seed: Option<u64>,
    /// `filename`, `directory` and `filename_format`; none: the drive.
    pub paths: Vec<String>,
    pub folders: Vec<String>,
    pub name_format: Option<String>,
    /// `nrfiles`; default: as many as fill the region, if sizes are given.
    pub files: Option<u64>,
    /// `filesize`: share of the files of each size; default: equal sizes, if their number is given.
    pub file_sizes: Option<Vec<SizeShare>>,
    /// `openfiles`: files open at a time during the layout; 1.
    pub open_files: u32,
    /// `filegroups`, which replace all other keys of files; none.
    pub groups: Vec<FileGroup>,
    /// `mix`: classes of requests to the groups; none.
    pub mix: Vec<RequestClass>,
    /// `filelayout`, in place of the layout of every group; none.
    pub file_layout: Option<GroupLayout>,
    /// `dwell`: requests until other files are hot, in place of those of every class; none.
    pub dwell: Option<u64>,
    /// `sync`: writes have FUA; false.
    pub sync: bool,
    /// `write_hint`: the expected lifetime of writes; unknown.
    pub write_hint: Lifetime,
    /// `plids`: the placement handles that writes name; none: the default handle.
    pub plids: Vec<u16>,
    /// `plid_select`; in turn.
    pub handle_choice: HandleChoice,
    /// `dp_scheme`: the placement identifiers of writes by offset; none.
    pub scheme: Vec<PlacedRange>,
    /// `fdp`, while the keys are read: whether writes name the handles.
    pub places: Option<bool>,
    /// `fdp` without `plids` and `dp_scheme`: writes name all handles of the drive.
    pub all_handles: bool,
    /// `verify`; none.
    pub check: Check,
    /// `stonewall`, `wait_for`, `exitall`, `exit_what` and `new_group`; none.
    pub order: Order,
    /// `flow`, `flow_id` and `flow_sleep`; none.
    pub flow: Flow,
    /// `numjobs`: copies of the job that run at the same time; 1.
    pub copies: u64,
}

/// Requests of a workload without another bound.
pub const DEFAULT_REQUESTS: u64 = 100_000;

impl Default for FioSpec {
    fn default() -> Self {
        FioSpec {
            pattern: PATTERNS[0],
            block_sizes: std::array::from_fn(|_| vec![SizeShare { bytes: 4 * KIB, permille: 1000 }]),
            skip: 0,
            run: 1,
            identical: false,
            uniform: [false; 3],
            unaligned: false,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            size: None,
            requests: Some(DEFAULT_REQUESTS),
            io_size: None,
            loops: None,
            iodepth: 1,
            waits: false,
            refill: Refill { low: 65_536, submit: 1, complete: 1 },
            distribution: Distribution::Random,
            read_permille: 500,
            rates: [None; 3],
            open_loop: false,
            pacing: Pacing::Linear,
            floor: Floor { rates: [None; 3], cycle: 1_000_000_000 },
            runtime: None,
            time_based: false,
            start_delay: 0,
            delay_spread: 0,
            ramp: 0,
            think: Think { time: 0, requests: 1, of_issued: false, after: 0 },
            target: Target { time: 0, window: 0, share: 100_000, continues: false },
            block_align: None,
            writes_per_flush: None,
            end_flush: false,
            stride: false,
            zones: Strides::default(),
            zoned: Zoned::default(),
            random_permille: [1000; 3],
            sequential_from: None,
            sequential_size: None,
            no_map: false,
            generator: Generator::Short,
            repeat: true,
            seed: None,
            paths: Vec::new(),
            folders: Vec::new(),
            name_format: None,
            files: None,
            file_sizes: None,
            open_files: 1,
            groups: Vec::new(),
            mix: Vec::new(),
            file_layout: None,
            dwell: None,
            sync: false,
            write_hint: Lifetime::Unknown,
            plids: Vec::new(),
            handle_choice: HandleChoice::InTurn,
            scheme: Vec::new(),
            places: None,
            all_handles: false,
            check: Check { on: false, reads: true, backlog: 0, batch: 0 },
            order: Order { stonewall: false, after: None, new_group: false, exits: false, scope: ExitScope::Group },
            flow: Flow::default(),
            copies: 1,
        }
    }
}

impl FioSpec {
    /// The same load without begin, end and searches, with a seed of its own changed by `other`; `None` if the requests
    /// depend on the state of the drive or of other jobs.
    pub(super) fn endless(&self, other: u64) -> Option<FioSpec> {
        let depends = self.zoned.on || self.target.time > 0 || self.order.stonewall || self.order.after.is_some();
        let FioSpec { floor, order, check, .. } = FioSpec::default();
        (!depends).then(|| FioSpec {
            requests: None,
            io_size: None,
            loops: None,
            runtime: None,
            time_based: false,
            start_delay: 0,
            delay_spread: 0,
            ramp: 0,
            end_flush: false,
            seed: self.seed.map(|seed| seed ^ other),
            floor,
            order,
            check,
            ..self.clone()
        })
    }

    /// Reads `text` such as `rw=randwrite,bs=4k,size=1GiB`.
    ///
    /// # Errors
    /// [`Error::Input`] with the key, the expected values, and for an unknown key the nearest known key.
    pub fn parse(text: &str) -> Result<FioSpec> {
        let mut spec = FioSpec { requests: None, ..FioSpec::default() };
        let mut given: Vec<(&'static Key, String)> = Vec::new();
        let pairs = pairs(text)?;
        let units = pairs.iter().find(|(name, _)| *name == "kb_base").and_then(|(_, value)| Units::of(value));
        for (name, value) in pairs {
            let key = keys::find(name)?;
            if given.iter().any(|(other, _)| other.name == key.name) {
                return Err(Error::input(place(key.name), "the key is given twice; expected one value"));
            }
            let plain = units.map_or(value.clone(), |units| keys::in_bytes(key, &value, units));
            (key.set)(&mut spec, &plain).map_err(|()| {
                Error::input(place(name), format!("expected {}, found {:?}", key.expected, shown(&value)))
            })?;
            given.push((key, plain));
        }
        rules::reconcile(&mut spec, &given)?;
        Ok(spec)
    }

    /// The text of `base` with the keys of `changes` replaced: a preset with a changed parameter.
    ///
    /// # Errors
    /// As [`parse`](Self::parse) for an unknown key in `changes`.
    pub fn changed(base: &str, changes: &str) -> Result<String> {
        let changes = pairs(changes)?;
        let mut replacing: Vec<&str> = Vec::new();
        for (name, _) in &changes {
            replacing.push(keys::find(name)?.name);
        }
        let mut kept = Vec::new();
        for (name, value) in pairs(base)? {
            let name = keys::find(name)?.name;
            if !replacing.iter().any(|change| rules::replaces(change, name)) {
                kept.push((name, value));
            }
        }
        let texts: Vec<String> = kept.iter().chain(&changes).map(|(name, value)| format!("{name}={value}")).collect();
        Ok(texts.join(","))
    }

    /// True if requests of `bytes` are sequential by their size.
    pub fn follows(&self, bytes: u64) -> bool {
        self.pattern.random && self.sequential_from.is_some_and(|from| bytes >= from)
    }

    /// The smallest size of a request of any direction, in bytes.
    pub fn least_block(&self) -> u64 {
        let sizes = self.block_sizes.iter().flatten().map(|share| share.bytes);
        sizes.min().expect("every direction has a size")
    }

    /// True if the writes of the job are read back.
    pub fn reads_back(&self) -> bool {
        self.check.on && self.check.reads && self.pattern.kinds.contains(&RequestKind::Write)
    }

    /// True if the workload needs jobs: times, copies, or more than draws.
    pub fn has_job(&self) -> bool {
        let has_checks = self.target.time > 0 || self.floor.rates.iter().any(Option::is_some);
        let has_pace = self.is_capped() || self.think.time > 0 || has_checks || self.reads_back();
        let has_times = self.runtime.is_some() || self.start_delay + self.delay_spread + self.ramp > 0;
        let full = Refill { low: 65_536, submit: 1, complete: 1 };
        has_pace || has_times || self.copies > 1 || self.refill != full || self.zoned.on
    }

    /// The sizes of requests of `kind`.
    pub fn sizes(&self, kind: RequestKind) -> &[SizeShare] {
        &self.block_sizes[direction(kind)]
    }
}

/// The place of an error in the specification.
pub fn place(key: &str) -> String {
    format!("--workload {key}")
}

/// The element of a three-element field for a kind.
pub fn direction(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Trim => 2,
        RequestKind::Write | RequestKind::Flush => 1,
    }
}

/// Splits at the commas that begin a key; a key without `=` has an empty value.
pub(super) fn pairs(text: &str) -> Result<Vec<(&str, String)>> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for token in text.split(',').map(str::trim) {
        match (token.split_once('='), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name.trim(), value.trim().to_string())),
            (None, Some((_, value))) if !token.starts_with(|c: char| c.is_alphabetic()) => {
                value.push(',');
                value.push_str(token);
            }
            (None, _) if token.is_empty() => {
                return Err(Error::input("--workload", "expected key=value pairs such as rw=randwrite,bs=4k"));
            }
            (None, _) => pairs.push((token, String::new())),
        }
    }
    Ok(pairs)
}

impl FromStr for FioSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<FioSpec> {
        FioSpec::parse(text)
    }
}

#[cfg(test)]
mod tests;
