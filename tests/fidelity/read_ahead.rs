//! Read-ahead: sequential reads at one in flight, by hand, to the nanosecond.

use crate::bench::{Run, drive};
use palimpsest_lab::metrics::summary::Summary;

/// One plane without a cache register; with T, the time of a page read: command, sensing and transfer.
const ONE_PLANE: &str = "ftl.name=page ssd.channels=1 ssd.chips_per_channel=1 ssd.dies_per_chip=1 ssd.planes_per_die=1 \
     sim.cache_register=false part.t_read_types=[] host.link_rate=unlimited";
const PAGES: u64 = 64;

/// 4 KiB reads, one after the other, of [`PAGES`] pages of 16 KiB; and T.
fn sequential(sets: &str) -> (Summary, u64) {
    let ssd = drive("tlc-32g", &format!("{ONE_PLANE} {sets}"));
    let mut run = Run::new(&ssd, &format!("rw=read,bs=4k,size={}k,n={}", 16 * PAGES, 4 * PAGES));
    run.precondition = "fill:10%";
    let part = &ssd.drive.part;
    (run.result(), part.t_command + part.t_read + part.bus_rate.time_for(16384))
}

/// Without read-ahead each read senses the page: 4 T a page. With read-ahead, the second read reveals the stream, and
/// pages are sensed back to back. The host has all of page n by (n + 3) T, because the first two reads sense page 0
/// each, and the rest of page 0 is sensed once more. More pages ahead change nothing on one die.
#[test]
fn a_die_never_waits_for_the_host() {
    let (plain, page) = sequential("");
    assert_eq!(plain.simulated_ns, 4 * PAGES * page);
    assert!(plain.read_ahead.is_none());
    for pages in [1, 3] {
        let (ahead, _) = sequential(&format!("controller.read_ahead={pages}"));
        assert_eq!(ahead.simulated_ns, (PAGES + 2) * page, "{pages} pages ahead");
        let latency = ahead.latency_ns.unwrap().read.unwrap();
        assert_eq!((latency.mean, latency.p50, latency.max), ((PAGES + 2) * page / (4 * PAGES), 0, page));
        let found = ahead.read_ahead.unwrap();
        // The rest of page 0, the other pages, and those beyond the last.
        assert_eq!(found.subpages_read, 2 + 4 * (PAGES - 1 + pages));
        assert_eq!((found.subpages_hit, ahead.host.subpages_hit), (4 * PAGES - 2, 4 * PAGES - 2));
        // A page is dropped once the stream has passed.
        assert_eq!((found.subpages_wasted, found.buffer_bytes_peak), (0, (pages + 1) * 16384));
        assert_eq!(ahead.flash.by_cause["host"].reads, 2);
        assert_eq!(ahead.flash.by_cause["read_ahead"].reads, PAGES + pages);
    }
}

/// A host that takes c for each read, with 4 c > T and 2 c > T, waits for flash in the first three reads only: each
/// other read takes c.
#[test]
fn a_slow_host_never_waits_for_flash() {
    let (ahead, page) = sequential("controller.read_ahead=2 host.t_request=40us");
    assert!((40_000..2 * 40_000).contains(&page));
    let latency = ahead.latency_ns.unwrap().read.unwrap();
    assert_eq!((latency.p50, latency.p90), (40_000, 40_000));
    // Reads 0 and 1 sense page 0 and take T + c each. Read 1 plans the rest of page 0 and page 1, which arrive at 3 T +
    // c and 4 T + c. Read 2 waits for the rest of page 0. Read 4 comes at 3 T + 3 c and finds page 1, because T < 2 c.
    assert_eq!(ahead.simulated_ns, 3 * page + (4 * PAGES - 1) * 40_000);
}

/// Hits cross the host link when the page arrives: four transfers after the end of the last page.
#[test]
fn hits_cross_the_host_link() {
    let (ahead, page) = sequential("ftl.name=subpage controller.read_ahead=1 host.link_rate=1GB/s");
    assert_eq!(ahead.simulated_ns, (PAGES + 2) * page + 4 * 4096);
}

/// Dies side by side: as many pages ahead as there are dies keep all of them busy.
#[test]
fn pages_ahead_use_dies_side_by_side() {
    let run = |pages: u64| sequential(&format!("ssd.channels=4 controller.read_ahead={pages}"));
    let ((one, page), (four, _)) = (run(1), run(4));
    let (one, four) = (one.simulated_ns as f64 / page as f64, four.simulated_ns as f64 / page as f64);
    println!("{PAGES} pages on four dies: {one:.2} T with one page ahead, {four:.2} T with four");
    assert!((one - PAGES as f64 / 2.0).abs() < 4.0, "two pages at a time: the one that is read and the next");
    assert!((four - PAGES as f64 / 4.0).abs() < 4.0);
}

/// A file system places the next page of a file on another channel and, after overwrites, anywhere. Read-ahead follows
/// the file: all reads but the first two are hits. At the end of the file read-ahead stops, so nothing is wasted.
#[test]
fn read_ahead_follows_files() {
    for ftl in ["codesign", "fs-page", "fs-subpage", "fs-fdp"] {
        let keys = "ssd.channels=4 ssd.blocks_per_plane=40 ssd.over_provisioning=200% controller.read_ahead=4";
        let ssd = drive("tlc-32g", &format!("{ONE_PLANE} {keys} ftl.name={ftl} fs.file_size={}KiB", 16 * PAGES));
        for precondition in ["fill:50%", "fill:50%,random:1x"] {
            let workload = format!("rw=read,bs=4k,size={0}k,offset={0}k,n={1}", 16 * PAGES, 4 * PAGES);
            let result = Run { precondition, ..Run::new(&ssd, &workload) }.result();
            let found = result.read_ahead.unwrap();
            assert_eq!((found.subpages_hit, result.host.subpages_hit), (4 * PAGES - 2, 4 * PAGES - 2), "{ftl}");
            assert_eq!((found.subpages_read, found.subpages_wasted), (4 * PAGES - 2, 0), "{ftl}");
        }
    }
}

/// A file in the order of its addresses is read as fast above a file system as above the page map.
#[test]
fn files_are_read_as_fast_as_pages() {
    let run = |ftl: &str| {
        let keys = "ssd.channels=4 ssd.blocks_per_plane=40 ssd.over_provisioning=200% controller.read_ahead=4";
        let ssd = drive("tlc-32g", &format!("{ONE_PLANE} {keys} {ftl}"));
        let workload = format!("rw=read,bs=4k,size={0}k,n={1}", 16 * PAGES, 4 * PAGES);
        Run { precondition: "fill:50%", ..Run::new(&ssd, &workload) }.result().simulated_ns
    };
    let page = run("ftl.name=page");
    for ftl in ["codesign", "fs-page"] {
        assert_eq!(run(&format!("ftl.name={ftl} fs.dispatch_overhead=0us")), page, "{ftl}");
    }
}

/// Random reads and streams of one read cost nothing; a stream that ends wastes the pages read ahead.
#[test]
fn what_is_not_asked_for_is_wasted() {
    let ssd = drive("tlc-32g", &format!("{ONE_PLANE} controller.read_ahead=2 controller.read_streams=1"));
    let mut run = Run::new(&ssd, "rw=randread,bs=4k,size=64MiB,n=2000");
    run.precondition = "fill:10%";
    let found = run.result().read_ahead.unwrap();
    assert!(found.subpages_read < 40 && found.subpages_wasted + found.subpages_hit <= found.subpages_read, "{found:?}");
    // Runs of four pages: the pages ahead at the end of each run are never requested.
    run.workload = "rw=randread,percentage_random=6,bs=4k,size=64MiB,n=3200".into();
    let found = run.result().read_ahead.unwrap();
    println!("runs of 16 reads: {found:?}");
    assert!(found.subpages_wasted > found.subpages_read / 5 && found.subpages_hit > 3200 / 2);
}
