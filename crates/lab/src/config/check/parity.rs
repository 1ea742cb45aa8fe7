//! Checks of superblocks as blocks of the layer: parity across dies (`ftl.rain`) and collected superblocks
//! (`ftl.superblocks`).

use super::{Fit, MOST_PAGES_PER_BLOCK, entry_of, names_with};
use crate::config::DriveConfig;
use palimpsest_ftl_api::{Programs, Unfit, refuse_if};

const PARITY: &str = "ftl.rain";
const COLLECTED: &str = "ftl.superblocks";

/// Refuses a drive that does not support parity, or collected superblocks.
pub(super) fn check(drive: &DriveConfig) -> Fit {
    let (data, collected, dies) = (drive.log.rain, drive.log.collects_superblocks, drive.physical.dies());
    refuse_if!(data > 0 && collected => PARITY, COLLECTED => [PARITY = "0"], [COLLECTED = "allocated"];
        "superblocks with parity are collected as one in any case");
    refuse_if!(data > 0 && !dies.is_multiple_of(data + 1)
        => PARITY, "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip";
        "a stripe of {data} pages and their parity is on {} dies, and the drive has {dies}; expected a number that is \
         one less than a divisor of that, or 0", data + 1);
    match (data > 0, collected) {
        (false, false) => Ok(()),
        (true, _) => {
            refuse_if!(entry_of(drive).programs != Programs::Once => PARITY, "ftl.name";
                "this layer programs pages several times, and a page of parity is programmed once; expected 0, or one \
                 of {}", names_with(|entry| entry.takes_parity));
            refuse_if!(!entry_of(drive).takes_parity => PARITY, "ftl.name";
                "{}; expected 0, or one of {}", entry_of(drive).why_not(PARITY, "pages of this layer have no parity"),
                names_with(|entry| entry.takes_parity));
            striped(drive, (PARITY, "0"))
        }
        _ => {
            refuse_if!(!entry_of(drive).superblocks => COLLECTED, "ftl.name";
                "{}; expected \"allocated\", or one of {}",
                entry_of(drive).why_not(COLLECTED, "superblocks of this layer are not collected as one"),
                names_with(|entry| entry.superblocks));
            striped(drive, entry_of(drive).joined_by)
        }
    }
}

/// The feature of the key, not used with the value `off`, excludes blocks reserved by the controller and a fast cache.
fn striped(drive: &DriveConfig, off: (&'static str, &'static str)) -> Fit {
    let key = off.0;
    refuse_if!(drive.log.rain > 0 && drive.part.paired() => key, "part.cell";
        "not of word lines that are programmed one page after the other; expected {}, or part.cell = slc, tlc or qlc",
        off.1);
    if drive.kept_blocks() > 0 {
        let what = "not beside blocks that the controller keeps";
        let unfit = Unfit::new(&[key, "ftl.checkpoint", "part.pair_corruption"], what).or(&[off]);
        return Err(unfit.or(&[("ftl.checkpoint", "0B"), ("part.pair_corruption", "false")]));
    }
    for (share, blocks) in [("ftl.slc_cache", drive.log.slc_cache), ("ftl.slc_fixed", drive.log.slc_fixed)] {
        if blocks.of(drive.geometry.blocks_per_plane) > 0 {
            let unfit = Unfit::new(&[key, share], "not beside blocks of a fast cache").or(&[off]).or(&[(share, "0%")]);
            return Err(unfit.or(&[("ftl.slc_cache", "0%"), ("ftl.slc_fixed", "0%"), ("ftl.slc_full", "direct")]));
        }
    }
    if drive.geometry.pages_per_block > MOST_PAGES_PER_BLOCK {
        let pages = drive.geometry.pages_per_block;
        let what = format!("a superblock of {pages} pages of data; at most {MOST_PAGES_PER_BLOCK} can be simulated");
        return Err(Unfit::new(&[key, "part.pages_per_block"], what).or(&[off]));
    }
    Ok(())
}
