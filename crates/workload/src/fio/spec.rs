//! The parsed, validated specification with all defaults.

use std::fmt;
use std::str::FromStr;

use super::distribution::Distribution;
use super::groups::{FileGroup, GroupLayout, RequestClass, groups_text, mix_text};
use super::keys::{self, Key};
use super::pattern::{PATTERNS, Pattern};
use super::quantity::{Amount, Units, duration_text, size_text};
use crate::request::{Lifetime, RequestKind};
use palimpsest_flash::error::{Error, Result};
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
    /// `bs` or `bssplit`; 4 KiB.
    pub block_sizes: [Vec<SizeShare>; 3],
    /// `offset` of the region from the drive's start; 0.
    pub offset: Amount,
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
    /// `thinktime`, `thinktime_blocks` and `thinktime_blocks_type`; no pauses.
    pub think: Think,
    /// `latency_target`, `latency_window`, `latency_percentile` and `latency_run`; `iodepth` is the depth of the job.
    pub target: Target,
    /// `blockalign` of random requests; the smallest size of their direction.
    pub block_align: Option<u64>,
    /// `fsync`: a flush after this many writes; none.
    pub writes_per_flush: Option<u64>,
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
    /// `plids`: the placement handles that writes name in turn; none: the default handle.
    pub plids: Vec<u16>,
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
            offset: Amount::Bytes(0),
            size: None,
            requests: Some(DEFAULT_REQUESTS),
            io_size: None,
            loops: None,
            iodepth: 1,
            distribution: Distribution::Random,
            read_permille: 500,
            rates: [None; 3],
            open_loop: false,
            pacing: Pacing::Linear,
            floor: Floor { rates: [None; 3], cycle: 1_000_000_000 },
            runtime: None,
            time_based: false,
            start_delay: 0,
            think: Think { time: 0, requests: 1, of_issued: false },
            target: Target { time: 0, window: 0, share: 100_000, continues: false },
            block_align: None,
            writes_per_flush: None,
            random_permille: [1000; 3],
            sequential_from: None,
            sequential_size: None,
            no_map: false,
            generator: Generator::Short,
            repeat: true,
            seed: None,
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
            copies: 1,
        }
    }
}

impl FioSpec {
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
            (key.set)(&mut spec, &plain)
                .map_err(|()| Error::input(place(name), format!("expected {}, found {value:?}", key.expected)))?;
            given.push((key, plain));
        }
        keys::reconcile(&mut spec, &given)?;
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
            if !replacing.iter().any(|change| keys::replaces(change, name)) {
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

/// The canonical form: every key with a value, defaults included.
impl fmt::Display for FioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.groups[..] {
            [] => {
                write!(f, "rw={}", self.pattern.name)?;
                write_sizes(f, &self.block_sizes)?;
            }
            groups => {
                let mix = mix_text(&self.mix, keys::tenths_text);
                write!(f, "filegroups={},mix={mix}", groups_text(groups))?;
            }
        }
        let optional = |f: &mut fmt::Formatter<'_>, key: &str, value: Option<String>| match value {
            Some(value) => write!(f, ",{key}={value}"),
            None => Ok(()),
        };
        write!(f, ",offset={}", self.offset)?;
        let has_region = self.groups.is_empty();
        optional(f, "size", self.size.filter(|_| has_region).map(|size| size.to_string()))?;
        optional(f, "n", self.requests.map(|n| n.to_string()))?;
        optional(f, "io_size", self.io_size.map(|size| size.to_string()))?;
        optional(f, "loops", self.loops.map(|loops| loops.to_string()))?;
        optional(f, "iodepth", (!self.open_loop).then(|| self.iodepth.to_string()))?;
        if has_region {
            write!(f, ",random_distribution={}", self.distribution)?;
            write!(f, ",rwmixread={}", keys::tenths_text(self.read_permille))?;
        }
        write_rates(f, self.rates, ["rate", "rate_iops"])?;
        write_rates(f, self.floor.rates, ["rate_min", "rate_iops_min"])?;
        let cycle = Some(self.floor.cycle).filter(|&cycle| cycle != 1_000_000_000);
        optional(f, "rate_cycle", cycle.map(|cycle| (cycle / 1_000_000).to_string()))?;
        optional(f, "open_loop", self.open_loop.then(|| "1".to_string()))?;
        write!(f, ",rate_process={}", if self.pacing == Pacing::Linear { "linear" } else { "poisson" })?;
        optional(f, "runtime", self.runtime.map(duration_text))?;
        optional(f, "time_based", self.time_based.then(|| "1".to_string()))?;
        optional(f, "startdelay", Some(self.start_delay).filter(|&delay| delay > 0).map(duration_text))?;
        let Think { time, requests, of_issued } = self.think;
        optional(f, "thinktime", Some(time).filter(|&time| time > 0).map(duration_text))?;
        optional(f, "thinktime_blocks", Some(requests).filter(|&requests| requests != 1).map(|each| each.to_string()))?;
        optional(f, "thinktime_blocks_type", of_issued.then(|| "issue".to_string()))?;
        write!(f, "{}", self.target)?;
        optional(f, "blockalign", self.block_align.map(size_text))?;
        optional(f, "fsync", self.writes_per_flush.map(|writes| writes.to_string()))?;
        if has_region {
            let [read, write, trim] = self.random_permille.map(keys::tenths_text);
            write!(f, ",percentage_random={read},{write},{trim}")?;
        }
        optional(f, "sequential_from", self.sequential_from.map(size_text))?;
        optional(f, "sequential_size", self.sequential_size.map(|size| size.to_string()))?;
        optional(f, "norandommap", self.no_map.then(|| "1".to_string()))?;
        optional(f, "random_generator", keys::generator_name(self.generator))?;
        optional(f, "randrepeat", (!self.repeat).then(|| "0".to_string()))?;
        optional(f, "randseed", self.seed.map(|seed| seed.to_string()))?;
        optional(f, "nrfiles", self.files.map(|files| files.to_string()))?;
        optional(f, "filesize", self.file_sizes.as_deref().map(split_text))?;
        let says = self.files.is_some() || self.file_sizes.is_some() || self.open_files != 1;
        optional(f, "openfiles", says.then(|| self.open_files.to_string()))?;
        optional(f, "sync", self.sync.then(|| "dsync".to_string()))?;
        optional(f, "write_hint", keys::hint_name(self.write_hint))?;
        let plids: Vec<String> = self.plids.iter().map(u16::to_string).collect();
        optional(f, "plids", (!plids.is_empty()).then(|| plids.join(",")))?;
        optional(f, "numjobs", (self.copies > 1).then(|| self.copies.to_string()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.time == 0 {
            return Ok(());
        }
        let [time, window] = [self.time, self.window].map(duration_text);
        let share = keys::thousandths_text(self.share);
        write!(f, ",latency_target={time},latency_window={window},latency_percentile={share}")?;
        if self.continues { write!(f, ",latency_run=1") } else { Ok(()) }
    }
}

/// Writes rates as the key of bytes or the key of requests in `keys`.
fn write_rates(f: &mut fmt::Formatter<'_>, rates: [Option<Rate>; 3], keys: [&str; 2]) -> fmt::Result {
    let Some(first) = rates.iter().flatten().next() else { return Ok(()) };
    let key = keys[usize::from(matches!(first, Rate::Requests(_)))];
    let texts = rates.map(|rate| match rate {
        None => String::new(),
        Some(Rate::Requests(thousandths)) => keys::thousandths_text(thousandths),
        Some(Rate::Bytes(bytes)) => size_text(bytes),
    });
    let is_one = rates.iter().all(|rate| *rate == rates[0]);
    write!(f, ",{key}={}", if is_one { texts[0].clone() } else { texts.join(",") })
}

fn split_text(shares: &[SizeShare]) -> String {
    let parts: Vec<String> = shares
        .iter()
        .map(|share| format!("{}/{}", size_text(share.bytes), keys::tenths_text(share.permille)))
        .collect();
    parts.join(":")
}

fn write_sizes(f: &mut fmt::Formatter<'_>, sizes: &[Vec<SizeShare>; 3]) -> fmt::Result {
    let join = |parts: Vec<String>, between: &str| parts.join(between);
    if sizes.iter().all(|shares| shares.len() == 1) {
        let texts: Vec<String> = sizes.iter().map(|shares| size_text(shares[0].bytes)).collect();
        let same = texts.iter().all(|text| *text == texts[0]);
        return write!(f, ",bs={}", if same { texts[0].clone() } else { join(texts, ",") });
    }
    let same = sizes.iter().all(|shares| *shares == sizes[0]);
    let texts: Vec<String> =
        if same { vec![split_text(&sizes[0])] } else { sizes.iter().map(|shares| split_text(shares)).collect() };
    write!(f, ",bssplit={}", join(texts, ","))
}

#[cfg(test)]
mod tests;
