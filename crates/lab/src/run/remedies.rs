//! Remedies of refusals: random drives, of which every message is obeyed until the drive runs.
//!
//! A remedy is `KEY = VALUE`, `no KEY`, or several of both with "and"; alternatives have "or" between them. Each path
//! of remedies must end in a drive that serves a few requests, after three remedies at most, and never repeat a drive.

use super::precondition::Precondition;
use super::{Fidelity, Options, Warmup, check_options, run};
use crate::config::schema::{self, Known, keys};
use crate::config::unread::{Gravity, Unread};
use crate::config::{Resolved, part_presets, resolve, ssd_presets, unread_remedy};
use crate::layers::layers;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::ValueType;
use palimpsest_workload::fio::{FioSource, FioSpec};
use std::ops::ControlFlow;

fn no_file(path: &str) -> Result<String> {
    Err(Error::input(path, "no such file"))
}

/// Remedies after which a drive must run.
const MOST: usize = 3;
/// Subpages of the largest drive that the test runs.
const MOST_SUBPAGES: u64 = 1 << 25;

/// A drive as a user gives it.
#[derive(Clone, PartialEq)]
struct Given {
    ssd: &'static str,
    ftl: Option<&'static str>,
    settings: Vec<String>,
}

impl Given {
    /// The drive with changed settings, `KEY=VALUE`, or without those of `no KEY`.
    fn with(&self, remedy: &[String]) -> Given {
        let key = |setting: &str| setting.trim_start_matches("no ").split('=').next().unwrap().to_owned();
        let is_kept = |one: &&String| !remedy.iter().any(|other| key(other) == key(one));
        let mut settings: Vec<String> = self.settings.iter().filter(is_kept).cloned().collect();
        settings.extend(remedy.iter().filter(|one| !one.starts_with("no ")).cloned());
        let drops_layer = remedy.iter().any(|one| one == "no ftl.name");
        Given { ftl: self.ftl.filter(|_| !drops_layer), settings, ..self.clone() }
    }

    /// The message that refuses the drive or a run of it.
    fn refusal(&self) -> Option<String> {
        let resolved = match resolve(self.ssd, self.ftl, &self.settings, &no_file) {
            Ok(resolved) => resolved,
            Err(error @ Error::Input { .. }) => return Some(error.to_string()),
            Err(other) => panic!("{other}"),
        };
        let unread: Vec<&Unread> = resolved.unread().iter().filter(|one| one.gravity == Gravity::Mistake).collect();
        if let Some(first) = unread.first() {
            let keys: Vec<&str> = unread.iter().map(|one| one.key).collect();
            let remedy = unread_remedy(self.ssd, self.ftl, &self.settings, &keys, &no_file).unwrap();
            return Some(format!("{}: {}; expected {remedy}", first.place, first.what));
        }
        run_of(&resolved)
    }
}

/// The message of a short run at count fidelity, if refused.
fn run_of(resolved: &Resolved) -> Option<String> {
    let drive = &resolved.drive;
    let payload = if drive.loses_power() { Payload::Tag } else { Payload::None };
    let options = Options {
        workload: String::new(),
        precondition: Precondition::None,
        requests: Some(8),
        warmup: Warmup::Auto,
        fidelity: Fidelity::Count,
        payload,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    if let Err(error) = check_options(drive, &options) {
        return Some(error.to_string());
    }
    if drive.geometry.subpages() > MOST_SUBPAGES {
        return None;
    }
    let spec = FioSpec::parse(&format!("rw=write,bs={},n=8", drive.geometry.page_bytes())).unwrap();
    let mut source = FioSource::new(&spec, drive.logical_bytes(), 1).unwrap();
    let outcome = run(resolved, &mut source, &options, &mut |_| ControlFlow::Continue(()));
    outcome.err().map(|error| error.to_string())
}

/// A value of `key`, often an extreme one, sometimes none of its kind.
fn value(rng: &mut Rng, key: &Known) -> Option<String> {
    let of = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let texts = match key.value_type {
        ValueType::Count { min, max } => {
            let near = [min, min + 1, 2, 3, 4, 7, 16, 100, 1536, max].map(|n| n.clamp(min, max).to_string());
            [near.as_slice(), &[max.saturating_add(1).to_string()]].concat()
        }
        ValueType::Bytes { min, max } => {
            let sizes = [0, 512, 1000, 4096, 12_288, 16_384, 65_536, 1 << 20, 1 << 26];
            let near = sizes.map(|n: u64| format!("{}B", n.clamp(min, max)));
            [near.as_slice(), &of(&["3MB", "17"])].concat()
        }
        ValueType::Capacity { .. } => of(&["1MiB", "100MiB", "8GiB", "64GiB", "2TB", "30.72TB", "122.88TB"]),
        ValueType::Time => of(&["0ns", "1ns", "70us", "30ms", "1.9s", "5s", "2000000s", "35"]),
        ValueType::Age => of(&["0ns", "90d", "4000d"]),
        ValueType::Ratio { .. } | ValueType::ShareOrNotation(_) | ValueType::ShareOr(_) => {
            of(&["0%", "0.5%", "1%", "7%", "20%", "50%", "100%", "28", "120%"])
        }
        ValueType::Blocks => of(&["0%", "0.1%", "20%", "99%", "0 blocks", "1 block", "5 blocks", "60 blocks"]),
        ValueType::Flag => of(&["true", "false", "yes"]),
        ValueType::PartName => part_presets().iter().map(|part| part.name.to_owned()).collect(),
        ValueType::Times => of(&["[]", "[\"40us\"]", "[\"40us\", \"50us\", \"60us\"]"]),
        ValueType::Energies => of(&["[]", "[\"1uJ\"]", "[\"1uJ\", \"2uJ\", \"3uJ\"]"]),
        ValueType::Ratios => of(&["[]", "[\"10%\"]", "[\"20%\", \"40%\"]"]),
        ValueType::Energy => of(&["0pJ", "3uJ", "2J"]),
        ValueType::Rate => of(&["1MB/s", "1.2GB/s", "unlimited"]),
        ValueType::Factor => of(&["0.5", "2", "1000", "0"]),
        ValueType::Choice(_) | ValueType::Names(_) | ValueType::Notation(_) => of(&key.value_type.words()),
    };
    if texts.is_empty() { None } else { Some(texts[rng.below(texts.len() as u64) as usize].clone()) }
}

/// The alternatives of the remedy in `message`, each with all of its changes; `blamed` is the key of a bare value.
fn remedies(message: &str) -> Vec<Vec<String>> {
    let mut parts = message.split("; also ").map(remedies_of);
    let first = parts.next().expect("a split has a part");
    // Mistakes in several options are obeyed together.
    let others: Vec<String> = parts.filter_map(|part| part.into_iter().next()).flatten().collect();
    first.into_iter().map(|remedy| [remedy.as_slice(), &others].concat()).collect()
}

/// The alternatives of one mistake.
fn remedies_of(message: &str) -> Vec<Vec<String>> {
    let Some((before, expected)) = message.rsplit_once("expected ") else { return Vec::new() };
    let before = before.strip_prefix("--set ").unwrap_or(before);
    let blamed = before.split(['=', ' ']).next().unwrap_or_default();
    let concrete: Vec<Vec<String>> = changes_in(expected.split(" (").next().unwrap_or_default());
    if !concrete.is_empty() {
        return concrete;
    }
    value_in(expected).map(|value| vec![vec![format!("{blamed}={value}")]]).unwrap_or_default()
}

/// `KEY = VALUE and no KEY or ...` as changes.
fn changes_in(expected: &str) -> Vec<Vec<String>> {
    let change = |text: &str| {
        let text = text.trim().trim_end_matches(',').trim_end_matches(" or more");
        if let Some(key) = text.strip_prefix("no ") {
            return schema::position(key).map(|_| format!("no {key}"));
        }
        let (key, value) = text.split_once(" = ")?;
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        schema::position(key).map(|_| format!("{key}={value}"))
    };
    let all = |one: &str| one.split(" and ").map(change).collect::<Option<Vec<_>>>();
    expected.split(" or ").filter(|one| *one != "more").filter_map(all).collect()
}

/// The value in "a time such as X", "at most X", "from X to Y", "one of X, ...", or "write X".
fn value_in(expected: &str) -> Option<String> {
    let bare = |text: &str| {
        let text = text.trim_start();
        match text.strip_prefix('"') {
            Some(rest) => rest.split('"').next().unwrap_or_default().to_owned(),
            None if text.starts_with('[') => text.split_inclusive(']').next().unwrap_or_default().to_owned(),
            None => text.split([',', ';', ' ', ')']).next().unwrap_or_default().to_owned(),
        }
    };
    let at = |words: &str| expected.split_once(words).map(|(_, rest)| bare(rest));
    let word = || (!expected.contains(' ') || expected.starts_with('"')).then(|| bare(expected));
    at("such as ")
        .or_else(|| at("at most "))
        .or_else(|| at("from "))
        .or_else(|| at("one of "))
        .or_else(word)
        .or_else(|| expected.starts_with("true or").then(|| "true".to_owned()))
}

/// Follows every remedy of `given`, which `message` refuses; adds faults to `wrong`, and returns the longest path.
fn follow(given: &Given, message: &str, path: &mut Vec<(Given, String)>, wrong: &mut Vec<String>) -> usize {
    let described = |path: &[(Given, String)], fault: &str| {
        let steps: Vec<String> =
            path.iter().map(|(given, message)| format!("  [{}]\n    {message}", given.settings.join(" "))).collect();
        format!("{fault}: --ssd {} --ftl {:?}\n{}", given.ssd, path[0].0.ftl, steps.join("\n"))
    };
    path.push((given.clone(), message.to_owned()));
    let mut longest = 0;
    let found = remedies(message);
    if found.is_empty() {
        wrong.push(described(path, "no remedy"));
    }
    for remedy in found {
        let next = given.with(&remedy);
        if path.iter().any(|(seen, _)| *seen == next) {
            wrong.push(described(path, "circle"));
            continue;
        }
        let Some(message) = next.refusal() else {
            longest = longest.max(1);
            continue;
        };
        if path.len() >= MOST {
            path.push((next.clone(), message));
            wrong.push(described(path, "too many"));
            path.pop();
            continue;
        }
        longest = longest.max(1 + follow(&next, &message, path, wrong));
    }
    path.pop();
    longest
}

/// Refused drives from `seeds`, the remedies that each needs at most, and the faults.
fn wrong(seeds: std::ops::Range<u64>) -> (Vec<usize>, Vec<String>) {
    let presets: Vec<&str> = ssd_presets().iter().map(|info| info.name).collect();
    let names: Vec<&str> = layers().map(|entry| entry.name).collect();
    let (mut needed, mut faults) = (Vec::new(), Vec::new());
    for seed in seeds {
        let rng = &mut Rng::new(seed, 0x4e3);
        let mut one = |names: &[&'static str]| names[rng.below(names.len() as u64) as usize];
        let mut given = Given { ssd: one(&presets), ftl: Some(one(&names)), settings: Vec::new() };
        given.ftl = given.ftl.filter(|_| rng.below(4) > 0);
        for _ in 0..1 + rng.below(4) {
            let key = &keys()[rng.below(keys().len() as u64) as usize];
            if let Some(value) = value(rng, key) {
                given = given.with(&[format!("{}={value}", key.name)]);
            }
        }
        if let Some(message) = given.refusal() {
            needed.push(follow(&given, &message, &mut Vec::new(), &mut faults));
        }
    }
    (needed, faults)
}

fn check(seeds: std::ops::Range<u64>, least: usize) {
    let (needed, faults) = wrong(seeds);
    let by_length: Vec<usize> =
        (0..=MOST).map(|length| needed.iter().filter(|&&needed| needed == length).count()).collect();
    println!("{} refused drives, {} wrong; remedies: {by_length:?}", needed.len(), faults.len());
    assert!(needed.len() > least, "{}", needed.len());
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn remedies_of_refusals_lead_to_a_run() {
    check(0..100, 60);
}

#[test]
#[ignore = "minutes"]
fn long_remedies_of_refusals_lead_to_a_run() {
    check(100..3000, 2000);
}
