//! Tests of the module `rules`.

use super::super::part::samples::slc;
use super::super::part::{CellKind, ProgramOrder};
use super::*;

#[test]
fn spread_reads_need_the_command_and_its_reach() {
    let spread = |words| ReadCommand { mode: ReadMode::Spread, words };
    let plain = Part { page_bytes: 16_384, word_bytes: 2048, ..slc() };
    assert_eq!(check_read(&plain, spread(1)), Err(Rule::NoSpread));
    assert_eq!(check_read(&plain, ReadCommand { mode: ReadMode::Dma, words: 0b101 }), Ok(()));
    let any = Part { t_read_words: vec![1; 8], ..plain };
    let run = Part { spread_reach: SpreadReach::Run, ..any.clone() };
    for words in 1..256 {
        let runs = (0..8).filter(|&i| words >> i & 1 == 1 && (i == 0 || words >> (i - 1) & 1 == 0)).count();
        assert_eq!(check_read(&any, spread(words)), Ok(()));
        assert_eq!(check_read(&run, spread(words)).is_ok(), runs == 1, "{words:08b}");
    }
}

fn check(part: &Part, programs: &[u8], page: u32) -> Result<(), Rule> {
    let next_page = programs.iter().rposition(|&p| p > 0).map_or(0, |last| last as u32 + 1);
    let mut reached = Reached::default();
    (0..)
        .zip(programs)
        .filter(|(_, programs)| **programs > 0)
        .for_each(|(page, _)| reached.note(page, part.is_high(page)));
    check_program(&PageView { part, bad: false, torn: false, page, next_page, programs, dies: 1, reached })
}

#[test]
fn strict_order_allows_the_open_page_only() {
    let part = Part { nop: 4, ..slc() };
    assert_eq!(check(&part, &[1, 1, 0, 0, 0, 0, 0, 0], 2), Ok(()));
    assert_eq!(check(&part, &[1, 1, 0, 0, 0, 0, 0, 0], 1), Ok(()));
    assert_eq!(check(&part, &[1, 1, 0, 0, 0, 0, 0, 0], 0), Err(Rule::ReprogramOrder));
    assert_eq!(check(&part, &[1, 0, 0, 1, 0, 0, 0, 0], 2), Err(Rule::PageOrder));
}

#[test]
fn ascending_order_allows_reprogramming_pages_up_to_nop() {
    let part = Part { nop: 2, order: ProgramOrder::Ascending, ..slc() };
    assert_eq!(check(&part, &[1, 1, 1, 0, 0, 0, 0, 0], 0), Ok(()));
    assert_eq!(check(&part, &[2, 1, 1, 0, 0, 0, 0, 0], 0), Err(Rule::TooManyPrograms));
    assert_eq!(check(&part, &[1, 0, 1, 0, 0, 0, 0, 0], 1), Err(Rule::PageOrder));
    let any = Part { order: ProgramOrder::Any, ..part };
    assert_eq!(check(&any, &[1, 0, 1, 0, 0, 0, 0, 0], 1), Ok(()));
}

#[test]
fn low_low_high_scheme_is_allowed_and_lhl_and_lhh_are_not() {
    let part = Part { cell: CellKind::Mlc, nop: 2, order: ProgramOrder::LowLowHigh, ..slc() };
    // Pages: L0 L1 H0 L2 H1 L3 H2 H3.
    let first_round = [1, 1, 0, 1, 0, 1, 0, 0];
    assert_eq!(check(&part, &[1, 0, 0, 0, 0, 0, 0, 0], 2), Ok(()));
    assert_eq!(check(&part, &first_round, 0), Ok(()), "a low page again");
    assert_eq!(check(&part, &first_round, 2), Ok(()), "its high page");
    assert_eq!(check(&part, &[2, 1, 1, 1, 0, 1, 0, 0], 0), Err(Rule::TooManyPrograms));
    assert_eq!(check(&part, &[1, 1, 1, 1, 0, 1, 0, 0], 0), Err(Rule::LowAfterHigh));
    assert_eq!(check(&part, &[2, 1, 1, 1, 0, 1, 0, 0], 2), Err(Rule::HighTwice));
    assert_eq!(check(&part, &[0, 0, 0, 0, 0, 0, 0, 0], 2), Err(Rule::HighBeforeLow));
    assert_eq!(check(&part, &[1, 1, 0, 1, 1, 0, 0, 0], 2), Err(Rule::PageOrder), "high pages ascend");
    assert_eq!(check(&part, &[1, 0, 0, 1, 0, 0, 0, 0], 1), Err(Rule::PageOrder), "low pages ascend");
}

#[test]
fn an_ideal_part_reprograms_low_pages_after_high_pages() {
    let part = Part { cell: CellKind::Mlc, nop: 2, order: ProgramOrder::LowHighLow, ..slc() };
    assert_eq!(check(&part, &[1; 8], 0), Ok(()));
    assert_eq!(check(&part, &[2, 1, 1, 1, 1, 1, 1, 1], 0), Err(Rule::TooManyPrograms));
    assert_eq!(check(&part, &[1; 8], 2), Err(Rule::HighTwice), "high pages are as on real parts");
}

#[test]
fn refusals_name_the_transitions_that_fail() {
    let text = Rule::LowAfterHigh.to_string();
    assert!(text.contains("ER does not reach P3") && text.contains("P1 does not reach P2"), "{text}");
    let text = Rule::HighTwice.to_string();
    assert!(text.contains("P3 cannot reach P2") && text.contains("P1 goes to P2"), "{text}");
}

#[test]
fn low_pages_that_run_ahead_are_not_the_standard_order() {
    let part = Part { cell: CellKind::Mlc, ..slc() };
    let mut reached = Reached::default();
    for page in 0..8 {
        reached.note(page, part.is_high(page));
        assert!(!reached.low_first(), "standard order up to page {page}");
    }
    let mut reached = Reached::default();
    for (page, first) in [(0, false), (1, false), (3, true), (5, true), (2, true), (4, false)] {
        reached.note(page, part.is_high(page));
        assert_eq!(reached.low_first(), first, "page {page}");
    }
}
