//! Cases that were red once and take no time. Each is one seed of a long test; what it was about is said beside it.

use crate::background::idle;
use crate::drives::entry;
use crate::faults::timed;
use crate::power::single;
use crate::superblocks;
use crate::whole_runs::{whole_run, whole_run_with_cuts, whole_run_with_cuts_after};

/// Cleaning held that it needs room twice for what is in a buffer already.
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

/// One power cut after the other took what commits had written, until a collection had fewer pages than the tree of files may need.
#[test]
fn a_file_system_that_cuts_left_few_pages_commits_by_the_log() {
    assert!(whole_run_with_cuts(entry("fs-page"), 1441));
}

/// The check of times took a page that was erased and programmed again for what had been loaded from there, and not read, earlier in the
/// same call: old content, so that a write seemed to be acknowledged before its program had ended.
#[test]
fn what_was_loaded_from_a_page_before_its_erase_is_not_what_it_holds_now() {
    assert!(timed(entry("sector-log"), 2_001_547));
}

/// A copy of a page of a word line was there before the program of the page had begun. The cut took that back; the page was programmed again with
/// other data, and the next cut, which corrupted it, brought back the copy of the data that it had never held.
#[test]
fn a_copy_of_what_a_page_never_held_is_not_given_back() {
    assert!(whole_run_with_cuts_after(entry("page"), 1010, 12, 12));
}

/// Each cut left a page more that was read from its copy, until no block that is kept for copies could be erased; what such pages held was
/// obsolete, or lay in blocks that were not cleaned.
#[test]
fn copies_of_obsolete_pages_are_given_up_and_blocks_with_others_moved() {
    for (layer, seed) in
        [("page", 2659), ("sector-log", 2490), ("sector-log", 2721), ("llh", 2659), ("llh", 1_002_355), ("mga", 1646)]
    {
        assert!(whole_run_with_cuts_after(entry(layer), seed, 12, 12), "{layer}");
    }
}

/// A block of copies was erased before that of a page that was read from one of them: the cut undid the second erase, but not the first.
#[test]
fn copies_are_erased_after_the_pages_that_are_read_from_them() {
    for (layer, seed) in [("bast", 1295), ("bast", 1567), ("bast", 1839), ("sector-log", 1794), ("sector-log", 2011)] {
        assert!(whole_run_with_cuts_after(entry(layer), seed, 12, 12), "{layer}");
    }
}

/// The check of times took a place that a translation page said, and that was still being read, for that of a page that cleaning had moved since.
#[test]
fn where_a_moved_page_is_was_not_read() {
    assert!(crate::checkpoint::timed(entry("dftl"), 1001, 20));
}

/// A translation page that was written since a checkpoint named a page that the cut took back, or that lay in a block erased for it.
#[test]
fn a_translation_page_may_name_what_a_cut_took_back() {
    for seed in [1004, 1010, 1036, 1051] {
        assert!(crate::checkpoint::timed(entry("dftl"), seed, 20), "{seed}");
    }
}

/// A die was behind the others when the power failed: the pages of the open superblock that it had not programmed were left erased until the next
/// erase, and the smallest drives ended for want of one.
#[test]
fn pages_that_a_cut_left_out_are_programmed_afterwards() {
    assert!(superblocks::life(entry("page-fgm"), 17_003_464));
}

/// The cut tore a page of each die of the superblock that cleaning wrote to, and cleaning had left one.
#[test]
fn cleaning_leaves_a_page_for_each_die_of_a_superblock() {
    assert!(superblocks::life(entry("subpage"), 3_002_720));
}

/// A timeout padded what cleaning had moved last, and cleaned a block for room first, though there was some: what that moved filled no page either, and
/// waited for the next timeout. The drive never came to rest, and planned more than its dies could do.
#[test]
fn a_timeout_of_what_cleaning_moved_cleans_nothing() {
    assert!(crate::rain::timed(entry("subpage"), 2_201_053));
}

/// As above, with parity: what the cut left out was skipped. The first of these drives had lost a die before, and all dies of the second worked.
#[test]
fn pages_that_a_cut_left_out_of_stripes_with_parity_are_programmed_afterwards() {
    assert!(crate::rain::timed(entry("page-fgm"), 7_100_771));
    assert!(crate::rain::healthy(entry("subpage"), 5_010_144));
}

/// A die failed in an erase of recovery: the last page that a block had, which a cut had left out, was lost, and the block was a frontier without any.
#[test]
fn a_die_that_fails_in_recovery_takes_pages_that_the_cut_left_out() {
    assert!(crate::rain::timed(entry("page-fgm"), 11_100_147));
}

/// The parity of a stripe was that of what a cut had left of it; after the next cut a page was programmed that the first had left out, and of what the
/// parity was made of there was nothing in memory.
#[test]
fn a_stripe_that_has_pages_left_out_is_in_memory_though_it_has_parity() {
    assert!(crate::rain::cut_again_and_again(entry("page"), 1891));
}

/// One die of a superblock was erased when the power failed, and another had yet to program what the erase took: undoing that made the superblock one
/// that was erased as a whole.
#[test]
fn a_superblock_that_is_erased_in_part_is_erased_again() {
    assert!(crate::rain::cut_again_and_again(entry("page"), 3_002_199));
}
