//! Whole runs of drives of every layer with every feature, many of which end early. Every run keeps the conservation
//! laws: the summary, the series and the histograms agree. No figure depends on the stored contents, on the recorded
//! operations or on the checks.
//!
//! Ignored: served drives, which `run/served/tests.rs` of the lab runs.

use crate::drives::{Limits, Shape, build, pick, with};
use crate::filesystem::{READ_ERRORS, any_shape};
use crate::harness::{for_each_seed_of, is_partial, note};
use crate::power::workload;
use palimpsest_lab::config::resolve;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::metrics::recorder::Series;
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Outcome, Phase, Warmup, Window, run};
use palimpsest_lab::sim::drive::Command;
use palimpsest_lab::sim::faults::FAULTS;
use palimpsest_lab::units::Nanos;
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs that ended with the drive's life, and those of them with results.
static ENDED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Power cuts in timed runs with results.
static CUTS: AtomicU64 = AtomicU64::new(0);

/// Settings that exclude features which parity and superblocks refuse.
const STRIPED: [&str; 8] = [
    "part.cell=slc",
    "part.order=ascending",
    "part.pair_corruption=false",
    "ftl.slc_cache=0 blocks",
    "ftl.slc_fixed=0 blocks",
    "ftl.checkpoint=0B",
    "ecc.strength=0",
    "ftl.patrol=0ns",
];

/// Features that a drive has if the layer and the other features allow each.
fn features(rng: &mut Rng, plain: &Shape) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut add = |some: &[&str]| all.push(some.iter().map(|&set| set.to_owned()).collect());
    add(&["part.e_read=3uJ", "part.e_program=40uJ", "part.e_erase=90uJ"]);
    if rng.below(2) == 0 {
        add(&["part.e_read_high=5uJ", "part.e_program_high=70uJ", "part.e_program_low_first=25uJ"]);
    }
    for _ in 0..rng.below(3) {
        let fault = &FAULTS[rng.below(FAULTS.len() as u64) as usize];
        let own = (fault.draw)(rng, &plain.drive.geometry);
        add(&own.iter().map(String::as_str).collect::<Vec<_>>());
    }
    match rng.below(5) {
        0 => add(&["faults.erase_fail=10%"]),
        1 => add(&["faults.program_fail=2%"]),
        2 => add(&["faults.wear_out=true", pick(rng, &["part.endurance=2", "part.endurance=4"])]),
        _ => {}
    }
    if rng.below(4) == 0 {
        add(&READ_ERRORS);
        add(&[pick(rng, &["ecc.disturb_reads=4", "ecc.disturb_reads=60"]), "ecc.refresh_retries=1"]);
        add(&["ftl.patrol=20ms"]);
    }
    if rng.below(3) == 0 {
        add(&[pick(rng, &["controller.read_ahead=1", "controller.read_ahead=3"])]);
    }
    if rng.below(3) == 0 {
        let blocks = format!("ssd.blocks_per_plane={}", plain.drive.geometry.blocks_per_plane + 6);
        add(&[pick(rng, &["ftl.checkpoint=4KiB", "ftl.checkpoint=40KiB"]), &blocks, "ssd.over_provisioning=200%"]);
    }
    if rng.below(2) == 0 {
        add(&["part.pair_corruption=true"]);
    }
    all
}

/// A drive of any shape with some features.
fn draw(entry: &'static Entry, rng: &mut Rng) -> Option<Shape> {
    let striped = match rng.below(6) {
        0 => Some(pick(rng, &["ftl.rain=1", "ftl.rain=3"])),
        1 => Some("ftl.superblocks=collected"),
        _ => None,
    };
    let needs: Vec<&str> = striped.into_iter().flat_map(|own| STRIPED.into_iter().chain([own])).collect();
    let mut shape = any_shape(entry, rng, Limits { subpages: 1024, planes: 4 }, &needs).ok()?;
    for feature in features(rng, &shape) {
        let own: Vec<&str> = feature.iter().map(String::as_str).collect();
        shape = build(entry.name, &with(&shape.settings, &own)).unwrap_or(shape);
    }
    Some(shape)
}

/// Requests at their arrivals, or so many at a time.
struct Requests {
    commands: std::vec::IntoIter<Command>,
    /// Time between two arrivals; 0: in a closed loop.
    gap: Nanos,
    depth: u32,
    next: Nanos,
}

impl Source for Requests {
    fn next_request(&mut self) -> Result<Option<Request>> {
        let arrival = self.next;
        self.next += self.gap;
        Ok(self.commands.next().map(|command| Request::new(arrival, command)))
    }

    fn place(&self) -> String {
        "model".into()
    }

    fn arrivals(&self) -> Arrivals {
        if self.gap > 0 { Arrivals::Open } else { Arrivals::Closed { depth: self.depth } }
    }
}

/// A run of a case.
struct Case<'a> {
    entry: &'static Entry,
    shape: &'a Shape,
    seed: u64,
    options: Options,
    gap: Nanos,
    depth: u32,
    /// The host interrupts the run as its measurement begins.
    interrupted: bool,
}

impl<'a> Case<'a> {
    fn draw(entry: &'static Entry, shape: &'a Shape, rng: &mut Rng, seed: u64) -> Self {
        let timed = rng.below(4) > 0;
        let precondition = pick(rng, &["none", "fill:60%", "fill:100%", "fill:100%,random:0.5x"]);
        let options = Options {
            workload: "model".into(),
            precondition: Precondition::parse(precondition).expect("a precondition"),
            requests: (rng.below(3) == 0).then(|| 60 + rng.below(200)),
            warmup: Warmup::Requests(if rng.below(3) == 0 { 40 } else { 0 }),
            fidelity: if timed { Fidelity::Timed } else { Fidelity::Count },
            payload: Payload::Tag,
            seed,
            series: false,
            operations: None,
            strict: false,
        };
        let gap = pick(rng, &[0, 0, 20_000, 300_000]);
        let depth = pick(rng, &[1, 4, 32]);
        Case { entry, shape, seed, options, gap, depth, interrupted: rng.below(20) == 0 }
    }

    /// The result with other `options`.
    fn run(&self, options: &Options) -> Result<Outcome> {
        let resolved = resolve("model.toml", Some(self.entry.name), &self.shape.settings, &|_| Ok(String::new()));
        let commands = workload(self.shape, self.seed, 400).into_iter();
        let mut source = Requests { commands, gap: self.gap, depth: self.depth, next: 0 };
        run(&resolved.expect("as before"), &mut source, options, &mut |progress| match self.interrupted
            && progress.phase == Phase::Run
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    /// The figures of [`Self::run`] that must not depend on `options`.
    fn figures(&self, options: Options) -> std::result::Result<Value, String> {
        let outcome = match self.run(&options) {
            Ok(outcome) => outcome,
            Err(Error::WornOut(why)) => return Err(why),
            Err(Error::DriveFailed(why)) if why.contains("no request completed") => return Err(why),
            Err(error) => panic!("{:?}: {error}", options.payload),
        };
        if let Some(series) = &outcome.detail.time {
            check_series(series, &outcome.summary);
            // A program may correct the energy of earlier programs downwards.
            let corrects = self.shape.settings.iter().any(|set| set.starts_with("part.e_program_low_first="));
            assert!(corrects || series.power_w.iter().flatten().all(|&watts| watts >= 0.0), "negative watts");
            CUTS.fetch_add(outcome.summary.power.as_ref().map_or(0, |power| power.cuts), Ordering::Relaxed);
        }
        ENDED[1].fetch_add(outcome.summary.lifetime.worn_out.into(), Ordering::Relaxed);
        let mut summary = outcome.summary;
        (summary.payload, summary.why) = ("", None);
        summary.notes.retain(|note| !["verified", "acknowledgement checked"].iter().any(|what| note.contains(what)));
        summary.reliability.iter_mut().for_each(|reliability| reliability.failed_reads = None);
        Ok(serde_json::to_value(&summary).expect("a result is a value"))
    }
}

/// The series sums up to the summary.
fn check_series(series: &Series, summary: &Summary) {
    let sum = |column: &[u64]| column.iter().sum::<u64>();
    let flash = &summary.flash;
    let of = |cause: &str| flash.by_cause[cause].programs;
    assert_eq!(sum(&series.programs), flash.page_programs, "programs");
    assert_eq!(sum(&series.reads), flash.page_reads, "reads");
    assert_eq!(sum(&series.erases), flash.erases, "erases");
    assert_eq!(sum(&series.gc_programs), of("gc") + of("merge"), "programs of collection");
    assert_eq!(sum(&series.read_retries), flash.read_retries, "retries");
    let requests = &summary.requests;
    assert_eq!(sum(&series.requests), requests.read + requests.write + requests.trim + requests.flush, "requests");
    assert_eq!(sum(&series.bytes), summary.host.bytes_read + summary.host.bytes_written, "bytes");
}

/// The first difference of two results.
fn difference(one: &Value, other: &Value, path: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(two)) => {
            let keys = one.keys().chain(two.keys());
            keys.map(|key| (key, one.get(key), two.get(key))).find_map(|(key, one, two)| {
                let null = &Value::Null;
                difference(one.unwrap_or(null), two.unwrap_or(null), &format!("{path}.{key}"))
            })
        }
        _ => (one != other).then(|| format!("{path}: {one} against {other}")),
    }
}

fn case(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0x1a35);
    let Some(shape) = draw(entry, &mut rng) else { return false };
    if shape.drive.logical_pages() > 3000 {
        return false;
    }
    note(&shape.settings);
    let case = Case::draw(entry, &shape, &mut rng, seed);
    let tag = case.figures(Options { series: true, ..case.options.clone() });
    ENDED[0].fetch_add(tag.is_err().into(), Ordering::Relaxed);
    let timed = case.options.fidelity == Fidelity::Timed;
    let windows = [Window::Slowest(5), Window::Requests { first: 1, last: 50 }];
    let recorded = Options { operations: timed.then(|| pick(&mut rng, &windows)), ..case.options.clone() };
    let mut others = vec![recorded];
    // With bytes an encoder decides, with other payloads a draw.
    if !entry.lists("ftl.wom") {
        others.push(Options { payload: Payload::Bytes, ..case.options.clone() });
    }
    if !shape.drive.loses_power() {
        others.push(Options { payload: Payload::None, ..case.options.clone() });
    }
    for options in others {
        let what = format!("{:?}, operations {:?}, {:?}", options.payload, options.operations, options.fidelity);
        match (&tag, case.figures(options)) {
            (Ok(tag), Ok(other)) => {
                let differs = difference(tag, &other, "");
                assert!(differs.is_none(), "{what}: tag and this differ in {}", differs.unwrap_or_default());
            }
            (tag, other) => assert!(tag.as_ref().err() == other.as_ref().err(), "{what}: {tag:?} against {other:?}"),
        }
    }
    true
}

/// Cases of `seeds` seeds from `first` on, for each layer.
fn cases(test: &str, seeds: u64, first: u64) {
    for_each_seed_of(REGISTRY.iter().chain(ENTRIES), test, seeds, |entry, seed| case(entry, seed + first));
    let [early, late] = ENDED.each_ref().map(|count| count.load(Ordering::Relaxed));
    let cuts = CUTS.load(Ordering::Relaxed);
    println!("{early} drives ended before the measurement, {late} runs ended a drive, {cuts} power cuts");
    assert!(late > 0 && cuts > 0 || is_partial(), "{late} runs ended a drive, {cuts} power cuts");
}

#[test]
fn laws_and_payloads_of_whole_runs() {
    cases("laws::laws_and_payloads_of_whole_runs", 3, 0);
}

#[test]
#[ignore = "minutes"]
fn long_laws_and_payloads_of_whole_runs() {
    cases("--ignored laws::long_laws_and_payloads_of_whole_runs", 800, 1000);
}
