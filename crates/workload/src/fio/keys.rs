//! The acting keys of a specification: a table of names, expected values, and setters.
//!
//! `keys` and `spec` use each other: a specification is parsed by the table of keys, and a key sets a field of the
//! specification. Ignored: fio's other keys, which `inert.rs` lists, and rules between keys (`rules.rs`).

use super::distribution::{self, Distribution};
use super::groups::{GroupLayout, parse_groups, parse_mix};
use super::inert;
use super::quantity::{Units, count, duration, repeated_amount};
use super::spec::{ExitScope, FioSpec, Generator, Pacing, place};
use super::values::*;
use crate::request::{Lifetime, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};

/// Most files of a workload.
pub const MOST_FILES: u64 = 1 << 24;
/// Most jobs of a workload, copies included.
pub const MOST_JOBS: u64 = 1024;

/// One key.
pub struct Key {
    /// Name in errors and listings.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Expected values, for messages and listings.
    pub expected: &'static str,
    /// Stores a value; fails for an unexpected value.
    pub set: fn(&mut FioSpec, &str) -> Set,
}

const fn key(
    name: &'static str,
    aliases: &'static [&'static str],
    expected: &'static str,
    set: fn(&mut FioSpec, &str) -> Set,
) -> Key {
    Key { name, aliases, expected, set }
}

/// A setter that stores the result of a reader in a field.
macro_rules! to {
    ($($field:ident).+, $read:expr) => {
        |spec, text| put(&mut spec.$($field).+, $read(text))
    };
}

/// Every key.
pub const KEYS: &[Key] = &[
    key("rw", &["readwrite"], PATTERNS, set_pattern),
    key("rw_sequencer", &[], "sequential or identical", to!(identical, |text| one_of(text, SEQUENCERS))),
    key("bs", &["blocksize"], SIZES, to!(block_sizes, sizes)),
    key("bsrange", &["blocksize_range"], RANGES, set_ranges),
    key("bs_unaligned", &["blocksize_unaligned"], SWITCH, to!(unaligned, switch)),
    key("bssplit", &[], SPLITS, set_splits),
    key("size", &[], REGION, to!(size, some_region)),
    key("fill_device", &["fill_fs"], SWITCH, |_, text| switch(text).map(drop).ok_or(())),
    key("offset", &["fileoffset"], OFFSET, to!(offset, whole_sectors)),
    key("offset_increment", &[], OFFSET, to!(offset_increment, whole_sectors)),
    key("n", &["number_ios"], "a number of requests from 1 such as 250000, 100k or 1e6", to!(requests, some_positive)),
    key(
        "io_size",
        &["io_limit"],
        IO_SIZE,
        to!(io_size, |text| repeated_amount(text).filter(|&size| !is_zero(size)).map(Some)),
    ),
    key("loops", &[], "a whole number from 1", to!(loops, some_positive)),
    key("iodepth", &[], DEPTH, to!(iodepth, depth)),
    key("iodepth_low", &[], DEPTH, to!(refill.low, depth)),
    key("iodepth_batch", &["iodepth_batch_submit"], BATCH, to!(refill.submit, batch)),
    key("iodepth_batch_complete", &["iodepth_batch_complete_min"], BATCH, to!(refill.complete, batch)),
    key("ioengine", &[], inert::ENGINE, to!(waits, inert::waits)),
    key("random_distribution", &[], distribution::EXPECTED, to!(distribution, Distribution::parse)),
    key("random_sequence_stride", &[], SWITCH, to!(stride, switch)),
    key("rwmixread", &[], MIX, to!(read_permille, permille)),
    key("rwmixwrite", &[], MIX, |_, text| permille(text).map(drop).ok_or(())),
    key("rate_iops", &[], RATE_IOPS, to!(rates, requests_a_second)),
    key("rate", &[], RATE, to!(rates, bytes_a_second)),
    key("rate_iops_min", &[], RATE_IOPS, to!(floor.rates, requests_a_second)),
    key("rate_min", &["ratemin"], RATE, to!(floor.rates, bytes_a_second)),
    key(
        "rate_cycle",
        &["ratecycle"],
        "a number of milliseconds from 1",
        to!(floor.cycle, |text| positive(text).and_then(|milliseconds| milliseconds.checked_mul(1_000_000))),
    ),
    key(
        "open_loop",
        &[],
        "nothing, 0 or 1: whether requests arrive at the rate, whatever the number in flight",
        to!(open_loop, switch),
    ),
    key("rate_process", &[], "linear or poisson", to!(pacing, |text| one_of(text, PACINGS))),
    key(
        "runtime",
        &["timeout"],
        TIME,
        to!(runtime, |text| duration(text).map(|runtime| Some(runtime).filter(|&runtime| runtime > 0))),
    ),
    key("time_based", &[], SWITCH, to!(time_based, switch)),
    key("startdelay", &["start_delay"], DELAY, set_delay),
    key("ramp_time", &[], TIME, to!(ramp, duration)),
    key("thinktime", &[], MICROSECONDS, to!(think.time, micros)),
    key("thinktime_blocks", &[], "a number of requests from 1", to!(think.requests, positive)),
    key(
        "thinktime_blocks_type",
        &[],
        "complete or issue: when a request counts",
        to!(think.of_issued, |text| one_of(text, &[("complete", false), ("issue", true)])),
    ),
    key("thinktime_iotime", &[], TIME, to!(think.after, duration)),
    key("latency_target", &[], MICROSECONDS, to!(target.time, some_micros)),
    key("latency_window", &[], MICROSECONDS, to!(target.window, some_micros)),
    key(
        "latency_percentile",
        &[],
        "a percentage from 0 to 100 with at most three decimals",
        to!(target.share, |text| thousandths(text).filter(|&share| share <= 100_000)),
    ),
    key(
        "latency_run",
        &[],
        "nothing, 0 or 1: whether the job continues with the depth found",
        to!(target.continues, switch),
    ),
    key("blockalign", &["ba"], BLOCK, to!(block_align, some_block)),
    key(
        "fsync",
        &["fdatasync"],
        "after how many writes to flush, from 1, or 0 for never",
        to!(writes_per_flush, |text| count(text).map(|writes| Some(writes).filter(|&writes| writes > 0))),
    ),
    key("end_fsync", &[], "nothing, 0 or 1: whether a flush follows the last write", to!(end_flush, switch)),
    key(
        "percentage_random",
        &[],
        "one to three percentages from 0 to 100 with at most one decimal (reads, writes, trims)",
        to!(random_permille, |text| three(text, 1000, permille)),
    ),
    key("sequential_from", &[], BLOCK, to!(sequential_from, some_block)),
    key("sequential_size", &[], REGION, to!(sequential_size, some_region)),
    key(
        "randrepeat",
        &["allrandrepeat"],
        "nothing, 0 or 1: whether passes of loops and io_size repeat each other; every run repeats for its seed",
        to!(repeat, switch),
    ),
    key("random_generator", &[], "tausworthe, tausworthe64 or lfsr", to!(generator, |text| one_of(text, GENERATORS))),
    key("kb_base", &[], "1024 (k is 1024 and Ki 1000, as in fio) or 1000 (k is 1000 and Ki 1024)", |_, text| {
        Units::of(text).map(drop).ok_or(())
    }),
    key("randseed", &[], "a whole number below 2^64", to!(seed, |text| count(text).map(Some))),
    key("filename", &[], "names of files or devices, as in /dev/sda or a:b", to!(paths, paths)),
    key("filename_format", &[], "a name with $jobname, $jobnum or $filenum", to!(name_format, some_text)),
    key("directory", &[], "folders, as in /mnt", to!(folders, paths)),
    key(
        "nrfiles",
        &["nr_files"],
        "a number of files from 1 to 16777216",
        to!(files, |text| positive(text).filter(|&files| files <= MOST_FILES).map(Some)),
    ),
    key(
        "filesize",
        &[],
        "a size such as 1GiB or SIZE/PERCENT:... adding up to 100, multiples of 512; or a percentage of the drive",
        set_file_sizes,
    ),
    key("openfiles", &[], "a number of files from 1 to 65536", to!(open_files, depth)),
    key("filegroups", &[], GROUPS, to!(groups, |text| parse_groups(text, MOST_FILES))),
    key("mix", &[], CLASSES, to!(mix, |text| parse_mix(text, permille))),
    key(
        "filelayout",
        &[],
        "whole, lockstepK@SIZE or randomK@SIZE, for all filegroups",
        to!(file_layout, |text| GroupLayout::parse(text).map(Some)),
    ),
    key(
        "dwell",
        &[],
        "requests from 1 until other files are hot, for all classes of the mix",
        to!(dwell, some_positive),
    ),
    key("norandommap", &[], "nothing, 0 or 1: whether random requests are independent draws", to!(no_map, switch)),
    key("zonesize", &[], BYTES, to!(zones.bytes, some_sectors)),
    key("zonerange", &[], BYTES, to!(zones.range, some_sectors)),
    key("zoneskip", &[], "a multiple of 512 bytes such as 1m", to!(zones.skip, sectors)),
    key("zonemode", &[], "none, strided or zbd", set_zone_mode),
    key("zonecapacity", &[], BYTES, to!(zoned.capacity, some_sectors)),
    key("max_open_zones", &[], OPEN_ZONES, to!(zoned.max_open, zones)),
    key("job_max_open_zones", &[], OPEN_ZONES, to!(zoned.job_max_open, zones)),
    key("read_beyond_wp", &[], SWITCH, to!(zoned.beyond, switch)),
    key("zone_reset_threshold", &[], FRACTION, to!(zoned.threshold, fraction)),
    key("zone_reset_frequency", &[], FRACTION, to!(zoned.frequency, fraction)),
    key("sync", &[], "none, sync or dsync, or 0 or 1: whether writes have FUA", to!(sync, |text| one_of(text, SYNCS))),
    key("writefua", &[], SWITCH, to!(sync, switch)),
    key(
        "write_hint",
        &[],
        "none, short, medium, long or extreme: the expected lifetime of writes",
        to!(write_hint, |text| one_of(text, WRITE_HINTS)),
    ),
    key("fdp", &[], SWITCH, to!(places, |text| switch(text).map(Some))),
    key(
        "dataplacement",
        &["data_placement"],
        "none or fdp",
        to!(places, |text| one_of(text, &[("none", Some(false)), ("fdp", Some(true))])),
    ),
    key("plids", &["fdp_pli"], "placement handles below 65536 that writes name, as in 1 or 0,3-5", to!(plids, handles)),
    key(
        "plid_select",
        &["fdp_pli_select"],
        "roundrobin, random or scheme",
        to!(handle_choice, |text| one_of(text, HANDLE_CHOICES)),
    ),
    key("dp_scheme", &[], SCHEME, to!(scheme, scheme)),
    key("verify", &[], inert::VERIFY, to!(check.on, inert::verifies)),
    key("do_verify", &[], SWITCH, to!(check.reads, switch)),
    key("verify_backlog", &[], "a number of writes from 1, or 0 for all", to!(check.backlog, count)),
    key("verify_backlog_batch", &[], "a number of reads from 1, or 0 for all", to!(check.batch, count)),
    key("stonewall", &["wait_for_previous"], SWITCH, to!(order.stonewall, switch)),
    key("wait_for", &[], "the name of an earlier job", to!(order.after, some_text)),
    key("new_group", &[], SWITCH, to!(order.new_group, switch)),
    key("exitall", &[], SWITCH, to!(order.exits, switch)),
    key("exit_what", &[], "group, stonewall or all", to!(order.scope, |text| one_of(text, EXIT_SCOPES))),
    key("flow", &[], "a weight up to 1000", to!(flow.weight, |text| count(text).filter(|&weight| weight <= 1000))),
    key("flow_id", &[], "a whole number", to!(flow.id, count)),
    key("flow_sleep", &[], MICROSECONDS, to!(flow.sleep, micros)),
    key(
        "numjobs",
        &[],
        "a whole number from 1 to 1024",
        to!(copies, |text| positive(text).filter(|&copies| copies <= MOST_JOBS)),
    ),
];

const SEQUENCERS: &[(&str, bool)] = &[("sequential", false), ("identical", true)];
const PACINGS: &[(&str, Pacing)] = &[("linear", Pacing::Linear), ("poisson", Pacing::Poisson)];
const GENERATORS: &[(&str, Generator)] =
    &[("tausworthe", Generator::Short), ("tausworthe64", Generator::Long), ("lfsr", Generator::Lfsr)];
const SYNCS: &[(&str, bool)] = &[("none", false), ("0", false), ("sync", true), ("dsync", true), ("1", true)];
/// Ends of other jobs with a job.
pub const EXIT_SCOPES: &[(&str, ExitScope)] =
    &[("group", ExitScope::Group), ("stonewall", ExitScope::Phase), ("all", ExitScope::All)];

/// Lifetimes of the hints of fio and Linux. Only their order counts, so the numbers of pages are decided here.
const WRITE_HINTS: &[(&str, Lifetime)] = &[
    ("none", Lifetime::Unknown),
    ("short", Lifetime::Pages(1)),
    ("medium", Lifetime::Pages(1 << 8)),
    ("long", Lifetime::Pages(1 << 16)),
    ("extreme", Lifetime::Pages(1 << 24)),
];

/// The name of a value in a table; `None` for the default, which is first.
pub fn name_in<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> Option<String> {
    table[1..].iter().find(|(_, other)| other == value).map(|(name, _)| (*name).to_string())
}

/// The name of a hint; `None` for the default.
pub fn hint_name(lifetime: Lifetime) -> Option<String> {
    name_in(WRITE_HINTS, &lifetime)
}

/// The name of a generator; `None` for the default.
pub fn generator_name(generator: Generator) -> Option<String> {
    name_in(GENERATORS, &generator)
}

/// Keys whose value is rounded down to sectors.
const WHOLE_SECTORS: &[&str] = &["size"];

/// Keys whose numbers have fio's units: sizes, and the counts that fio reads like sizes.
const WITH_UNITS: &str = "rw bs bsrange bssplit offset offset_increment io_size rate rate_min blockalign filesize \
                          sequential_from sequential_size zonesize zonerange zoneskip n iodepth loops rate_iops \
                          rate_iops_min rate_cycle fsync nrfiles openfiles randseed verify_backlog \
                          verify_backlog_batch";

/// `value` of `key` without expressions in parentheses, and with sizes and numbers in plain bytes or ones instead of
/// fio's units; a `size` in whole sectors, because `1MiB` is 1,000,000 bytes.
pub fn in_bytes(key: &Key, value: &str, units: Units) -> String {
    let grain = match key.name {
        name if WHOLE_SECTORS.contains(&name) => SECTOR_BYTES,
        name if WITH_UNITS.split(' ').any(|other| other == name) => 1,
        _ => return value.to_string(),
    };
    units.without(&units.evaluated(value).unwrap_or_else(|| value.to_string()), grain)
}

const OPEN_ZONES: &str = "a number of zones, or 0 for no limit";
const SCHEME: &str =
    "a file with at most 32 lines FIRST, END, HANDLE (offsets in bytes); without a file these, as in 0,10g,0:10g,20g,1";
const FRACTION: &str = "a fraction from 0 to 1 with at most three decimals, as in 0.8";
const SWITCH: &str = "nothing, 0 or 1";
const PATTERNS: &str = "one of read, write, trim, rw, trimwrite, or these with rand (randrw); perhaps with bytes to \
                        add (read:-8k) or requests for an address (randread:8)";
const SIZES: &str =
    "one to three sizes (reads, writes, trims), each a multiple of 512 up to 1GiB, as in 4k or 4k,8k,4k";
const RANGES: &str = "one to three ranges of such sizes, as in 4k-16k or 4k-16k,8k-8k";
const SPLITS: &str = "SIZE/PERCENT:... adding up to 100, as in 4k/50:16k/49.5:1m/0.5; up to three with commas (reads, \
                      writes, trims)";
const REGION: &str = "a size above 0 such as 1GiB, a multiple of 512, or a percentage of the drive such as 50%";
const OFFSET: &str = "a multiple of 512 bytes such as 1GiB, or a percentage of the drive such as 25%";
const IO_SIZE: &str = "a size above 0 such as 8GiB, or a percentage of the size such as 200%";
const BYTES: &str = "a multiple of 512 bytes above 0 such as 1m";
const BLOCK: &str = "a multiple of 512 bytes up to 1GiB, as in 4k";
const DEPTH: &str = "a whole number from 1 to 65536";
const BATCH: &str = "a whole number up to 65536";
const GROUPS: &str = "NAME/FILES/SIZE/LAYOUT:..., each layout whole, lockstepK@SIZE or randomK@SIZE, as in \
                      mail/48/96k/lockstep4@4k:index/110/8k/whole";
const CLASSES: &str = "PERCENT/read|write/GROUP/SIZE|whole[/hotK@REQUESTS]:... adding up to 100, as in \
                       30/read/mail/whole/hot8@50:70/write/index/4k";
const TIME: &str = "simulated time in seconds, or with a unit, as in 60, 10m or 500ms";
const DELAY: &str = "simulated time in seconds, or with a unit, as in 60 or 500ms, or a range such as 1s-5s";
const MICROSECONDS: &str = "a time such as 50us, 1ms or, in microseconds, 50";
const RATE_IOPS: &str = "requests a second from 0.001 to 1e9, as in 20000, 20k or 3.15; \
                         up to three with commas (reads, writes, trims), empty without a cap";
const RATE: &str =
    "bytes a second from 1 to 1PiB, as in 100m; up to three with commas (reads, writes, trims), empty without a cap";
const MIX: &str = "a percentage from 0 to 100 with at most one decimal";

/// The key called `name`, if a simulation can act on it.
pub fn acting(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

/// The key called `name`.
///
/// # Errors
/// [`Error::Input`] for a key without effect, a refused key and an unknown key, with the reason or the nearest key.
pub fn find(name: &str) -> Result<&'static Key> {
    if let Some(key) = acting(name) {
        return Ok(key);
    }
    let what = match (inert::accepted(name), inert::refused(name, "")) {
        (true, _) => "the key has no effect in a simulation; expected a specification without the key".into(),
        (_, Some(why)) => format!("{why}; expected a specification without the key"),
        _ => match nearest(name).and_then(acting) {
            Some(key) => format!("unknown key; did you mean {}? (expected {})", key.name, key.expected),
            None => format!("unknown key; {}", inert::EXPECTED),
        },
    };
    Err(Error::input(place(name), what))
}

/// The most similar name of a key that acts or has no effect, if similar.
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = KEYS.iter().map(|key| key.name).chain(inert::accepted_names());
    let similar = names.map(|known| (strsim::jaro_winkler(known, name), known));
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(similarity, _)| *similarity > 0.75).map(|(_, known)| known)
}
