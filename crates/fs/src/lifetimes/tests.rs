//! Tests of `lifetimes`.

use super::*;

fn pages(hint: Lifetime) -> u64 {
    match hint {
        Lifetime::Pages(pages) => pages.into(),
        other => panic!("{other:?}"),
    }
}

/// Little's law: with 10 valid pages, and an invalidation for every second written page, the mean lifetime is 20 pages.
#[test]
fn a_file_that_is_overwritten_evenly() {
    let mut lives = Lifetimes::default();
    assert_eq!(lives.expect(2), Lifetime::Unknown);
    (0..10).for_each(|_| lives.programmed(2));
    for _ in 0..2000 {
        lives.programmed(3);
        lives.invalidated(2);
        lives.programmed(2);
    }
    let found = pages(lives.expect(2));
    assert!((19..=21).contains(&found), "{found}");
    assert!(pages(lives.expect(3)) > 100_000, "no page of this file is ever invalidated");
}

#[test]
fn a_new_file_is_like_its_groups() {
    let mut lives = Lifetimes::default();
    let (log, film) = (FileGroup { directory: 7, suffix: 1 }, FileGroup { directory: 8, suffix: 2 });
    lives.begin(2, log);
    lives.begin(3, film);
    lives.programmed(2);
    (0..100).for_each(|_| lives.programmed(3));
    for _ in 0..50 {
        lives.invalidated(2);
        lives.programmed(2);
    }
    lives.invalidated(3);
    lives.begin(4, FileGroup { directory: 7, suffix: 9 });
    lives.begin(5, FileGroup { directory: 9, suffix: 2 });
    assert!(pages(lives.expect(4)) < 10 && pages(lives.expect(5)) > 1000);
    assert_eq!(pages(lives.expect(6)), lives.all.mean(lives.now).unwrap(), "a file of no group is like all files");
}

#[test]
fn a_file_that_changes_its_ways() {
    let mut lives = Lifetimes::default();
    lives.programmed(2);
    let mut rewrite = |every: u64, times: u64| {
        for _ in 0..times {
            (1..every).for_each(|_| lives.programmed(3));
            lives.invalidated(2);
            lives.programmed(2);
        }
        pages(lives.expect(2))
    };
    assert!((90..=110).contains(&rewrite(100, 500)));
    assert!((4..=6).contains(&rewrite(5, 2000)));
}
