//! The controller's time: sums for single requests, to the nanosecond, and the queue of its processors.

use crate::bench::{Run, drive};
use palimpsest_lab::metrics::summary::{Latency, Promise};

/// Times that no other sum contains.
const TIMES: &str = "host.t_link=700ns controller.iops=500000 controller.t_read=5us controller.t_write=3us \
     controller.t_end=1100ns buffer.t_write=4us buffer.t_write_next=460ns host.t_request=0ns";
/// A link without transfer time.
const NO_FLASH: &str = "host.link_rate=unlimited";

fn all_take(times: &Latency, expected: u64, what: &str) {
    assert_eq!([times.mean, times.p50, times.p99, times.max], [expected; 4], "{what}");
}

/// Read = link latency + processors + t_read + flash and link time + t_end + link latency. Requests that need no flash
/// omit flash time only.
#[test]
fn a_read_adds_the_times_of_the_controller() {
    let (link, processors, before, end) = (700, 2000, 5000, 1100);
    for layer in ["page", "subpage"] {
        let with = drive("tlc-32g", &format!("ftl.name={layer} {TIMES}"));
        let without = drive("tlc-32g", &format!("ftl.name={layer}"));
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

/// Buffered write = link latency + processors + t_write + the link's transfer + buffer.t_write and buffer.t_write_next
/// for each further subpage + t_end + link latency; a flush of nothing lacks transfer and buffer.
#[test]
fn a_buffered_write_adds_controller_and_buffer_times() {
    let ssd = drive("tlc-32g", &format!("ftl.name=subpage buffer.size=1GiB {TIMES}"));
    for kib in [4, 16, 128] {
        let result = Run::new(&ssd, &format!("rw=write,bs={kib}k,size=64MiB,n=100")).result();
        let transfer = ssd.drive.host.link_rate.time_for(kib << 10);
        let expected = 700 + 2000 + 3000 + transfer + 4000 + 460 * (kib / 4 - 1) + 1100 + 700;
        all_take(&result.latency_ns.unwrap().write.unwrap(), expected, &format!("{kib} KiB"));
    }
}

/// A protected buffer acknowledges a write of a part of a unit before the rest of the unit is read, whatever the unit.
/// The link carries the part, or the page of a layer that transfers whole pages.
#[test]
fn a_part_of_a_unit_is_acknowledged_in_the_buffer() {
    for unit in ["ftl.name=page", "ftl.name=dftl", "ftl.name=block", "ftl.name=subpage part.subpage_size=16KiB"] {
        let ssd = drive("tlc-32g", &format!("{unit} {TIMES}"));
        let mut run = Run::new(&ssd, "rw=randwrite,bs=4k,size=64MiB,n=100");
        run.precondition = "fill:10%";
        let times = run.result().latency_ns.unwrap().write.unwrap();
        let [part, page] = [4096, 16384].map(|bytes| ssd.drive.host.link_rate.time_for(bytes));
        let expected = 700 + 2000 + 3000 + 4000 + 1100 + 700;
        assert!((expected + part..=expected + page).contains(&times.mean) && times.max == times.mean, "{unit}");
    }
}

/// Processors of `controller.iops` serve exactly that rate if flash and depth allow more.
#[test]
fn requests_a_second_saturate() {
    for (iops, depth) in [(50_000, 16), (500_000, 64), (1_000_000, 256)] {
        let ssd =
            drive("tlc-32g", &format!("ftl.name=subpage {NO_FLASH} controller.iops={iops} controller.t_read=9us"));
        let result = Run::new(&ssd, &format!("rw=randread,bs=4k,n=100k,iodepth={depth}")).result();
        let measured = result.throughput.iops.unwrap();
        println!("{depth} in flight: {measured:.0} of {iops} requests/s");
        assert!((measured / f64::from(iops) - 1.0).abs() < 0.001);
    }
}

/// `controller.write_iops` limits writes to exactly that rate, and delays each write by the time of one.
#[test]
fn writes_a_second_saturate() {
    let ssd = drive("tlc-32g", &format!("ftl.name=subpage {NO_FLASH} buffer.size=1GiB controller.write_iops=200000"));
    let alone = Run::new(&ssd, "rw=write,bs=4k,size=64MiB,n=100").result().latency_ns.unwrap();
    all_take(&alone.write.unwrap(), 5000, "a write alone");
    let measured = Run::new(&ssd, "rw=write,bs=4k,n=100k,iodepth=64").result().throughput.iops.unwrap();
    assert!((measured / 200_000.0 - 1.0).abs() < 0.001, "{measured}");
}

/// Poisson arrivals wait for the processors as in an M/D/1 queue: rho s / (2 (1 - rho)) (Pollaczek and Khinchine).
#[test]
fn poisson_arrivals_wait_for_the_processors() {
    let service = 10_000.0;
    let ssd = drive("tlc-32g", &format!("ftl.name=subpage {NO_FLASH} controller.iops=100000"));
    for (rho, within) in [(0.3, 0.03), (0.8, 0.04)] {
        let rate = (rho * 1e5_f64).round();
        let workload = format!("rw=randread,bs=4k,n=400k,norandommap,rate_iops={rate},open_loop,rate_process=poisson");
        let mean = Run::new(&ssd, &workload).result().latency_ns.unwrap().read.unwrap().mean as f64;
        let form = rho * service / (2.0 * (1.0 - rho));
        println!("rho {rho}: wait {:.0} ns, form {form:.0} ns", mean - service);
        assert!(((mean - service) / form - 1.0).abs() < within);
    }
}

/// A volatile buffer acknowledges a write on any layer as soon as the data arrives. A flush then takes the rest of the
/// program: command + transfer + tPROG from the submission of the write. A protected buffer makes a flush free.
#[test]
fn a_volatile_buffer_makes_flushes_wait_for_programs() {
    for layer in ["page", "subpage"] {
        let flushed = |how: &str| {
            let ssd = drive("tlc-32g", &format!("ftl.name={layer} {how}"));
            let run = Run::new(&ssd, "rw=write,bs=16k,size=64MiB,n=100,fsync=1").result().latency_ns.unwrap();
            let (part, link) = (ssd.drive.part.clone(), ssd.drive.host.link_rate.time_for(16384));
            let programmed = part.t_command + part.bus_rate.time_for(16384) + part.t_program;
            (run.write.unwrap(), run.all.unwrap(), link, programmed)
        };
        let (write, all, link, programmed) = flushed("buffer.ack=volatile");
        all_take(&write, link, layer);
        // The last write is not flushed.
        let mean = (100 * link + 99 * (programmed - link)) / 199;
        assert!(all.max == programmed - link && all.mean.abs_diff(mean) <= 1, "{layer}: {} {}", all.max, all.mean);
        if layer == "subpage" {
            let (write, all, link, _) = flushed("buffer.ack=buffer buffer.flush=free");
            all_take(&write, link, layer);
            assert_eq!(all.max, link, "a flush of a protected buffer is free");
        }
    }
}

/// A full volatile buffer accepts writes no faster than flash programs them.
#[test]
fn a_volatile_buffer_fills_up() {
    let rate = |how: &str| {
        let ssd = drive("tlc-32g", &format!("ftl.name=page buffer.size=8MiB {how}"));
        let run = Run::new(&ssd, "rw=write,bs=128k,size=512MiB,n=4096,iodepth=32").result();
        run.throughput.bytes_per_s.unwrap()
    };
    let (volatile, programs) = (rate("buffer.ack=volatile"), rate("buffer.ack=program"));
    println!("{:.0} and {:.0} MB/s", volatile / 1e6, programs / 1e6);
    assert!((volatile / programs - 1.0).abs() < 0.03);
}

/// A fast cache of n blocks in each of P planes takes n P (pages of a block / bits of a cell) pages at tPROG of single
/// bits. Later pages go to blocks of all bits at their tPROG: total time, and the drive writes no page twice before it
/// is full.
#[test]
fn a_fast_cache_takes_writes_at_its_own_speed_until_it_is_full() {
    for (cell, bits) in [("tlc", 3), ("qlc", 4)] {
        let sets = format!("ftl.slc_cache=9% part.cell={cell} part.t_program_slc=100us");
        let ssd = drive("tlc-32g", &sets);
        let (part, planes) = (&ssd.drive.part, u64::from(ssd.drive.geometry.planes()));
        let most = u64::from((f64::from(ssd.drive.geometry.blocks_per_plane) * 0.09) as u32);
        let total = 3u64 << 30;
        let mut run = Run::new(&ssd, &format!("rw=write,bs=128k,size=3GiB,n={},iodepth=64", total >> 17));
        let result = run.result();
        assert_eq!(result.write_amplification, Some(1.0));
        let pages = total / u64::from(part.page_bytes);
        let cached = most * planes * u64::from(part.pages_per_block / bits);
        let form = (cached * part.t_program_slc + (pages - cached) * part.t_program) / planes;
        let off = result.simulated_ns as f64 / form as f64 - 1.0;
        println!("{cell}: {} ns, form {form} ns ({:+.2} %)", result.simulated_ns, 100.0 * off);
        assert!(off.abs() < 0.02);
        // Cached data is read back, and folding does not lose data.
        run.workload = "rw=randwrite,bs=16k,n=300k,norandommap,iodepth=8".into();
        (run.precondition, run.payload) = ("fill:100%", palimpsest_lab::nand::data::Payload::Tag);
        run.fidelity = palimpsest_lab::run::Fidelity::Count;
        assert!(run.result().gc.runs > 100);
    }
}

/// Each page of a word line has the sensing time of its type, in the order of programs.
#[test]
fn pages_of_a_word_line_have_sensing_times_of_their_own() {
    let times = r#"part.t_read_types=["30us","50us","90us"]"#.replace(' ', "");
    let ssd = drive("tlc-32g", &format!("ftl.name=page ssd.channels=1 ssd.planes_per_die=1 {times}"));
    let part = &ssd.drive.part;
    let mut run = Run::new(&ssd, "rw=read,bs=16k,size=6MiB,n=384");
    run.precondition = "fill:50%";
    let reads = run.result().latency_ns.unwrap().read.unwrap();
    let rest = part.t_command + part.bus_rate.time_for(16384);
    assert!(reads.mean.abs_diff((30_000 + 50_000 + 90_000) / 3 + rest) <= 1, "{}", reads.mean);
    assert_eq!((reads.p50, reads.max), (50_000 + rest, 90_000 + rest));
}

/// Each result states where the data of a write is at the acknowledgement, and when a power cut can no longer lose that
/// data.
#[test]
fn a_result_states_the_promise_of_its_drive() {
    let promise = |ssd: &str, set: &str| Run::new(&drive(ssd, set), "rw=write,bs=4k,size=1MiB,n=10").result().promise;
    let said = |acknowledged, durable| Promise { acknowledged, durable };
    for (set, expected) in [
        ("ftl.name=page", said("when programmed", "when acknowledged")),
        ("ftl.name=subpage", said("when programmed", "when acknowledged")),
        ("ftl.name=mga buffer.ack=buffer", said("in a protected buffer", "when acknowledged")),
        ("ftl.name=page buffer.ack=buffer", said("in a protected buffer", "when acknowledged")),
        ("ftl.name=block buffer.ack=volatile", said("in a volatile buffer", "by flush")),
        ("ftl.name=bast buffer.ack=volatile", said("in a volatile buffer", "by flush")),
        ("ftl.name=fs-page", said("when programmed", "by flush")),
        ("ftl.name=fs-page buffer.ack=buffer", said("in a protected buffer", "by flush")),
    ] {
        assert_eq!(promise("mga-16k", set), expected, "{set}");
    }
}
