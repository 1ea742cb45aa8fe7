//! Cases that were red once and take no time: each is one seed of a long test, with its cause.

use crate::background::idle;
use crate::drives::entry;
use crate::faults::timed;
use crate::power::single;
use crate::superblocks;
use crate::whole_runs::{whole_run, whole_run_with_cuts, whole_run_with_cuts_after};

/// Collection reserved room twice for data already in a buffer.
#[test]
fn what_waits_in_a_buffer_is_not_moved_again() {
    assert!(whole_run(entry("hotcold"), 5658));
}

/// The cut leaves a bank of hotcold without a page to clean into, and data cannot go to the other.
#[test]
fn a_whole_run_that_a_cut_ends() {
    assert!(whole_run(entry("hotcold"), 3750));
}

/// The buffer of moved data was full after the cut, and one unit more took two pages where one was left.
#[test]
fn a_full_buffer_is_programmed_before_more_is_moved() {
    assert!(single(entry("llh"), 701_034, 1));
}

/// The power failed again and again before the four requests that were planned had changed anything.
#[test]
fn cleaning_of_full_blocks_ends_between_two_cuts() {
    assert!(idle(entry("subpage"), 1_000_225));
}

/// Successive power cuts lost what commits had written, until a collection had fewer pages than the tree of files may
/// need.
#[test]
fn a_file_system_that_cuts_left_few_pages_commits_by_the_log() {
    assert!(whole_run_with_cuts(entry("fs-page"), 1441));
}

/// The check of times mistook a page, erased and programmed again, for the earlier, unread content loaded in the same
/// call. A write with the old content then seemed acknowledged before the end of the program.
#[test]
fn data_loaded_before_an_erase_is_not_the_present_content() {
    assert!(timed(entry("sector-log"), 2_001_547));
}

/// A copy of a page of a word line was written before the program of the page had begun, and the cut rolled that
/// program back. The page was programmed again with other data. The next cut corrupted the page and restored the copy,
/// data that the page had never held.
#[test]
fn a_copy_of_what_a_page_never_held_is_not_given_back() {
    assert!(whole_run_with_cuts_after(entry("page"), 1010, 12, 12));
}

/// Each cut left one more page that was read from its copy, until no block of copies could be erased. Such pages held
/// obsolete data, or were in blocks that collection did not choose.
#[test]
fn copies_of_obsolete_pages_are_dropped_and_others_moved() {
    for (layer, seed) in
        [("page", 2659), ("sector-log", 2490), ("sector-log", 2721), ("llh", 2659), ("llh", 1_002_355), ("mga", 1646)]
    {
        assert!(whole_run_with_cuts_after(entry(layer), seed, 12, 12), "{layer}");
    }
}

/// A block of copies was erased before the block of a page that was read from a copy: the cut rolled back the second
/// erase only.
#[test]
fn copies_are_erased_after_the_pages_that_are_read_from_them() {
    for (layer, seed) in [("bast", 1295), ("bast", 1567), ("bast", 1839), ("sector-log", 1794), ("sector-log", 2011)] {
        assert!(whole_run_with_cuts_after(entry(layer), seed, 12, 12), "{layer}");
    }
}

/// The check of times mistook a place, read from a translation page still in flight, for the place of a page that
/// collection had moved since.
#[test]
fn where_a_moved_page_is_was_not_read() {
    assert!(crate::checkpoint::timed(entry("dftl"), 1001, 20));
}

/// A translation page written after a checkpoint named a page that the cut rolled back, or a page in a block that was
/// then erased.
#[test]
fn a_translation_page_may_name_what_a_cut_took_back() {
    for seed in [1004, 1010, 1036, 1051] {
        assert!(crate::checkpoint::timed(entry("dftl"), seed, 20), "{seed}");
    }
}

/// A die lagged behind the others when the power failed. Its pages of the open superblock stayed erased until the next
/// erase, and the smallest drives ended for want of a page.
#[test]
fn pages_that_a_cut_left_out_are_programmed_afterwards() {
    assert!(superblocks::life(entry("page-fgm"), 17_003_464));
}

/// The cut tore a page of each die of collection's superblock, and collection had left only one.
#[test]
fn cleaning_leaves_a_page_for_each_die_of_a_superblock() {
    assert!(superblocks::life(entry("subpage"), 3_002_720));
}

/// A timeout padded the last moved data, and collected a block first although there was room. That data filled no page
/// either, and waited for the next timeout. The drive never became idle, and planned more than the dies could do.
#[test]
fn a_timeout_of_what_cleaning_moved_cleans_nothing() {
    assert!(crate::rain::timed(entry("subpage"), 2_201_053));
}

/// As above, with parity: the drive skipped pages that the cut left out. The first of these drives had lost a die
/// before; all dies of the second worked.
#[test]
fn pages_left_out_of_stripes_are_programmed_afterwards() {
    assert!(crate::rain::timed(entry("page-fgm"), 7_100_771));
    assert!(crate::rain::healthy(entry("subpage"), 5_010_144));
}

/// A die failed in an erase of recovery. The last page of a block, left out by a cut, was lost, and the block stayed a
/// frontier without pages.
#[test]
fn a_die_that_fails_in_recovery_takes_pages_left_out() {
    assert!(crate::rain::timed(entry("page-fgm"), 11_100_147));
}

/// A stripe's parity covered only the pages that a cut had left. After the next cut, a page left out by the first was
/// programmed, and memory held none of the data that the parity covered.
#[test]
fn a_stripe_with_pages_left_out_stays_in_memory_with_parity() {
    assert!(crate::rain::cut_again_and_again(entry("page"), 1891));
}

/// The power failed with one die of a superblock erased, and another still about to program data of the erased block.
/// The rollback marked the superblock as erased as a whole.
#[test]
fn a_superblock_that_is_erased_in_part_is_erased_again() {
    assert!(crate::rain::cut_again_and_again(entry("page"), 3_002_199));
}

/// The mount after a cut wrote metadata into open pages of the buffer, whose room the recovery did not count.
#[test]
fn a_mount_that_repairs_takes_room_of_the_buffer() {
    assert!(crate::runs::lawful(entry("fs-hotcold"), 37));
}
