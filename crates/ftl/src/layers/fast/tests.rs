//! Merges of `fast`, counted by hand: N = 8 pages a block.

use super::ENTRY;
use crate::hybrid::tests::{PAGES, Rig};

#[test]
fn a_victim_costs_a_merge_for_each_of_its_logical_blocks() {
    for distinct in [1, 2, 4, 8] {
        let mut rig = Rig::new(&ENTRY, 2, 10);
        let page = |turn: u32| turn % distinct * PAGES + 1 + turn / distinct % 7;
        rig.write((0..8).map(page));
        assert_eq!(rig.news(), [0; 5], "one RW log block takes N pages of any logical blocks");
        rig.write([9 * PAGES + 1]);
        let merges = u64::from(distinct);
        assert_eq!(rig.news(), [0, 0, merges, 8 * merges, merges + 1], "{distinct} logical blocks");
    }
}

#[test]
fn a_merge_takes_the_pages_of_all_log_blocks() {
    let mut rig = Rig::new(&ENTRY, 3, 8);
    let round = |page: u32| (0..8).map(move |block| block * PAGES + page);
    rig.write(round(1).chain(round(2)));
    assert_eq!(rig.news(), [0; 5], "two RW log blocks");
    rig.write(round(3));
    assert_eq!(rig.news(), [0, 0, 8, 64, 9], "the first victim has a page of each logical block");
    rig.write(round(4));
    assert_eq!(rig.news(), [0, 0, 0, 0, 1], "the second has none left");
}

/// Loads on which `bast` thrashes: k logical blocks in turn, n log blocks.
#[test]
fn single_pages_of_many_logical_blocks_merge_once_a_log_block() {
    let (mut rig, mut thrashing) = (Rig::new(&ENTRY, 3, 8), Rig::new(&super::super::bast::ENTRY, 3, 8));
    let writes: Vec<u32> = (0..16 + 160).map(|turn| turn % 8 * PAGES + 1 + turn / 8 * 3 % 7).collect();
    rig.write(writes.clone());
    thrashing.write(writes);
    // Each second victim of 8 pages has 8 logical blocks, which empties the other.
    assert_eq!(rig.news(), [0, 0, 80, 640, 80 + 20]);
    assert_eq!(thrashing.news(), [0, 0, 173, 8 * 173, 2 * 173]);
}

#[test]
fn a_first_page_begins_the_sequential_log_block() {
    let mut rig = Rig::new(&ENTRY, 2, 4);
    rig.write(0..3);
    rig.write([2 * PAGES + 5]);
    assert_eq!(rig.news(), [0; 5], "another logical block does not disturb it");
    rig.write([PAGES]);
    assert_eq!(rig.news(), [0, 1, 0, 5, 1], "it is completed with N - 3 copies");
    rig.write([PAGES]);
    assert_eq!(rig.news(), [0, 1, 0, 7, 1], "the first page again");
}

#[test]
fn a_page_out_of_order_ends_the_sequential_log_block() {
    let mut rig = Rig::new(&ENTRY, 2, 4);
    rig.write([0, 1, 5]);
    assert_eq!(rig.news(), [0, 1, 0, 6, 1]);
    rig.write([0, 1]);
    assert_eq!(rig.news(), [0; 5], "a new one");
    // The RW log block holds page 5, which the merge copies from there.
    let before = rig.read(8);
    rig.write([PAGES]);
    assert_eq!(rig.news(), [0, 1, 0, 6, 1]);
    assert_eq!(rig.read(8), before);
}

#[test]
fn a_victim_takes_along_pages_of_the_sequential_logical_block() {
    let mut rig = Rig::new(&ENTRY, 2, 10);
    rig.write([1, 2 * PAGES + 2, 0]);
    // The SW log block holds page 0 of logical block 0, the RW one page 1; six more fill the RW one.
    rig.write((3..9).map(|block| block * PAGES + 1));
    assert_eq!(rig.news(), [0; 5]);
    let before = rig.read(80);
    rig.write([9 * PAGES + 1]);
    // Logical block 0 is completed behind page 0; seven more are merged fully; then the victim.
    assert_eq!(rig.news(), [0, 1, 7, 7 + 56, 1 + 7 + 1]);
    assert_eq!(rig.read(72), before[..144]);
}
