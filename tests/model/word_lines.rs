//! Word lines that are programmed in one shot (`part.pages_per_program`), with each layer that supports them: random
//! requests against the shadow, failing programs, power cuts, checkpoints, a fast cache of single bits, and mutants of
//! plan and engine.

use crate::drives::{Limits, Shape, build, build_with_spare, draw_with, entry, fixed_share, pick, with};
use crate::harness::{Model, for_each_seed, note, payload_of};
use crate::mutants::run_shape;
use crate::power::{Cuts, cut_everywhere, small_with};
use crate::power_timed::{Case, cut_case};
use crate::sequences::{SMALL, count_requests, requests, time_requests};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::nand::part::ReadMode;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Settings of word lines of TLC or QLC, of 3 to 16 subpages; some drives have a fast cache.
pub fn word_lines(entry: &Entry, rng: &mut Rng) -> Vec<String> {
    let (cell, bits) = pick(rng, &[("tlc", 3u64), ("qlc", 4)]);
    let (subpage, subpages) = pick(rng, &[(4096, 1), (4096, 2), (512, 4)]);
    let times: Vec<String> = (0..bits).map(|page| format!("\"{}us\"", 30 + 10 * page)).collect();
    let read = match entry.read {
        Some(ReadMode::Page) => "page",
        Some(ReadMode::Dma) => "dma",
        Some(ReadMode::Spread) => "spread",
        None => pick(rng, &["page", "dma"]),
    };
    let mut settings = vec![
        format!("part.cell={cell}"),
        format!("part.pages_per_program={bits}"),
        format!("part.pages_per_block={}", bits * pick(rng, &[4, 8])),
        format!("part.page_size={}B", subpage * subpages),
        format!("part.subpage_size={subpage}B"),
        "part.word_size=512B".into(),
        format!("buffer.size={}B", subpage * subpages * bits * pick(rng, &[1, 3])),
        format!("part.cache_pages={}", 1 + rng.below(bits)),
        format!("part.t_read_types=[{}]", if rng.below(2) == 0 { String::new() } else { times.join(", ") }),
        format!("ftl.read={read}"),
        format!("part.pair_corruption={}", rng.below(2) == 0),
    ];
    let rest = ["part.nop=1", "part.order=strict", "part.e_read_words=[]", "part.t_read_high=40us"];
    settings.extend(rest.map(String::from));
    // Times of the words of one page of the word line.
    let words = if read == "spread" { subpage * subpages / 512 } else { 0 };
    let times: Vec<String> = (0..words).map(|word| format!("\"{}us\"", 20 + word)).collect();
    settings.push(format!("part.t_read_words=[{}]", times.join(", ")));
    settings.push("part.t_program_high=200us".into());
    if rng.below(2) == 0 {
        let cache = ["ftl.slc_cache=2 blocks", "ftl.streams=2", "ftl.classifier=none", "ftl.moved=together"];
        settings.extend(cache.map(String::from));
        settings.extend(["part.t_program_slc=70us", "part.t_read_slc=20us", "ftl.moved_to=plane"].map(String::from));
        let shares: Vec<String> = fixed_share(rng).into_iter().map(String::from).collect();
        settings = with(&settings, &shares.iter().map(String::as_str).collect::<Vec<_>>());
    }
    settings
}

/// The drive of `seed`, with `more` settings. `None` if the layer rejects them.
fn shape(entry: &'static Entry, seed: u64, limits: Limits, more: &[&str]) -> Option<(Shape, Rng)> {
    let mut rng = Rng::new(seed, 0x3b17);
    let settings = word_lines(entry, &mut rng);
    let settings = with(&settings, more);
    let all: Vec<&str> = settings.iter().map(String::as_str).collect();
    let shape = draw_with(entry.name, &mut rng, limits, &all).ok()?;
    Some((shape, rng))
}

/// Layers without word lines are done.
fn can(entry: &Entry) -> bool {
    entry.word_lines
}

#[test]
fn sequences() {
    for_each_seed("word_lines::sequences", 24, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let Some((shape, mut rng)) = shape(entry, seed, SMALL, &[]) else { return false };
        let payload = payload_of(entry, seed);
        match seed % 2 {
            0 => count_requests(&shape, entry, seed, payload, 3),
            _ => time_requests(&shape, entry, seed, payload, &mut rng),
        }
        true
    });
}

#[test]
fn failing_programs() {
    for_each_seed("word_lines::failing_programs", 8, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let faults = ["faults.program_fail=0.5%", "faults.erase_fail=0.2%", "faults.read_fail=1%"];
        let Some((shape, _)) = shape(entry, seed, SMALL, &faults) else { return false };
        note(&shape.settings);
        let mut model = Model::new(&shape, entry, Payload::Tag, seed);
        for command in requests(&shape, seed) {
            match model.count(command) {
                Ok(()) => {}
                Err(Error::WornOut(_)) => {
                    model.interrupted(command);
                    break;
                }
                Err(error) => panic!("{command:?}: {error}"),
            }
        }
        model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
        true
    });
}

/// Cuts at every operation of a counted run, in recovery, and with checkpoints: a word line is torn as a whole.
#[test]
fn cuts() {
    for_each_seed("word_lines::cuts", 6, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let settings = word_lines(entry, &mut Rng::new(seed, 0x3b18));
        let checkpoint = ["ftl.checkpoint=0B", "ftl.checkpoint=40KiB"][(seed % 2) as usize];
        let settings = with(&settings, &[checkpoint]);
        let more: Vec<&str> = settings.iter().map(String::as_str).collect();
        let Ok(shape) = small_with(entry, seed, &more) else { return false };
        cut_everywhere(entry, &shape, seed, 2, |first, rng| Cuts {
            first,
            in_recovery: (0..rng.below(2)).map(|_| 1 + rng.below(4)).collect(),
            second: Some(1 + rng.below(20)),
        });
        true
    });
}

fn cut_timed(entry: &'static Entry, seed: u64, cuts: u64) -> bool {
    if !can(entry) {
        return true;
    }
    let buffer = ["buffer.ack=program", "buffer.ack=volatile", "buffer.ack=buffer"][(seed % 3) as usize];
    let suspend = ["sim.suspend=none", "sim.suspend=program-erase"][(seed / 3 % 2) as usize];
    let small = Limits { subpages: 512, planes: 4 };
    let Some((shape, mut rng)) = shape(entry, seed, small, &[buffer, suspend]) else { return false };
    let mut commands = requests(&shape, seed);
    let counted = commands.len() / 3;
    commands.truncate(counted + 300);
    let payload = payload_of(entry, seed);
    let case = Case { shape, entry, seed, payload, commands, counted, depth: pick(&mut rng, &[1, 4, 32]) };
    cut_case(&case, cuts);
    true
}

#[test]
fn cuts_in_timed_runs() {
    for_each_seed("word_lines::cuts_in_timed_runs", 10, |entry, seed| cut_timed(entry, seed, 6));
}

/// Once wrong: a cut tore a program that had not begun, because the program had the number of a read that had ended.
#[test]
fn a_cut_tears_no_program_that_has_not_begun() {
    assert!(cut_timed(entry("page-fgm"), 1210, 20), "a drive");
}

#[test]
#[ignore = "minutes"]
fn long_cuts_in_timed_runs() {
    for_each_seed("--ignored word_lines::long_cuts_in_timed_runs", 300, |entry, seed| {
        cut_timed(entry, seed + 1000, 20)
    });
}

#[test]
#[ignore = "minutes"]
fn long_sequences() {
    for_each_seed("--ignored word_lines::long_sequences", 1000, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let Some((shape, mut rng)) = shape(entry, seed + 1000, SMALL, &[]) else { return false };
        match seed % 2 {
            0 => count_requests(&shape, entry, seed, Payload::Tag, 1),
            _ => time_requests(&shape, entry, seed, Payload::Tag, &mut rng),
        }
        true
    });
}

/// Acknowledgements before the shot, deliveries before reads, and shots before their data are found.
#[test]
fn mutants_are_found() {
    let of = |kind, cause, drops_after| Mutation { kind, cause, drops_after };
    let mutations = [
        of(OperationKind::Program, Cause::Host, false),
        of(OperationKind::Program, Cause::Gc, true),
        of(OperationKind::Read, Cause::Host, false),
        of(OperationKind::Read, Cause::Gc, false),
    ];
    let subpage = entry("subpage");
    let run = |seed, mutation| {
        let (shape, mut rng) = shape(subpage, seed, SMALL, &["buffer.ack=program"])?;
        Some(run_shape(subpage, &shape, seed, mutation, &mut rng).1)
    };
    for mutation in mutations {
        let found = (0..40).any(|seed| run(seed, Some(mutation)) == Some(true));
        assert!(found, "{mutation:?}");
    }
    let sound = (0..6).filter_map(|seed| run(seed, None)).collect::<Vec<_>>();
    assert!(!sound.is_empty() && !sound.contains(&true));
}

/// A drive that reads flash, and not memory, before the end of a shot: the check of times finds the read.
#[test]
fn a_read_before_the_end_of_the_shot_is_found() {
    let more =
        ["sim.block_order=needed", "sim.suspend=program-erase", "buffer.ack=program", "sim.scheduler=read-first"];
    let subpage = entry("subpage");
    let mut early = 0;
    for seed in 0..12 {
        let Some((shape, _)) = shape(subpage, seed, SMALL, &more) else { continue };
        for reads_memory in [true, false] {
            let mut model = Model::new(&shape, subpage, Payload::Tag, seed);
            model.drive.start_timing().expect("nothing to program");
            model.drive.io.plan.reads_memory = reads_memory;
            let run = catch_unwind(AssertUnwindSafe(|| model.run_timed(requests(&shape, seed).into_iter(), 16)));
            match run {
                Ok(Ok(())) => {}
                Ok(Err(Error::Rule(what))) if !reads_memory && what.contains("before what it reads is programmed") => {
                    early += 1;
                }
                other => panic!("seed {seed}, reads memory: {reads_memory}: {other:?}"),
            }
        }
    }
    assert!(early > 0, "no mutant is found");
}

/// A layer that programs pages singly refuses word lines; impossible parts are refused, too.
#[test]
fn what_cannot_be_is_refused() {
    let tlc = ["part.cell=tlc", "part.pages_per_program=3", "part.t_read_words=[]", "ssd.over_provisioning=100%"];
    let plain = with(&crate::drives::plain(1, 12, 12, 2), &tlc);
    assert!(build("subpage", &plain).is_ok());
    assert!(build_with_spare("dma-fgm", &plain, 8, 4).is_ok());
    let refused = |layer: &str, more: &[&str], why: &str| {
        let error = build(layer, &with(&plain, more)).map(|_| ()).expect_err(why);
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    };
    assert!(build("page", &plain).is_ok() && build("dftl", &plain).is_ok() && build("block", &plain).is_ok());
    for layer in ["mga", "sector-log"] {
        refused(layer, &["ftl.log_fraction=5%"], "this layer programs pages several times");
    }
    refused("subpage", &["part.pages_per_program=2"], "all pages of a word line");
    refused("subpage", &["part.cell=qlc"], "all pages of a word line");
    refused("subpage", &["part.pages_per_block=16"], "(a multiple of 3)");
    refused("subpage", &["part.nop=2"], "programmed once");
    refused("subpage", &["part.page_size=48KiB"], "36 subpages a word line");
    refused("subpage", &["buffer.size=8KiB"], "at least one word line");
    refused("subpage", &["part.t_dma_words=[\"5us\"]"], "1 times for 4 words a page");
    refused("subpage", &["part.word_size=3KiB"], "whole number of words");
}
