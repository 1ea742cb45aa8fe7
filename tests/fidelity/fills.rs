//! Preconditioning writes whole pages, like a host that fills the drive.

use crate::bench::{Run, drive};

/// DRAM of the map after a fill, with a layer whose map grows with pages that hold fragments.
fn map_bytes(precondition: &str) -> u64 {
    let ssd = drive("mga-16k", "ftl.name=mga part.nop=3 ssd.blocks_per_plane=16");
    let mut run = Run::new(&ssd, "rw=randread,bs=16k,n=100");
    run.precondition = precondition;
    run.result().mapping.bytes
}

#[test]
fn a_filled_drive_needs_no_map_of_fragments() {
    let (fill, large, small) = (map_bytes("fill:90%"), map_bytes("fill:90%,bs:64KiB"), map_bytes("fill:90%,bs:4KiB"));
    println!("{fill} bytes by pages, {large} by 64 KiB, {small} by 4 KiB");
    assert_eq!(fill, large);
    assert!(small > 4 * fill, "units of the map leave fragments: {small}");
}

/// Write amplification of the overwrites of a preconditioning, on a page map with pages of four units of 4 KiB.
fn of_overwrites(precondition: &str) -> f64 {
    let ssd = drive("mga-16k", "ftl.name=page ssd.blocks_per_plane=32 ftl.gc_start=2blocks ftl.gc_stop=3blocks");
    let mut run = Run::new(&ssd, "rw=randread,bs=16k,n=100");
    run.precondition = precondition;
    run.result().precondition.last_write_amplification.expect("the preconditioning overwrites")
}

/// A former bug: `bs` acted on the fill alone, so that a drive aged by larger overwrites could not be made. Overwrites
/// of the whole range free whole blocks. An overwrite of a quarter of a page programs a page, so three times the range
/// in quarters are twelve times the range in pages, each of which counts fourfold.
#[test]
fn overwrites_have_the_size_of_the_fill() {
    let [whole, page, quarter] =
        ["fill:90%,random:3x,bs:1GiB", "fill:90%,random:12x", "fill:90%,random:3x,bs:4KiB"].map(of_overwrites);
    println!("{whole} by the whole range, {page} by pages, {quarter} by quarters of a page");
    assert!((whole - 1.0).abs() < 0.01, "{whole}");
    assert!(page > 1.2, "{page}");
    assert!((quarter / (4.0 * page) - 1.0).abs() < 0.01, "{quarter}, {page}");
}
