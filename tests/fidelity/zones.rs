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

/// The drive of the co-design paper with one plane a die and fewer blocks, below the file system `ftl`.
fn files(ftl: &str, blocks: u32, sets: &str) -> Resolved {
    let small = "ssd.over_provisioning=60% ssd.planes_per_die=1 part.pages_per_block=64 fs.commit_interval=20ms";
    drive("codesign-8ch", &format!("{small} ssd.blocks_per_plane={blocks} ftl.name={ftl} {sets}"))
}

fn overwritten(ssd: &Resolved, fidelity: Fidelity, requests: u32) -> Summary {
    let spec = "rw=randrw,bssplit=4k/70:12k/20:80k/10,iodepth=16,random_distribution=zipf:0.9";
    Run { precondition: "fill:70%", fidelity, ..Run::new(ssd, &format!("{spec},n={requests}")) }.result()
}

/// A block map below a file system that never overwrites is a drive with zones of one erase block: every figure and
/// every response agrees, for each scheme.
#[test]
fn zones_of_one_block_are_a_block_map() {
    for scheme in ["rr", "hybrid", "least-work"] {
        let sets = format!("fs.scheme={scheme}");
        let alike = |ftl: &str, more: &str| {
            let mut summary = overwritten(&files(ftl, 24, &format!("{sets} {more}")), Fidelity::Timed, 24_000);
            assert!(summary.gc.runs > 100, "{scheme}: collection had nothing to do");
            let zns = summary.zns.take();
            (summary.ftl, summary.config) = (String::new(), serde_json::Value::Null);
            let mut figures = serde_json::to_value(&summary).unwrap();
            // Collection erases blocks below one, and the host zones in the other.
            assert!(figures.as_object_mut().unwrap().remove("basis").is_some());
            (figures.to_string(), zns)
        };
        let (blocks, _) = alike("codesign", "");
        let (zones, zns) = alike("fs-zns", "zns.zone_dies=1 zns.max_open=0 zns.max_active=0");
        assert!(zns.unwrap().resets > 100, "{scheme}");
        assert_eq!(blocks, zones, "{scheme}");
    }
}

/// The file system never needs more active zones than the drive has, and the drive copies nothing, refuses nothing and
/// has one entry of the map for each zone.
#[test]
fn files_keep_within_the_active_zones() {
    for (dies, most) in [(1, 4), (1, 5), (1, 14), (1, 0), (4, 4), (4, 14), (0, 4), (0, 14)] {
        let ssd = files("fs-zns", 80, &format!("zns.zone_dies={dies} zns.max_open=1 zns.max_active={most}"));
        let result = overwritten(&ssd, Fidelity::Count, 40_000);
        let (zns, case) = (result.zns.as_ref().expect("zones below"), format!("{dies} dies, {most} active"));
        println!("{case}: {:?}, {} resets", zns.states, zns.resets);
        assert!(zns.errors.values().all(|&count| count == 0), "{case}: {:?}", zns.errors);
        let active = zns.states.iter().filter(|(name, _)| name.ends_with("opened") || **name == "closed");
        let active: u64 = active.map(|(_, count)| count).sum();
        assert!(most == 0 || active <= most, "{case}: {active} are active");
        assert!(zns.resets > 20 && result.merge.count == 0, "{case}");
        assert_eq!(result.mapping.bytes, 8 * zns.zones, "{case}");
    }
}
