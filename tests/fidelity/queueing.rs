//! Queueing laws.

use crate::bench::{Run, drive};

/// One die that reads pages of 4 KiB.
const ONE_DIE: &str = "ftl.name=page part.page_size=4KiB ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 \
     ssd.over_provisioning=28% host.link_rate=unlimited sim.cache_register=false";

/// Poisson arrivals at one die with a constant service time s are an M/D/1 queue: the mean wait is rho s / (2 (1 -
/// rho)) (Pollaczek and Khinchine).
#[test]
fn poisson_reads_of_one_die_wait_as_in_an_m_d_1_queue() {
    let ssd = drive("tlc-32g", ONE_DIE);
    let part = &ssd.drive.part;
    let service = part.t_command + part.t_read + part.bus_rate.time_for(4096);
    for (rho, within) in [(0.2, 0.03), (0.5, 0.02), (0.8, 0.04)] {
        let rate = (rho * 1e9 / service as f64).round();
        let rho = rate * service as f64 / 1e9;
        let mut run = Run::new(
            &ssd,
            &format!("rw=randread,bs=4k,n=400k,norandommap,rate_iops={rate},open_loop,rate_process=poisson"),
        );
        run.precondition = "fill:100%";
        let times = run.result().latency_ns.unwrap().read.unwrap();
        let (wait, form) = ((times.mean - service) as f64, rho * service as f64 / (2.0 * (1.0 - rho)));
        println!("rho {rho:.3}: wait {wait:.0} ns, form {form:.0} ns ({:+.2} %)", 100.0 * (wait / form - 1.0));
        assert!((wait / form - 1.0).abs() < within);
    }
}

/// Little's law in a closed loop: throughput x mean latency = queue depth.
#[test]
fn throughput_times_latency_is_the_queue_depth() {
    for (ssd, workload) in [
        ("tlc-32g", "rw=randread,bs=4k,n=100k,norandommap"),
        ("tlc-32g", "rw=randrw,bs=4k,n=100k,norandommap,rwmixread=70"),
        ("spread-16g", "rw=randread,bs=16k,n=50k,norandommap"),
        ("mga-8k", "rw=randwrite,bs=8k,n=50k,norandommap"),
        ("codesign-8ch", "rw=randrw,bs=4k,n=50k,norandommap"),
    ] {
        for depth in [1, 8, 64] {
            let resolved = drive(ssd, "ssd.blocks_per_plane=64 ssd.over_provisioning=100% buffer.ack=program");
            let mut run = Run::new(&resolved, &format!("{workload},iodepth={depth}"));
            run.precondition = "fill:90%";
            let result = run.result();
            let outstanding =
                result.throughput.iops.unwrap() * result.latency_ns.unwrap().all.unwrap().mean as f64 / 1e9;
            println!("{ssd}, {workload}, depth {depth}: {outstanding:.3} outstanding");
            assert!((outstanding / f64::from(depth) - 1.0).abs() < 0.01);
        }
    }
}

/// A die whose cache register serves programs only reads like a die without the register. Eight reads in flight take
/// eight times one read, command + sensing + transfer; cached reads take the longer of sensing and transfer each.
/// Writes take the same time as with the register.
#[test]
fn a_die_without_cached_reads_is_busy_until_the_data_has_left() {
    let mean = |sets: &str, workload: &str| {
        let ssd = drive("tlc-32g", &format!("{ONE_DIE} buffer.ack=program ftl.gc_pace=block {sets}"));
        let mut run = Run::new(&ssd, workload);
        run.precondition = if workload.contains("read") { "fill:100%" } else { "none" };
        run.result().latency_ns.unwrap().all.unwrap().mean
    };
    let (both, programs, none) = (
        "sim.cache_register=true",
        "sim.cache_register=true sim.cache_read=false",
        "sim.cache_register=false sim.cache_read=true",
    );
    let part = drive("tlc-32g", ONE_DIE).drive.part;
    let (sensing, transfer) = (part.t_read, part.bus_rate.time_for(4096));
    let reads = "rw=randread,bs=4k,n=20k,norandommap,iodepth=8";
    for (sets, each) in [(programs, part.t_command + sensing + transfer), (none, part.t_command + sensing + transfer)] {
        assert!((mean(sets, reads) as f64 / (8 * each) as f64 - 1.0).abs() < 0.002, "{sets}");
    }
    assert!(mean(both, reads) < 8 * (sensing.max(transfer) + 2 * part.t_command));
    let writes = "rw=write,bs=4k,size=50%,iodepth=8";
    let written = [both, programs, none].map(|sets| mean(sets, writes));
    assert_eq!(written[0], written[1]);
    assert!(written[2] > written[1]);
}
