//! Directives of commands: FUA waits for programs, placement handles and lifetimes separate data.

use crate::bench::{Run, drive};
use palimpsest_lab::run::Fidelity;

/// Eight jobs that overwrite their regions in order, at rates of one to eight. Without placement a block holds data of
/// eight lifetimes; with a stream for each handle a block becomes invalid as a whole.
#[test]
fn eight_placement_handles_separate_eight_lifetimes() {
    let jobs: String = (0..8)
        .map(|job| {
            let (offset, weight) = (6 * job, job + 1);
            format!("[job{job}]\noffset={offset}m\nplids={job}\niodepth={weight}\nio_size={}m\n", 30 * weight)
        })
        .collect();
    let amplification = |sets: &str| {
        let ssd = drive(
            "tlc-32g",
            &format!(
                "ftl.name=page part.page_size=4KiB part.subpage_size=4KiB ssd.channels=1 ssd.planes_per_die=1 \
                 ssd.blocks_per_plane=256 part.pages_per_block=64 ssd.over_provisioning=28% ftl.gc_start=1block \
                 ftl.gc_stop=1block ftl.moved_to=plane {sets}"
            ),
        );
        let workload = format!("[global]\nrw=write\nbs=4k\nsize=6m\n{jobs}");
        let run = Run { fidelity: Fidelity::Count, warmup: 120_000, ..Run::new(&ssd, &workload) };
        run.result().write_amplification.unwrap()
    };
    let (one, two) = (amplification("ftl.streams=1"), amplification("ftl.streams=2"));
    let placed = amplification("ftl.streams=9 ftl.classifier=placement");
    let half = amplification("ftl.streams=5 ftl.classifier=placement");
    println!("one stream {one:.3}, moved data apart {two:.3}, four handles {half:.3}, eight handles {placed:.3}");
    assert!(one > 1.2 && two > 1.1, "{one} {two}");
    assert!(placed < 1.01 && placed < half && half < two, "{placed} {half} {two}");
}

/// Two jobs with hints of fio: the classifier `hint` finds the short-lived writes.
#[test]
fn write_hints_separate_hot_and_cold_writes() {
    let amplification = |sets: &str| {
        let ssd = drive(
            "tlc-32g",
            &format!(
                "ftl.name=subpage part.page_size=16KiB part.subpage_size=4KiB ssd.channels=1 ssd.planes_per_die=1 \
                 ssd.blocks_per_plane=256 part.pages_per_block=16 ssd.over_provisioning=28% ftl.gc_start=1block \
                 ftl.gc_stop=1block ftl.moved_to=plane ftl.streams=3 ftl.moved=class {sets}"
            ),
        );
        let workload = "[global]\nrw=randwrite\nbs=4k\nnorandommap\niodepth=4\nio_size=500m\n\
                        [hot]\nsize=6m\nwrite_hint=short\n[cold]\noffset=6m\nsize=44m\nwrite_hint=extreme\n";
        let mut run = Run::new(&ssd, workload);
        (run.fidelity, run.warmup, run.precondition) = (Fidelity::Count, 120_000, "fill:100%");
        run.result().write_amplification.unwrap()
    };
    let (apart, together) = (amplification("ftl.classifier=hint"), amplification("ftl.classifier=none"));
    println!("hot and cold apart {apart:.3}, together {together:.3}");
    assert!(apart < 0.95 * together, "{apart} {together}");
}

/// One write at a time, by a volatile buffer: without FUA as fast as the buffer, with FUA as slow as a program. A
/// protected buffer whose flushes are free makes FUA free too.
#[test]
fn a_write_with_fua_waits_for_its_program() {
    for layer in ["page", "subpage", "sector-log", "mga"] {
        let typical = |buffer: &str, sync: &str| {
            let ssd = drive(
                "tlc-32g",
                &format!(
                    "ftl.name={layer} ssd.blocks_per_plane=64 ssd.over_provisioning=28% buffer.timeout=50ms {buffer}"
                ),
            );
            let run = Run::new(&ssd, &format!("rw=randwrite,bs=4k,n=300,sync={sync}"));
            let write = run.result().latency_ns.unwrap().write.unwrap();
            (write.p50, ssd.drive.part.t_program)
        };
        let (buffered, program) = typical("buffer.ack=volatile", "none");
        let (forced, _) = typical("buffer.ack=volatile", "dsync");
        let (waits, _) = typical("buffer.ack=buffer buffer.flush=programs", "dsync");
        let (free, _) = typical("buffer.ack=buffer buffer.flush=free", "dsync");
        println!("{layer}: {buffered} ns buffered, {forced} with FUA, {waits} with a protected buffer, free {free}");
        assert!(buffered < program && free < program, "{layer}");
        assert!(forced >= program && waits >= program, "{layer}");
        assert!(forced < 50_000_000 && waits < 50_000_000, "{layer}: no write waits until an open page is full");
    }
}
