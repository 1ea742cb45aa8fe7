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
        taken.push(rotation.first(&io, (0, page), |_| 0));
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
            let plane = rotation.first(&io, (0, page), |_| 0);
            rotation.used(plane);
            plane
        })
        .collect();
    // Planes 0 to 3 are the first of dies 0 to 3, planes 4 to 7 the second.
    let (first, second) = ([0, 1, 4, 5].repeat(3), [2, 3, 6, 7].repeat(3));
    assert_eq!(taken, [first, second, vec![0, 1, 4, 5, 0, 1]].concat());
}

#[test]
fn planes_of_a_namespace_take_turns_on_its_dies() {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 4,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
    // Addresses below 30 have the first three dies, the others the last.
    let mut rotation = Rotation::new(Allocation::Namespace, 0, &geometry).over_sets(&[(30, 3), (40, 4)]);
    let mut taken = Vec::new();
    for page in [0, 29, 30, 5, 39, 6, 40, 7, 8, 9] {
        taken.push(rotation.first(&io, (0, page), |_| 0));
        rotation.used(*taken.last().unwrap());
    }
    assert_eq!(taken, [0, 1, 3, 2, 7, 4, 3, 5, 6, 0]);
    assert_eq!((rotation.groups(), rotation.group(29), rotation.group(30)), (2, 0, 1));
    let order = |first| (0..8).map(|step| rotation.then(first, step)).collect::<Vec<u32>>();
    assert_eq!(order(5), [5, 6, 0, 1, 2, 4, 3, 7], "the dies of the namespace, then all others");
    assert_eq!(order(7), [7, 3, 0, 1, 2, 4, 5, 6]);
}
