//! Passes over blocks under a voltage code: erases against closed form, and what trims and power cuts leave of free blocks.

use crate::drives::{build, plain, with};
use crate::harness::Model;
use palimpsest_lab::ftl::{Figure, find};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

const SUBPAGE_SECTORS: u64 = 8;

/// A drive of one plane of 24 blocks of 32 pages of 16 KiB, under `ftl`.
fn model(ftl: &str, payload: Payload, changes: &[&str]) -> Model {
    let part = ["part.cell=qlc", "part.order=strict", "buffer.timeout=0ns", "ssd.over_provisioning=50%"];
    let settings = with(&with(&plain(1, 24, 32, 4), &part), changes);
    let shape = build(ftl, &settings).expect("a possible drive");
    Model::new(&shape, find(ftl).expect("a layer"), payload, 1)
}

fn serve(model: &mut Model, kind: RequestKind, unit: u64, units: u64) {
    let extent = Extent { sector: unit * SUBPAGE_SECTORS, sectors: (units * SUBPAGE_SECTORS) as u32 };
    model.count(Command { kind, extent }).expect("a command that is served");
}

fn count(model: &Model, name: &str) -> u64 {
    match model.drive.ftl.figures().own.iter().find(|(own, _)| *own == name) {
        Some((_, Figure::Count(count))) => *count,
        _ => panic!("{name} is not reported"),
    }
}

/// E(k, N) / E = N / (k t) where collection finds whole blocks dead (docs/wom-v.md, "Bounds"): data that goes round.
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

/// Trimmed data must not wait in blocks that are free: those are erased early, and collection has its room after a cut.
#[test]
fn blocks_with_trimmed_data_are_erased_and_not_written_again() {
    for acknowledge in ["buffer.ack=buffer", "buffer.ack=program"] {
        let mut model = model("womv", Payload::Tag, &["ftl.womv_code=1/4", acknowledge]);
        let units = model.config.logical_subpages();
        let mut rng = Rng::new(3, 3);
        (0..units).for_each(|unit| serve(&mut model, RequestKind::Write, unit, 1));
        (0..6 * units).for_each(|_| serve(&mut model, RequestKind::Write, rng.below(units), 1));
        assert!(count(&model, "rewritten_blocks") > 10 && count(&model, "blocks_erased_early") == 0);
        let rewritten = count(&model, "rewritten_blocks");
        for index in 0..8 * units {
            let unit = rng.below(units - 4);
            serve(&mut model, RequestKind::Write, unit, 1);
            if index % 100 == 0 {
                serve(&mut model, RequestKind::Trim, unit, 3);
            }
            if index % 64 == 0 {
                model.check();
            }
        }
        assert!(count(&model, "blocks_erased_early") > 10, "{acknowledge}");
        assert!(count(&model, "rewritten_blocks") > rewritten, "{acknowledge}: some blocks hold no trimmed unit");
        model.check();
        model.read_back().expect("what was written");
    }
}
