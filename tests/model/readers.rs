//! Each key states its readers (`Key::readers`, `Key::needs`, `Entry::keys`); runs here verify the statement. A key
//! that a drive accepts must make a difference in some run, and a key that a drive refuses must make none: in the
//! result, in the wear of any block, in any histogram.

use crate::drives::{build, entry as entry_of, needed, plain, with};
use crate::workload::Mix;
use crate::zones::planned;
use palimpsest_lab::config::schema::{self, Known};
use palimpsest_lab::config::unread::{Reading, readers_on, reading};
use palimpsest_lab::config::{Resolved, resolve};
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::keys::{Need, ValueType};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::host::request::{Arrivals, Directives, Request, Section, Source};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::states::NotKept;
use palimpsest_lab::run::{Fidelity, Load, Options, Warmup, run_from};
use palimpsest_lab::sim::drive::Command;
use palimpsest_lab::units::Nanos;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

/// Bursts of requests with idle time between them, or a queue that is always full.
struct Bursts {
    commands: Box<dyn Iterator<Item = Command> + Send>,
    number: u64,
    arrivals: Arrivals,
}

impl Source for Bursts {
    fn next_request(&mut self) -> Result<Option<Request>> {
        self.number += 1;
        let arrival: Nanos = self.number / 12 * 60_000_000;
        let owner = (self.number / 3 % 5) as u32;
        let directives = Directives { owner, queue: owner, ..Directives::NONE };
        Ok(self.commands.next().map(|command| Request::new(arrival, command.with(directives))))
    }

    fn place(&self) -> String {
        "bursts".into()
    }

    fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    fn sections(&self) -> Vec<Section> {
        (0..5).map(|number| Section { name: number.to_string(), copies: 1, depth: None }).collect()
    }
}

/// The length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Length {
    Short,
    Long,
    /// A long run after a run-in, without which a key has no effect.
    AfterRunIn,
}

/// A hash of everything that a run shows of the drive of `resolved`, except the configuration; of the error if there is
/// no result.
fn shown(resolved: &Resolved, seed: u64, length: Length) -> u64 {
    let long = length != Length::Short;
    let mut mix = Mix::new(&resolved.drive, seed);
    let commands = (0..if long { 1500 } else { 260 }).map(|_| mix.draw());
    let commands = planned(&resolved.drive, entry_of(&resolved.drive.ftl.name), commands);
    let arrivals = if seed.is_multiple_of(2) { Arrivals::Open } else { Arrivals::Closed { depth: 8 } };
    let endless = commands.clone().into_iter().cycle();
    let mut source = Bursts { commands: Box::new(commands.into_iter()), number: 0, arrivals };
    let mut endless = Bursts { commands: Box::new(endless), number: 0, arrivals };
    let options = Options {
        workload: "bursts".into(),
        precondition: Precondition::parse(if long { "fill:100%,random:3x" } else { "fill:100%,random:0.5x" })
            .expect("a state"),
        requests: None,
        warmup: if length == Length::AfterRunIn { Warmup::Auto } else { Warmup::Requests(0) },
        fidelity: Fidelity::Timed,
        payload: Payload::Tag,
        seed,
        series: false,
        operations: None,
        strict: false,
    };
    let mut hasher = DefaultHasher::new();
    let load = Load { source: &mut source, endless: Some(&mut endless), until: None };
    match run_from(resolved, load, &options, &mut |_| ControlFlow::Continue(()), &mut NotKept) {
        Ok(mut outcome) => {
            outcome.summary.config = serde_json::Value::Null;
            outcome.summary.ftl.clear();
            let mut figures = serde_json::to_value(&outcome.summary).expect("a result is text");
            // Conditions repeat the configuration.
            figures.as_object_mut().expect("a result is a table").remove("basis");
            figures.to_string().hash(&mut hasher);
            serde_json::to_string(&outcome.detail).expect("so are series").hash(&mut hasher);
        }
        Err(error) => error.to_string().hash(&mut hasher),
    }
    hasher.finish()
}

/// A small drive of the layer `entry`.
fn base(entry: &Entry) -> Vec<String> {
    let shape = plain(2, if entry.is_file_system() { 48 } else { 24 }, 8, entry.least_subpages().max(4));
    let more = ["ssd.planes_per_die=2", "ssd.over_provisioning=80%", "part.nop=4", "ftl.wear_threshold=1"];
    needed(entry, &with(&shape, &more))
}

const CACHE: &[&str] = &[
    "part.cell=tlc",
    "part.nop=1",
    "ftl.streams=2",
    "fdp.isolation=initial",
    "part.t_program=900us",
    "part.t_program_slc=70us",
    "part.t_read_slc=20us",
    "part.endurance=300",
    "ssd.over_provisioning=150%",
];
/// The same of QLC, whose cells may have a code.
const CACHE_OF_QLC: &[&str] = &[
    "part.cell=qlc",
    "part.pages_per_block=48",
    "part.nop=1",
    "ftl.streams=2",
    "part.t_program=900us",
    "part.t_program_slc=70us",
    "part.t_read_slc=20us",
    "part.endurance=300",
    "ssd.over_provisioning=400%",
];
/// More log blocks than the fixed share of the cache has.
const CACHE_OF_LOGS: &[&str] =
    &["part.cell=tlc", "part.nop=1", "ftl.log_blocks=6", "ftl.slc_fixed=2 blocks", "ssd.over_provisioning=300%"];
const ERRORS: &[&str] = &[
    "ecc.strength=8",
    "part.ber_fresh=0.02%",
    "ecc.t_retries=[\"50us\", \"60us\"]",
    "ecc.retry_rates=[\"50%\", \"20%\"]",
    "ftl.gc_idle=1ms",
];

/// Read errors of old data, which differ in cells.
const AGED: &[&str] = &[
    "ecc.strength=20",
    "part.ber_fresh=0.02%",
    "ecc.t_retries=[\"50us\", \"60us\"]",
    "ecc.retry_rates=[\"50%\", \"20%\"]",
    "ecc.data_age=1h",
    "part.ber_retention_early=100%",
    "ecc.temperature=55",
];

const ENERGIES: &[&str] = &["part.e_read=20uJ", "part.e_program=40uJ", "part.e_erase=90uJ"];

/// Settings with which a key makes a difference on these small drives, beside the conditions of the key.
const SCENES: &[(&str, &[&str])] = &[
    ("ftl.gc_start", &["ftl.gc_pace=block", "ftl.gc_stop=3 blocks"]),
    ("ftl.gc_stop", &["ftl.gc_pace=block"]),
    ("part.e_read_high", ENERGIES),
    ("part.e_program_high", ENERGIES),
    ("part.e_program_high", &["part.e_program=40uJ", "part.order=strict", "part.pages_per_block=2"]),
    ("part.e_read_words", ENERGIES),
    ("ftl.gc_background", &["ftl.gc_stop=3 blocks"]),
    ("ftl.gc_idle", &["ftl.gc_stop=3 blocks"]),
    ("ftl.gc_idle_stop", &["ftl.gc_idle_stop=2 blocks"]),
    ("ftl.gc_idle", ERRORS),
    ("ftl.patrol", ERRORS),
    ("ftl.classifier", &["ftl.streams=3"]),
    ("ftl.classifier", &["fdp.handles=3", "fdp.isolation=initial", "ssd.over_provisioning=200%"]),
    ("ftl.hot_below", &["ftl.streams=3"]),
    ("ftl.hot_below", &["fdp.handles=3", "fdp.isolation=initial", "ssd.over_provisioning=200%"]),
    ("ftl.slc_cache", CACHE),
    ("ftl.slc_fixed", CACHE),
    ("ftl.slc_full", CACHE),
    ("ftl.slc_cache", CACHE_OF_QLC),
    ("ftl.slc_full", CACHE_OF_LOGS),
    ("part.t_read_slc", CACHE),
    ("part.t_program_slc", CACHE),
    ("part.endurance_slc", CACHE),
    ("part.t_read_slc", CACHE_OF_QLC),
    ("part.t_program_slc", CACHE_OF_QLC),
    ("ecc.strength", ERRORS),
    ("ecc.t_retries", ERRORS),
    ("ecc.retry_rates", ERRORS),
    ("ecc.t_retention", ERRORS),
    ("ecc.t_retention", &["ecc.data_age=90d"]),
    ("ecc.data_age", ERRORS),
    ("ecc.temperature", AGED),
    ("part.ber_retention_early", AGED),
    ("part.t_retention_early", AGED),
    ("part.retention_temperature", AGED),
    ("part.retention_energy", AGED),
    ("part.ber_layers", ERRORS),
    ("ecc.disturb_reads", ERRORS),
    ("ecc.refresh_retries", ERRORS),
    ("faults.wear_out", &["part.endurance=1"]),
    ("ftl.gc_stop", &["ftl.gc_start=2 blocks", "ftl.gc_stop=2 blocks"]),
    ("ftl.victim_free", &["ftl.allocation_threshold=0%", "ssd.over_provisioning=200%"]),
    ("ftl.wear_leveling", &["ssd.over_provisioning=200%", "ftl.gc_stop=4 blocks"]),
    ("ftl.wear_threshold", &["ssd.over_provisioning=200%", "ftl.gc_stop=4 blocks"]),
    ("ftl.low_pages_first", &["part.cell=mlc", "part.order=low-low-high"]),
    ("ftl.rain", &["ssd.over_provisioning=300%"]),
    ("ftl.moved_to", &["ftl.streams=2", "fs.discard=block"]),
    ("fs.gc_gain", &["fs.gc_start=20%", "ssd.over_provisioning=300%"]),
    ("ftl.reuse_empty", &["ftl.threshold_pu=OP/1", "ftl.threshold_window=0", "ssd.over_provisioning=900%"]),
    ("zns.max_active", &["zns.max_open=1"]),
    ("zns.zrwa", &["buffer.flush=free"]),
    ("zns.zrwa_granularity", &["zns.zrwa=64KiB", "buffer.flush=free"]),
    ("zns.zrwa_zones", &["zns.zrwa=64KiB", "buffer.flush=free", "buffer.size=1MiB"]),
    ("fdp.shares", &["fdp.handles=2", "ssd.over_provisioning=200%"]),
    ("buffer.timeout", &["buffer.ack=program"]),
    ("sim.suspend_limit", &["part.t_program=20ms", "part.t_erase=60ms", "sim.scheduler=read-first"]),
    ("host.arbitration", &["host.classes=low:urgent:high:low:medium"]),
    ("host.weights", &["host.classes=high:low:medium", "host.burst=0"]),
    ("part.cache_pages", &["part.cell=tlc", "part.pages_per_block=9", "part.nop=1", "part.t_read_words=[]"]),
];

/// Values of keys of types that have no general ones.
const VALUES: &[(&str, &[&str])] = &[
    ("faults.power_cuts", &["every:150"]),
    ("faults.die_failure", &["at:40@1"]),
    ("ecc.t_retries", &["[\"500us\", \"600us\"]"]),
    ("ecc.retry_rates", &["[\"90%\", \"80%\"]"]),
    ("part.ber_layers", &["[\"20%\", \"100%\"]"]),
    ("part.t_read_types", &["[\"60us\", \"70us\", \"90us\"]"]),
    ("part.t_read_words", &["[\"90us\", \"91us\", \"92us\", \"93us\", \"94us\", \"95us\", \"96us\", \"97us\"]"]),
    ("part.e_read_words", &["[\"1uJ\", \"2uJ\", \"3uJ\", \"4uJ\", \"5uJ\", \"6uJ\", \"7uJ\", \"8uJ\"]"]),
    ("ftl.hot_below", &["64KiB", "4KiB"]),
    ("ftl.wom_spare", &["90%", "95%", "80%", "70%", "60%"]),
    ("ftl.threshold_pu", &["0 blocks", "1 block"]),
    ("ftl.threshold_cap", &["0 blocks", "1 block"]),
    ("ftl.victim", &["fifo", "d-choices:1", "windowed:2", "cost-benefit"]),
    ("fdp.shares", &["[\"80%\", \"20%\"]"]),
    ("zns.zone_dies", &["0"]),
    ("zns.zone_capacity", &["256KiB", "1MiB", "512KiB"]),
    ("zns.zone_size", &["1MiB", "768KiB"]),
    ("zns.zrwa", &["64KiB", "32KiB"]),
    ("zns.zrwa_granularity", &["4KiB", "64KiB"]),
    ("zns.max_open", &["1", "2"]),
    ("zns.max_active", &["1", "2", "5"]),
    ("host.burst", &["4", "2", "0"]),
    ("host.queues", &["2", "3"]),
    ("host.classes", &["low:urgent", "high:low:medium"]),
    ("host.weights", &["1:1:9", "1:9:1"]),
];

/// Keys of trace readers, which runs do not read.
const OF_TRACES: &[&str] = &["host.fold", "host.compact"];

/// Whether runs here can verify the readers of `key`. Descriptions of the part and of the drive's size are no features.
fn is_tested(key: &Known) -> bool {
    let describes = ["ssd", "part"].contains(&key.split().0);
    let stated = !key.readers.is_empty() || !key.needs.is_empty();
    key.name != "ftl.name" && (!describes || stated) && !OF_TRACES.contains(&key.name)
}

/// Values of `key`.
fn values(key: &Known) -> Vec<String> {
    let of = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
    if let Some((_, own)) = VALUES.iter().find(|(name, _)| *name == key.name) {
        return of(own);
    }
    match key.value_type {
        ValueType::Flag => of(&["true", "false"]),
        ValueType::Choice(_) | ValueType::Names(_) | ValueType::Notation(_) => of(&key.value_type.words()),
        ValueType::Count { min, .. } => {
            [2, 3, 1, 8, 40, 1000, 0].iter().filter(|&&number| number >= min).map(u64::to_string).collect()
        }
        ValueType::Time => of(&["70us", "1ms", "3us", "0ns", "30ms"]),
        ValueType::Age => of(&["90d", "3h", "0ns"]),
        ValueType::Bytes { min, .. } => {
            let sizes = [65536u64, 131_072, 16_384, 1024, 512, 64, 1 << 20, 0];
            sizes.iter().filter(|&&size| size >= min).map(|size| format!("{size}B")).collect()
        }
        ValueType::Ratio { .. } | ValueType::ShareOrNotation(_) => of(&["20%", "1%", "50%", "100%", "0%"]),
        ValueType::ShareOr(word) => of(&["50%", "100%", word]),
        ValueType::Rate => of(&["50MB/s", "unlimited"]),
        ValueType::Energy => of(&["3uJ", "0J"]),
        ValueType::Blocks => of(&["2 blocks", "3 blocks", "1 block", "0 blocks"]),
        ValueType::Factor => of(&["2", "0.5"]),
        _ => Vec::new(),
    }
}

/// Settings that meet the condition `need`.
fn meeting(need: &'static str) -> Vec<String> {
    let need = Need::parse(need);
    let texts: Vec<String> = match need.exceeds {
        true => values(schema::known(need.key)),
        false => need.operand.split('|').map(String::from).collect(),
    };
    texts.iter().map(|text| format!("{}={text}", need.key)).collect()
}

/// `scenes`, each with every setting that meets `needs`.
fn meeting_all(scenes: Vec<Vec<String>>, needs: &[&'static str]) -> Vec<Vec<String>> {
    needs.iter().fold(scenes, |scenes, need| {
        let each = |scene: &Vec<String>| meeting(need).iter().map(|one| with(scene, &[one])).collect::<Vec<_>>();
        scenes.iter().flat_map(each).collect()
    })
}

/// Drives of the layer `entry` on which `key` should be read.
fn scenes(entry: &Entry, key: &Known) -> Vec<Vec<String>> {
    let base = base(entry);
    let own = SCENES.iter().filter(|(name, _)| *name == key.name).map(|(_, settings)| with(&base, settings));
    let mut scenes: Vec<Vec<String>> = own.collect();
    scenes.push(base);
    let scenes = meeting_all(scenes, key.needs);
    match key.readers {
        [] => scenes,
        _ => readers_on(key, entry).flat_map(|reader| meeting_all(scenes.clone(), reader.needs)).collect(),
    }
}

fn resolved(entry: &Entry, settings: &[String]) -> Option<Resolved> {
    resolve("model.toml", Some(entry.name), settings, &|_| Ok(String::new())).ok()
}

/// Results of runs of one layer, by their length, seed and settings.
#[derive(Default)]
struct Runs(BTreeMap<(Length, u64, Vec<String>), Option<u64>>);

impl Runs {
    fn of(&mut self, entry: &Entry, settings: &[String], length: Length, seed: u64) -> Option<u64> {
        let mut sorted = settings.to_vec();
        sorted.sort();
        let run = || resolved(entry, settings).map(|drive| shown(&drive, seed, length));
        *self.0.entry((length, seed, sorted)).or_insert_with(run)
    }

    /// A value of `key` that makes a difference on the drive of `scene`; `None` if there is none.
    fn difference(&mut self, entry: &Entry, scene: &[String], key: &Known, length: Length) -> Option<String> {
        self.difference_of(entry, scene, key, length, usize::MAX)
    }

    /// As [`Self::difference`], of the first `most` values.
    fn difference_of(
        &mut self,
        entry: &Entry,
        scene: &[String],
        key: &Known,
        length: Length,
        most: usize,
    ) -> Option<String> {
        values(key).into_iter().take(most).find(|value| {
            let changed = with(scene, &[&format!("{}={value}", key.name)]);
            [0, 1].into_iter().any(|seed| {
                let after = self.of(entry, &changed, length, seed);
                after.is_some() && after != self.of(entry, scene, length, seed)
            })
        })
    }
}

/// Whether the configuration says that the drive of `settings` reads `key`.
fn says(entry: &Entry, settings: &[String], key: &Known) -> Option<bool> {
    let drive = resolved(entry, settings)?;
    let value = |name: &str| drive.key(name).expect("a key of the schema").value.clone();
    Some(reading(key, entry, &value) == Reading::Read)
}

/// Whether the drive of `scene` can have another value of `key`.
fn has_choice(entry: &Entry, scene: &[String], key: &Known) -> bool {
    let Some(drive) = resolved(entry, scene) else { return false };
    let present = &drive.key(key.name).expect("a key of the schema").value;
    let other = |value: &String| {
        let other = resolved(entry, &with(scene, &[&format!("{}={value}", key.name)]));
        other.is_some_and(|other| other.key(key.name).expect("a key of the schema").value != *present)
    };
    says(entry, scene, key) == Some(true) && values(key).iter().any(other)
}

/// Checks the statement of `key` on the layer `entry`: returns whether the key makes a difference there, or the
/// contradiction. If the layer does not read the key, `most` values are tried.
fn verdict(runs: &mut Runs, entry: &Entry, key: &Known, most: usize) -> std::result::Result<bool, String> {
    let scenes = scenes(entry, key);
    let mut possible = Vec::new();
    for scene in scenes.iter().filter(|scene| has_choice(entry, scene, key)) {
        if runs.difference(entry, scene, key, Length::Short).is_some() {
            return Ok(true);
        }
        possible.push(scene);
    }
    if !possible.is_empty() {
        let longer = if key.name == "buffer.start" { Length::AfterRunIn } else { Length::Long };
        return match possible.iter().any(|scene| runs.difference(entry, scene, key, longer).is_some()) {
            true => Ok(true),
            false => Err(format!("{}: {} is accepted, and makes no difference", entry.name, key.name)),
        };
    }
    // Scenes of other layers, and the small drive by itself.
    let base = base(entry);
    let of_key = SCENES.iter().filter(|(name, _)| *name == key.name);
    let mut others: Vec<Vec<String>> = of_key.map(|(_, more)| with(&base, more)).collect();
    others.push(base);
    let refused = others.iter().filter(|scene| says(entry, scene, key) == Some(false));
    match refused.filter_map(|scene| runs.difference_of(entry, scene, key, Length::Short, most)).next() {
        Some(value) => Err(format!("{}: {} = {value} is refused, and makes a difference", entry.name, key.name)),
        None => Ok(false),
    }
}

/// Checks each key of `chosen` on the layers `entries`; all keys that made a difference anywhere.
fn check(
    entries: impl Iterator<Item = &'static Entry>,
    most: usize,
    chosen: impl Fn(&Entry, &Known) -> bool,
) -> Vec<&'static str> {
    let (only, one) = (std::env::var("MODEL_FTL").ok(), std::env::var("MODEL_KEY").ok());
    let (mut wrong, mut live) = (Vec::new(), Vec::new());
    for entry in entries.filter(|entry| only.as_ref().is_none_or(|only| only == entry.name)) {
        let mut runs = Runs::default();
        let refusal = build(entry.name, &base(entry)).err();
        assert!(refusal.is_none(), "{}: {refusal:?}", entry.name);
        let keys = schema::keys().iter().filter(|key| is_tested(key) && chosen(entry, key));
        for key in keys.filter(|key| one.as_ref().is_none_or(|one| one == key.name)) {
            match verdict(&mut runs, entry, key, most) {
                Ok(differs) => live.extend(differs.then_some(key.name)),
                Err(what) => wrong.push(what),
            }
        }
        println!("{} runs of {}", runs.0.len(), entry.name);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    live
}

/// Whether some layers read `key` and others do not, so that several list it.
fn is_shared(key: &Known) -> bool {
    key.layers.as_ref().is_some_and(|layers| layers.len() > 2)
}

#[test]
fn layers_read_the_shared_keys_that_they_list() {
    check(REGISTRY.iter(), 2, |_, key| is_shared(key));
}

#[test]
fn file_systems_read_the_shared_keys_below() {
    check(ENTRIES.iter().step_by(3), 2, |_, key| is_shared(key));
}

/// The other keys, each on all its layers, or on the first one if the layer does not matter.
#[test]
fn other_keys_are_read() {
    let is_own = |entry: &Entry, key: &Known| match &key.layers {
        Some(layers) => layers.contains(&entry.name),
        None => entry.name == REGISTRY[0].name,
    };
    for entries in [REGISTRY, ENTRIES] {
        check(entries.iter(), 2, |entry, key| !is_shared(key) && is_own(entry, key));
    }
}

#[test]
#[ignore = "minutes"]
fn long_keys_are_read_where_they_say_so() {
    let live =
        [check(REGISTRY.iter(), usize::MAX, |_, _| true), check(ENTRIES.iter(), usize::MAX, |_, _| true)].concat();
    let dead = schema::keys().iter().filter(|key| is_tested(key) && !live.contains(&key.name));
    let dead: Vec<&str> = dead.map(|key| key.name).collect();
    let is_partial = ["MODEL_FTL", "MODEL_KEY"].iter().any(|name| std::env::var_os(name).is_some());
    println!("{} keys made a difference: {}", live.len(), live.join(", "));
    assert!(is_partial || dead.is_empty(), "no layer reads {}", dead.join(", "));
}
