//! Superblocks that the layer uses as blocks, under uniform random writes, against greedy collection in closed form
//! (Desnoyers 2014). D dies and b pages a block make blocks of D b pages (`ftl.superblocks = collected`).
//!
//! With parity (`ftl.rain = N`) a superblock has blocks of N b pages, and every N pages take one more. One superblock
//! of the plane is open or free, so rho = U/((B - 1) D b) with B superblocks.

use crate::bench::{Run, drive};
use crate::forms;
use palimpsest_lab::run::Fidelity;

/// `dies` dies of one plane of 512 blocks of 16 pages of 4 KiB: write amplification with one superblock over all dies,
/// and the form's value without parity.
fn amplification(dies: u32, op: &str, sets: &str) -> (f64, f64) {
    let ssd = drive(
        "tlc-32g",
        &format!(
            "ftl.name=page part.page_size=4KiB part.subpage_size=4KiB ssd.channels={dies} ssd.planes_per_die=1 \
             ssd.blocks_per_plane=512 \
             part.pages_per_block=16 ssd.over_provisioning={op} ftl.streams=1 ftl.gc_start=1block ftl.gc_stop=1block \
             ftl.gc_pace=block ftl.moved_to=plane ftl.allocation=round-robin {sets}"
        ),
    );
    let mut run = Run::new(&ssd, "rw=randwrite,bs=4k,norandommap,io_size=300%");
    (run.precondition, run.fidelity) = ("steady", Fidelity::Count);
    let geometry = &ssd.drive.geometry;
    let (blocks, pages) = (f64::from(geometry.blocks()), geometry.pages_per_block);
    let rho = (ssd.drive.logical_bytes() / 4096) as f64 / ((blocks - 1.0) * f64::from(pages));
    (run.result().write_amplification.expect("it wrote"), forms::greedy(pages, rho))
}

#[test]
fn superblocks_amplify_writes_as_blocks_as_large_do() {
    for (dies, op) in [(2, "28%"), (8, "28%"), (8, "7%")] {
        let (wa, form) = amplification(dies, op, "ftl.superblocks=collected");
        println!("{dies} dies, OP {op:>3}: {wa:.4}; form {form:.4} ({:+.2} %)", 100.0 * (wa / form - 1.0));
        assert!((wa / form - 1.0).abs() < 0.005);
    }
}

#[test]
fn parity_amplifies_writes_by_a_page_of_each_stripe() {
    for (data, op) in [(1, "28%"), (3, "28%"), (7, "28%"), (7, "7%")] {
        let (wa, form) = amplification(data + 1, op, &format!("ftl.rain={data}"));
        let form = form * f64::from(data + 1) / f64::from(data);
        println!("N = {data}, OP {op:>3}: {wa:.4}; form {form:.4} ({:+.2} %)", 100.0 * (wa / form - 1.0));
        assert!((wa / form - 1.0).abs() < 0.005);
    }
}

/// Blocks as large as lines of FEMU, and a threshold at which collection stops that is 23 blocks above the start.
#[test]
fn collection_to_a_high_threshold_goes_in_portions() {
    let [near, far] = ["2blocks", "25blocks"].map(|stop| {
        let sets = format!(
            "ftl.name=page part.cell=slc part.t_read_types=[] part.page_size=4KiB part.subpage_size=4KiB \
             ssd.channels=64 ssd.planes_per_die=1 ssd.blocks_per_plane=64 part.pages_per_block=256 \
             ssd.over_provisioning=100% ftl.streams=1 ftl.gc_start=2blocks ftl.gc_stop={stop} ftl.gc_pace=block \
             ftl.moved_to=plane ftl.superblocks=collected buffer.ack=program"
        );
        let ssd = drive("tlc-32g", &sets);
        let mut run = Run::new(&ssd, "rw=randwrite,bs=4k,iodepth=16,n=600k");
        run.precondition = "fill:100%,random:1x";
        let result = run.result();
        (result.latency_ns.unwrap().write.unwrap().max, result.gc.erased_blocks)
    });
    println!("stop at 2 blocks: {near:?}; at 25: {far:?}");
    assert!(far.1 >= near.1 / 2 && near.1 > 10);
    // A portion is a block or two, and another may start before its end.
    assert!(far.0 < 5 * near.0, "{far:?} {near:?}");
}
