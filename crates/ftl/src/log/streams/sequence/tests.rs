//! Tests of the module `sequence`.

use super::*;

#[test]
fn the_third_page_of_a_sequence_is_cold() {
    let mut sequence = Sequence::new(8);
    let mut hot = |page: u64, pages: u32| {
        sequence.stream_of(Extent { sector: page * 8, sectors: pages * 8 }, Directives::NONE) == HOT
    };
    let run = [10, 11, 12, 13].map(|page| hot(page, 1));
    assert_eq!(run, [true, true, false, false]);
    assert!(hot(20, 1), "a jump begins a new sequence");
    assert!(!hot(30, 3), "one request may be a sequence");
    assert!(!hot(33, 1), "and continue in the next one");
    assert!(hot(33, 1), "the same page again is no sequence");
}
