//! Times of recovery after a power cut.

use crate::bench::{Run, small};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::scan::OUT_OF_BAND_BYTES;

/// One die without a cache register reads the out-of-band areas of P pages one by one: P x (command + array +
/// transfer). Torn blocks and moved pages take at most the same time again.
#[test]
fn one_die_recovers_in_the_time_of_its_reads() {
    for (blocks, cut) in [(16, 900), (32, 1700)] {
        let sets = format!(
            "ftl.name=page part.page_size=4KiB ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane={blocks} \
             part.pages_per_block=64 ssd.over_provisioning=60% ftl.streams=1 sim.cache_register=false \
             faults.power_cuts=at:{cut}"
        );
        let ssd = small("tlc-32g", &sets);
        let part = &ssd.drive.part;
        let mut run = Run::new(&ssd, "rw=randwrite,bs=4k,n=3000,norandommap");
        run.precondition = "fill:100%";
        run.payload = Payload::Tag;
        let power = run.result().power.unwrap();
        let took = power.recovery_ns.as_ref().unwrap();
        assert_eq!((power.cuts, took.mean), (1, took.max));
        let read = part.t_command + part.t_read + part.bus_rate.time_for(OUT_OF_BAND_BYTES.into());
        let form = power.pages_scanned * read;
        println!("{blocks} blocks: {} ns, form {form} ns, {} pages", took.mean, power.pages_scanned);
        let logical = ssd.drive.logical_pages();
        assert!((logical..=ssd.drive.geometry.pages()).contains(&power.pages_scanned));
        assert!(took.mean >= form && took.mean <= form + form / 10, "{} ns", took.mean);
    }
}

/// With a checkpoint, one die reads the checkpoint's pages, two records and the first page of each block. Of blocks
/// written since, recovery reads the new pages: at most the programs since, and an erased page of each frontier. All
/// acknowledged data is read back.
#[test]
fn a_checkpoint_leaves_little_to_read() {
    let run = |checkpoint: &str| {
        let sets = format!(
            "ftl.name=page part.page_size=4KiB ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 \
             part.pages_per_block=64 ssd.over_provisioning=60% ftl.streams=1 sim.cache_register=false \
             faults.power_cuts=at:9000 ftl.checkpoint={checkpoint}"
        );
        let ssd = small("tlc-32g", &sets);
        let mut run = Run::new(&ssd, "rw=randwrite,bs=4k,n=6000,norandommap");
        run.precondition = "fill:100%";
        run.payload = Payload::Tag;
        let result = run.result();
        let form = (ssd.drive.geometry, ssd.drive.logical_pages());
        (result.power.unwrap(), result.checkpoint, form)
    };
    let ((whole, none, _), (power, cost, (geometry, logical))) = (run("0B"), run("4MiB"));
    assert!(none.is_none());
    let tables = 4 * logical + 20 * u64::from(geometry.blocks());
    let (pages, every) = (tables.div_ceil(geometry.page_bytes().into()), (4 << 20) / u64::from(geometry.page_bytes()));
    let cost = cost.unwrap();
    println!("{pages} pages; {cost:?}; {power:?}, without {whole:?}");
    // The last checkpoint may still be running.
    assert!(cost.begun > 2 && (0..=pages).contains(&(cost.begun * (pages + 1) - cost.page_programs)));
    let least = pages + 2 + u64::from(geometry.blocks()) - 6;
    // The newest complete checkpoint began at most one and a half intervals before.
    assert!((least..=least + every * 3 / 2 + 64).contains(&power.pages_scanned), "{}", power.pages_scanned);
    assert!(2 * power.pages_scanned < whole.pages_scanned);
    let [with, without] = [power, whole].map(|power| power.recovery_ns.unwrap().mean);
    assert!(2 * with < without, "{with} and {without} ns");
}

/// Counted and timed runs of one schedule lose no durable data, and repeated runs agree.
#[test]
fn schedules_repeat() {
    let ssd = small(
        "tlc-32g",
        "ftl.name=subpage ssd.blocks_per_plane=16 ssd.over_provisioning=100% faults.power_cuts=poisson:2k \
         part.pages_per_block=16 buffer.ack=program",
    );
    let mut run = Run::new(&ssd, "rw=randrw,bs=4k,n=20k,norandommap,iodepth=8,fsync=64");
    run.precondition = "fill:100%";
    run.payload = Payload::Tag;
    let [one, two] = [0, 1].map(|_| run.result());
    let (power, again) = (one.power.unwrap(), two.power.unwrap());
    println!("{power:?}");
    assert!(power.cuts > 3);
    assert_eq!(serde_json::to_string(&power).unwrap(), serde_json::to_string(&again).unwrap());
    assert_eq!(one.flash.page_reads, two.flash.page_reads);
}
