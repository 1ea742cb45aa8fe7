//! Tests of the module `read_counts`.

use super::*;

#[test]
fn counts_stop_at_fifteen_and_age() {
    for (for_pages, entry) in [(true, UNMAPPED), (false, 0)] {
        let mut reads = ReadCounts::new(1, for_pages);
        reads.begin_entry(0);
        (0..20).for_each(|_| reads.add(0, entry));
        assert_eq!(reads.of(0, entry), 15);
        reads.age();
        reads.age();
        assert_eq!(reads.of(0, entry), 3);
        reads.add(0, entry);
        assert_eq!(reads.of(0, entry), 4);
        (0..40).for_each(|_| reads.age());
        assert_eq!(reads.of(0, entry), 0);
    }
}

#[test]
fn a_count_ends_with_its_entry_or_lasts_as_long_as_its_page() {
    let (mut entries, mut pages) = (ReadCounts::new(2, false), ReadCounts::new(2, true));
    for reads in [&mut entries, &mut pages] {
        reads.begin_entry(0);
        reads.add(1, 0);
        reads.begin_entry(0);
        reads.add(1, UNMAPPED);
    }
    assert_eq!((entries.of(1, 0), entries.of(1, UNMAPPED)), (0, 0));
    assert_eq!((pages.of(1, 0), pages.of(1, UNMAPPED), pages.of(0, 0)), (2, 2, 0));
}

#[test]
fn periods_that_overflow_leave_no_count() {
    let mut reads = ReadCounts::new(1, true);
    reads.period = (1 << (u32::BITS - COUNT_BITS)) - 1;
    reads.add(0, UNMAPPED);
    reads.age();
    assert_eq!((reads.of(0, UNMAPPED), reads.period), (0, 0));
}
