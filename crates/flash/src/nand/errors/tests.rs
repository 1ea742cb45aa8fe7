//! Drawn shares of failed reads against the binomial distribution, the subpages that failed reads lose, and the
//! rollback of retries. Not tested here: the table of tolerated rates.

use super::super::part::samples::slc;
use super::tolerance::tests::tail;
use super::*;
use crate::geometry::Geometry;
use crate::nand::data::{Data, Payload};
use crate::nand::part::ReadCommand;
use crate::nand::{Outcome, PADDING, count, first_subpages};

/// Most standard deviations between a drawn share and its probability. A correct share is within them with 99.994 %.
const MOST_DEVIATIONS: f64 = 4.0;

/// Erased flash of `blocks` blocks of eight pages of 16 KiB, with subpages of 4 KiB, at the bit error rate `rate`.
fn flash(blocks: u32, word_bytes: u32, rate: f64, settings: ErrorSettings) -> Nand {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: 8,
        subpages_per_page: 4,
        subpage_bytes: 4096,
    };
    let mut part = Part { page_bytes: 16_384, word_bytes, ..slc() };
    (part.wear.fresh_rate, part.wear.limit_rate) = (rate, 2.0 * rate);
    let mut nand = Nand::new(geometry, part, Payload::Tag, None);
    nand.set_read_errors(settings, 7);
    nand
}

fn wanted(nand: &Nand, subpages: SubpageMask) -> Wanted {
    Wanted { subpages, words: nand.part().words_of_subpages(subpages) }
}

fn with_strength(strength: u32) -> ErrorSettings {
    ErrorSettings { strength, ..ErrorSettings::default() }
}

/// Asserts that `found` of `of` draws agree with the probability `expected`.
fn assert_drawn(found: u64, of: u64, expected: f64, case: &str) {
    let (share, deviation) = (found as f64 / of as f64, libm::sqrt(expected * (1.0 - expected) / of as f64));
    let away = (share - expected) / deviation;
    assert!(away.abs() < MOST_DEVIATIONS, "{case}: {share} for {expected}, {away:.1} deviations");
}

#[test]
fn a_read_of_n_words_fails_as_often_as_n_words() {
    let pages = 80_000;
    for (word_bytes, strength, rate) in [
        (16_384, 36, 2e-4),
        (16_384, 36, 1.5e-4),
        (16_384, 72, 5e-4),
        (4096, 12, 2e-4),
        (4096, 36, 8e-4),
        (1024, 8, 3e-4),
        (512, 1, 2e-5),
    ] {
        let word = tail(u64::from(word_bytes) * 8, strength.into(), rate);
        for subpages in [0b0001, 0b1000, 0b0110, 0b1111] {
            let mut nand = flash(pages / 8, word_bytes, rate, with_strength(strength));
            let wanted = wanted(&nand, subpages);
            let failed = (0..pages).filter(|&ppn| nand.attempt_read(ppn, ppn, wanted, 0, true).failed != 0).count();
            let expected = 1.0 - libm::pow(1.0 - word, count(wanted.words).into());
            let case = format!("words of {word_bytes} B, {strength} bits, rate {rate}, subpages {subpages:b}");
            assert_drawn(failed as u64, pages.into(), expected, &case);
        }
    }
}

#[test]
fn a_step_of_a_retry_fails_as_often_as_its_rate_says() {
    let (pages, rate) = (80_000, 2e-4);
    let ladder = ErrorSettings { retries: vec![1, 1], retry_rates: vec![0.8, 0.6], ..with_strength(12) };
    let mut nand = flash(pages / 8, 4096, rate, ladder);
    let two = wanted(&nand, 0b0101);
    let mut steps = [0; 3];
    let mut failed = 0;
    for ppn in 0..pages {
        let attempt = nand.attempt_read(ppn, ppn, two, 0, true);
        steps[attempt.steps as usize] += 1;
        failed += u64::from(attempt.failed != 0);
    }
    let fails = |share: f64| 1.0 - libm::pow(1.0 - tail(4096 * 8, 12, rate * share), 2.0);
    assert_drawn(steps[1] + steps[2], pages.into(), fails(1.0), "a step or more");
    assert_drawn(steps[2], pages.into(), fails(0.8), "two steps");
    assert_drawn(failed, pages.into(), fails(0.6), "failed in both steps");
    assert_eq!(nand.counters().retries, steps[1] + 2 * steps[2]);
}

/// Reads need retries with the mean over layers of the binomial tails, and the worst layer alone makes a block due.
#[test]
fn layers_need_retries_by_their_own_rates() {
    let (pages, rate, shares) = (80_000, 3e-4, vec![0.2, 1.0, 0.5, 0.8]);
    let cells = growth::CellSettings { layers: shares.clone(), ..Default::default() };
    let settings = ErrorSettings { retries: vec![1], retry_rates: vec![0.0], cells, ..with_strength(12) };
    let mut nand = flash(pages / 8, 4096, rate, settings.clone());
    let one = wanted(&nand, 1);
    let retries = |nand: &mut Nand, page: u32, block: u32| nand.attempt_read(8 * block + page, 0, one, 0, true).steps;
    let found: Vec<u32> =
        (0..8).map(|page| (0..pages / 8).map(|block| retries(&mut nand, page, block)).sum()).collect();
    let fails: Vec<f64> = shares.iter().map(|share| tail(4096 * 8, 12, rate * share)).collect();
    // Two pages of a block are in each layer.
    for (layer, &expected) in fails.iter().enumerate() {
        let of_layer = u64::from(found[2 * layer] + found[2 * layer + 1]);
        assert_drawn(of_layer, u64::from(pages) / 4, expected, &format!("layer {layer}"));
    }
    let mean = fails.iter().sum::<f64>() / 4.0;
    assert_drawn(found.iter().copied().map(u64::from).sum(), pages.into(), mean, "all layers");

    // Some 33 wrong bits are expected in the worst layer, 7 in the best.
    let mut nand = flash(50, 4096, 1e-3, ErrorSettings { strength: 20, refresh_retries: 1, ..settings });
    for block in 0..50 {
        let steps: u32 = (0..2).map(|page| retries(&mut nand, page, block)).sum();
        assert_eq!((steps, nand.take_due()), (0, None), "the best layer of block {block}");
        let steps: u32 = (2..4).map(|page| retries(&mut nand, page, block)).sum();
        assert!(steps > 0, "the worst layer of block {block}");
        assert_eq!(nand.take_due(), Some(block));
    }
}

#[test]
fn subpages_are_lost_with_their_words_and_counted_once() {
    for word_bytes in [1024, 4096, 8192, 16_384] {
        let (word, pages) = (u64::from(word_bytes) * 8, 400);
        // About one word of four fails.
        let strength = 10;
        let rate = (0..).map(|step| 1e-6 * libm::pow(1.05, f64::from(step))).find(|&rate| tail(word, 10, rate) > 0.25);
        let mut nand = flash(pages / 8, word_bytes, rate.unwrap(), with_strength(strength));
        for ppn in 0..pages {
            let one = |index: u32| Wanted { subpages: 1 << index, words: nand.part().words_of_subpages(1 << index) };
            let each: Vec<Wanted> = (0..4).map(one).collect();
            let all = wanted(&nand, first_subpages(4));
            let alone = each.iter().fold(0, |sum, &part| sum | nand.attempt_read(ppn, ppn, part, 0, true).failed);
            let first = nand.attempt_read(ppn, ppn, each[1], 0, false);
            assert_eq!((first.failed, first.lost), (alone & 0b0010, count(alone & 0b0010)), "page {ppn}");
            let rest = nand.attempt_read(ppn, ppn, all, 0, false);
            assert_eq!((rest.failed, rest.lost), (alone, count(alone & !0b0010)), "page {ppn}");
            assert_eq!(nand.attempt_read(ppn, ppn, all, 0, false).lost, 0, "page {ppn} again");
        }
        let lost = nand.found_lost().len() as u32;
        assert!((pages / 2..pages * 7 / 2).contains(&lost), "{lost} of {} subpages", pages * 4);
    }
}

/// Once wrong: a power cut subtracted a read that had not ended, but not the retries of the read.
#[test]
fn a_power_cut_takes_a_read_back_with_its_retries() {
    let ladder = ErrorSettings { retries: vec![1, 1], retry_rates: vec![0.9, 0.8], ..with_strength(1) };
    let mut nand = flash(1, 4096, 1e-2, ladder);
    nand.part.e_read = 5;
    let (one, data) = (wanted(&nand, 1), [Data::ZERO; 4]);
    assert_eq!(nand.program(0, 1, &[0, PADDING, PADDING, PADDING], &data).unwrap(), Outcome::Done);
    nand.keep_undo();
    for reads in 1..3 {
        nand.read(0, 1, ReadCommand::PAGE).unwrap();
        assert_eq!(nand.attempt_read(0, 0, one, 0, true).steps, 2);
        let now = nand.counters();
        assert_eq!((now.reads, now.retries, now.read_energy), (reads, 2 * reads, 15 * reads));
    }
    nand.ended(2);
    assert_eq!(nand.lose_power(&[]), 1);
    let left = nand.counters();
    assert_eq!((left.reads, left.retries, left.read_energy), (1, 2, 15));
}
