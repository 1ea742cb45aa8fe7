//! Cases that were red once and take no time. Each is one seed of a long test; what it was about is said beside it.

use crate::background::idle;
use crate::drives::entry;
use crate::power::single;
use crate::whole_runs::whole_run;

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
