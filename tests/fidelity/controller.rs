//! The controller's time: sums for single requests, to the nanosecond, and the queue of its processors.

use crate::bench::{Run, drive};
use palimpsest_lab::metrics::summary::Latency;

/// Times that no other sum contains.
const TIMES: &str = "host.t_link=700ns controller.iops=500000 controller.t_read=5us controller.t_write=3us \
     controller.t_end=1100ns buffer.t_write=4us buffer.t_write_next=460ns host.t_request=0ns";
/// Flash that is never waited for.
const NO_FLASH: &str = "host.link_rate=unlimited";

fn all_take(times: &Latency, expected: u64, what: &str) {
    assert_eq!([times.mean, times.p50, times.p99, times.max], [expected; 4], "{what}");
}

/// Read = link latency + processors + t_read + what flash and link take + t_end + link latency. Requests that need no flash
/// leave out flash alone.
#[test]
fn a_read_adds_the_times_of_the_controller() {
    let (link, processors, before, end) = (700, 2000, 5000, 1100);
    for layer in ["page", "subpage"] {
        let with = drive("default", &format!("ftl.name={layer} {TIMES}"));
        let without = drive("default", &format!("ftl.name={layer}"));
        for precondition in ["fill:10%", "none"] {
            let read = |ssd| {
                let mut run = Run::new(ssd, "rw=randread,bs=4k,size=64MiB,n=100");
                run.precondition = precondition;
                run.result().latency_ns.unwrap().read.unwrap()
            };
            let expected = read(&without).mean + link + processors + before + end + link;
            all_take(&read(&with), expected, &format!("{layer} after {precondition}"));
        }
    }
}

/// Buffered write = link latency + processors + t_write + the link's transfer + buffer.t_write and buffer.t_write_next for each
/// further subpage + t_end + link latency; a flush of nothing lacks transfer and buffer.
#[test]
fn a_buffered_write_adds_the_times_of_the_controller_and_of_the_buffer() {
    let ssd = drive("default", &format!("ftl.name=subpage buffer.size=1GiB {TIMES}"));
    for kib in [4, 16, 128] {
        let result = Run::new(&ssd, &format!("rw=write,bs={kib}k,size=64MiB,n=100")).result();
        let transfer = ssd.drive.host.link_rate.time_for(kib << 10);
        let expected = 700 + 2000 + 3000 + transfer + 4000 + 460 * (kib / 4 - 1) + 1100 + 700;
        all_take(&result.latency_ns.unwrap().write.unwrap(), expected, &format!("{kib} KiB"));
    }
}

/// Processors that take `controller.iops` requests a second take no more, and no fewer where flash and depth allow more.
#[test]
fn requests_a_second_saturate() {
    for (iops, depth) in [(50_000, 16), (500_000, 64), (1_000_000, 256)] {
        let ssd =
            drive("default", &format!("ftl.name=subpage {NO_FLASH} controller.iops={iops} controller.t_read=9us"));
        let result = Run::new(&ssd, &format!("rw=randread,bs=4k,n=100k,iodepth={depth}")).result();
        let measured = result.throughput.iops.unwrap();
        println!("{depth} in flight: {measured:.0} of {iops} requests/s");
        assert!((measured / f64::from(iops) - 1.0).abs() < 0.001);
    }
}

/// Poisson arrivals wait for the processors as in an M/D/1 queue: rho s / (2 (1 - rho)) (Pollaczek and Khinchine).
#[test]
fn poisson_arrivals_wait_for_the_processors() {
    let service = 10_000.0;
    let ssd = drive("default", &format!("ftl.name=subpage {NO_FLASH} controller.iops=100000"));
    for (rho, within) in [(0.3, 0.03), (0.8, 0.04)] {
        let rate = (rho * 1e5_f64).round();
        let workload = format!("rw=randread,bs=4k,n=400k,norandommap,rate_iops={rate},rate_process=poisson");
        let mean = Run::new(&ssd, &workload).result().latency_ns.unwrap().read.unwrap().mean as f64;
        let form = rho * service / (2.0 * (1.0 - rho));
        println!("rho {rho}: wait {:.0} ns, form {form:.0} ns", mean - service);
        assert!(((mean - service) / form - 1.0).abs() < within);
    }
}

/// Pages of the types of a word line take their own sensing times, in the order of their programs.
#[test]
fn pages_of_a_word_line_have_sensing_times_of_their_own() {
    let times = r#"part.t_read_types=["30us","50us","90us"]"#.replace(' ', "");
    let ssd = drive("default", &format!("ftl.name=page ssd.channels=1 ssd.planes_per_die=1 {times}"));
    let part = &ssd.drive.part;
    let mut run = Run::new(&ssd, "rw=read,bs=16k,size=6MiB,n=384");
    run.precondition = "fill:50%";
    let reads = run.result().latency_ns.unwrap().read.unwrap();
    let rest = part.t_command + part.bus_rate.time_for(16384);
    assert!(reads.mean.abs_diff((30_000 + 50_000 + 90_000) / 3 + rest) <= 1, "{}", reads.mean);
    assert_eq!((reads.p50, reads.max), (50_000 + rest, 90_000 + rest));
}
