//! Checkpoints: power cuts everywhere, in a checkpoint and in recovery too, on each layer that has them.

use crate::drives::{Limits, build, draw_with, pick, with};
use crate::harness::{for_each_seed, note, payload_of};
use crate::power::{Cuts, cut_everywhere, small_with};
use crate::power_timed::Case;
use crate::sequences::requests;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SMALL: Limits = Limits { subpages: 512, planes: 4 };

/// A checkpoint every few programs.
const EVERY: [&str; 3] = ["ftl.checkpoint=4KiB", "ftl.checkpoint=40KiB", "ftl.checkpoint=150KiB"];

/// Cuts counted runs of a drive of a few blocks.
fn counted(entry: &'static Entry, seed: u64, stride: u64, cuts: impl Fn(u64, &mut Rng) -> Cuts) -> bool {
    let Ok(shape) = small_with(entry, seed, &[EVERY[(seed % 3) as usize]]) else { return false };
    cut_everywhere(entry, &shape, seed, stride, cuts);
    true
}

#[test]
fn a_cut_at_every_operation() {
    for_each_seed("checkpoint::a_cut_at_every_operation", 3, |entry, seed| {
        counted(entry, seed, 1, |first, _| Cuts { first, in_recovery: vec![], second: None })
    });
}

#[test]
fn cuts_in_recovery_and_again_later() {
    for_each_seed("checkpoint::cuts_in_recovery_and_again_later", 4, |entry, seed| {
        counted(entry, seed, 3, |first, rng| Cuts {
            first,
            in_recovery: (0..rng.below(3)).map(|_| 1 + rng.below(4)).collect(),
            second: Some(1 + rng.below(40)),
        })
    });
}

/// Blocks fail, blocks of checkpoints too.
#[test]
fn cuts_and_faults() {
    for_each_seed("checkpoint::cuts_and_faults", 6, |entry, seed| {
        let faults = ["faults.program_fail=1%", "faults.erase_fail=1%"];
        let Ok(shape) = small_with(entry, seed, &[EVERY[(seed % 3) as usize]]) else { return false };
        let blocks = format!("ssd.blocks_per_plane={}", shape.drive.kept_blocks() + 10);
        let more = with(&with(&shape.settings, &faults), &["ssd.over_provisioning=300%", &blocks]);
        let Ok(shape) = build(entry.name, &more) else { return false };
        cut_everywhere(entry, &shape, seed, 7, |first, rng| Cuts {
            first,
            in_recovery: vec![1 + rng.below(4)],
            second: Some(1 + rng.below(40)),
        });
        true
    });
}

/// A timed run with checkpoints.
fn case(entry: &'static Entry, seed: u64) -> Option<Case> {
    let mut rng = Rng::new(seed, 0xc4ec);
    let acknowledge = pick(&mut rng, &["buffer.ack=program", "buffer.ack=program", "buffer.ack=buffer"]);
    let more = [pick(&mut rng, &EVERY), acknowledge];
    let shape = draw_with(entry.name, &mut rng, SMALL, &more).ok()?;
    let mut commands = requests(&shape, seed);
    let counted = commands.len() / 3;
    commands.truncate(counted + 250);
    let payload = payload_of(entry, seed);
    Some(Case { shape, entry, seed, payload, commands, counted, depth: pick(&mut rng, &[1, 4, 32]) })
}

pub fn timed(entry: &'static Entry, seed: u64, cuts: u64) -> bool {
    let Some(case) = case(entry, seed) else { return false };
    note(&case.shape.settings);
    let (start, end) = case.run(None).expect("no cut, no end");
    let mut rng = Rng::new(seed, 0xc4ed);
    for _ in 0..cuts.min(end - start) {
        case.run(Some(start + 1 + rng.below(end - start)));
    }
    true
}

/// Once red: the first page of a block held only padding, and the cut corrupted that page; recovery took the block for
/// erased since.
#[test]
fn a_corrupted_page_of_padding_does_not_void_a_block() {
    let entry = crate::drives::entry("subpage");
    let shape = small_with(entry, 3075, &[EVERY[0]]).expect("a drive");
    note(&shape.settings);
    cut_everywhere(entry, &shape, 3075, 1, |first, _| Cuts { first, in_recovery: vec![], second: Some(12) });
}

#[test]
#[ignore = "minutes"]
fn long_cuts() {
    for_each_seed("--ignored checkpoint::long_cuts", 100, |entry, seed| {
        counted(entry, seed + 1000, 1, |first, rng| Cuts {
            first,
            in_recovery: (0..rng.below(3)).map(|_| 1 + rng.below(4)).collect(),
            second: Some(1 + rng.below(40)),
        })
    });
}

#[test]
fn cuts_in_timed_runs() {
    for_each_seed("checkpoint::cuts_in_timed_runs", 2, |entry, seed| timed(entry, seed, 5));
}

#[test]
#[ignore = "minutes"]
fn long_cuts_in_timed_runs() {
    for_each_seed("--ignored checkpoint::long_cuts_in_timed_runs", 200, |entry, seed| timed(entry, seed + 1000, 20));
}

/// A record that does not wait for all programs that the tables refer to: a cut finds the mutant.
#[test]
fn a_cut_finds_a_record_that_is_ahead_of_what_it_points_to() {
    let early = Mutation { kind: OperationKind::Program, cause: Cause::Checkpoint, drops_after: true };
    let case = case(crate::drives::entry("page"), 13).expect("a drive");
    let (start, end) = case.run(None).expect("no cut, no end");
    let found = |mutation| {
        let lost = |cut: &u64| catch_unwind(AssertUnwindSafe(|| case.run_mutant(Some(*cut), mutation))).is_err();
        (start + 1..=end).step_by(7).filter(lost).count()
    };
    assert_eq!(found(None), 0, "the drive that waits");
    assert!(found(Some(early)) > 0, "the drive that does not");
}
