//! Merges of `bast`, counted by hand: N = 8 pages a block.

use super::ENTRY;
use crate::hybrid::tests::{PAGES, Rig};

#[test]
fn a_log_block_with_the_first_pages_is_merged_partially() {
    let mut rig = Rig::new(&ENTRY, 1, 4);
    rig.write(0..3);
    assert_eq!(rig.news(), [0; 5]);
    rig.write([PAGES + 5]);
    assert_eq!(rig.news(), [0, 1, 0, 5, 1], "N - 3 copies, the old data block erased");
}

#[test]
fn a_log_block_out_of_order_is_merged_fully() {
    let mut rig = Rig::new(&ENTRY, 1, 4);
    rig.write([5]);
    rig.write([PAGES + 5]);
    assert_eq!(rig.news(), [0, 0, 1, 8, 2], "N copies, data and log block erased");
    // The first pages in order, one of them twice.
    rig.write([2 * PAGES, 2 * PAGES + 1, 2 * PAGES + 1]);
    rig.write([0]);
    assert_eq!(rig.news(), [0, 0, 2, 16, 4]);
}

/// As many log blocks as written logical blocks: one merge per N overwrites. One log block less: one merge per
/// overwrite.
#[test]
fn more_logical_blocks_than_log_blocks_thrash() {
    for logs in [1, 2, 3] {
        for (blocks, writes) in [(logs, 9 * logs), (logs + 1, 40)] {
            let mut rig = Rig::new(&ENTRY, logs, 6);
            // In turn, each time another page, never in order.
            rig.write((0..writes).map(|turn| turn % blocks * PAGES + 7 - turn / blocks % 7));
            let merges = u64::from(if blocks == logs { logs } else { writes - logs });
            assert_eq!(rig.news(), [0, 0, merges, 8 * merges, 2 * merges], "{blocks} in {logs}");
        }
    }
}

#[test]
fn the_log_block_written_least_recently_is_merged() {
    let mut rig = Rig::new(&ENTRY, 2, 4);
    rig.write([3, PAGES + 3, 4]); // Logical block 1 is now older than 0.
    rig.write([2 * PAGES + 3]);
    assert_eq!(rig.news(), [0, 0, 1, 8, 2]);
    rig.write([5]);
    assert_eq!(rig.news(), [0; 5], "0 still has its log block");
    rig.write([PAGES + 4]);
    assert_eq!(rig.news(), [0, 0, 1, 8, 2], "1 has none");
}
