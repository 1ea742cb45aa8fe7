//! Rates of a workload are caps, as in fio: at most `iodepth` requests are in flight, and latency counts from issue.

use crate::bench::{Run, drive};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::run::Fidelity;

const SSD: (&str, &str) = ("tlc-32g", "ssd.blocks_per_plane=64 ssd.over_provisioning=28%");
const WRITES: &str = "rw=randwrite,bs=4k,n=3e4";

fn run(sets: &str, workload: &str, fidelity: Fidelity) -> Summary {
    let ssd = drive(SSD.0, &format!("{} {sets}", SSD.1));
    let mut run = Run::new(&ssd, workload);
    run.precondition = "fill:100%,random:1x";
    run.fidelity = fidelity;
    run.result()
}

fn timed(workload: &str) -> Summary {
    run("", workload, Fidelity::Timed)
}

/// Throughput, and the mean and the 99th percentile of the write latency.
fn figures(result: &Summary) -> (f64, u64, u64) {
    let write = result.latency_ns.as_ref().unwrap().write.as_ref().unwrap();
    (result.throughput.iops.unwrap(), write.mean, write.p99)
}

#[test]
fn a_rate_below_the_drives_speed_is_reached() {
    let (most, ..) = figures(&timed(&format!("{WRITES},iodepth=16")));
    for share in [0.2, 0.7] {
        let rate = (share * most).round();
        let keys = format!("{WRITES},iodepth=16,rate_iops={rate}");
        for keys in [
            keys.clone(),
            format!("{keys},rate_process=poisson"),
            format!("{WRITES},iodepth=16,rate={}", 4096.0 * rate),
        ] {
            let (iops, ..) = figures(&timed(&keys));
            println!("{keys}: {iops:.0} of {most:.0} IOPS");
            assert!((iops / rate - 1.0).abs() < 0.02);
        }
    }
}

#[test]
fn a_rate_above_the_drives_speed_is_a_closed_loop() {
    for depth in [1, 16] {
        let loops = [format!("{WRITES},iodepth={depth}"), format!("{WRITES},iodepth={depth},rate_iops=1e7")];
        let [closed, capped] = loops.map(|keys| figures(&timed(&keys)));
        println!("depth {depth}: {closed:?} closed, {capped:?} capped");
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.02;
        assert!(
            near(closed.0, capped.0)
                && near(closed.1 as f64, capped.1 as f64)
                && near(closed.2 as f64, capped.2 as f64)
        );
    }
    // Without a bound requests queue for as long as the run takes.
    let (.., open) = figures(&timed(&format!("{WRITES},rate_iops=1e7,open_loop")));
    let (.., capped) = figures(&timed(&format!("{WRITES},iodepth=16,rate_iops=1e7")));
    assert!(open > 50 * capped, "{open} {capped}");
}

#[test]
fn reads_and_writes_have_caps_of_their_own() {
    for fidelity in [Fidelity::Timed, Fidelity::Count] {
        for (rates, reads) in [("3000,1000", 3.0), ("1000,3000", 1.0), ("1000", 2.0)] {
            let requests = run("", &format!("rw=randrw,bs=4k,iodepth=8,rate_iops={rates},n=4000"), fidelity).requests;
            let share = requests.read as f64 / 1000.0;
            println!("rate_iops={rates}: {} reads, {} writes, {fidelity:?}", requests.read, requests.write);
            assert!(requests.read + requests.write == 4000 && (share / reads - 1.0).abs() < 0.01);
        }
    }
}

/// Flash has no notion of a rate: in counted runs, a rate does not change the requests of one direction.
#[test]
fn a_rate_changes_no_request_of_one_direction() {
    let counted = |keys: &str| {
        let result = run("", &format!("{WRITES}{keys}"), Fidelity::Count);
        (result.write_amplification, result.flash.page_programs, result.flash.erases)
    };
    let closed = counted("");
    assert!(closed.2 > 0);
    assert_eq!(counted(",iodepth=16,rate_iops=1000"), closed);
    assert_eq!(counted(",rate_iops=1000,open_loop"), closed);
}

/// `host.iodepth` replaces the depth of the workload and keeps the rate, in a specification and over all jobs of a
/// file.
#[test]
fn a_depth_of_the_host_keeps_the_rate() {
    let of = |sets: &str, keys: &str| figures(&run(sets, keys, Fidelity::Timed));
    let own = of("", &format!("{WRITES},iodepth=4,rate_iops=1e7"));
    assert_eq!(of("host.iodepth=4", &format!("{WRITES},iodepth=32,rate_iops=1e7")), own);
    let (iops, ..) = of("host.iodepth=4", &format!("{WRITES},rate_iops=2000"));
    assert!((iops / 2000.0 - 1.0).abs() < 0.01, "{iops}");
    let jobs =
        "[global]\nrw=randwrite\nbs=4k\nruntime=1s\ntime_based\n[a]\nrate_iops=2000\n[b]\niodepth=8\nrate_iops=1000\n";
    let (iops, ..) = of("host.iodepth=2", jobs);
    assert!((iops / 3000.0 - 1.0).abs() < 0.01, "{iops}");
}
