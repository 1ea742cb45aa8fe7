//! The keys of a specification: a table of names, expected values, and setters.
//!
//! `keys` and `spec` use each other: a specification is parsed by the table of keys, and a key sets a field of the
//! specification. Ignored: keys that cannot change a simulation.

use super::distribution::{self, Distribution};
use super::groups::{GroupLayout, parse_groups, parse_mix, unserved};
use super::pattern::Pattern;
use super::quantity::{Amount, Units, amount, count, duration, repeated_amount, size};
use super::spec::{DEFAULT_REQUESTS, FioSpec, Generator, Pacing, Rate, SizeShare, place};
use crate::request::{Lifetime, SECTOR_BYTES};
use crate::trace::MAX_REQUEST_BYTES;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::{KIB, Nanos};

/// Most files of a workload.
pub const MOST_FILES: u64 = 1 << 24;

/// One key.
pub struct Key {
    /// Name in errors and listings.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Expected values, for messages and listings.
    pub expected: &'static str,
    /// Stores a value; fails for an unexpected value.
    pub set: fn(&mut FioSpec, &str) -> std::result::Result<(), ()>,
}

const fn key(
    name: &'static str,
    aliases: &'static [&'static str],
    expected: &'static str,
    set: fn(&mut FioSpec, &str) -> std::result::Result<(), ()>,
) -> Key {
    Key { name, aliases, expected, set }
}

/// Every key.
pub const KEYS: &[Key] = &[
    key("rw", &["readwrite"], EXPECTED_PATTERNS, |spec, text| put(&mut spec.pattern, Pattern::named(text))),
    key(
        "bs",
        &["blocksize"],
        "one to three sizes (reads, writes, trims), each a multiple of 512 up to 1GiB, as in 4k or 4k,8k,4k",
        set_sizes,
    ),
    key(
        "bssplit",
        &[],
        "SIZE/PERCENT:... adding up to 100, as in 4k/50:16k/49.5:1m/0.5; up to three with commas (reads, writes, \
         trims)",
        set_splits,
    ),
    key(
        "size",
        &[],
        "a size above 0 such as 1GiB, a multiple of 512, or a percentage of the drive such as 50%",
        |spec, text| put(&mut spec.size, whole_sectors(text).filter(|&size| !is_zero(size)).map(Some)),
    ),
    key(
        "offset",
        &[],
        "a multiple of 512 bytes such as 1GiB, or a percentage of the drive such as 25%",
        |spec, text| put(&mut spec.offset, whole_sectors(text)),
    ),
    key("n", &["number_ios"], "a number of requests from 1 such as 250000, 100k or 1e6", |spec, text| {
        put(&mut spec.requests, positive(text).map(Some))
    }),
    key(
        "io_size",
        &["io_limit"],
        "a size above 0 such as 8GiB, or a percentage of the size such as 200%",
        |spec, text| put(&mut spec.io_size, repeated_amount(text).filter(|&size| !is_zero(size)).map(Some)),
    ),
    key("loops", &[], "a whole number from 1", |spec, text| put(&mut spec.loops, positive(text).map(Some))),
    key("iodepth", &[], "a whole number from 1 to 65536", |spec, text| {
        put(&mut spec.iodepth, positive(text).filter(|&depth| depth <= 65_536).map(|depth| depth as u32))
    }),
    key("random_distribution", &[], distribution::EXPECTED, |spec, text| {
        put(&mut spec.distribution, Distribution::parse(text))
    }),
    key("rwmixread", &[], MIX, |spec, text| put(&mut spec.read_permille, permille(text))),
    key("rwmixwrite", &[], MIX, |_, text| permille(text).map(drop).ok_or(())),
    key("rate_iops", &[], RATE_IOPS, |spec, text| put(&mut spec.rates, requests_a_second(text))),
    key("rate", &[], RATE, |spec, text| put(&mut spec.rates, bytes_a_second(text))),
    key("rate_iops_min", &[], RATE_IOPS, |spec, text| put(&mut spec.floor.rates, requests_a_second(text))),
    key("rate_min", &["ratemin"], RATE, |spec, text| put(&mut spec.floor.rates, bytes_a_second(text))),
    key("rate_cycle", &["ratecycle"], "a number of milliseconds from 1", |spec, text| {
        put(&mut spec.floor.cycle, positive(text).and_then(|milliseconds| milliseconds.checked_mul(1_000_000)))
    }),
    key(
        "open_loop",
        &[],
        "nothing, 0 or 1: whether requests arrive at the rate, whatever the number in flight",
        |spec, text| put(&mut spec.open_loop, switch(text)),
    ),
    key("rate_process", &[], "linear or poisson", |spec, text| {
        let pacing = [("linear", Pacing::Linear), ("poisson", Pacing::Poisson)];
        put(&mut spec.pacing, pacing.iter().find(|(name, _)| *name == text).map(|&(_, pacing)| pacing))
    }),
    key("runtime", &[], TIME, |spec, text| {
        put(&mut spec.runtime, duration(text).map(|runtime| Some(runtime).filter(|&runtime| runtime > 0)))
    }),
    key("time_based", &[], "nothing, 0 or 1", |spec, text| put(&mut spec.time_based, switch(text))),
    key("startdelay", &["start_delay"], TIME, |spec, text| put(&mut spec.start_delay, duration(text))),
    key("thinktime", &[], MICROSECONDS, |spec, text| put(&mut spec.think.time, micros(text))),
    key("thinktime_blocks", &[], "a number of requests from 1", |spec, text| {
        put(&mut spec.think.requests, positive(text))
    }),
    key("thinktime_blocks_type", &[], "complete or issue: when a request counts", |spec, text| {
        put(&mut spec.think.of_issued, matches!(text, "complete" | "issue").then_some(text == "issue"))
    }),
    key("latency_target", &[], MICROSECONDS, |spec, text| {
        put(&mut spec.target.time, micros(text).filter(|&time| time > 0))
    }),
    key("latency_window", &[], MICROSECONDS, |spec, text| {
        put(&mut spec.target.window, micros(text).filter(|&time| time > 0))
    }),
    key("latency_percentile", &[], "a percentage from 0 to 100 with at most three decimals", |spec, text| {
        put(&mut spec.target.share, thousandths(text).filter(|&share| share <= 100_000))
    }),
    key("latency_run", &[], "nothing, 0 or 1: whether the job continues with the depth found", |spec, text| {
        put(&mut spec.target.continues, switch(text))
    }),
    key("blockalign", &["ba"], "a multiple of 512 bytes up to 1GiB, as in 4k", |spec, text| {
        put(&mut spec.block_align, block(text).map(Some))
    }),
    key("fsync", &[], "after how many writes to flush, from 1, or 0 for never", |spec, text| {
        put(&mut spec.writes_per_flush, count(text).map(|writes| Some(writes).filter(|&writes| writes > 0)))
    }),
    key(
        "percentage_random",
        &[],
        "one to three percentages from 0 to 100 with at most one decimal (reads, writes, trims)",
        |spec, text| put(&mut spec.random_permille, three(text, 1000, permille)),
    ),
    key("sequential_from", &[], "a multiple of 512 bytes up to 1GiB, as in 64k", |spec, text| {
        put(&mut spec.sequential_from, block(text).map(Some))
    }),
    key(
        "sequential_size",
        &[],
        "a size above 0 such as 1GiB, a multiple of 512, or a percentage of the drive such as 25%",
        |spec, text| put(&mut spec.sequential_size, whole_sectors(text).filter(|&size| !is_zero(size)).map(Some)),
    ),
    key(
        "randrepeat",
        &["allrandrepeat"],
        "nothing, 0 or 1: whether passes of loops and io_size repeat each other; every run repeats for its seed",
        |spec, text| put(&mut spec.repeat, switch(text)),
    ),
    key("random_generator", &[], "tausworthe, tausworthe64 or lfsr", |spec, text| {
        put(&mut spec.generator, GENERATORS.iter().find(|(name, _)| *name == text).map(|&(_, generator)| generator))
    }),
    key("kb_base", &[], "1024 (k is 1024 and Ki 1000, as in fio) or 1000 (k is 1000 and Ki 1024)", |_, text| {
        Units::of(text).map(drop).ok_or(())
    }),
    key("randseed", &[], "a whole number below 2^64", |spec, text| put(&mut spec.seed, count(text).map(Some))),
    key("nrfiles", &[], "a number of files from 1 to 16777216", |spec, text| {
        put(&mut spec.files, positive(text).filter(|&files| files <= MOST_FILES).map(Some))
    }),
    key(
        "filesize",
        &[],
        "a size such as 1GiB or SIZE/PERCENT:... adding up to 100, multiples of 512; or a percentage of the drive",
        set_file_sizes,
    ),
    key("openfiles", &[], "a number of files from 1 to 65536", |spec, text| {
        put(&mut spec.open_files, positive(text).filter(|&files| files <= 65_536).map(|files| files as u32))
    }),
    key("filegroups", &[], EXPECTED_GROUPS, |spec, text| put(&mut spec.groups, parse_groups(text, MOST_FILES))),
    key("mix", &[], EXPECTED_MIX, |spec, text| put(&mut spec.mix, parse_mix(text, permille))),
    key("filelayout", &[], "whole, lockstepK@SIZE or randomK@SIZE, for all filegroups", |spec, text| {
        put(&mut spec.file_layout, GroupLayout::parse(text).map(Some))
    }),
    key("dwell", &[], "requests from 1 until other files are hot, for all classes of the mix", |spec, text| {
        put(&mut spec.dwell, positive(text).map(Some))
    }),
    key("norandommap", &[], "nothing, 0 or 1: whether random requests are independent draws", |spec, text| {
        put(&mut spec.no_map, switch(text))
    }),
    key("sync", &[], "none, sync or dsync, or 0 or 1: whether writes have FUA", |spec, text| {
        let names = [("none", false), ("0", false), ("sync", true), ("dsync", true), ("1", true)];
        put(&mut spec.sync, names.iter().find(|(name, _)| *name == text).map(|&(_, sync)| sync))
    }),
    key("write_hint", &[], "none, short, medium, long or extreme: the expected lifetime of writes", |spec, text| {
        put(&mut spec.write_hint, WRITE_HINTS.iter().find(|(name, _)| *name == text).map(|&(_, lifetime)| lifetime))
    }),
    key(
        "plids",
        &["fdp_pli"],
        "placement handles below 65536 that writes name in turn, as in 1 or 0,3",
        |spec, text| {
            let handle = |text: &str| count(text).and_then(|handle| u16::try_from(handle).ok());
            put(&mut spec.plids, text.split(',').map(handle).collect())
        },
    ),
    key("numjobs", &[], "a whole number from 1 to 1024", |spec, text| {
        put(&mut spec.copies, positive(text).filter(|&copies| copies <= MOST_JOBS))
    }),
];

/// Most jobs of a workload, copies included.
pub const MOST_JOBS: u64 = 1024;

const GENERATORS: &[(&str, Generator)] =
    &[("tausworthe", Generator::Short), ("tausworthe64", Generator::Long), ("lfsr", Generator::Lfsr)];

/// Lifetimes of the hints of fio and Linux. Only their order counts, so the numbers of pages are decided here.
const WRITE_HINTS: &[(&str, Lifetime)] = &[
    ("none", Lifetime::Unknown),
    ("short", Lifetime::Pages(1)),
    ("medium", Lifetime::Pages(1 << 8)),
    ("long", Lifetime::Pages(1 << 16)),
    ("extreme", Lifetime::Pages(1 << 24)),
];

/// The name of a hint; `None` for the default.
pub fn hint_name(lifetime: Lifetime) -> Option<String> {
    WRITE_HINTS[1..].iter().find(|&&(_, other)| other == lifetime).map(|(name, _)| (*name).to_string())
}

/// Keys whose value is rounded down to sectors.
const WHOLE_SECTORS: &[&str] = &["size"];

/// `value` of `key` with sizes and numbers in plain bytes or ones instead of fio's units; a `size` in whole sectors,
/// because `1MiB` is 1,000,000 bytes.
pub fn in_bytes(key: &Key, value: &str, units: Units) -> String {
    match key.name {
        name if WHOLE_SECTORS.contains(&name) => units.without(value, SECTOR_BYTES),
        "bs" | "bssplit" | "offset" | "io_size" | "rate" | "rate_min" | "blockalign" | "filesize" => {
            units.without(value, 1)
        }
        "sequential_from" | "sequential_size" => units.without(value, 1),
        // fio reads these numbers with the units of sizes.
        "n" | "iodepth" | "loops" | "rate_iops" | "rate_iops_min" | "rate_cycle" | "fsync" => units.without(value, 1),
        "nrfiles" | "openfiles" | "randseed" => units.without(value, 1),
        _ => value.to_string(),
    }
}

/// The name of a generator; `None` for the default.
pub fn generator_name(generator: Generator) -> Option<String> {
    let named = GENERATORS[1..].iter().find(|&&(_, other)| other == generator);
    named.map(|(name, _)| (*name).to_string())
}

const EXPECTED_PATTERNS: &str =
    "one of read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite";
const EXPECTED_GROUPS: &str = "NAME/FILES/SIZE/LAYOUT:..., each layout whole, lockstepK@SIZE or randomK@SIZE, as in \
                               mail/48/96k/lockstep4@4k:index/110/8k/whole";
const EXPECTED_MIX: &str = "PERCENT/read|write/GROUP/SIZE|whole[/hotK@REQUESTS]:... adding up to 100, as in \
                            30/read/mail/whole/hot8@50:70/write/index/4k";
const TIME: &str = "simulated time in seconds, or with a unit, as in 60, 10m or 500ms";
const MICROSECONDS: &str = "a time such as 50us, 1ms or, in microseconds, 50";
const RATE_IOPS: &str = "requests a second from 0.001 to 1e9, as in 20000, 20k or 3.15; \
                         up to three with commas (reads, writes, trims), empty without a cap";
const RATE: &str =
    "bytes a second from 1 to 1PiB, as in 100m; up to three with commas (reads, writes, trims), empty without a cap";
const MIX: &str = "a percentage from 0 to 100 with at most one decimal";

/// The key called `name`.
pub fn find(name: &str) -> Result<&'static Key> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name || key.aliases.contains(&name)) {
        return Ok(key);
    }
    let similarity = |key: &Key| strsim::jaro_winkler(key.name, name);
    let nearest = KEYS.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    let what = match nearest.filter(|key| similarity(key) > 0.75) {
        Some(key) => format!("unknown key; did you mean {}? (expected {})", key.name, key.expected),
        None => format!("unknown key; expected one of {}", known.join(", ")),
    };
    Err(Error::input(place(name), what))
}

/// True if the key `name` replaces `other`: the same key, or another notation of that key.
pub fn replaces(name: &str, other: &str) -> bool {
    let rates = [["rate", "rate_iops"], ["rate_min", "rate_iops_min"]];
    let same = [["bs", "bssplit"], ["rwmixread", "rwmixwrite"], ["n", "io_size"], rates[0], rates[1]];
    // The reverse is a contradiction, because an open loop has no depth.
    let loops = (name, other) == ("open_loop", "iodepth");
    loops || name == other || same.iter().any(|pair| pair.contains(&name) && pair.contains(&other))
}

/// Applies rules between keys: defaults, and contradictions.
pub fn reconcile(spec: &mut FioSpec, given: &[(&'static Key, String)]) -> Result<()> {
    let value = |name: &str| given.iter().find(|(key, _)| key.name == name).map(|(_, value)| value.as_str());
    if let Some(writes) = value("rwmixwrite").and_then(permille) {
        if value("rwmixread").is_some() && spec.read_permille + writes != 1000 {
            let (reads, writes) = (tenths_text(spec.read_permille), tenths_text(writes));
            let what = format!("expected rwmixread + rwmixwrite = 100, found {reads} + {writes}");
            return Err(Error::input(place("rwmixwrite"), what));
        }
        spec.read_permille = 1000 - writes;
    }
    let are_given = |names: [&str; 2]| names.iter().all(|name| value(name).is_some());
    reconcile_rates(spec, value("iodepth").is_some(), are_given(["rate", "rate_iops"]))?;
    reconcile_floor(spec, value("rate_cycle").is_some(), are_given(["rate_min", "rate_iops_min"]))?;
    let of_search = ["latency_window", "latency_percentile", "latency_run"];
    reconcile_target(spec, of_search.into_iter().find(|name| value(name).is_some()))?;
    reconcile_groups(spec, given)?;
    if let Some(key) = ["thinktime_blocks", "thinktime_blocks_type"].into_iter().find(|name| value(name).is_some())
        && spec.think.time == 0
    {
        return Err(Error::input(place(key), "expected thinktime too, the length of a pause"));
    }
    if spec.think.time > 0 && spec.open_loop {
        let what = "the requests of an open loop arrive at their times; expected no thinktime beside open_loop";
        return Err(Error::input(place("thinktime"), what));
    }
    if spec.io_size.is_some() && spec.loops.is_some() {
        return Err(Error::input(place("loops"), "io_size is given too; expected only one of the two"));
    }
    if spec.sequential_size.is_some() && spec.sequential_from.is_none() {
        let what = "requests of sequential_from and more use this region; expected sequential_from too";
        return Err(Error::input(place("sequential_size"), what));
    }
    if let (Some(_), Some(splits)) = (value("bs"), value("bssplit")) {
        // As in fio the split wins, in any order.
        set_splits(spec, splits).expect("it was set before");
    }
    if let (None, None, Some([only])) = (spec.files, value("size"), spec.file_sizes.as_deref()) {
        // One file, as in fio without `nrfiles`: the region.
        spec.size = Some(Amount::Bytes(only.bytes));
        spec.file_sizes = None;
    }
    if spec.time_based {
        if spec.runtime.is_none() {
            return Err(Error::input(place("time_based"), "expected runtime too, which ends the workload"));
        }
        (spec.io_size, spec.loops) = (None, None);
    }
    if spec.io_size.is_none() && spec.loops.is_none() && spec.runtime.is_none() {
        spec.requests.get_or_insert(DEFAULT_REQUESTS);
    }
    Ok(())
}

/// Keys that a workload of file groups leaves to the groups and the mix.
const NOT_OF_GROUPS: &[&str] = &[
    "rw",
    "bs",
    "bssplit",
    "size",
    "random_distribution",
    "rwmixread",
    "rwmixwrite",
    "blockalign",
    "percentage_random",
    "sequential_from",
    "sequential_size",
    "norandommap",
    "random_generator",
    "nrfiles",
    "filesize",
    "openfiles",
];

/// Applies `filegroups` and `mix`, which need each other and exclude other keys of places and sizes.
fn reconcile_groups(spec: &mut FioSpec, given: &[(&'static Key, String)]) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    match (spec.groups.is_empty(), spec.mix.is_empty()) {
        (true, true) if spec.file_layout.is_some() => return wrong("filelayout", "expected filegroups too"),
        (true, true) if spec.dwell.is_some() => return wrong("dwell", "expected filegroups and mix too"),
        (true, true) => return Ok(()),
        (true, false) => return wrong("mix", "expected filegroups too, whose files the requests address"),
        (false, true) => return wrong("filegroups", "expected mix too, the requests to the files"),
        (false, false) => {}
    }
    if let Some((key, _)) = given.iter().find(|(key, _)| NOT_OF_GROUPS.contains(&key.name)) {
        return wrong(key.name, "filegroups and mix are given, which decide this; expected only one of the two");
    }
    if spec.rates.iter().any(Option::is_some) && !spec.open_loop {
        return wrong("mix", "the mix decides reads and writes, not their rates; expected open_loop beside a rate");
    }
    if let Some(what) = unserved(&spec.groups, &spec.mix) {
        return wrong("mix", &what);
    }
    if let Some(layout) = spec.file_layout.take() {
        spec.groups.iter_mut().for_each(|group| group.layout = layout);
    }
    if let Some(dwell) = spec.dwell.take() {
        spec.mix.iter_mut().filter_map(|class| class.hot.as_mut()).for_each(|(_, requests)| *requests = dwell);
    }
    let bytes = spec.groups.iter().map(|group| group.files * group.bytes).sum();
    (spec.size, spec.pattern) = (Some(Amount::Bytes(bytes)), Pattern::named("randrw").expect("a pattern of fio"));
    let smallest = spec.groups.iter().map(|group| group.bytes).chain(spec.mix.iter().filter_map(|class| class.bytes));
    let smallest = smallest.min().expect("there is a group");
    spec.block_sizes = std::array::from_fn(|_| vec![SizeShare { bytes: smallest, permille: 1000 }]);
    Ok(())
}

/// Checks rates: one notation, and an open loop with one rate and without a depth.
fn reconcile_rates(spec: &FioSpec, has_depth: bool, has_both: bool) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    match spec.rates {
        _ if has_both => wrong("rate", "rate_iops is given too; expected only one of the two"),
        _ if !spec.open_loop => Ok(()),
        [None, None, None] => {
            wrong("open_loop", "expected rate_iops or rate too, which gives requests their arrival times")
        }
        rates if rates.iter().any(|rate| *rate != rates[0]) => {
            wrong("open_loop", "all requests of an open loop arrive at one rate; expected one, as in rate_iops=1000")
        }
        _ if has_depth => wrong(
            "iodepth",
            "open_loop is given too, with any number in flight; expected one of the two (open_loop=0: the rate is a \
             cap)",
        ),
        _ => Ok(()),
    }
}

/// Checks least rates: one notation, and none above the cap of the same direction.
fn reconcile_floor(spec: &FioSpec, has_cycle: bool, has_both: bool) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    let rates = spec.floor.rates;
    let exceeds = |(least, most): (&Option<Rate>, &Option<Rate>)| match (least, most) {
        (Some(Rate::Requests(least)), Some(Rate::Requests(most))) => least > most,
        (Some(Rate::Bytes(least)), Some(Rate::Bytes(most))) => least > most,
        _ => false,
    };
    match rates.iter().flatten().next() {
        _ if has_both => wrong("rate_min", "rate_iops_min is given too; expected only one of the two"),
        None if has_cycle => {
            wrong("rate_cycle", "the least rate is averaged over this time; expected rate_min or rate_iops_min too")
        }
        Some(least) if rates.iter().zip(&spec.rates).any(exceeds) => {
            let key = if matches!(least, Rate::Bytes(_)) { "rate_min" } else { "rate_iops_min" };
            wrong(key, "the cap is lower, so the job would end; expected at most the rate of the same direction")
        }
        _ => Ok(()),
    }
}

/// Checks the search for a depth. `beside` is a key that only a search reads.
fn reconcile_target(spec: &FioSpec, beside: Option<&str>) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    match (spec.target.time, beside) {
        (0, Some(key)) => wrong(key, "expected latency_target too, the longest response time"),
        (0, None) => Ok(()),
        _ if spec.open_loop => {
            wrong("latency_target", "an open loop has no depth to search; expected no open_loop beside it")
        }
        _ if spec.target.window == 0 => {
            wrong("latency_target", "expected latency_window too, the time for which each depth is tried")
        }
        _ => Ok(()),
    }
}

/// A time; a plain number is microseconds.
fn micros(text: &str) -> Option<Nanos> {
    if text.ends_with(|last: char| last.is_ascii_digit()) { count(text)?.checked_mul(1000) } else { duration(text) }
}

fn requests_a_second(text: &str) -> Option<[Option<Rate>; 3]> {
    let rate = |text: &str| thousandths(text).filter(|rate| (1..=1_000_000_000_000).contains(rate));
    three(text, None, |text| rate(text).map(|rate| Some(Rate::Requests(rate))))
}

fn bytes_a_second(text: &str) -> Option<[Option<Rate>; 3]> {
    let rate = |text: &str| size(text).filter(|rate| (1..=1 << 50).contains(rate));
    three(text, None, |text| rate(text).map(|rate| Some(Rate::Bytes(rate))))
}

fn put<T>(field: &mut T, value: Option<T>) -> std::result::Result<(), ()> {
    *field = value.ok_or(())?;
    Ok(())
}

fn switch(text: &str) -> Option<bool> {
    matches!(text, "" | "0" | "1").then_some(text != "0")
}

fn positive(text: &str) -> Option<u64> {
    count(text).filter(|&value| value > 0)
}

/// Tenths of a percent: `18.8` is 188. fio allows whole percentages only; published statistics have a decimal.
fn permille(text: &str) -> Option<u32> {
    let value = text.strip_suffix('%').unwrap_or(text);
    let (whole, tenths) = match value.split_once('.') {
        Some((whole, tenths)) if tenths.len() == 1 => (whole, count(tenths)?),
        Some(_) => return None,
        None => (value, 0),
    };
    let value = count(whole).filter(|&whole| whole <= 100)? * 10 + tenths;
    (value <= 1000).then_some(value as u32)
}

/// Thousandths: `3.15` is 3150, `20k` is 20,000,000. fio allows whole rates only; rates of traces are small.
fn thousandths(text: &str) -> Option<u64> {
    match text.split_once('.') {
        Some((whole, decimals)) if matches!(decimals.len(), 1..=3) && decimals.bytes().all(|b| b.is_ascii_digit()) => {
            let scale = 10u64.pow(3 - decimals.len() as u32);
            count(whole)?.checked_mul(1000)?.checked_add(count(decimals)? * scale)
        }
        _ => count(text)?.checked_mul(1000),
    }
}

/// Thousandths as [`thousandths`] reads them.
pub fn thousandths_text(value: u64) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Tenths of a percent as [`permille`] reads them.
pub fn tenths_text(permille: u32) -> String {
    match permille % 10 {
        0 => (permille / 10).to_string(),
        tenths => format!("{}.{tenths}", permille / 10),
    }
}

fn block(text: &str) -> Option<u64> {
    size(text).filter(|&bytes| bytes > 0 && bytes <= MAX_REQUEST_BYTES && bytes.is_multiple_of(SECTOR_BYTES))
}

fn whole_sectors(text: &str) -> Option<Amount> {
    amount(text).filter(|amount| !matches!(amount, Amount::Bytes(bytes) if !bytes.is_multiple_of(SECTOR_BYTES)))
}

fn is_zero(amount: Amount) -> bool {
    matches!(amount, Amount::Bytes(0) | Amount::Millionths(0))
}

/// Up to three values with commas: an empty value is `default`, missing values repeat the last.
fn three<T: Clone>(text: &str, default: T, read: impl Fn(&str) -> Option<T>) -> Option<[T; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 || text.is_empty() {
        return None;
    }
    let values: Option<Vec<T>> =
        parts.iter().map(|part| if part.is_empty() { Some(default.clone()) } else { read(part) }).collect();
    let values = values?;
    Some(std::array::from_fn(|at| values[at.min(values.len() - 1)].clone()))
}

fn set_sizes(spec: &mut FioSpec, text: &str) -> std::result::Result<(), ()> {
    let single = |bytes| vec![SizeShare { bytes, permille: 1000 }];
    put(&mut spec.block_sizes, three(text, 4 * KIB, block).map(|sizes| sizes.map(single)))
}

fn set_splits(spec: &mut FioSpec, text: &str) -> std::result::Result<(), ()> {
    let default = vec![SizeShare { bytes: 4 * KIB, permille: 1000 }];
    put(&mut spec.block_sizes, three(text, default, |text| split(text, block)))
}

fn set_file_sizes(spec: &mut FioSpec, text: &str) -> std::result::Result<(), ()> {
    let bytes = |text: &str| size(text).filter(|&bytes| bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES));
    match amount(text) {
        Some(part @ Amount::Millionths(_)) if !is_zero(part) => put(&mut spec.size, Some(Some(part))),
        _ => put(&mut spec.file_sizes, split(text, bytes).map(Some)),
    }
}

/// `4k/50:16k/50`; sizes without a percentage share the rest in whole percentages, the last one with the remainder.
fn split(text: &str, bytes: impl Fn(&str) -> Option<u64>) -> Option<Vec<SizeShare>> {
    const MOST_SIZES: usize = 64;
    let mut shares: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(permille(share)?) };
        shares.push((bytes(size)?, share));
    }
    let given: u32 = shares.iter().filter_map(|(_, share)| *share).sum();
    let left = 1000u32.checked_sub(given)?;
    let open = shares.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if shares.len() > MOST_SIZES || (open == 0 && left > 0) {
        return None;
    }
    let mut unfilled = open;
    let fill = |(bytes, share): (u64, Option<u32>)| {
        let permille = share.unwrap_or_else(|| {
            unfilled -= 1;
            let each = left / open / 10 * 10;
            if unfilled == 0 { left - each * (open - 1) } else { each }
        });
        SizeShare { bytes, permille }
    };
    Some(shares.into_iter().map(fill).collect())
}
