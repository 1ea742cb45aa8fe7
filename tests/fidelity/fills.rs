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
