//! Patrol reads in idle time: their number, and the data that they save.

use crate::bench::{Run, small};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;

/// A small drive, and requests with idle time between them.
fn run(sets: &str, workload: &str) -> Summary {
    let drive = "ftl.name=page ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=20 part.pages_per_block=32 \
         ssd.over_provisioning=60% ftl.streams=1 sim.cache_register=false ftl.gc_idle=100us ftl.gc_pace=block \
         ecc.strength=20 ecc.t_retries=[\"50us\",\"60us\"] ecc.retry_rates=[\"80%\",\"60%\"] part.ber_fresh=0.02% \
         part.word_size=1KiB";
    let ssd = small("tlc-32g", &format!("{drive} {sets}"));
    let mut run = Run::new(&ssd, workload);
    (run.precondition, run.payload) = ("fill:100%", Payload::Tag);
    run.result()
}

/// In T, each of the drive's P pages has T / `ftl.patrol` turns, and only the V programmed pages are read: V T /
/// `ftl.patrol` reads.
#[test]
fn every_page_has_its_turn() {
    // Logical pages, of 640.
    let programmed = 400;
    for rounds in [1, 3] {
        let result =
            run(&format!("ftl.patrol={}us", 299_000 / rounds), "rw=randread,bs=4k,n=300,rate_iops=1000,open_loop");
        let reads = result.flash.by_cause["patrol"].reads;
        println!("{rounds} rounds: {reads} reads of {programmed} pages");
        assert!(reads.abs_diff(programmed * rounds) <= 3 * rounds, "{reads}");
        // The host never waits for more than one patrol read.
        assert!(result.latency_ns.unwrap().read.unwrap().max < 200_000);
    }
    let none = run("ftl.patrol=0ns", "rw=randread,bs=4k,n=300,rate_iops=1000,open_loop");
    assert_eq!(none.flash.by_cause["patrol"].reads, 0);
}

/// Data that ages and is rarely read is lost without a patrol; a patrol moves such data while errors are correctable.
#[test]
fn a_patrol_saves_what_the_host_does_not_read() {
    let aged = |patrol: &str| {
        let sets = format!("ecc.t_retention=100ms ecc.refresh_retries=1 ftl.patrol={patrol}");
        run(&sets, "rw=randread,bs=16k,n=400,rate_iops=200,open_loop")
    };
    let (with, without) = (aged("100ms"), aged("0ns"));
    let lost = |result: &Summary| result.reliability.as_ref().unwrap().lost_subpages.values().sum::<u64>();
    let refreshed = |result: &Summary| result.ftl_stats.get("refreshed_blocks").and_then(|count| count.as_u64());
    println!("lost {} with a patrol, {} without; {:?} blocks refreshed", lost(&with), lost(&without), refreshed(&with));
    assert_eq!((lost(&with), with.reliability.as_ref().unwrap().failed_reads), (0, Some(0)));
    assert!(lost(&without) > 100 && refreshed(&without).is_none());
    assert!(refreshed(&with).unwrap() >= 12);
}

/// The same below a file system, whose metadata ages, too.
#[test]
fn a_patrol_saves_files() {
    for layer in ["codesign", "fs-page", "fs-subpage", "fs-mga"] {
        let aged = |patrol: &str| {
            let sets = format!("ecc.t_retention=100ms ecc.refresh_retries=1 ftl.patrol={patrol}");
            let drive =
                format!("ftl.name={layer} ssd.blocks_per_plane=80 ssd.over_provisioning=300% part.nop=4 {sets}");
            run(&drive, "rw=randread,bs=16k,n=400,rate_iops=200,open_loop")
        };
        let (with, without) = (aged("100ms"), aged("0ns"));
        let lost = |result: &Summary| result.reliability.as_ref().unwrap().lost_subpages.values().sum::<u64>();
        let refreshed = with.ftl_stats.get("refreshed_blocks").and_then(|count| count.as_u64());
        println!("{layer}: lost {} with a patrol, {} without; {refreshed:?} refreshed", lost(&with), lost(&without));
        assert!(lost(&with) == 0 && lost(&without) > 100 && refreshed >= Some(12), "{layer}");
    }
}
