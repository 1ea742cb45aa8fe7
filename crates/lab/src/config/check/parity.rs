//! What parity across dies needs of a drive (`ftl.rain`).

use super::super::DriveConfig;
use super::super::build::Values;
use super::{MOST_PAGES_PER_BLOCK, entry_of, refuse};
use crate::layers::layers;
use palimpsest_flash::error::Result;

const KEY: &str = "ftl.rain";

/// Refuses a drive whose pages cannot have the parity that it asks for.
pub(super) fn check(drive: &DriveConfig, values: &Values) -> Result<()> {
    let (data, dies) = (values.small(KEY), drive.physical.dies());
    if data == 0 {
        return Ok(());
    }
    let all = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"];
    if !dies.is_multiple_of(data + 1) {
        let what = format!(
            "a stripe of {data} pages and their parity is on {} dies, and the drive has {dies}; expected a number that is one less than a divisor of that, or 0",
            data + 1
        );
        return refuse(values, &[KEY, all[0], all[1], all[2]], &what);
    }
    if !entry_of(drive).takes_parity {
        let can: Vec<&str> = layers().filter(|entry| entry.takes_parity).map(|entry| entry.name).collect();
        let what = format!("pages of this layer have no parity; expected 0, or one of {}", can.join(", "));
        return refuse(values, &[KEY, "ftl.name"], &what);
    }
    if drive.part.paired() || drive.part.code.is_some() {
        let what = "pages of word lines that are programmed one after the other have no parity; expected 0, or part.cell = slc, tlc or qlc";
        return refuse(values, &[KEY, "part.cell"], what);
    }
    if drive.kept_blocks() > 0 {
        let what = "what the controller keeps on flash has no parity; expected 0, ftl.checkpoint = 0B and part.pair_corruption = false";
        return refuse(values, &[KEY, "ftl.checkpoint", "part.pair_corruption"], what);
    }
    for share in ["ftl.slc_cache", "ftl.slc_fixed"] {
        if drive.ftl.blocks(share).of(drive.geometry.blocks_per_plane) > 0 {
            return refuse(values, &[KEY, share], "blocks of a fast cache have no parity; expected 0, or no cache");
        }
    }
    if drive.geometry.pages_per_block > MOST_PAGES_PER_BLOCK {
        let what = format!("a superblock has at most {MOST_PAGES_PER_BLOCK} pages of data");
        return refuse(values, &[KEY, "part.pages_per_block"], &what);
    }
    Ok(())
}
