//! Mutants of every layer of the registry: layers with wrong plans that the check of times must find.
//!
//! A mutation drops a gate of one kind of operation with one cause. A program then does not wait for the stored data,
//! or an erase for the copies. Or a follower starts once an operation is planned: an acknowledgement before the
//! program, a delivery before the read.
//!
//! If a layer has such a gate, the check of times must find the mutant. The table states the gates that a layer lacks,
//! and why some dropped gates are harmless; a test verifies the table. The controller, not a layer, copies paired
//! pages: those gates are left to power cuts in timed runs (`power_timed`), because only a cut reveals their absence.
//! Buffers acknowledge programs here, so that all layers can lose data.

use crate::drives::{Shape, build, draw, pick, with};
use crate::harness::{Model, note};
use crate::sequences::{SMALL, requests};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::host::layers;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{CAUSE_NAMES, Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drives that reveal the gates of a layer, and show that harmless mutations stay harmless.
const SEEDS: u64 = 12;
/// Drives tried to find a mutant.
const MOST_SEEDS: u64 = 60;

fn name(mutation: Mutation) -> String {
    let Mutation { kind, cause, drops_after } = mutation;
    let kind = format!("{kind:?}").to_lowercase();
    let gate = if drops_after { "without its gate" } else { "signals at once" };
    format!("{} {kind} {gate}", CAUSE_NAMES[cause as usize])
}

/// Runs requests on a drive of `seed`: the possible mutations, and whether the check finds `mutation`.
fn run(entry: &'static Entry, seed: u64, mutation: Option<Mutation>) -> Option<(BTreeMap<Mutation, u64>, bool)> {
    run_with(entry, seed, mutation, "host.t_request=0ns")
}

/// As [`run`], with one more setting.
fn run_with(
    entry: &'static Entry,
    seed: u64,
    mutation: Option<Mutation>,
    setting: &str,
) -> Option<(BTreeMap<Mutation, u64>, bool)> {
    let mut rng = Rng::new(seed, 0x3u64);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 120),
        None => draw(entry.name, &mut rng, SMALL),
    };
    let shape = shape.ok()?;
    let shape =
        build(entry.name, &with(&shape.settings, &["buffer.ack=program", "part.pair_corruption=false", setting]))
            .ok()?;
    Some(run_shape(entry, &shape, seed, mutation, &mut rng))
}

/// As [`run`], on the drive `shape`.
pub fn run_shape(
    entry: &'static Entry,
    shape: &Shape,
    seed: u64,
    mutation: Option<Mutation>,
    rng: &mut Rng,
) -> (BTreeMap<Mutation, u64>, bool) {
    note(&shape.settings);
    let mut model = Model::new(shape, entry, Payload::Tag, seed);
    model.drive.verify_times(mutation);
    model.drive.start_timing().expect("nothing to program");
    let depth = pick(rng, &[2, 16]);
    let commands = requests(shape, seed);
    let result = catch_unwind(AssertUnwindSafe(|| model.run_timed(commands.into_iter(), depth)));
    let found = matches!(&result, Ok(Err(Error::Rule(what))) if what.contains("broke the order of time"));
    if mutation.is_none() {
        let result = result.unwrap_or_else(|_| panic!("{} with seed {seed} panics", entry.name));
        result.unwrap_or_else(|error| panic!("{} with seed {seed}: {error}", entry.name));
        model.check();
        model.read_back().unwrap_or_else(|error| panic!("{} with seed {seed}: {error}", entry.name));
    }
    let plantable = model.drive.io.ledger.as_ref().map(|ledger| ledger.plantable());
    (plantable.unwrap_or_default(), found)
}

/// Every mutation: the operation's kind and cause, and whether the dropped gate is the gate that the operation follows.
fn mutations() -> Vec<Mutation> {
    use Cause::{Gc, Host, Merge, Metadata, Prefetch, Rmw};
    use OperationKind::{Erase, Program, Read};
    let of = |kind: OperationKind, drops_after: bool, causes: &[Cause]| {
        causes.iter().map(|&cause| Mutation { kind, cause, drops_after }).collect::<Vec<_>>()
    };
    [
        of(Program, false, &[Host, Gc, Merge, Metadata]),
        of(Program, true, &[Host, Gc, Merge, Metadata]),
        of(Read, false, &[Host, Gc, Merge, Rmw, Prefetch, Metadata]),
        of(Read, true, &[Host, Gc, Merge, Rmw, Prefetch, Metadata]),
        of(Erase, false, &[Gc, Merge]),
        of(Erase, true, &[Gc, Merge]),
    ]
    .concat()
}

/// The outcome of each of [`mutations`], in order: `x` is found; `.` has no such gate. Harmless if dropped:
///
/// - `e`: only erases wait for these programs, and an erase follows the replacement of its content in any case;
/// - `d`: the waiting operation is in the same die, behind the read;
/// - `m`: an update of the map goes before the read of the wanted entry, an order that no data needs;
/// - `c`: later programs wait for an erase so that recovery finds one merge half done; power cuts in timed runs find
///   the mutant;
/// - `s`: an erase of trimmed data waits for the erase of older copies, which a power cut would otherwise restore while
///   collection counts on the space; the restored data is allowed;
/// - `b`: only parity waits for the erases of a superblock;
/// - `t`: the gate is a moment ([`fs.dispatch_overhead`]), and no data waits for that moment.
#[rustfmt::skip]
const TABLE: &[(&str, [&str; 6])] = &[
    ("page", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("block", ["x.x.", "x.x.", "x.xx..", "......", ".c", ".x"]),
    ("subpage", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("page-fgm", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("dma-fgm", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("spftl", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("bast", ["x.e.", "x.x.", "x.xx..", "......", ".c", ".x"]),
    ("fast", ["x.e.", "x.x.", "x.xx..", "......", ".c", ".x"]),
    ("sector-log", ["xxx.", "xxx.", "xxxx..", "......", "..", "xx"]),
    ("mga", ["xxx.", "xxx.", "xxxx..", "......", "..", "x."]),
    ("hotcold", ["xx..", "xx..", "xx.x..", "......", "..", "x."]),
    ("llh", ["xx..", "xx..", "xx.xd.", "......", "..", "x."]),
    ("womv", ["xx..", "xx..", "xx.x..", "......", "s.", "x."]),
    ("codesign", ["xxex", "xxdx", "xxxx..", "tt.t..", ".c", ".x"]),
    ("dftl", ["xx.m", "xx.x", "xx.x.x", "x..x.m", "..", "x."]),
    ("fdp", ["xx..", "xx..", "xx.x..", "......", "b.", "x."]),
    ("fdp-subpage", ["xx..", "xx..", "xx.x..", "......", "b.", "x."]),
    ("fdp-dftl", ["xx.m", "xx.x", "xx.x.x", "x..x.m", "b.", "x."]),
    ("zns", ["x.x.", "x.x.", "x.xx..", "......", ".c", ".x"]),
    ("fs-zns", ["xxxx", "xxxx", "xxxx..", "tt.t..", ".c", ".x"]),
    ("fs-page", ["xx.x", "xx.x", "xx.x..", "tt.t..", "..", "x."]),
    ("fs-subpage", ["xx.x", "xx.x", "xx.x..", "tx.t..", "..", "x."]),
    ("fs-fdp", ["xx.x", "xx.x", "xx.x..", "tx.t..", "..", "x."]),
    ("fs-spftl", ["xx.x", "xx.x", "xx.x..", "tx.t..", "..", "x."]),
    ("fs-mga", ["xxxx", "xxxx", "xxxx..", "tx.t..", "..", "x."]),
    ("fs-llh", ["xx.x", "xx.x", "xx.xd.", "tt.t..", "..", "x."]),
    ("fs-hotcold", ["xx.x", "xx.x", "xx.x..", "tt.t..", "..", "x."]),
];

/// The row of `entry`.
fn row(entry: &'static Entry) -> Vec<char> {
    let unmutated = |seed| {
        let (plantable, found) = run(entry, seed, None).unwrap_or_default();
        assert!(!found, "{} with seed {seed}: the check accuses the layer without a mutation", entry.name);
        plantable
    };
    let plantable: Vec<_> = (0..SEEDS).map(unmutated).collect();
    let can_plant = |seed: u64, mutation| plantable.get(seed as usize).is_none_or(|them| them.contains_key(&mutation));
    let expected: Vec<char> = TABLE
        .iter()
        .find(|(name, _)| *name == entry.name)
        .map_or(Vec::new(), |(_, row)| row.concat().chars().collect());
    let cell = |(index, mutation): (usize, Mutation)| {
        if plantable.iter().all(|them| !them.contains_key(&mutation)) {
            return '.';
        }
        let harmless = expected.get(index).copied().filter(|cell| "bcedmst".contains(*cell));
        // Rare mutations need many drives.
        let seeds = if harmless.is_some() { 0..SEEDS } else { 0..MOST_SEEDS };
        let mut seeds = seeds.filter(|&seed| can_plant(seed, mutation));
        let found = seeds.any(|seed| run(entry, seed, Some(mutation)).is_some_and(|(_, found)| found));
        if found { 'x' } else { harmless.unwrap_or('?') }
    };
    mutations().into_iter().enumerate().map(cell).collect()
}

#[test]
fn every_mutant_is_found() {
    check_table(layers().filter(|entry| !entry.is_file_system()));
}

#[test]
fn every_mutant_below_a_file_system_is_found() {
    check_table(layers().filter(|entry| entry.is_file_system()));
}

/// A second in the host follows everything that a request must wait for: the check still finds drives that act too
/// early.
#[test]
fn time_in_the_host_hides_nothing() {
    let early = |kind| Mutation { kind, cause: Cause::Host, drops_after: false };
    for name in ["page", "subpage", "llh", "fs-mga"] {
        let entry = layers().find(|entry| entry.name == name).expect("a layer");
        for mutation in [early(OperationKind::Program), early(OperationKind::Read)] {
            let found =
                |seed| run_with(entry, seed, Some(mutation), "host.t_request=1s").is_some_and(|(_, found)| found);
            assert!((0..MOST_SEEDS).any(found), "{name}: {}", self::name(mutation));
        }
        for seed in 0..SEEDS {
            let unmutated = run_with(entry, seed, None, "host.t_request=1s");
            assert!(unmutated.is_none_or(|(_, found)| !found), "{name} with seed {seed}");
        }
    }
}

fn check_table(layers: impl Iterator<Item = &'static Entry>) {
    let only = std::env::var("MODEL_FTL").ok();
    let layers: Vec<_> = layers.filter(|entry| only.as_ref().is_none_or(|only| only == entry.name)).collect();
    let mut wrong = Vec::new();
    for entry in layers {
        let row: String = row(entry).into_iter().collect();
        let expected =
            TABLE.iter().find(|(name, _)| *name == entry.name).map_or(String::new(), |(_, row)| row.concat());
        if expected != row {
            let cells = row.chars().zip(expected.chars().chain(std::iter::repeat(' ')));
            let what = mutations().into_iter().zip(cells).filter(|(_, (is, said))| is != said);
            let what = what.map(|(mutation, (is, said))| format!("{}: {is}, not {said}", name(mutation)));
            wrong.push(format!("{} {row}: {}", entry.name, what.collect::<Vec<_>>().join("; ")));
        }
    }
    assert!(wrong.is_empty(), "the table of mutants is wrong:\n{}", wrong.join("\n"));
}
