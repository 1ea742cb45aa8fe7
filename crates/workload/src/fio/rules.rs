//! Rules between keys: notations that replace each other, defaults, and contradictions.
//!
//! Ignored: values of single keys (`values.rs`), and the drive, which bounds the region (`region.rs`).
//!
//! `rules`, `values`, `keys` and `spec` use each other: parsing a specification applies values and rules to its fields.

use super::groups::unserved;
use super::keys::Key;
use super::pattern::Pattern;
use super::quantity::Amount;
use super::spec::{DEFAULT_REQUESTS, FioSpec, Rate, SizeShare, Strides, place};
use super::values::{HandleChoice, permille, set_splits, switch, tenths_text};
use super::zoned::Zoned;
use crate::request::RequestKind;
use palimpsest_flash::error::{Error, Result};

/// True if the key `name` replaces `other`: the same key, or another notation of that key.
pub fn replaces(name: &str, other: &str) -> bool {
    let rates = [["rate", "rate_iops"], ["rate_min", "rate_iops_min"]];
    let sizes = [["bs", "bssplit"], ["bs", "bsrange"], ["bsrange", "bssplit"]];
    let same = [["rwmixread", "rwmixwrite"], ["n", "io_size"], rates[0], rates[1], sizes[0], sizes[1], sizes[2]];
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
    if let Some(key) =
        ["thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime"].into_iter().find(|name| value(name).is_some())
        && spec.think.time == 0
    {
        return Err(Error::input(place(key), "expected thinktime too, the length of a pause"));
    }
    if spec.think.time > 0 && spec.open_loop {
        let what = "the requests of an open loop arrive at their times; expected no thinktime beside open_loop";
        return Err(Error::input(place("thinktime"), what));
    }
    if value("fill_device").and_then(switch) == Some(true) {
        spec.size = None;
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
    reconcile_devices(spec, |name| value(name).is_some())?;
    if spec.think.after > 0 && value("thinktime_blocks").is_none() {
        spec.think.requests = u64::MAX;
    }
    for (lane, sizes) in spec.block_sizes.iter().enumerate() {
        spec.uniform[lane] &= sizes.len() > 1;
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

/// Applies keys of `zonemode=zbd`.
fn reconcile_zones(spec: &mut FioSpec, is_given: impl Fn(&str) -> bool) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    let has_files = is_given("nrfiles") || is_given("filesize") || spec.paths.len() > 1 || !spec.groups.is_empty();
    match spec.zones {
        Strides { bytes: 0, .. } => return wrong("zonemode", "expected zonesize too, the size of a zone of the drive"),
        Strides { range, skip, .. } if range + skip > 0 => {
            return wrong("zonemode", "zonerange and zoneskip are of strides; expected them without zbd");
        }
        Strides { bytes, .. } if spec.zoned.capacity > bytes => {
            return wrong("zonecapacity", "expected no more than zonesize");
        }
        _ if has_files => return wrong("zonemode", "zones are of a drive; expected one file"),
        _ if spec.check.on => return wrong("verify", "a reset loses the data to compare; expected no zonemode=zbd"),
        _ if spec.open_loop => return wrong("open_loop", "a reset waits for the writes; expected no zonemode=zbd"),
        _ => {}
    }
    let zone = spec.zones.bytes;
    let capacity = if spec.zoned.capacity == 0 { zone } else { spec.zoned.capacity };
    let is_trim = |kind: &RequestKind| *kind == RequestKind::Trim;
    if spec.pattern.kinds.iter().any(is_trim) && spec.sizes(RequestKind::Trim).iter().any(|share| share.bytes != zone) {
        return wrong("bs", "a trim resets a whole zone; expected trims of zonesize, as in bs=,,32m");
    }
    let kinds = spec.pattern.kinds.iter().filter(|kind| !is_trim(kind)).flat_map(|&kind| spec.sizes(kind));
    if kinds.map(|share| share.bytes).max().is_some_and(|largest| largest > capacity) {
        return wrong("bs", "a block is larger than what a zone holds; expected at most zonecapacity or zonesize");
    }
    if spec.waits {
        spec.iodepth = 1;
    }
    Ok(())
}

/// Applies keys of placement handles.
fn reconcile_handles(spec: &mut FioSpec) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    let by_offset = spec.handle_choice == HandleChoice::ByOffset;
    if by_offset && spec.scheme.is_empty() {
        return wrong("plid_select", "expected dp_scheme too, the file with a handle for each range of offsets");
    }
    if !by_offset && !spec.scheme.is_empty() {
        return wrong("dp_scheme", "expected plid_select=scheme too");
    }
    if by_offset && !spec.plids.is_empty() {
        return wrong("plids", "the scheme names the handles; expected no plids, or no plid_select=scheme");
    }
    if by_offset && (spec.files.is_some() || spec.paths.len() > 1 || !spec.groups.is_empty()) {
        return wrong("plid_select", "the offsets of a scheme are those of one file; expected one file");
    }
    let (is_on, has_handles) = (spec.places.take(), by_offset || !spec.plids.is_empty());
    spec.all_handles = is_on == Some(true) && !has_handles;
    if spec.handle_choice == HandleChoice::ByChance && !has_handles && !spec.all_handles {
        return wrong("plid_select", "expected fdp=1, or plids, the handles that writes name");
    }
    if is_on == Some(false) {
        spec.plids.clear();
        spec.scheme.clear();
        spec.handle_choice = HandleChoice::InTurn;
    }
    Ok(())
}

/// Applies keys of places, strides, engines and read-backs.
fn reconcile_devices(spec: &mut FioSpec, is_given: impl Fn(&str) -> bool) -> Result<()> {
    let wrong = |key: &str, what: &str| Err(Error::input(place(key), what));
    reconcile_handles(spec)?;
    spec.zones.strided |= spec.zones.bytes > 0 && !is_given("zonemode");
    if spec.zoned.on {
        return reconcile_zones(spec, is_given);
    }
    if spec.zoned != Zoned::default() {
        return wrong("zonemode", "keys of zones are given; expected zonemode=zbd");
    }
    let has_files = is_given("nrfiles") || is_given("filesize") || spec.paths.len() > 1;
    let zones = &mut spec.zones;
    match zones.strided {
        true if zones.bytes == 0 => return wrong("zonemode", "expected zonesize too, the bytes between two strides"),
        true if spec.pattern.random || has_files => {
            return wrong("zonesize", "only sequential requests of one file are strided; expected rw=read or another");
        }
        true if zones.range == 0 => zones.range = zones.bytes,
        true => {}
        false => *zones = Strides::default(),
    }
    if spec.skip != 0 && (has_files || zones.strided) {
        return wrong("rw", "bytes are added in one file without strides; expected rw=read or another");
    }
    if spec.paths.len() > 1 {
        spec.files.get_or_insert(spec.paths.len() as u64);
    }
    if spec.uniform != [false; 3] && spec.sequential_from.is_some() {
        return wrong("sequential_from", "sizes are ranges; expected bs or bssplit beside it");
    }
    if spec.waits {
        spec.iodepth = 1;
    }
    if spec.check.on && spec.check.reads && spec.open_loop {
        return wrong("verify", "reads wait for the writes, and an open loop waits for none; expected no open_loop");
    }
    Ok(())
}

/// Keys that a workload of file groups leaves to the groups and the mix.
const NOT_OF_GROUPS: &[&str] = &[
    "rw",
    "bs",
    "bssplit",
    "bsrange",
    "filename",
    "verify",
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
