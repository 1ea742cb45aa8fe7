//! Tests of the module `map`.

use super::*;

#[test]
fn figure_3_two_levels_for_parts_and_one_for_whole_pages() {
    let mut map = Map::new(5, 4, true);
    for (lpn, ppn) in [(0, 0), (2, 4), (3, 6)] {
        map.set_full(lpn, ppn);
    }
    // Logical pages 1 and 4 are mapped to subpages of several flash pages.
    for (lpn, places) in [(1, [(1, 0), (2, 1), (2, 2), (3, 3)]), (4, [(1, 1), (5, 1), (1, 2), (7, 0)])] {
        let entry = map.make_partial(lpn);
        for (index, (ppn, pspn)) in places.into_iter().enumerate() {
            map.set_place(entry, index as u32, ppn * 4 + pspn);
        }
        map.settle(entry);
    }
    map.check().unwrap();
    assert_eq!(map.look_up(0), Target::Full(0));
    assert_eq!(map.look_up(2), Target::Full(4));
    assert_eq!(map.look_up(1), Target::Partial(0));
    assert_eq!((map.entry(0).pages, map.entry(1).pages), (3, 3), "PPN counts");
    assert_eq!((0..4).map(|index| map.place(4, index)).collect::<Vec<_>>(), [5, 21, 6, 28]);
    assert_eq!(map.mapping().tables, [("pmt", 5 * 8), ("spmt", 2 * (4 * 8 + 3))]);
}

#[test]
fn an_entry_goes_with_a_whole_overwritten_or_forgotten_page() {
    let mut map = Map::new(2, 4, true);
    map.set_full(0, 9);
    let entry = map.make_partial(0);
    assert_eq!(map.place(0, 2), 38, "from the page that held it");
    (0..4).for_each(|index| map.set_place(entry, index, 20 + (index + 1) % 4));
    map.settle(entry);
    assert_eq!(map.look_up(0), Target::Partial(entry), "in one page, but not at their own positions");
    (0..4).for_each(|index| map.set_place(entry, index, 20 + index));
    map.settle(entry);
    assert_eq!(map.look_up(0), Target::Full(5));
    let entry = map.make_partial(0);
    map.set_full(0, 7);
    assert_eq!(map.entries_used(), 0);
    assert_eq!(map.make_partial(1), entry, "freed entries are used again");
    map.settle(entry);
    assert_eq!((map.look_up(1), map.entries_used(), map.most_entries()), (Target::Unmapped, 0, 1));
    map.check().unwrap();
}

#[test]
fn pages_of_one_subpage_need_no_second_level() {
    let mut map = Map::new(1, 1, true);
    map.set_full(0, 1 << 31);
    assert_eq!((map.look_up(0), map.place(0, 0)), (Target::Full(1 << 31), 1 << 31));
}
