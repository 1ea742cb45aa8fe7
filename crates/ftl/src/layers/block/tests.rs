//! Recovery from a hand-made state of flash.

use super::*;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::faults::{FaultSettings, Faults};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_ftl_api::settings::Settings;

const PAGES: u32 = 2;

/// Four blocks of one plane, whose programs fail now and then.
fn flash(seed: u64) -> Io {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: PAGES,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let part = Part { page_bytes: 4096, ..slc() };
    let faults = Faults::new(FaultSettings { program_fail: 0.1, ..FaultSettings::default() }, seed);
    Io::new(Nand::new(geometry, part, Payload::Tag, Some(faults)), false)
}

/// Regression: the first logical block took the block that the second had just left, and the second mistook the data
/// there.
#[test]
fn a_block_that_recovery_erases_may_be_another_logical_block_s() {
    let (mut seen, bad) = (0, 1);
    for seed in 0..1000 {
        let mut io = flash(seed);
        // Logical block 1 is copied from block 2 to block 3, where a page is missing. Block 1 has a newer page of
        // logical block 0 than block 0, and the next program of block 1 fails.
        let programs = [(0, 0), (0, 1), (2, 2), (2, 3), (3, 2), (bad, 0), (bad, 1)];
        let as_wanted = programs.into_iter().all(|(block, page)| {
            let (ppn, tag) = (block * PAGES + page % PAGES, u64::from(10 * block + page));
            let wanted = if (block, page) == (bad, 1) { Outcome::Failed } else { Outcome::Done };
            let data = [Data::new(tag)];
            io.program(Program::new(ppn, &[page], &data, Cause::Host)).is_ok_and(|outcome| outcome == wanted)
        });
        if !as_wanted {
            continue;
        }
        seen += 1;
        let settings = Settings::of_defaults("block", crate::log::settings::keys());
        let blueprint = Blueprint { settings, logical_pages: 4, protected: false, buffer_timeout: 0, seed: 1 };
        let mut layer = Block::new(&io, &blueprint);
        match layer.recover(&mut io) {
            // Another block fails.
            Err(Halt::NoSpace) => continue,
            done => done.expect("a recovery"),
        }
        layer.check(&io).expect("a consistent layer");
        let found = [0, 1, 2, 3].map(|page| layer.locate(page).map(|ppn| io.load_subpage(ppn).value));
        assert_eq!(found, [10, 1, 32, 23].map(Some), "seed {seed}");
    }
    assert!(seen > 10, "{seen} such drives");
}
