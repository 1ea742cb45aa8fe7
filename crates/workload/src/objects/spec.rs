//! The description of an object workload: `cache=80%,policy=fifo,small=4%`, keys and values with commas between.
//! Sizes and counts are fio's (`16MiB`, `1e6`), shares are percentages.

use super::Objects;
use super::cache::Shape;
use super::commands::Trims;
use super::memory::MemoryPolicy;
use super::policies::{POLICIES, PolicyEntry};
use crate::described::{self, Key, SHARE, TIMES, positive, put, share, times, word};
use crate::fio::quantity::{Amount, amount, size};
use crate::request::SECTOR_BYTES;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::keys::expected_name;

/// An object workload.
#[derive(Clone)]
pub struct ObjectSpec {
    cache: Option<Amount>,
    small: f64,
    threshold: u64,
    region: Vec<u64>,
    logs: Vec<u32>,
    handles: Vec<u16>,
    placed: bool,
    trims: Trims,
    reads: bool,
    admit: f64,
    memory: Option<Amount>,
    memory_policy: MemoryPolicy,
    /// The eviction policy of the logs.
    pub policy: &'static PolicyEntry,
    /// Bytes that the cache writes before the run, in multiples of the drive.
    pub warm: f64,
    /// File of a trace; `None`: generated requests.
    pub trace: Option<String>,
    /// Bytes of a token in a trace of tokens.
    pub token_bytes: u64,
    /// Requests; `None`: all of the trace, or the default.
    pub requests: Option<u64>,
    /// Requests in flight of a closed loop.
    pub depth: Option<u32>,
    /// Objects a second of an open loop.
    pub rate: Option<u64>,
    /// Bytes of all objects at a time, in multiples of the cache.
    pub footprint: f64,
    /// Exponent of the popularity of objects.
    pub zipf: f64,
    /// Sizes of objects, with weights: of all classes, or of each.
    pub sizes: Vec<Vec<(u64, u32)>>,
    /// Weights of the classes in the requests.
    pub mix: Vec<u32>,
    /// Shares of puts and deletes.
    pub puts: f64,
    pub deletes: f64,
    /// New objects for each request.
    pub churn: f64,
    given: Vec<&'static str>,
}

/// Every key, with the expected values and the meaning.
pub const KEYS: &[Key<ObjectSpec>] = &[
    ("cache", "a size or a percentage of the drive, such as 80%", "size of the cache", |spec, text| {
        put(&mut spec.cache, amount(text).map(Some))
    }),
    ("memory", "a size or a percentage of the drive, such as 2%", "size of a cache in memory before the drive", {
        |spec, text| put(&mut spec.memory, amount(text).map(Some))
    }),
    ("memory_policy", "lru or fifo", "evicts objects from the memory", |spec, text| {
        put(&mut spec.memory_policy, word(text, &[("lru", MemoryPolicy::Lru), ("fifo", MemoryPolicy::Fifo)]))
    }),
    ("small", SHARE, "share of the buckets of small objects in the cache; 0%: none", |spec, text| {
        put(&mut spec.small, share(text).filter(|share| *share < 1.0))
    }),
    ("threshold", "1 to 4096 bytes", "largest object in a bucket", |spec, text| {
        put(&mut spec.threshold, size(text).filter(|bytes| (1..=4096).contains(bytes)))
    }),
    ("region", REGION, "size of a region of all logs, or of each, such as 1MiB:4MiB", |spec, text| {
        let fits = |bytes: &u64| *bytes > 0 && bytes.is_multiple_of(4096) && *bytes <= 1 << 30;
        put(&mut spec.region, text.split(':').map(|each| size(each).filter(fits)).collect())
    }),
    ("policy", "an eviction policy", "evicts regions of a log", |spec, text| {
        put(&mut spec.policy, POLICIES.iter().find(|policy| policy.name == text))
    }),
    ("logs", WEIGHTS, "shares of the logs of the classes in the rest of the cache", |spec, text| {
        put(&mut spec.logs, weights(text))
    }),
    ("handles", "numbers such as 1:2", "placement handles of the buckets, if any, and of each log", |spec, text| {
        put(&mut spec.handles, described::handles(text))
    }),
    ("placement", "on or off", "whether writes name placement handles", |spec, text| {
        put(&mut spec.placed, word(text, &[("on", true), ("off", false)]))?;
        // One handle for all replaces handles given before.
        if !spec.placed {
            spec.handles.clear();
        }
        Some(())
    }),
    ("trim", "none, deletes or all", "trims nothing, deleted objects, or also evicted regions", |spec, text| {
        put(&mut spec.trims, word(text, &[("none", Trims::None), ("deletes", Trims::Deletes), ("all", Trims::All)]))
    }),
    ("reclaim", "read or index", "whether a region is read before its eviction to find its keys", |spec, text| {
        put(&mut spec.reads, word(text, &[("read", true), ("index", false)]))
    }),
    ("admit", SHARE, "share of the inserts that the cache admits, at random", |spec, text| {
        put(&mut spec.admit, share(text))
    }),
    ("warm", TIMES, "writes before the run, in multiples of the drive; 0x: none", |spec, text| {
        put(&mut spec.warm, times(text))
    }),
    ("trace", "a file", "trace of object requests", |spec, text| {
        put(&mut spec.trace, (!text.is_empty()).then(|| Some(text.into())))
    }),
    ("token", "1 byte to 16MiB", "bytes of a token in a trace of tokens", |spec, text| {
        put(&mut spec.token_bytes, size(text).filter(|bytes| (1..=16 << 20).contains(bytes)))
    }),
    ("n", "a number from 1 such as 1e6", "object requests", |spec, text| {
        put(&mut spec.requests, positive(text).map(Some))
    }),
    ("iodepth", "1 to 65536", "commands in flight", |spec, text| {
        put(&mut spec.depth, described::depth(text).map(Some))
    }),
    ("rate", "objects a second from 1", "open loop with random arrivals at this rate", |spec, text| {
        put(&mut spec.rate, positive(text).filter(|rate| *rate <= 1_000_000_000).map(Some))
    }),
    ("footprint", TIMES, "bytes of the objects at a time, in multiples of the cache", |spec, text| {
        put(&mut spec.footprint, times(text).filter(|times| *times > 0.0))
    }),
    ("zipf", "0.01 to 10", "exponent of the popularity of objects", |spec, text| {
        put(&mut spec.zipf, text.parse().ok().filter(|theta| (0.01..=10.0).contains(theta)))
    }),
    ("sizes", SIZES, "sizes of objects of all classes, or of each, such as 4m/1+32m/1", |spec, text| {
        let of_class = |text: &str| text.split(':').map(sized).collect::<Option<Vec<_>>>();
        put(&mut spec.sizes, text.split('+').map(of_class).collect())
    }),
    ("mix", WEIGHTS, "requests of the classes", |spec, text| put(&mut spec.mix, weights(text))),
    ("puts", SHARE, "share of puts in the requests", |spec, text| put(&mut spec.puts, share(text))),
    ("deletes", SHARE, "share of deletes in the requests", |spec, text| put(&mut spec.deletes, share(text))),
    ("churn", SHARE, "new objects for each request; the newest is the most popular", |spec, text| {
        put(&mut spec.churn, share(text))
    }),
];

const REGION: &str = "multiples of 4KiB up to 1GiB";
const SIZES: &str = "sizes with weights, such as 200/80:16k/20";
const WEIGHTS: &str = "up to 64 weights such as 50:30:20";
/// Keys of generated requests.
const GENERATED: [&str; 7] = ["footprint", "zipf", "sizes", "mix", "puts", "deletes", "churn"];
/// Keys of the number and the times of requests.
const TIMED: [&str; 3] = ["n", "iodepth", "rate"];
const MOST_LOGS: usize = 64;

fn weights(text: &str) -> Option<Vec<u32>> {
    let all: Vec<u32> = text
        .split(':')
        .map(|each| each.parse().ok().filter(|one| (1..=1_000_000).contains(one)))
        .collect::<Option<_>>()?;
    (all.len() <= MOST_LOGS).then_some(all)
}

fn sized(text: &str) -> Option<(u64, u32)> {
    let (bytes, weight) = text.split_once('/')?;
    let bytes = size(bytes).filter(|bytes| (1..=1 << 30).contains(bytes))?;
    Some((bytes, weight.parse().ok().filter(|one| (1..=1_000_000).contains(one))?))
}

impl ObjectSpec {
    /// Whether `text` describes an object workload: its first key is `cache`.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with("cache=")
    }

    /// The description `base` of a preset with `changes`. A trace replaces the generated requests of the preset, and
    /// their number and times.
    pub fn changed(base: &str, changes: &str) -> String {
        let name = |part: &str| part.split('=').next().unwrap_or_default().trim().to_string();
        let is_played = changes.split(',').any(|part| name(part) == "trace");
        let is_generated = |part: &&str| GENERATED.iter().chain(&TIMED).any(|key| *key == name(part));
        let kept = base.split(',').filter(|part| !(is_played && is_generated(part)));
        kept.chain([changes]).collect::<Vec<_>>().join(",")
    }

    /// Reads a description; a key that is given again replaces the earlier value.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown key, a wrong value, or a key without effect.
    pub fn parse(text: &str) -> Result<Self> {
        let mut spec = ObjectSpec::default();
        let given = described::set(&mut spec, text, KEYS, ("object workloads", "objects"), |key, value| {
            let policies = || POLICIES.iter().map(|policy| policy.name);
            (key == "policy").then(|| expected_name(value, policies(), "policies"))
        })?;
        // Handles that a later `placement=off` replaced are not given.
        spec.given = given.into_iter().filter(|key| *key != "handles" || !spec.handles.is_empty()).collect();
        spec.check()?;
        Ok(spec)
    }

    /// Refuses keys without effect, and numbers that do not match.
    fn check(&self) -> Result<()> {
        let refuse = |key: &str, what: &str| Err(Error::input(key, what));
        let is_given = |key: &str| self.given.contains(&key);
        if self.cache.is_none() {
            return refuse("cache", "the size of the cache is missing; expected cache=80%");
        }
        if self.memory.is_none() && is_given("memory_policy") {
            return refuse("memory_policy", "the cache has no memory; expected memory=2% too");
        }
        if self.small == 0.0 && is_given("threshold") {
            return refuse("threshold", "the cache has no buckets; expected small=4% too");
        }
        if let Some(key) = GENERATED.iter().find(|key| self.trace.is_some() && is_given(key)) {
            return refuse(key, "the key is of generated requests; expected no trace");
        }
        if self.trace.is_none() && is_given("token") {
            return refuse("token", "generated objects have sizes; expected a trace of tokens");
        }
        if self.depth.is_some() && self.rate.is_some() {
            return refuse("iodepth", "an open loop (rate) has no depth; expected one of the two");
        }
        if self.puts + self.deletes > 1.0 {
            return refuse("puts", "puts and deletes are more than all requests; expected at most 100% together");
        }
        if self.mix.len() > 1 && self.mix.len() != self.logs.len() {
            return refuse("mix", "expected a weight for each log");
        }
        for (key, given) in [("region", self.region.len()), ("sizes", self.sizes.len())] {
            if given > 1 && given != self.logs.len() {
                return refuse(key, "expected one for all logs, or one for each log");
            }
        }
        let parts = self.parts();
        if is_given("handles") && (self.handles.len() != parts || !self.placed) {
            let what = format!("expected a handle for each of the {parts} parts of the cache, and placement=on");
            return refuse("handles", &what);
        }
        Ok(())
    }

    /// Refuses keys that `trace` does not read.
    ///
    /// # Errors
    /// [`Error::Input`] with the key.
    pub fn check_trace(&self, trace: &dyn Objects) -> Result<()> {
        let has_tokens = trace.format().is_some_and(|format| format.has_tokens);
        if self.given.contains(&"token") && !has_tokens {
            return Err(Error::input("token", "the objects of this trace have sizes; expected a trace of tokens"));
        }
        Ok(())
    }

    /// Bytes of the regions of each log.
    fn regions(&self) -> Vec<u64> {
        self.region.iter().cycle().take(self.logs.len()).copied().collect()
    }

    /// Parts of the cache: buckets, if any, and logs.
    fn parts(&self) -> usize {
        usize::from(self.small > 0.0) + self.logs.len()
    }

    /// Handles that writes name: 1 for the first part and so on, or those given; 0 without placement.
    pub fn handles(&self) -> Vec<u16> {
        match (self.placed, self.handles.is_empty()) {
            (false, _) => vec![0; self.parts()],
            (true, true) => (1..=self.parts() as u16).collect(),
            (true, false) => self.handles.clone(),
        }
    }

    /// Sizes of the cache on a drive of `drive_bytes`.
    ///
    /// # Errors
    /// [`Error::Input`] if the cache is larger than the drive.
    pub fn shape(&self, drive_bytes: u64) -> Result<Shape> {
        let cache = self.cache.expect("a parsed description has a size");
        let bytes = cache.bytes_of(drive_bytes, SECTOR_BYTES);
        if bytes > drive_bytes {
            let what = format!("the drive has {drive_bytes} bytes; expected a cache that fits, such as 80%");
            return Err(Error::input(format!("cache={cache}"), what));
        }
        let all: u32 = self.logs.iter().sum();
        Ok(Shape {
            bytes,
            small: self.small,
            threshold: self.threshold,
            region_bytes: self.regions(),
            logs: self.logs.iter().map(|&log| f64::from(log) / f64::from(all)).collect(),
            handles: self.handles(),
            placed: self.placed,
            trims: self.trims,
            reads: self.reads,
            admit: self.admit,
            memory: (self.memory.map_or(0, |memory| memory.bytes_of(drive_bytes, 1)), self.memory_policy),
        })
    }
}

impl Default for ObjectSpec {
    fn default() -> Self {
        ObjectSpec {
            cache: None,
            small: 0.04,
            threshold: 2048,
            region: vec![16 << 20],
            logs: vec![1],
            handles: Vec::new(),
            placed: true,
            trims: Trims::None,
            reads: true,
            admit: 1.0,
            memory: None,
            memory_policy: MemoryPolicy::Lru,
            policy: &POLICIES[0],
            warm: 2.0,
            trace: None,
            token_bytes: 128 << 10,
            requests: None,
            depth: None,
            rate: None,
            footprint: 4.0,
            zipf: 0.9,
            sizes: vec![vec![(200, 80), (16 << 10, 20)]],
            mix: vec![1],
            puts: 0.0,
            deletes: 0.0,
            churn: 0.0,
            given: Vec::new(),
        }
    }
}
