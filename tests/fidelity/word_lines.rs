//! Word lines programmed in one shot (docs/fidelity.md): single requests to the nanosecond, bandwidth by registers and
//! bus, power, and a fast cache beside word lines.

use crate::bench::{Run, drive};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::Fidelity;
use palimpsest_lab::units::Nanos;

/// Pages of a word line.
const N: u64 = 3;
const PAGE: u64 = 16 << 10;
/// One plane, whose word lines take a shot of 1.17 ms; the host link takes no time.
const ONE_PLANE: &str = "part.pages_per_program=3 part.t_program=1170us part.t_read_types=[\"40us\",\"50us\",\"70us\"] \
     part.bus_rate=400MB/s ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 part.pages_per_block=66 \
     ssd.over_provisioning=28% host.link_rate=unlimited sim.cache_register=false sim.multi_plane=off";

fn with(sets: &str) -> Resolved {
    drive("tlc-32g", &format!("{ONE_PLANE} {sets}"))
}

/// Command and transfer of a page.
fn on_bus(ssd: &Resolved) -> Nanos {
    ssd.drive.part.t_command + ssd.drive.part.bus_rate.time_for(PAGE)
}

/// A write of a word line takes N (command + transfer) + tPROG of the shot. A lone write of 4 KiB takes the same after
/// the timeout, with padding. A flush of a volatile buffer waits for the program, from the write on.
#[test]
fn a_word_line_takes_the_transfers_of_its_pages_and_one_shot() {
    let ssd = with("buffer.ack=program");
    let shot = N * on_bus(&ssd) + ssd.drive.part.t_program;
    let write = |ssd: &Resolved, workload: &str| Run::new(ssd, workload).result();
    let whole = write(&ssd, "rw=write,bs=48k,n=100");
    let times = whole.latency_ns.as_ref().unwrap().write.as_ref().unwrap();
    assert_eq!([times.mean, times.max], [shot; 2]);
    assert_eq!((whole.flash.page_programs, whole.write_amplification), (100, Some(1.0)));
    let small = write(&ssd, "rw=randwrite,bs=4k,n=100");
    let times = small.latency_ns.as_ref().unwrap().write.as_ref().unwrap();
    assert_eq!([times.mean, times.max], [ssd.drive.host.buffer_timeout + shot; 2]);
    // Eleven of the twelve subpages of each word line are padding.
    assert_eq!(small.padding_bytes, 100 * 11 * 4096);
    let volatile = with("buffer.ack=volatile");
    let flushed = write(&volatile, "rw=write,bs=4k,n=100,fsync=1").latency_ns.unwrap();
    assert_eq!((flushed.write.unwrap().max, flushed.all.unwrap().max), (0, shot));
}

/// The page map maps a word line as a whole: a write of 4 KiB reads the pages one by one and programs all. The cached
/// map does the same if memory holds the whole map.
#[test]
fn the_page_map_reads_and_programs_a_word_line_for_less() {
    for layer in ["page", "dftl"] {
        let ssd = with(&format!(
            "ftl.name={layer} buffer.ack=program ftl.streams=2{}",
            if layer == "dftl" { " ftl.cmt=1MiB" } else { "" }
        ));
        let x = on_bus(&ssd);
        let shot = N * x + ssd.drive.part.t_program;
        let reads = 40_000 + 50_000 + 70_000 + N * x;
        let mut whole = Run::new(&ssd, "rw=write,bs=48k,n=100");
        let times = whole.result().latency_ns.unwrap().write.unwrap();
        assert_eq!([times.mean, times.max], [shot; 2], "{layer}");
        // Each word line again, of which a twelfth is new.
        whole.workload = "rw=randwrite,bs=4k,n=60,size=4MiB".into();
        whole.precondition = "fill:50%";
        let result = whole.result();
        let times = result.latency_ns.unwrap().write.unwrap();
        assert_eq!(times.p50, reads + shot, "{layer}");
        assert!(result.write_amplification.unwrap() >= 12.0, "{layer}");
    }
}

/// A read senses only the page of the wanted data, in the time of the page's type: command + tR + transfer. A read of a
/// whole word line senses the pages one by one. With `dma` only the wanted words cross the bus.
#[test]
fn a_read_senses_the_pages_that_it_wants() {
    let types = [40_000, 50_000, 70_000];
    let read = |ssd: &Resolved, workload: &str| {
        let mut run = Run::new(ssd, workload);
        run.precondition = "fill:90%";
        run.result()
    };
    let ssd = with("ftl.read=page");
    let result = read(&ssd, "rw=read,bs=16k,n=300");
    let times = result.latency_ns.as_ref().unwrap().read.as_ref().unwrap();
    let rest = on_bus(&ssd);
    assert_eq!([times.mean, times.p50, times.max], [160_000 / 3 + rest, 50_000 + rest, 70_000 + rest]);
    assert_eq!((result.flash.page_reads, result.flash.bytes_sensed), (300, 300 * PAGE));
    let result = read(&ssd, "rw=read,bs=48k,n=100");
    let times = result.latency_ns.as_ref().unwrap().read.as_ref().unwrap();
    assert_eq!([times.mean, times.max], [types.iter().sum::<u64>() + N * rest; 2]);
    assert_eq!(result.flash.page_reads, 300);
    let words = with("ftl.read=dma");
    let times = read(&words, "rw=read,bs=4k,n=300").latency_ns.unwrap().read.unwrap();
    let rest = words.drive.part.t_command + words.drive.part.bus_rate.time_for(4096);
    assert_eq!([times.p50, times.max], [50_000 + rest, 70_000 + rest]);
}

/// D dies of a channel, each of which takes in R pages while the array programs. A word line takes
/// max(tPROG, R x) + (N - R) x, with x = command + transfer of a page; without the cache register N x + tPROG. The bus
/// carries one page in x. Dies that load at the same time take turns page by page and stay in step: then each page that
/// is not hidden takes D x.
#[test]
fn bandwidth_follows_registers_and_bus() {
    for (rate, dies) in [("400MB/s", 1), ("100MB/s", 1), ("100MB/s", 2), ("100MB/s", 4), ("1.6GB/s", 4)] {
        for registers in 0..=N {
            let cache = if registers == 0 {
                String::new()
            } else {
                format!("sim.cache_register=true part.cache_pages={registers}")
            };
            let ssd = with(&format!("buffer.ack=program part.bus_rate={rate} ssd.dies_per_chip={dies} {cache}"));
            let run = Run::new(&ssd, "rw=write,bs=48k,io_size=90%,iodepth=32");
            let measured = run.result().throughput.bytes_per_s.unwrap();
            let (x, shot) = (on_bus(&ssd), ssd.drive.part.t_program);
            let word_line = |x: u64| shot.max(registers * x) + (N - registers) * x;
            let bytes = (N * PAGE * dies) as f64 * 1e9;
            let apart = (bytes / word_line(x) as f64).min(bytes / (N * dies * x) as f64);
            let in_step = bytes / word_line(dies * x) as f64;
            println!("{dies} dies, {rate}, {registers} registers: {measured:.4e} of {in_step:.4e} to {apart:.4e}");
            assert!(measured <= apart * 1.001 && measured >= in_step * 0.99);
        }
    }
}

/// Windows hold the energy of all operations; a program counts as one shot: e_program / (N x + tPROG) for back-to-back
/// programs, and nothing while pages are on the bus.
#[test]
fn the_energy_is_that_of_the_shot() {
    let ssd = with("ftl.gc_pace=block part.e_program=90uJ part.bus_rate=50MB/s");
    let outcome = Run::new(&ssd, "rw=write,bs=48k,n=600,iodepth=8").outcome(true);
    let (summary, part) = (outcome.summary, &ssd.drive.part);
    let time = (N * on_bus(&ssd) + part.t_program) as f64;
    let (form, power) = (part.e_program as f64 / time / 1000.0, summary.power_w);
    println!("mean {:.4} W, form {form:.4} W", power.mean.unwrap());
    assert!((power.mean.unwrap() / form - 1.0).abs() < 3e-3);
    assert_eq!(summary.energy_uj.program, Some(90.0 * summary.flash.page_programs as f64));
}

/// A fast cache beside word lines: cached blocks hold a third of their pages, at tPROG of single bits each. Later pages
/// go to word lines. A flush of cached pages programs no more pages than hold data.
#[test]
fn a_fast_cache_programs_single_pages() {
    let sets = "part.t_program_slc=100us ftl.slc_cache=9% ssd.planes_per_die=4 sim.cache_register=true \
         sim.multi_plane=waiting \
         part.bus_rate=1.6GB/s part.cache_pages=3 part.pages_per_block=264 ssd.blocks_per_plane=266 \
         ssd.over_provisioning=7%";
    let ssd = with(sets);
    let (part, planes) = (&ssd.drive.part, 4);
    let most = u64::from((f64::from(ssd.drive.geometry.blocks_per_plane) * 0.09) as u32);
    let total = 3u64 << 29;
    let mut run = Run::new(&ssd, &format!("rw=write,bs=96k,size=1536MiB,n={},iodepth=64", total / (96 << 10)));
    let result = run.result();
    assert_eq!(result.write_amplification, Some(1.0));
    // Pages here are word lines; a cached page holds as much, on three word lines.
    let pages = total / (N * PAGE);
    let cached = most * planes * u64::from(part.pages_per_block / 3);
    let form = (cached * N * part.t_program_slc + (pages - cached) * part.t_program) / planes;
    let off = result.simulated_ns as f64 / form as f64 - 1.0;
    println!("{} ns, form {form} ns ({:+.2} %)", result.simulated_ns, 100.0 * off);
    assert!(off.abs() < 0.02);
    run.workload = "rw=randwrite,bs=16k,n=60k,norandommap,iodepth=8".into();
    (run.precondition, run.payload, run.fidelity) = ("fill:100%", Payload::Tag, Fidelity::Count);
    assert!(run.result().gc.runs > 30);

    let volatile = drive("tlc-32g", &format!("{ONE_PLANE} {sets} buffer.ack=volatile"));
    let flushed = Run::new(&volatile, "rw=write,bs=4k,n=50,fsync=1").result().latency_ns.unwrap();
    assert_eq!(flushed.all.unwrap().max, on_bus(&volatile) + 100_000);
}
