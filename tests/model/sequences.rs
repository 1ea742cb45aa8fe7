//! Random sequences of requests against the shadow, counted and timed.

use crate::drives::{Limits, build, draw, entry, plain, with};
use crate::harness::{Model, for_each_seed};
pub use palimpsest_check::sequences::*;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;

fn counted(entry: &'static Entry, seed: u64, limits: Limits, payload: Payload, check_every: usize) -> bool {
    let mut rng = Rng::new(seed, 0xd81e);
    let Ok(shape) = draw(entry.name, &mut rng, limits) else { return false };
    count_requests(&shape, entry, seed, payload, check_every);
    true
}

fn timed(entry: &'static Entry, seed: u64, payload: Payload) -> bool {
    let mut rng = Rng::new(seed, 0x71e);
    let Ok(shape) = draw(entry.name, &mut rng, SMALL) else { return false };
    time_requests(&shape, entry, seed, payload, &mut rng);
    true
}

#[test]
fn counted_sequences() {
    for_each_seed("sequences::counted_sequences", 30, |entry, seed| counted(entry, seed, SMALL, Payload::Tag, 1));
}

#[test]
fn counted_sequences_of_larger_drives() {
    for_each_seed("sequences::counted_sequences_of_larger_drives", 6, |entry, seed| {
        counted(entry, seed, LARGE, Payload::Tag, 97)
    });
}

#[test]
fn counted_sequences_of_bytes() {
    for_each_seed("sequences::counted_sequences_of_bytes", 6, |entry, seed| {
        counted(entry, seed, Limits { subpages: 1024, planes: 4 }, Payload::Bytes, 11)
    });
}

#[test]
fn timed_sequences() {
    for_each_seed("sequences::timed_sequences", 30, |entry, seed| timed(entry, seed, Payload::Tag));
}

#[test]
fn timed_sequences_of_bytes() {
    for_each_seed("sequences::timed_sequences_of_bytes", 5, |entry, seed| timed(entry, seed, Payload::Bytes));
}

/// Once red: every full block of copies held copies of one word line, so that none was erased.
#[test]
fn copies_of_one_word_line_may_be_in_every_block_of_copies() {
    let cells = ["part.cell=qlc", "part.pair_corruption=true"];
    let layer = ["ftl.streams=3", "ftl.classifier=recency", "ssd.over_provisioning=100%"];
    let settings = with(&with(&plain(1, 24, 32, 1), &cells), &layer);
    let shape = build("page", &settings).expect("a drive");
    for seed in 0..3 {
        let mut model = Model::new(&shape, entry("page"), Payload::Tag, seed);
        for command in requests(&shape, seed) {
            model.count(command).unwrap_or_else(|error| panic!("seed {seed}, {command:?}: {error}"));
        }
        model.read_back().unwrap_or_else(|error| panic!("seed {seed}, at the end: {error}"));
    }
}

/// Once red: together with data waiting to be moved, hot data that could not be encoded took two pages, the second in
/// the last clean block.
#[test]
fn failed_encodings_leave_the_last_clean_block_to_collection() {
    assert!(timed(entry("llh"), 1_000_327, Payload::Tag));
}

/// Once red: the block with the fewest valid units belonged to a class without room, and collection considered no other
/// block.
#[test]
fn where_one_class_has_no_room_another_is_cleaned() {
    assert!(counted(entry("subpage"), 1_001_680, SMALL, Payload::Tag, 1));
    assert!(timed(entry("page-fgm"), 1_000_977, Payload::Tag));
}

/// Once red: the only erased block came from programming the waiting data of one class, after the other class had found
/// no block to collect.
#[test]
fn what_waits_of_one_class_makes_room_for_another() {
    assert!(counted(entry("page-fgm"), 1_000_225, LARGE, Payload::Tag, 97));
}

#[test]
#[ignore = "minutes"]
fn long_counted_sequences() {
    for_each_seed("--ignored sequences::long_counted_sequences", 2000, |entry, seed| {
        counted(entry, seed + 1_000_000, SMALL, Payload::Tag, 1)
    });
}

#[test]
#[ignore = "minutes"]
fn long_counted_sequences_of_larger_drives() {
    for_each_seed("--ignored sequences::long_counted_sequences_of_larger_drives", 300, |entry, seed| {
        counted(entry, seed + 1_000_000, LARGE, Payload::Tag, 97)
    });
}

#[test]
#[ignore = "minutes"]
fn long_timed_sequences() {
    for_each_seed("--ignored sequences::long_timed_sequences", 1500, |entry, seed| {
        timed(entry, seed + 1_000_000, if seed % 8 == 0 { Payload::Bytes } else { Payload::Tag })
    });
}
