//! Jobs that share a drive: depths of their own, and the simulated clock.

use crate::bench::{Run, drive};

/// One die with a known time of a page read, so that the requests of a job can be counted by hand.
const ONE_DIE: &str = "ftl.name=page part.page_size=4KiB ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 \
     ssd.over_provisioning=28% host.link_rate=unlimited sim.cache_register=false";

/// Little's law over all jobs: the requests outstanding are the sum of their depths, while both run.
#[test]
fn throughput_times_latency_is_the_sum_of_the_depths() {
    let ssd = drive("tlc-32g", "ssd.blocks_per_plane=64 ssd.over_provisioning=100% buffer.ack=program");
    let mut run = Run::new(
        &ssd,
        "[global]\nruntime=2\ntime_based\n[a]\nrw=randread\niodepth=3\n\
         [b]\nrw=randread\nbs=16k\nnumjobs=2\niodepth=4\n",
    );
    run.precondition = "fill:90%";
    let result = run.result();
    let outstanding = result.throughput.iops.unwrap() * result.latency_ns.unwrap().all.unwrap().mean as f64 / 1e9;
    println!("3 and 2 x 4 outstanding: {outstanding:.3}");
    assert!((outstanding / 11.0 - 1.0).abs() < 0.01);
}

/// A job of depth 1 completes runtime / response time requests after the delay.
#[test]
fn runtime_is_simulated_time() {
    let ssd = drive("tlc-32g", ONE_DIE);
    let mut run = Run::new(&ssd, "rw=randread,runtime=100ms");
    run.precondition = "fill:100%";
    let alone = run.result();
    let one = alone.latency_ns.unwrap().all.unwrap().max;
    assert_eq!(alone.requests.read, 100_000_000_u64.div_ceil(one));
    run.workload = "rw=randread,runtime=100ms,startdelay=50ms".into();
    let later = run.result();
    assert_eq!(later.requests.read, alone.requests.read);
    assert_eq!(later.simulated_ns, alone.simulated_ns + 50_000_000);
    // A speed-up of two halves all times of the workload.
    let fast = drive("tlc-32g", &format!("{ONE_DIE} host.speedup=2"));
    let halved = Run { ssd: &fast, ..run.clone() }.result();
    assert_eq!(halved.requests.read, 50_000_000_u64.div_ceil(one));
}

/// A die that serves in order of arrival divides the throughput by the depths of the jobs.
#[test]
fn jobs_share_a_die_by_their_depths() {
    let ssd = drive("tlc-32g", ONE_DIE);
    let jobs = "[global]\nruntime=200ms\ntime_based\nrw=randread\n[a]\n[b]\niodepth=3\nbs=4k\n";
    let mut run = Run::new(&ssd, jobs);
    run.precondition = "fill:100%";
    let both = run.result();
    run.workload = "rw=randread,runtime=200ms,iodepth=4".into();
    let four = run.result();
    let (jobs_served, one_loop) = (both.requests.read as f64, four.requests.read as f64);
    println!("{jobs_served} requests of jobs with 1 and 3 outstanding, {one_loop} of one with 4");
    assert!((jobs_served / one_loop - 1.0).abs() < 0.001);
}

/// Warm-up and the limit on requests apply to jobs too.
#[test]
fn warmup_and_data_hold_for_jobs() {
    let ssd = drive("tlc-32g", ONE_DIE);
    let mut run = Run::new(
        &ssd,
        "[a]\nrw=randwrite\nn=3000\n[b]\nrw=randread\niodepth=2\nn=1000\n\
         [c]\nstonewall\nrw=randrw\nrate_iops=5k\nopen_loop\nn=500\n",
    );
    run.precondition = "fill:90%";
    run.payload = palimpsest_lab::nand::data::Payload::Tag;
    run.warmup = 1500;
    let result = run.result();
    assert_eq!(result.requests.read + result.requests.write, 3000);
}
