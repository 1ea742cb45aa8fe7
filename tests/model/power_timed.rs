//! Power cuts in timed runs: planned operations have not run, some are torn, many requests are in flight.

use crate::drives::{build, entry, plain, with};
use crate::harness::{for_each_seed_of, note};
use crate::sequences::requests;
use crate::workload::fill;
pub use palimpsest_check::timed::{Case, cut_case};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::TORN;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cuts one run at `cuts` of its operations.
fn cut(entry: &'static Entry, seed: u64, cuts: u64) -> bool {
    cut_with(entry, seed, cuts, &[])
}

/// As [`cut`], with `more` settings.
fn cut_with(entry: &'static Entry, seed: u64, cuts: u64, more: &[&str]) -> bool {
    let Ok(case) = Case::draw(entry, seed, more) else { return false };
    cut_case(&case, cuts);
    true
}

/// A cut tears the running operation of every die, not only the operation of the cut.
#[test]
fn a_cut_tears_what_every_die_works_on() {
    let settings = with(&plain(4, 12, 8, 1), &["buffer.ack=program", "ssd.over_provisioning=100%"]);
    let shape = build("page", &settings).expect("a drive");
    let case = Case {
        commands: fill(&shape.drive, 8).take(40).collect(),
        entry: entry("page"),
        seed: 1,
        payload: Payload::Tag,
        counted: 0,
        depth: 16,
        shape,
    };
    let (model, _) = case.play(Some(17)).expect("there is room");
    let nand = model.drive.io.nand();
    let torn = (0..nand.geometry().subpages() as u32).filter(|&psn| nand.logical(psn) == TORN);
    let dies: BTreeSet<u32> = torn.map(|psn| nand.geometry().plane_of_block(nand.split(psn).0)).collect();
    assert_eq!(dies.len(), 4, "a page of each die");
}

/// A program that does not wait for copies of the pages at risk: a cut finds the mutant. The scheduler lets the host's
/// programs overtake the copies, because a die would otherwise keep the order.
#[test]
fn a_cut_finds_a_program_that_is_ahead_of_its_copies() {
    let more = [
        "part.cell=mlc",
        "part.pair_corruption=true",
        "part.t_program_high=900us",
        "buffer.ack=program",
        "sim.scheduler=host-first",
        "ssd.over_provisioning=150%",
    ];
    let shape = build("page", &with(&plain(1, 10, 16, 1), &more)).expect("a drive");
    let commands: Vec<_> = fill(&shape.drive, 8).collect();
    let (entry, seed, payload, counted, depth) = (entry("page"), 1, Payload::Tag, 0, 16);
    let case = Case { shape, entry, seed, payload, commands, counted, depth };
    let early = Mutation { kind: OperationKind::Program, cause: Cause::Metadata, drops_after: false };
    let (start, end) = case.run(None).expect("no cut, no end");
    let found = |mutation| {
        let lost = |cut: &u64| catch_unwind(AssertUnwindSafe(|| case.run_mutant(Some(*cut), mutation))).is_err();
        (start + 1..=end).step_by(3).filter(lost).count()
    };
    assert_eq!(found(None), 0, "the drive that waits");
    assert!(found(Some(early)) > 0, "the drive that does not");
}

#[test]
fn cuts_in_timed_runs() {
    for_each_seed_of(REGISTRY, "power_timed::cuts_in_timed_runs", 12, |entry, seed| cut(entry, seed, 5));
}

#[test]
fn cuts_in_timed_runs_of_file_systems() {
    for_each_seed_of(ENTRIES, "power_timed::cuts_in_timed_runs_of_file_systems", 6, |entry, seed| cut(entry, seed, 5));
}

/// Once red: operations that run together end at one moment, and a read of a page that one of them programs may start
/// then.
#[test]
fn reads_start_at_the_moment_when_their_program_ends() {
    let more = [
        "ssd.planes_per_die=2",
        "ssd.over_provisioning=150%",
        "ftl.allocation=round-robin",
        "sim.multi_plane=waiting",
        "sim.block_order=planned",
        "buffer.ack=program",
        "buffer.timeout=1ms",
    ];
    for seed in 0..6 {
        let shape = build("subpage", &with(&plain(2, 5, 4, 2), &more)).expect("a drive");
        let (entry, payload, commands) = (entry("subpage"), Payload::Tag, requests(&shape, seed));
        Case { commands, entry, seed, payload, counted: 0, depth: 32, shape }.run(None).expect("no cut, no end");
    }
}

/// Once red: the cut comes while the link transfers data into a protected buffer. Neither recovery nor later plans may
/// use the data before the transfer ends.
#[test]
fn what_is_on_the_link_at_the_cut_comes_in_its_time() {
    let slow = ["buffer.ack=buffer", "host.link_rate=1MB/s"];
    let test = "power_timed::what_is_on_the_link_at_the_cut_comes_in_its_time";
    // Layers without a buffer program the data of the link at once.
    for_each_seed_of(REGISTRY, test, 5, |entry, seed| cut_with(entry, seed, 4, &slow));
}

/// Once red: the layer did not find existing space. The space was in another plane than the plane whose moved data had
/// none (spftl), in the block of the map (dftl), or in the block of hot data and in pages that the file system had
/// trimmed (fs-llh). Without a cut: in blocks of cold data that wait to be written again. And again in another plane,
/// where the pages that collection needs were spoiled (sector-log). In the unit of a handle, with none for moved data
/// (fdp).
#[test]
fn space_after_a_cut_is_found() {
    let cut = [
        ("spftl", 1119, 943),
        ("dftl", 1019, 2291),
        ("fs-llh", 701_006, 5921),
        ("sector-log", 1036, 6518),
        ("fdp", 336_337_391_936, 5314),
    ];
    let cases = cut.into_iter().map(|(name, seed, operation)| (name, seed, Some(operation)));
    for (name, seed, operation) in cases.chain([("fs-llh", 701_022, None)]) {
        let case = Case::draw(entry(name), seed, &[]).expect("a drive");
        note(&case.shape.settings);
        assert!(case.run(operation).is_some(), "{name}: the drive ends");
    }
}

#[test]
#[ignore = "minutes"]
fn long_cuts_in_timed_runs() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "--ignored power_timed::long_cuts_in_timed_runs", 100, |entry, seed| {
        cut(entry, seed + 1000, 20)
    });
}
