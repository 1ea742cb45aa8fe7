//! Power cuts: at every operation of a workload, in recovery, and again later.

use crate::drives::{Limits, build, draw, with};
use crate::harness::for_each_seed;
pub use palimpsest_check::power::*;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;

pub fn single(entry: &'static Entry, seed: u64, stride: u64) -> bool {
    let Ok(shape) = small(entry, seed) else { return false };
    cut_everywhere(entry, &shape, seed, stride, |first, _| Cuts { first, in_recovery: vec![], second: None });
    true
}

fn repeated(entry: &'static Entry, seed: u64, stride: u64) -> bool {
    let Ok(shape) = small(entry, seed) else { return false };
    cut_everywhere(entry, &shape, seed, stride, |first, rng| Cuts {
        first,
        in_recovery: (0..rng.below(3)).map(|_| 1 + rng.below(4)).collect(),
        second: Some(1 + rng.below(40)),
    });
    true
}

fn faulty(entry: &'static Entry, seed: u64, stride: u64) -> bool {
    let Ok(mut shape) = small(entry, seed) else { return false };
    for key in ["program_fail=1%", "erase_fail=1%", "read_fail=1%"] {
        shape.settings.push(format!("faults.{key}"));
    }
    let reserved = (entry.reserved)(&shape.drive.ftl, &shape.drive.geometry);
    let blocks = shape.drive.log.streams + 6 + reserved;
    let more = with(&shape.settings, &["ssd.over_provisioning=300%", &format!("ssd.blocks_per_plane={blocks}")]);
    let Ok(shape) = build(entry.name, &more) else { return false };
    cut_everywhere(entry, &shape, seed, stride, |first, rng| Cuts {
        first,
        in_recovery: vec![1 + rng.below(4)],
        second: Some(1 + rng.below(40)),
    });
    true
}

fn drawn(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0x90);
    let Ok(shape) = draw(entry.name, &mut rng, Limits { subpages: 512, planes: 4 }) else { return false };
    if shape.drive.logical_subpages() > 3000 {
        return true;
    }
    cut_everywhere(entry, &shape, seed, 150, |first, rng| Cuts {
        first,
        in_recovery: (0..rng.below(2)).map(|_| 1 + rng.below(4)).collect(),
        second: Some(1 + rng.below(60)),
    });
    true
}

#[test]
fn a_cut_at_every_operation() {
    for_each_seed("power::a_cut_at_every_operation", 24, |entry, seed| single(entry, seed, 1));
}

#[test]
fn cuts_in_recovery_and_again_later() {
    for_each_seed("power::cuts_in_recovery_and_again_later", 24, |entry, seed| repeated(entry, seed, 2));
}

#[test]
fn cuts_and_faults() {
    for_each_seed("power::cuts_and_faults", 24, |entry, seed| faulty(entry, seed, 5));
}

/// Once red: four cuts, two of them in recovery, spoiled the pages programmed in the last free block, and too few pages
/// were left for collection. The block holds no data, so that the drive may erase the block.
#[test]
fn a_begun_block_of_spoiled_pages_is_space() {
    let (mga, seed) = (crate::drives::entry("mga"), 1032);
    let shape = small(mga, seed).expect("a drive");
    let cuts = Cuts { first: 349, in_recovery: vec![3, 3], second: Some(2) };
    assert!(Powered::new(&shape, mga, seed).run(&shape, &workload(&shape, seed, 60), &cuts), "the drive ends");
}

#[test]
fn cuts_on_drives_of_every_shape() {
    for_each_seed("power::cuts_on_drives_of_every_shape", 40, drawn);
}

#[test]
#[ignore = "minutes"]
fn long_cuts() {
    for_each_seed("--ignored power::long_cuts", 400, |entry, seed| {
        single(entry, seed + 1000, 1) && repeated(entry, seed + 1000, 1) && faulty(entry, seed + 1000, 1)
    });
}

#[test]
#[ignore = "minutes"]
fn long_cuts_on_drives_of_every_shape() {
    for_each_seed("--ignored power::long_cuts_on_drives_of_every_shape", 1000, |entry, seed| drawn(entry, seed + 1000));
}
