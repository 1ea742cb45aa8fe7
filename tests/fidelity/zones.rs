//! Zones (`zns`) against sums by hand: write amplification, and bandwidth from the program time.

use crate::bench::{Run, drive};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::run::Fidelity;

/// Eight dies of one plane, with pages of 16 KiB that are programmed in 200 us; a block has 4 MiB.
fn zoned(sets: &str) -> Resolved {
    drive(
        "tlc-32g",
        &format!(
            "ftl.name=zns part.cell=slc part.pages_per_program=1 part.t_read_types=[] part.t_program=200us \
             part.pages_per_block=256 part.bus_rate=1200MB/s ssd.planes_per_die=1 ssd.blocks_per_plane=64 \
             sim.cache_register=true {sets}"
        ),
    )
}

fn run(ssd: &Resolved, workload: &str, fidelity: Fidelity) -> Summary {
    let mut run = Run::new(ssd, workload);
    (run.precondition, run.fidelity, run.warmup) = ("none", fidelity, 0);
    let result = run.result();
    let zns = result.zns.as_ref().expect("a drive with zones");
    assert!(zns.errors.values().all(|&count| count == 0), "{:?}", zns.errors);
    result
}

/// Whatever zones are written in which order, flash programs what the host writes.
#[test]
fn nothing_is_written_twice() {
    for (sets, zone) in [("zns.zone_dies=1", "4m"), ("zns.zone_dies=4", "16m"), ("zns.zone_dies=0", "32m")] {
        for writes in ["rw=write", "rw=randwrite,max_open_zones=3", "rw=randrw"] {
            let ssd = zoned(sets);
            let workload = format!("zonemode=zbd,zonesize={zone},{writes},bs=64k,n=60k");
            let result = run(&ssd, &workload, Fidelity::Count);
            let zns = result.zns.as_ref().expect("zones");
            assert_eq!(result.write_amplification, Some(1.0), "{sets}, {writes}");
            assert!(zns.resets > 0, "{sets}, {writes}");
        }
    }
}

/// A zone on n dies takes n pages of 16 KiB in 200 us; eight zones of one die take as much as one of eight dies.
#[test]
fn the_bandwidth_of_a_zone_is_that_of_its_dies() {
    for (dies, zone, jobs) in [(1, 4, 1), (2, 8, 1), (4, 16, 1), (8, 32, 1), (1, 4, 8)] {
        let ssd = zoned(&format!("zns.zone_dies={dies} buffer.ack=program"));
        // Each job fills one zone.
        let job = format!("zonemode=zbd,zonesize={zone}m,rw=write,bs=64k,size={zone}m,n={}", zone * 16);
        let copies = format!("{job},iodepth=16,numjobs={jobs},offset_increment={zone}m");
        let result = run(&ssd, &copies, Fidelity::Timed);
        let seconds = result.simulated_ns as f64 / 1e9;
        let found = f64::from(jobs * zone * 1024 * 1024) / seconds;
        let form = f64::from(dies * jobs) * 16384.0 / 200e-6;
        println!("{jobs} zones of {dies} dies: {:.1} MB/s, form {:.1} MB/s", found / 1e6, form / 1e6);
        assert!((found / form - 1.0).abs() < 0.03, "{found} of {form}");
    }
}
