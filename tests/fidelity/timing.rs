//! One request at a time: response times are sums of part timings, to the nanosecond (docs/fidelity.md).
//!
//! Every SSD preset, with bus, word and page times of the preset. Transfers over the host link overlap transfers on the
//! bus, so only a link slower than the bus shows.

use crate::bench::{Run, drive, small};
use palimpsest_lab::config::{DriveConfig, Resolved, ssd_presets};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::host::layers;
use palimpsest_lab::nand::part::ReadMode;
use palimpsest_lab::units::Nanos;
use serde_json::Value;

const LAYERS: [&str; 2] = ["page", "subpage"];

/// Every preset with both layers, writes acknowledged when they are programmed.
fn drives(more: &str) -> Vec<Resolved> {
    let names = ssd_presets().into_iter().map(|preset| preset.name);
    names
        .flat_map(|name| LAYERS.map(|layer| small(name, &format!("ftl.name={layer} buffer.ack=program {more}"))))
        .collect()
}

/// Time of `bytes` between controller and die.
fn transfer(drive: &DriveConfig, bytes: u32) -> Nanos {
    let part = &drive.part;
    match part.t_dma_words.get((bytes / part.word_bytes).wrapping_sub(1) as usize) {
        Some(&time) => time,
        None => part.bus_rate.time_for(u64::from(bytes)),
    }
}

/// Command and transfer of a whole page.
fn page_on_bus(drive: &DriveConfig) -> Nanos {
    drive.part.t_command + transfer(drive, drive.part.page_bytes)
}

/// The latencies that a run prints, by the names of the contract.
fn latency(run: &Run<'_>, kind: &str) -> [Nanos; 4] {
    let printed: Value = serde_json::to_value(run.result()).unwrap();
    ["mean", "p50", "p99", "max"].map(|name| printed["latency_ns"][kind][name].as_u64().unwrap())
}

fn name(ssd: &Resolved) -> String {
    format!("{} with {}", ssd.drive.name, ssd.drive.ftl.name)
}

/// Pages that fill one block in every plane: as many low as high ones where pages are paired.
fn a_block_a_plane(drive: &DriveConfig) -> u64 {
    u64::from(drive.geometry.planes() * drive.geometry.pages_per_block)
}

/// Mean, median, p99 and maximum of times that are `low` in one half of all cases and `high` in the other.
fn halves(low: Nanos, high: Nanos) -> [Nanos; 4] {
    [(low + high).div_ceil(2), low, high, high]
}

/// Full-page write = command + transfer + tPROG; read = command + tR + transfer. A page of a pair has a tPROG and tR of
/// that page.
#[test]
fn pages_take_command_array_and_transfer() {
    for ssd in drives("") {
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        let (pages, bytes) = (a_block_a_plane(drive), part.page_bytes);
        let bus = page_on_bus(drive);
        let write = Run::new(&ssd, &format!("rw=write,bs={bytes},n={pages}"));
        assert_eq!(latency(&write, "write"), halves(bus + part.t_program, bus + part.t_program_high), "{}", name(&ssd));
        // One block a plane of the drive is written; that much is read.
        let share = 100.0 * pages as f64 / (drive.logical_bytes() / u64::from(bytes)) as f64;
        let fill = format!("fill:{:.4}%", share + 0.001);
        let mut read = Run::new(&ssd, &format!("rw=read,bs={bytes},n={pages}"));
        read.precondition = &fill;
        assert_eq!(latency(&read, "read"), halves(bus + part.t_read, bus + part.t_read_high), "{}", name(&ssd));
    }
}

/// Time at which the last of `pages` pages of a write, which are on the channels in turn, is in its die. The transfer
/// of a page begins with its first byte from the host link, or as late as its last byte allows.
fn on_buses(drive: &DriveConfig, pages: u32) -> Nanos {
    let bus = page_on_bus(drive);
    let bytes = u64::from(drive.part.page_bytes);
    let crossed = |pages: u32| drive.host.link_rate.time_for(u64::from(pages) * bytes);
    let mut free = vec![0; drive.geometry.channels as usize];
    for page in 0..pages {
        let ready = crossed(page).max(crossed(page + 1).saturating_sub(bus));
        let channel = &mut free[(page % drive.geometry.channels) as usize];
        *channel = ready.max(*channel) + bus;
    }
    free.into_iter().max().unwrap()
}

/// Pages of one request on different channels take as long as one page. On two dies of each channel the second transfer
/// follows the first. Write = n (command + transfer) + tPROG, where each transfer waits for its page on the host link.
/// Sensing of reads overlaps: read = command + tR + n transfers (n commands if tR is shorter than
/// the queue before).
#[test]
fn requests_of_several_pages_spread_over_channels_and_dies() {
    for ssd in drives(
        "part.t_program_high=1ms part.t_program=1ms part.t_read=50us part.t_read_high=50us ftl.allocation=round-robin",
    ) {
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        let geometry = &drive.geometry;
        let most = (geometry.dies() / geometry.channels).min(2);
        for dies in 1..=most {
            let pages = geometry.channels * dies;
            let bytes = u64::from(part.page_bytes) * u64::from(pages);
            let workload = |rw: &str| format!("rw={rw},bs={bytes},size={bytes},n=1");
            let expected = on_buses(drive, pages) + part.t_program;
            assert_eq!(latency(&Run::new(&ssd, &workload("write")), "write"), [expected; 4], "{}", name(&ssd));

            let mut read = Run::new(&ssd, &workload("read"));
            read.precondition = "fill:5%";
            let first = part.t_command + part.t_read + transfer(drive, part.page_bytes);
            // Pages of all channels arrive at once, and cross the link one by one while pages of other dies arrive.
            let page_on_link = drive.host.link_rate.time_for(u64::from(part.page_bytes));
            let on_link = |pages: u32| u64::from(pages - 1) * page_on_link;
            let on_bus = u64::from(dies - 1) * transfer(drive, part.page_bytes).max(part.t_command);
            let expected = first + on_link(pages).max(on_bus + on_link(geometry.channels));
            assert_eq!(latency(&read, "read"), [expected; 4], "{} dies a channel of {}", dies, name(&ssd));
        }
    }
}

/// Read-modify-write of a part of a page = read of the page, then write of a page.
#[test]
fn a_small_write_to_the_page_map_adds_the_read() {
    for ssd in drives("part.t_program_high=1ms part.t_program=1ms part.t_read=50us part.t_read_high=50us") {
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        if drive.ftl.name != "page" {
            continue;
        }
        let mut run = Run::new(&ssd, &format!("rw=randwrite,bs=512,size={},n=100", part.page_bytes));
        run.precondition = "fill:1%";
        let expected = page_on_bus(drive) + part.t_read + page_on_bus(drive) + part.t_program;
        assert_eq!(latency(&run, "write"), [expected; 4], "{}", name(&ssd));
    }
}

/// A small write to the subpage map without a successor is programmed after `buffer.timeout`. If a page has one
/// subpage, the write adds the read at once.
#[test]
fn a_small_write_to_the_subpage_map_waits_for_the_timeout() {
    for ssd in drives("part.t_program_high=1ms part.t_program=1ms part.t_read=50us part.t_read_high=50us") {
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        if drive.ftl.name != "subpage" {
            continue;
        }
        let mut run = Run::new(&ssd, &format!("rw=randwrite,bs=512,size={},n=100", part.subpage_bytes));
        run.precondition = "fill:1%";
        let read = page_on_bus(drive) + part.t_read;
        let before = if drive.geometry.subpages_per_page == 1 { read } else { drive.host.buffer_timeout.max(read) };
        assert_eq!(latency(&run, "write"), [before + page_on_bus(drive) + part.t_program; 4], "{}", name(&ssd));
    }
}

/// Sequential overwrites of a drive of one plane. Victims hold no valid data, so a collection is one erase, and the
/// write that starts the collection waits for command + tERS.
#[test]
fn an_erase_is_seen_by_the_write_behind_it() {
    for layer in LAYERS {
        let sets = format!(
            "ftl.name={layer} buffer.ack=program ssd.channels=1 ssd.chips_per_channel=1 ssd.blocks_per_plane=32 \
             part.pages_per_block=16 ssd.over_provisioning=28% ftl.streams=1"
        );
        let ssd = drive("spread-16g", &format!("{sets} part.t_command=100ns"));
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        let mut run = Run::new(&ssd, &format!("rw=write,bs={},loops=4", part.page_bytes));
        run.precondition = "fill:100%,random:0x";
        let result = run.result();
        let (alone, erase) = (page_on_bus(drive) + part.t_program, part.t_command + part.t_erase);
        let times = &result.latency_ns.as_ref().unwrap().write.as_ref().unwrap();
        let (n, gc) = (result.requests.write, &result.gc);
        assert!(gc.runs > 50 && gc.moved_subpages == 0, "{layer}: {} collections", gc.runs);
        assert_eq!((gc.mean_ns, gc.p99_ns), (Some(erase), Some(erase)));
        assert_eq!((times.p50, times.max), (alone, alone + erase));
        assert_eq!(times.mean, (n * alone + gc.runs * erase + n / 2) / n);
    }
}

/// A layer of the registry on a drive that meets the layer's needs, with pages of equal times.
pub fn of_registry(entry: &'static Entry, more: &str) -> Resolved {
    let needs = entry.needs().join(" ");
    let equal = "part.t_program_high=1ms part.t_program=1ms part.t_read=50us part.t_read_high=50us";
    let sets = format!("ftl.name={} buffer.ack=program host.link_rate=unlimited {equal} {needs} {more}", entry.name);
    drive("spread-16g", &sets)
}

/// Each command of a file system follows a permission exchange.
fn before_command(entry: &Entry, drive: &DriveConfig) -> Nanos {
    if entry.is_file_system() { drive.ftl.get("fs.dispatch_overhead") } else { 0 }
}

/// Whether the units of a page go to different open pages.
fn units_apart(entry: &Entry) -> bool {
    entry.hot_and_cold || entry.below.is_some_and(units_apart)
}

/// A write or read of one page takes command, array and transfer with every layer of the registry, by any read command.
#[test]
fn one_page_takes_command_array_and_transfer_with_every_layer() {
    for entry in layers() {
        let ssd = of_registry(entry, "");
        let (drive, part) = (&ssd.drive, &ssd.drive.part);
        let (bytes, before) = (part.page_bytes, before_command(entry, drive));
        let mut write = Run::new(&ssd, &format!("rw=write,bs={bytes},n=1"));
        // The first request creates a file system, which writes out of place; other layers merge or collect written
        // blocks.
        write.precondition = if entry.is_file_system() { "fill:1%" } else { "none" };
        // Their banks share the units of a page: each waits in an open page for others, until the timeout.
        let wait = if units_apart(entry) { drive.host.buffer_timeout } else { 0 };
        let write = latency(&write, "write");
        // A file system may place a request across two pages of a layer that maps subpages: the larger piece decides.
        let least = if entry.is_file_system() {
            drive.geometry.subpages_per_page.div_ceil(2)
        } else {
            drive.geometry.subpages_per_page
        };
        let pieces = (least..=drive.geometry.subpages_per_page).map(|subpages| subpages * part.subpage_bytes);
        let mut expected =
            pieces.map(|bytes| before.max(wait) + part.t_command + transfer(drive, bytes) + part.t_program);
        assert!(expected.any(|time| write == [time; 4]), "{}: {write:?}", name(&ssd));
        let mut read = Run::new(&ssd, &format!("rw=randread,bs={bytes},size={bytes},n=20"));
        // The first request loads the entry of a cached map.
        (read.precondition, read.warmup) = ("fill:1%", 1);
        let sensing = match entry.read {
            Some(ReadMode::Spread) => *part.t_read_words.last().unwrap(),
            _ => part.t_read,
        };
        assert_eq!(latency(&read, "read"), [before + page_on_bus(drive) + sensing; 4], "{}", name(&ssd));
    }
}

/// A small `llh` drive that reuses hot pages at once, one request at a time, acknowledged after the program.
fn reusing(more: &str) -> Resolved {
    small(
        "llh-16g",
        &format!(
            "buffer.ack=program ftl.threshold_pu=2blocks ftl.threshold_window=0 ftl.wom_failure=0% ssd.channels=1 \
             ssd.chips_per_channel=1 ssd.over_provisioning=100% {more}"
        ),
    )
}

/// Codes take time in the controller: an encoding for each second write, a decoding for each read of a coded page. Code
/// `table` encodes low pages from the first write on.
#[test]
fn a_code_takes_its_time() {
    let measured = |more: &str, workload: &str, precondition: &str| {
        let ssd = reusing(more);
        let mut run = Run::new(&ssd, workload);
        (run.precondition, run.warmup) = (precondition, 0);
        serde_json::to_value(run.result()).unwrap()
    };
    let writes = |more: &str| measured(more, "rw=randwrite,bs=4k,size=2%,norandommap,n=4000", "none");
    let (plain, coded) = (writes(""), writes("ftl.wom_encode_time=50us"));
    let second = plain["ftl_stats"]["reused_low_pages"].as_u64().unwrap();
    assert!(second > 100, "{second} second writes");
    let longer = coded["simulated_ns"].as_u64().unwrap() - plain["simulated_ns"].as_u64().unwrap();
    assert_eq!(longer, 50_000 * second);

    let table = "ftl.wom=table ftl.threshold_pu=100blocks buffer.ack=buffer";
    let reads = |more: &str| {
        measured(&format!("{table} {more}"), "rw=randread,bs=4k,size=1%,norandommap,n=500", "fill:1%,bs:4KiB")
    };
    let (plain, coded) = (reads(""), reads("ftl.wom_decode_time=50us"));
    for what in ["mean", "p50", "max"] {
        let of = |result: &Value| result["latency_ns"]["read"][what].as_u64().unwrap();
        assert_eq!(of(&coded) - of(&plain), 50_000, "{what}");
    }
}
