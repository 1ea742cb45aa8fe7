//! Tests of the module `recover`.

use crate::log::blocks::Blocks;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::{Nand, Outcome};
use palimpsest_ftl_api::plan::{Cause, Io, Program};

#[test]
fn blocks_are_as_old_as_their_last_page() {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 2,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
    let mut blocks = Blocks::new(&geometry, 2, |_| false);
    [0, 2, 3].into_iter().for_each(|block| blocks.open_this(block));
    // Block 0 is begun first and written last.
    for (unit, ppn) in [(0, 0), (1, 4), (2, 5), (3, 6), (4, 7), (5, 1)] {
        let programmed = io.program(Program::new(ppn, &[unit], &[Data::new(7)], Cause::Host));
        assert_eq!(programmed.expect("an erased page"), Outcome::Done);
    }
    blocks.close_in_order(io.nand(), vec![0, 3, 2]);
    assert_eq!(blocks.closed_in_order(0).collect::<Vec<_>>(), [2, 3, 0]);
}
