//! Whole runs with power cuts, as a user runs them with `faults.power_cut_at` and `faults.power_cuts`, and the moments
//! of the cuts.
//!
//! Schedules count only operations that ran, including recovery. The verifier's reads do not count, nor do planned
//! operations that a cut rolls back.

use crate::drives::{Limits, Shape, build, draw, entry, plain, with};
use crate::harness::{Model, count_cuts, for_each_seed, for_each_seed_of, note};
use crate::power::{small, workload};
use crate::room::{has_room, is_tight, picture};
use crate::workload::sweep;
use palimpsest_check::kept::Listed;
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::config::resolve;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup, run};
use std::ops::ControlFlow;

/// A whole run, as a user runs it with `faults.power_cut_at`.
pub fn whole_run(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0x3ea1);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 120),
        None => draw(entry.name, &mut rng, Limits { subpages: 512, planes: 4 }),
    };
    let Ok(mut shape) = shape else { return false };
    let cut = 1 + rng.below(2 * shape.drive.geometry.pages());
    shape.settings.push(format!("faults.power_cut_at={cut}"));
    match run_whole(entry, &shape, seed, Fidelity::Count, "none") {
        Err(Error::WornOut(_)) if ends_without_room(entry, &shape, seed, cut) => {}
        Err(error) => panic!("cut at {cut}: {error}"),
        Ok(_) => {}
    }
    true
}

/// Whether the run of [`whole_run`] ends a very small drive, and flash has no room left.
fn ends_without_room(entry: &'static Entry, shape: &Shape, seed: u64, cut: u64) -> bool {
    let mut model = Model::new(shape, entry, Payload::Tag, seed);
    model.shadow.expect_power_cut(true);
    model.drive.io.set_power_cut_at(Some(cut));
    let ends = |command| matches!(model.count(command), Err(Error::WornOut(_)));
    let ended = workload(shape, seed, 150).into_iter().any(ends);
    assert!(!ended || !has_room(&model.drive.io, shape), "the drive ends with room:{}", picture(&model.drive.io));
    ended && is_tight(shape)
}

/// Runs the drive of `shape` as a user does.
pub fn run_whole(
    entry: &'static Entry,
    shape: &Shape,
    seed: u64,
    fidelity: Fidelity,
    precondition: &str,
) -> Result<Summary> {
    note(&shape.settings);
    let resolved = resolve("model.toml", Some(entry.name), &shape.settings, &|_| Ok(String::new())).expect("as before");
    let mut commands = workload(shape, seed, 150);
    commands.extend(sweep(&shape.drive, RequestKind::Read, 5));
    let options = Options {
        workload: "model".into(),
        precondition: Precondition::parse(precondition)?,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: if seed.is_multiple_of(4) { Payload::Bytes } else { Payload::Tag },
        seed,
        series: false,
        operations: None,
        strict: false,
    };
    let mut watcher = |_| ControlFlow::Continue(());
    let summary = run(&resolved, &mut Listed(commands.into_iter()), &options, &mut watcher)?.summary;
    if summary.lifetime.worn_out { Err(Error::WornOut("the drive ends".into())) } else { Ok(summary) }
}

/// A whole run with repeated power cuts, as a user runs one with `faults.power_cuts`.
pub fn whole_run_with_cuts(entry: &'static Entry, seed: u64) -> bool {
    whole_run_with_cuts_after(entry, seed, 150, 300)
}

/// The same, with a cut after each `least` operations, or after up to `more` operations more.
pub fn whole_run_with_cuts_after(entry: &'static Entry, seed: u64, least: u64, more: u64) -> bool {
    let mut rng = Rng::new(seed, 0x3ea2);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 150),
        None => small(entry, seed),
    };
    let Ok(mut shape) = shape else { return false };
    if entry.below.is_none() {
        // Each cut spoils a page or more.
        let reserved = (entry.reserved)(&shape.drive.ftl, &shape.drive.geometry);
        let blocks = format!("ssd.blocks_per_plane={}", shape.drive.log.streams + 10 + reserved);
        let more = with(&shape.settings, &["ssd.over_provisioning=400%", &blocks]);
        let Ok(larger) = build(entry.name, &more) else { return false };
        shape = larger;
    }
    let cuts = format!("faults.power_cuts={}:{}", ["every", "poisson"][(seed % 2) as usize], least + rng.below(more));
    shape.settings.push(cuts);
    let fidelity = if (seed / 2).is_multiple_of(2) { Fidelity::Count } else { Fidelity::Timed };
    let power = match run_whole(entry, &shape, seed, fidelity, "fill:100%,random:0.5x") {
        Ok(summary) => summary.power.expect("cuts were to come"),
        // On the smallest drives a write may need more operations than run between two cuts.
        Err(Error::DriveFailed(what)) if what.contains("no request completed") => return true,
        Err(error) => panic!("{error}"),
    };
    count_cuts(power.cuts);
    assert_eq!(power.recovery_ns.is_some(), fidelity == Fidelity::Timed && power.cuts > 0);
    assert!(power.cuts == 0 || power.pages_scanned > 0, "a recovery scans");
    true
}

#[test]
fn whole_runs_with_a_cut() {
    for_each_seed("whole_runs::whole_runs_with_a_cut", 60, whole_run);
}

#[test]
fn whole_runs_of_file_systems_with_a_cut() {
    for_each_seed_of(ENTRIES, "whole_runs::whole_runs_of_file_systems_with_a_cut", 12, whole_run);
}

#[test]
fn a_request_that_never_completes_ends_the_run() {
    let entry = entry("page");
    let mut shape = build("page", &with(&plain(1, 12, 4, 1), &["ssd.over_provisioning=100%"])).unwrap();
    shape.settings.push("faults.power_cuts=every:1".into());
    for fidelity in [Fidelity::Count, Fidelity::Timed] {
        let error = run_whole(entry, &shape, 1, fidelity, "none").expect_err("no request completes");
        assert!(error.to_string().contains("no request completed"), "{error}");
    }
}

#[test]
fn whole_runs_with_many_cuts() {
    for entries in [REGISTRY, ENTRIES] {
        let seeds = if entries[0].is_file_system() { 4 } else { 8 };
        for_each_seed_of(entries, "whole_runs::whole_runs_with_many_cuts", seeds, whole_run_with_cuts);
    }
}

/// Once red: reads of the verifier after a cut counted, so that the operations of the next cuts in the list had passed.
#[test]
fn every_cut_of_a_list_comes() {
    let own = ["ssd.over_provisioning=100%", "buffer.ack=program"];
    let mut shape = build("page", &with(&plain(1, 12, 4, 1), &own)).expect("a drive");
    // Recovery reads each of 48 pages, and the verifier 24.
    let list: Vec<String> = (0..5).map(|cut| (200 + 60 * cut).to_string()).collect();
    shape.settings.push(format!("faults.power_cuts=at:{}", list.join(",")));
    for fidelity in [Fidelity::Count, Fidelity::Timed] {
        let power = run_whole(entry("page"), &shape, 1, fidelity, "none").expect("there is room").power;
        assert_eq!(power.expect("cuts were to come").cuts, 5, "{fidelity:?}");
    }
}

#[test]
#[ignore = "minutes"]
fn long_whole_runs_with_many_cuts() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "--ignored whole_runs::long_whole_runs_with_many_cuts", 500, |entry, seed| {
        whole_run_with_cuts(entry, seed + 1000)
    });
}

#[test]
#[ignore = "minutes"]
fn long_whole_runs_with_a_cut() {
    let test = "--ignored whole_runs::long_whole_runs_with_a_cut";
    for_each_seed_of(REGISTRY, test, 5000, |entry, seed| whole_run(entry, seed + 1000));
}

#[test]
#[ignore = "minutes"]
fn long_whole_runs_of_file_systems_with_a_cut() {
    let test = "--ignored whole_runs::long_whole_runs_of_file_systems_with_a_cut";
    for_each_seed_of(ENTRIES, test, 500, |entry, seed| whole_run(entry, seed + 1000));
}

/// Cuts so dense that a run's cuts corrupt pages of more and more word lines, each of which must be read from a copy.
#[test]
#[ignore = "minutes"]
fn long_whole_runs_with_dense_cuts() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "--ignored whole_runs::long_whole_runs_with_dense_cuts", 200, |entry, seed| {
        whole_run_with_cuts_after(entry, seed + 1000, 12, 12)
    });
}
