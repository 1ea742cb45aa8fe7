//! Passes over blocks under a voltage code: erases against closed form, and free blocks after trims and power cuts.

use crate::drives::{Shape, build, plain, with};
use crate::harness::Model;
use crate::power::{Cuts, cut_everywhere};
use palimpsest_lab::ftl::{Figure, find};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

const SUBPAGE_SECTORS: u64 = 8;

/// A drive of one plane of 24 blocks of 32 pages of 16 KiB, under `ftl`.
fn shape(ftl: &str, changes: &[&str]) -> Shape {
    let part = ["part.cell=qlc", "part.order=strict", "buffer.timeout=0ns", "ssd.over_provisioning=50%"];
    let settings = with(&with(&plain(1, 24, 32, 4), &part), changes);
    build(ftl, &settings).expect("a possible drive")
}

fn model(ftl: &str, payload: Payload, changes: &[&str]) -> Model {
    Model::new(&shape(ftl, changes), find(ftl).expect("a layer"), payload, 1)
}

fn serve(model: &mut Model, kind: RequestKind, unit: u64, units: u64) {
    let extent = Extent { sector: unit * SUBPAGE_SECTORS, sectors: (units * SUBPAGE_SECTORS) as u32 };
    model.count(Command::new(kind, extent)).expect("a command that is served");
}

fn count(model: &Model, name: &str) -> u64 {
    match model.drive.ftl.figures().own.iter().find(|(own, _)| *own == name) {
        Some((_, Figure::Count(count))) => *count,
        _ => panic!("{name} is not reported"),
    }
}

/// E(k, N) / E = N / (k t) if collection finds whole blocks dead (docs/wom-v.md, "Bounds"): cyclic data.
#[test]
fn erases_are_those_of_the_closed_form_where_data_goes_round() {
    let erases = |ftl: &str, changes: &[&str]| {
        let mut model = model(ftl, Payload::None, changes);
        let units = model.config.logical_subpages();
        let mut next = 0;
        let mut round = |model: &mut Model, writes: u64| {
            (0..writes).for_each(|_| {
                serve(model, RequestKind::Write, next % units, 1);
                next += 1;
            });
            model.drive.io.nand().counters().erases
        };
        // Whole lives of all blocks, under each code and without.
        let writes = 46_080;
        let before = round(&mut model, writes);
        (round(&mut model, writes) - before) as f64 / writes as f64
    };
    let base = erases("subpage", &[]);
    for (code, bound) in [("3/4", 4.0 / 6.0), ("2/4", 4.0 / 10.0), ("1/4", 4.0 / 15.0)] {
        let got = erases("womv", &[&format!("ftl.womv_code={code}")]) / base;
        assert!((got / bound - 1.0).abs() < 0.01, "{code}: {got} of the erases, expected {bound}");
    }
}

/// Trimmed data must not reappear in free blocks: the next pass over such blocks begins at once with a word line that
/// stores no data. If that would take more than an eighth of the spare space, as in small blocks, the blocks are
/// erased.
#[test]
fn trimmed_data_does_not_wait_in_free_blocks() {
    for (acknowledge, pages, small) in [("buffer", 256, false), ("program", 256, false), ("program", 32, true)] {
        let settings = [format!("buffer.ack={acknowledge}"), format!("part.pages_per_block={pages}")];
        let settings = ["ftl.womv_code=1/4", &settings[0], &settings[1]];
        let mut model = model("womv", Payload::Tag, &settings);
        let units = model.config.logical_subpages();
        let mut rng = Rng::new(3, 3);
        (0..units).for_each(|unit| serve(&mut model, RequestKind::Write, unit, 1));
        for index in 0..16 * units {
            serve(&mut model, RequestKind::Write, rng.below(units), 1);
            if index % 20 == 0 {
                serve(&mut model, RequestKind::Trim, rng.below(units - 4), 3);
            }
            if index % 1024 == 0 {
                model.check();
            }
        }
        let (rewritten, early) = (count(&model, "rewritten_blocks"), count(&model, "blocks_erased_early"));
        let erases = model.drive.io.nand().counters().erases;
        let least = if small { 0 } else { 10 * erases };
        assert!(rewritten > least, "{settings:?}: {rewritten} passes, {erases} erases");
        assert_eq!(early > 0, small, "{settings:?}: {early} blocks");
        model.check();
        model.read_back().expect("what was written");
    }
}

/// Once red: a mark filled a block of one word line, which then was free and had no page; so did an interrupted
/// program.
#[test]
fn blocks_of_one_word_line_have_none_for_a_mark() {
    let settings = ["part.pages_per_block=4", "ssd.blocks_per_plane=60", "buffer.ack=program"];
    let mut model = model("womv", Payload::Tag, &settings);
    let units = model.config.logical_subpages();
    let mut rng = Rng::new(4, 4);
    for index in 0..20 * units {
        serve(&mut model, RequestKind::Write, rng.below(units), 1);
        if index % 20 == 0 {
            serve(&mut model, RequestKind::Trim, rng.below(units - 4), 3);
        }
        if index % 64 == 0 {
            model.check();
        }
    }
    assert!(count(&model, "rewritten_blocks") > 0 && count(&model, "blocks_erased_early") > 0);
    model.read_back().expect("what was written");
    let tiny = ["part.pages_per_block=4", "ssd.blocks_per_plane=6", "ssd.over_provisioning=100%"];
    let shape = shape("womv", &tiny);
    let once = |first, _: &mut Rng| Cuts { first, in_recovery: vec![], second: None };
    cut_everywhere(find("womv").expect("a layer"), &shape, 1, 1, once);
}
