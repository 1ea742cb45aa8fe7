//! Tests of the module `rotation`.

use super::*;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::samples::slc;

#[test]
fn addresses_name_channels_and_planes_take_turns() {
    let geometry = Geometry {
        channels: 4,
        chips_per_channel: 1,
        dies_per_chip: 2,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 4,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
    let mut rotation = Rotation::new(Allocation::Channel, 0, &geometry);
    let mut taken = Vec::new();
    for page in [2, 6, 2, 3, 102, 2] {
        taken.push(rotation.first(&io, page));
        rotation.used(*taken.last().unwrap());
    }
    assert_eq!(taken, [2, 6, 10, 3, 14, 2], "pages 2, 6 and 102 are of channel 2, whose planes go round");
    let mut all: Vec<u32> = (0..16).map(|step| rotation.then(6, step)).collect();
    assert_eq!(all[..5], [6, 10, 14, 2, 7], "the channel first");
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(0..16), "then all others");
}

#[test]
fn planes_of_a_superblock_take_turns_until_their_blocks_fill() {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 2,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 3,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
    let mut rotation = Rotation::new(Allocation::RoundRobin, 2, &geometry);
    let taken: Vec<u32> = (0..30)
        .map(|page| {
            let plane = rotation.first(&io, page);
            rotation.used(plane);
            plane
        })
        .collect();
    // Planes 0 to 3 are the first of dies 0 to 3, planes 4 to 7 the second.
    let (first, second) = ([0, 1, 4, 5].repeat(3), [2, 3, 6, 7].repeat(3));
    assert_eq!(taken, [first, second, vec![0, 1, 4, 5, 0, 1]].concat());
}
