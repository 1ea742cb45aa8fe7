//! What superblocks that are blocks to the layer need of a drive: parity across dies (`ftl.rain`), and collection of superblocks (`ftl.superblocks`).

use super::super::DriveConfig;
use super::super::build::Values;
use super::{MOST_PAGES_PER_BLOCK, entry_of, refuse};
use crate::layers::layers;
use palimpsest_flash::error::Result;
use palimpsest_ftl::log::settings::collects_superblocks;

const PARITY: &str = "ftl.rain";
const COLLECTED: &str = "ftl.superblocks";

/// Refuses a drive whose pages cannot have the parity that it asks for, or whose superblocks cannot be collected.
pub(super) fn check(drive: &DriveConfig, values: &Values) -> Result<()> {
    let (data, collected) = (values.small(PARITY), collects_superblocks(&drive.ftl));
    match (data > 0, collected) {
        (false, false) => Ok(()),
        (true, true) => {
            let what = "superblocks with parity are collected as one in any case; expected ftl.rain = 0, or ftl.superblocks = \"allocated\"";
            refuse(values, &[PARITY, COLLECTED], what)
        }
        (true, false) => {
            stripes_fit(drive, values, data)?;
            striped(drive, values, PARITY, "pages of this layer have no parity; expected 0")
        }
        (false, true) => {
            let what = "superblocks of this layer are not collected as one; expected \"allocated\"";
            striped(drive, values, COLLECTED, what)
        }
    }
}

/// Dies are a whole number of stripes.
fn stripes_fit(drive: &DriveConfig, values: &Values, data: u32) -> Result<()> {
    let dies = drive.physical.dies();
    if dies.is_multiple_of(data + 1) {
        return Ok(());
    }
    let what = format!(
        "a stripe of {data} pages and their parity is on {} dies, and the drive has {dies}; expected a number that is one less than a divisor of that, or 0",
        data + 1
    );
    refuse(values, &[PARITY, "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"], &what)
}

/// What `key` asks for is there for some layers only, and not beside what the controller does with blocks of its own.
fn striped(drive: &DriveConfig, values: &Values, key: &str, unfit: &str) -> Result<()> {
    let off = if key == PARITY { "0" } else { "\"allocated\"" };
    if !entry_of(drive).takes_parity {
        let can: Vec<&str> = layers().filter(|entry| entry.takes_parity).map(|entry| entry.name).collect();
        return refuse(values, &[key, "ftl.name"], &format!("{unfit}, or one of {}", can.join(", ")));
    }
    if drive.part.paired() || drive.part.code.is_some() {
        let what = format!(
            "not of word lines that are programmed one page after the other; expected {off}, or part.cell = slc, tlc or qlc"
        );
        return refuse(values, &[key, "part.cell"], &what);
    }
    if drive.kept_blocks() > 0 {
        let what = format!(
            "not beside blocks that the controller keeps; expected {off}, or ftl.checkpoint = 0B and part.pair_corruption = false"
        );
        return refuse(values, &[key, "ftl.checkpoint", "part.pair_corruption"], &what);
    }
    for share in ["ftl.slc_cache", "ftl.slc_fixed"] {
        if drive.ftl.blocks(share).of(drive.geometry.blocks_per_plane) > 0 {
            let what = format!("not beside blocks of a fast cache; expected {off}, or no cache");
            return refuse(values, &[key, share], &what);
        }
    }
    if drive.geometry.pages_per_block > MOST_PAGES_PER_BLOCK {
        let what = format!("a superblock has at most {MOST_PAGES_PER_BLOCK} pages of data");
        return refuse(values, &[key, "part.pages_per_block"], &what);
    }
    Ok(())
}
