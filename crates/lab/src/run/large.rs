//! Drives of more than 2^32 units of 4 KiB: data at the far end is written and read back, and differs from the data
//! 2^32 units before.
//!
//! Tables are as large as the drive, and only places of host writes take memory. Not tested here: full drives.

use super::precondition::{Precondition, precondition};
use super::{Fidelity, Options, Session, Warmup, Watcher, run};
use crate::config::{Resolved, resolve};
use crate::metrics::summary::{Requests, Summary};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_sim::drive::Command;
use palimpsest_workload::fio::{FioSpec, generated};
use std::ops::ControlFlow;

/// Sectors of 2^32 units of 4 KiB.
const FAR: u64 = 1 << 35;

fn drive(layer: &str, set: &[&str]) -> Resolved {
    let set: Vec<String> = set.iter().map(|&text| text.into()).collect();
    resolve("d5-p5336-30.72t", Some(layer), &set, &|_| unreachable!()).unwrap_or_else(|error| panic!("{error}"))
}

fn options(fidelity: Fidelity, precondition: &str) -> Options {
    Options {
        workload: "far".into(),
        precondition: Precondition::parse(precondition).unwrap(),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Tag,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    }
}

/// 19 TB in units of 64 KiB: 10 % more than 2^32 units of 4 KiB.
const COARSE: [&str; 2] = ["ssd.capacity=19TB", "part.subpage_size=64KiB"];

/// Writes of 4 KiB and of whole units, here and 2^32 units of 4 KiB further; each read is verified against the host's
/// data.
#[test]
fn the_far_end_is_not_the_near_one() {
    for layer in ["page", "subpage"] {
        let resolved = drive(layer, &COARSE);
        let sectors = resolved.drive.logical_bytes() / 512;
        assert!(sectors > FAR + (1 << 20), "{sectors} sectors");
        let options = options(Fidelity::Count, "none");
        let watcher: Watcher<'_> = &mut |_| ControlFlow::Continue(());
        let mut session = Session::new(&resolved.drive, &options, watcher).unwrap();
        let mut rng = Rng::new(7, 1);
        let mut serve = |kind, sector, sectors| session.count(Command::new(kind, Extent { sector, sectors })).unwrap();
        for _ in 0..2000 {
            let (near, length) = (rng.below(1 << 12) * 8, 8 << rng.below(6));
            for sector in [near, near + FAR, sectors - length - near] {
                let kind = [RequestKind::Write, RequestKind::Write, RequestKind::Read, RequestKind::Trim]
                    [rng.below(4) as usize];
                serve(kind, sector, length as u32);
                serve(RequestKind::Read, sector, length as u32);
                serve(RequestKind::Read, sector % FAR, length as u32);
            }
        }
        assert!(session.drive.io.counters.unwritten_subpages > 0, "{layer}: what was trimmed reads as zeros");
    }
}

fn far_workload(resolved: &Resolved, payload: Payload, requests: u32) -> Summary {
    let bytes = resolved.drive.logical_bytes();
    let offset = (bytes - (512 << 20)) / (1 << 20) * (1 << 20);
    assert!(offset / 512 > FAR);
    let spec = format!("rw=randrw,bs=4k,offset={offset},size=256m,n={requests},iodepth=16");
    let mut source = generated(&FioSpec::parse(&spec).unwrap(), bytes, 1).unwrap();
    let options = Options { payload, ..options(Fidelity::Timed, "fill:0.001%") };
    let outcome = run(resolved, source.as_mut(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let Requests { read, write, .. } = outcome.summary.requests;
    assert_eq!(read + write, u64::from(requests));
    assert!(outcome.summary.flash.by_cause["rmw"].reads > 0, "writes of less than a unit read it");
    outcome.summary
}

/// The preset's units of 16 KiB, timed: writes of 4 KiB read the rest of a unit first.
#[test]
fn a_workload_at_the_far_end_is_served_in_time() {
    let resolved = drive("subpage", &["ssd.capacity=18.5TB"]);
    assert_eq!(resolved.drive.geometry.subpages_per_page, 16, "word lines of four pages");
    let summary = far_workload(&resolved, Payload::None, 20_000);
    assert!(summary.latency_ns.is_some());
}

/// The same with contents and times verified, in few units, because verification takes more memory a unit.
#[test]
fn a_verified_workload_at_the_far_end_is_served_in_time() {
    let set = [
        "ssd.capacity=18.5TB",
        "part.page_size=8MiB",
        "part.subpage_size=4MiB",
        "part.pages_per_block=32",
        "part.word_size=1MiB",
    ];
    far_workload(&drive("subpage", &set), Payload::Tag, 4000);
}

/// The largest drive on sale, in its own units: the beginning of a fill and the last unit.
#[test]
fn a_drive_of_122_tb_has_a_first_and_a_last_unit() {
    let plain = ["part.pages_per_program=1", "part.page_size=256KiB", "part.subpage_size=256KiB"];
    let resolved = drive("page", &[&["ssd.capacity=122.88TB"][..], &plain].concat());
    let sectors = resolved.drive.logical_bytes() / 512;
    assert!(resolved.drive.logical_bytes() >= 122_880_000_000_000);
    let options = options(Fidelity::Count, "fill:0.01%");
    let watcher: Watcher<'_> = &mut |_| ControlFlow::Continue(());
    let mut session = Session::new(&resolved.drive, &options, watcher).unwrap();
    let mut source = generated(&FioSpec::parse("rw=randread,n=1").unwrap(), 1 << 30, 1).unwrap();
    precondition(&mut session, source.as_mut(), &options.precondition).unwrap();
    for (sector, written) in [(0, true), (FAR * 6, false), (sectors - 8, false)] {
        let extent = Extent { sector, sectors: 8 };
        let before = session.drive.io.counters.unwritten_subpages;
        session.count(Command::new(RequestKind::Read, extent)).unwrap();
        assert_eq!(session.drive.io.counters.unwritten_subpages == before, written, "sector {sector}");
        session.count(Command::new(RequestKind::Write, extent)).unwrap();
        session.count(Command::new(RequestKind::Read, extent)).unwrap();
    }
}

/// The settings that a refusal of a large drive names must make the drive possible.
#[test]
fn settings_that_a_refusal_names_will_do() {
    for (preset, capacity) in [
        ("default", "30.72TB"),
        ("default", "122.88TB"),
        ("d5-p5336-30.72t", "122.88TB"),
        ("d5-p5336-30.72t", "128TiB"),
        ("870qvo-4t", "61.44TB"),
        ("tlc-32g", "200TB"),
    ] {
        let mut set = vec![format!("ssd.capacity={capacity}")];
        let refused = resolve(preset, None, &set, &|_| unreachable!()).unwrap_err().to_string();
        let (_, named) = refused.rsplit_once("expected ").expect(&refused);
        let (first, _) = named.split_once(" or ").unwrap_or((named, ""));
        set.extend(first.split(" and ").map(String::from));
        let resolved =
            resolve(preset, None, &set, &|_| unreachable!()).unwrap_or_else(|error| panic!("{set:?}: {error}"));
        let bytes = palimpsest_flash::units::parse::parse_capacity(capacity).unwrap();
        assert!(resolved.drive.logical_bytes() >= bytes, "{set:?}");
    }
    for capacity in ["30.72TB", "61.44TB"] {
        let set = [format!("ssd.capacity={capacity}")];
        resolve("d5-p5336-30.72t", None, &set, &|_| unreachable!()).unwrap();
    }
}
