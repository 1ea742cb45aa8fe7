//! The co-designed file system on the drive of its paper: DRAM permission exchanges, command groups, the size of the
//! map, and the imbalance of files.

use crate::bench::{Run, drive};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::Result;
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::host::request::{Arrivals, Command, Extent, Request, Source};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{self, Fidelity, Options, Warmup};
use std::ops::ControlFlow;

/// The paper's drive with fewer blocks, and commits only at a flush.
fn small(ftl: &str, more: &str) -> Resolved {
    let sets = "ssd.blocks_per_plane=24 ssd.over_provisioning=60% fs.commit_interval=3600s";
    drive("codesign-8ch", &format!("{sets} ftl.name={ftl} {more}"))
}

/// One request at a time. Each command group waits for a DRAM permission exchange, and exchanges are serial. A write of
/// k pages on k channels takes k exchanges, then command, transfer and program of the last page; a read of a page takes
/// one exchange.
#[test]
fn permission_exchanges_are_serial() {
    for ftl in ["codesign", "fs-page"] {
        for (overhead, nanos) in [("0ns", 0), ("3us", 3000), ("20us", 20_000)] {
            let ssd = small(ftl, &format!("fs.dispatch_overhead={overhead}"));
            let part = &ssd.drive.part;
            let on_bus = part.t_command + part.bus_rate.time_for(u64::from(part.page_bytes));
            for pages in [1, 4, 8] {
                // The page map, too, places consecutive pages on consecutive channels.
                let write = Run { warmup: 8, ..Run::new(&ssd, &format!("rw=write,bs={}k,n=100,iodepth=1", 4 * pages)) };
                let mean = write.result().latency_ns.unwrap().write.unwrap().mean;
                // At 0 all exchanges are immediate; else the last page begins last.
                assert_eq!(mean, pages * nanos + on_bus + part.t_program, "{ftl}, {overhead}, {pages} pages");
            }
            let read = Run {
                precondition: "fill:10%",
                warmup: 8,
                ..Run::new(&ssd, "rw=read,bs=4k,n=100,iodepth=1,size=4MiB")
            };
            let mean = read.result().latency_ns.unwrap().read.unwrap().mean;
            assert_eq!(mean, nanos + on_bus + part.t_read, "{ftl}, {overhead}");
        }
    }
}

fn groups(summary: &Summary) -> u64 {
    summary.ftl_stats["fs_command_groups"].as_u64().unwrap()
}

/// 32 pages on 8 channels of two dies with two planes each, one request at a time. In turn, the four pages of a channel
/// arrive one by one, and a die programs the first page when the second arrives. The last channel loads both dies, and
/// each programs twice.
///
/// In one group the pages arrive together: four loads, and a plane command programs two pages at once (Sec. III-C.3).
/// Without plane commands there is no gain.
#[test]
fn deep_writes_use_plane_commands() {
    let groups = 3000;
    for (scheme, pages, planes) in [
        ("rr", "consecutive", "waiting"),
        ("depth", "consecutive", "waiting"),
        ("depth", "apart", "waiting"),
        ("hybrid", "apart", "waiting"),
        ("depth", "consecutive", "off"),
        ("rr", "consecutive", "group"),
        ("depth", "apart", "group"),
        ("hybrid", "consecutive", "group"),
    ] {
        let ssd = small("codesign", &format!("fs.scheme={scheme} fs.depth_pages={pages} sim.multi_plane={planes}"));
        let part = &ssd.drive.part;
        let load = part.t_command + part.bus_rate.time_for(u64::from(part.page_bytes));
        let twice = 8 * groups + 2 * load + 2 * part.t_program;
        let together = 8 * groups + 4 * load + part.t_program;
        let run = Run { warmup: 10, ..Run::new(&ssd, "rw=write,bs=128k,n=60,iodepth=1") };
        let mean = run.result().latency_ns.unwrap().write.unwrap().mean;
        assert_eq!(
            mean,
            if scheme == "rr" || planes == "off" { twice } else { together },
            "{scheme}, {pages}, {planes}"
        );
    }
}

/// Writes of a page at multiples of eight pages, eight at a time: by address all wait for the two dies of one channel,
/// in order of arrival each has a channel of its own.
#[test]
fn the_address_names_the_channel() {
    let mean = |scheme: &str, turn: &str| {
        let keys = "fs.dispatch_overhead=0us sim.multi_plane=off sim.cache_register=false";
        let ssd = small("codesign", &format!("fs.scheme={scheme} fs.turn={turn} {keys}"));
        let run = Run { warmup: 100, ..Run::new(&ssd, "rw=randwrite,bs=4k,blockalign=32k,n=500,iodepth=8") };
        run.result().latency_ns.unwrap().write.unwrap().mean as f64
    };
    let (alone, by_address) = (mean("rr", "arrival"), mean("rr", "address"));
    assert!((3.5..4.5).contains(&(by_address / alone)), "{by_address} {alone}");
    assert_eq!(mean("static", "arrival"), by_address);
}

/// A read of 8 pages after a grouped write: of consecutive pages four are on a channel, of pages apart one (one request
/// at a time, with serial exchanges of all groups and serial transfers).
#[test]
fn deep_writes_decide_how_wide_later_reads_are() {
    for (pages, on_one, groups) in [("consecutive", 4, 2), ("apart", 1, 8)] {
        let ssd = small("codesign", &format!("fs.scheme=depth fs.depth_pages={pages}"));
        let part = &ssd.drive.part;
        let moved = part.bus_rate.time_for(u64::from(part.page_bytes));
        let precondition = "fill:40%,bs:128KiB";
        let run = Run { precondition, warmup: 8, ..Run::new(&ssd, "rw=read,bs=32k,n=100,iodepth=1,size=4MiB") };
        let mean = run.result().latency_ns.unwrap().read.unwrap().mean;
        let commands = if on_one == 4 { 4 } else { 1 };
        let expected = groups * 3000 + commands * part.t_command + part.t_read + on_one * moved;
        assert!(mean.abs_diff(expected) <= 4 * part.t_command, "{pages}: {mean} ns, not about {expected}");
    }
}

/// Requests of 32 pages on 8 channels: in turn each page forms a group, with dynamic depth each channel forms one. At
/// 16 pages there is no depth (Sec. III-C.3).
#[test]
fn depth_makes_fewer_groups() {
    for (scheme, kib, wanted) in [("rr", 128, 32), ("depth", 128, 8), ("hybrid", 128, 8), ("depth", 64, 16)] {
        let ssd = small("codesign", &format!("fs.scheme={scheme}"));
        let spec = format!("rw=write,bs={kib}k,n=60,iodepth=1");
        let run = Run { warmup: 10, fidelity: Fidelity::Count, ..Run::new(&ssd, &spec) };
        assert_eq!(groups(&run.result()), 50 * wanted, "{scheme}, {kib} KiB");
    }
}

/// Sec. III-A: "the size of mapping table in block level is reduced by 255/256 compared with page mapping", for the
/// same number of pages.
#[test]
fn the_block_map_is_a_share_of_the_page_map() {
    let bytes = |ftl: &str| {
        let ssd = small(ftl, "");
        let summary = Run { fidelity: Fidelity::Count, ..Run::new(&ssd, "rw=write,bs=4k,n=10") }.result();
        (summary.mapping.bytes, ssd)
    };
    let ((page, ssd), (codesign, _)) = (bytes("page"), bytes("codesign"));
    assert_eq!(page, 8 * ssd.drive.logical_pages());
    // The file system has all blocks except two of each plane.
    let blocks = u64::from(ssd.drive.geometry.planes()) * 22;
    assert_eq!(codesign, 8 * blocks);
}

/// Sec. III-B: "every channel has similar free space" and "similar worn-out level", under steady overwrites, long
/// enough to exceed the allowed initial differences. Fairness puts overwritten pages back into their channel, so that a
/// channel of hot pages wears faster until it is avoided.
#[test]
fn channels_stay_even() {
    for scheme in ["rr", "fairness", "depth", "hybrid"] {
        let ssd = small("codesign", &format!("fs.scheme={scheme} part.pages_per_block=64"));
        let blocks = u64::from(ssd.drive.geometry.blocks() / ssd.drive.geometry.channels);
        let spec = "rw=randwrite,bssplit=4k/70:12k/20:80k/10,n=240000,random_distribution=zipf:0.9";
        let run = Run { precondition: "fill:70%", fidelity: Fidelity::Count, ..Run::new(&ssd, spec) };
        let stats = run.result().ftl_stats;
        let level = |key: &str| stats[key].as_u64().unwrap();
        let (free, most_free) = (level("fs_channel_free_least"), level("fs_channel_free_most"));
        let (trims, most_trims) = (level("fs_channel_trims_least"), level("fs_channel_trims_most"));
        println!("{scheme}: {free} to {most_free} free pages a channel, {trims} to {most_trims} trims");
        assert!(trims > 30 * blocks, "{scheme}: collection had nothing to do");
        // Of a channel's 5632 pages; a block has 64.
        assert!(most_free - free <= 6 * 64, "{scheme}: {free} to {most_free} free pages");
        // An erase a block, and collections under way.
        assert!(most_trims - trims <= blocks + blocks / 8, "{scheme}: {trims} to {most_trims} trims");
    }
}

/// Thresholds that a full drive cannot reach shrink so that blocks still share commits, the gain first, and a note says
/// so. Before, both shrank to a share, and below the start collection had room for one block a commit.
#[test]
fn thresholds_out_of_reach_still_share_commits() {
    for (ftl, keys) in [("fs-page", "fs.gc_gain=10%"), ("fs-page", "fs.gc_gain=30%"), ("codesign", "fs.gc_gain=30%")] {
        let sets = "part.pages_per_block=64 ssd.blocks_per_plane=128 ssd.over_provisioning=28%";
        let ssd = small(ftl, &format!("{sets} {keys}"));
        let spec = "rw=randwrite,bs=16k,n=60000,norandommap";
        let result = Run { precondition: "fill:80%", fidelity: Fidelity::Count, ..Run::new(&ssd, spec) }.result();
        let count = |key: &str| result.ftl_stats[key].as_u64().unwrap();
        let commits = count("fs_commits");
        let trims = count("fs_trimmed_blocks");
        println!("{ftl} {keys}: {commits} commits, {trims} trims");
        assert!(trims > 2000 && trims > 8 * commits, "{ftl}, {keys}: {trims} blocks trimmed by {commits} commits");
        let note = result.notes.iter().find(|note| note.contains("fs.gc_start and fs.gc_gain"));
        assert!(note.is_some(), "{ftl}, {keys}: {:?}", result.notes);
    }
    let ssd = small("codesign", "fs.gc_start=2% fs.gc_gain=2%");
    let result = Run { fidelity: Fidelity::Count, ..Run::new(&ssd, "rw=randwrite,bs=16k,n=100") }.result();
    assert!(result.notes.iter().all(|note| !note.contains("fs.gc_start")), "{:?}", result.notes);
}

/// A buffer acknowledges a part of a page when it holds the part, above the page map as above a file system: neither
/// waits for the read of the rest of the page.
#[test]
fn parts_of_pages_are_acknowledged_before_the_rest_is_read() {
    let latency = |ftl: &str| {
        let keys = "buffer.ack=buffer fs.dispatch_overhead=0us buffer.t_write=5us";
        let ssd = small(ftl, keys);
        let run = Run { precondition: "fill:40%", ..Run::new(&ssd, "rw=randwrite,bs=512,n=200,iodepth=1,size=8MiB") };
        run.result().latency_ns.unwrap().write.unwrap().max
    };
    let page = latency("page");
    assert_eq!(page, 5000);
    for ftl in ["codesign", "fs-page", "fs-subpage"] {
        assert_eq!(latency(ftl), page, "{ftl}");
    }
}

/// Small writes of many files, interleaved.
struct Files {
    rng: Rng,
    left: u32,
    next: [u64; 40],
}

impl Source for Files {
    fn next_request(&mut self) -> Result<Option<Request>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let file = self.rng.below(40);
        let pages = 1 + self.rng.below(5);
        let page = file * 1000 + self.next[file as usize];
        self.next[file as usize] += pages;
        let extent = Extent { sector: page * 8, sectors: pages as u32 * 8 };
        Ok(Some(Request::new(0, Command::new(RequestKind::Write, extent).of(1 + file as u32))))
    }
    fn place(&self) -> String {
        "files".into()
    }
    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: 1 }
    }
}

fn files(scheme: &str) -> Summary {
    let ssd = small("codesign", &format!("fs.scheme={scheme}"));
    let mut source = Files { rng: Rng::new(5, 0), left: 800, next: [0; 40] };
    let options = Options {
        workload: "files".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Count,
        payload: Payload::Tag,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    run::run(&ssd, &mut source, &options, &mut |_| ControlFlow::Continue(())).unwrap().summary
}

/// Under fairness every file has an imbalance rate of at most 1/4, because no request has whole rounds only; in turn
/// few files do (Sec. II-B).
#[test]
fn fairness_lays_files_evenly() {
    let (rr, fairness) = (files("rr"), files("fairness"));
    let share = |summary: &Summary, key: &str| summary.ftl_stats[key].as_f64().unwrap();
    assert_eq!(rr.ftl_stats["imbalance_files"], 40);
    println!("uneven: rr {}, fairness {}", share(&rr, "imbalance_uneven"), share(&fairness, "imbalance_uneven"));
    // 60 pages a file: a difference of one page is a rate of 1/8.
    assert_eq!(share(&fairness, "imbalance_cdf_0.25"), 1.0);
    assert!(share(&rr, "imbalance_cdf_0.25") < 0.2, "{}", share(&rr, "imbalance_cdf_0.25"));
}
