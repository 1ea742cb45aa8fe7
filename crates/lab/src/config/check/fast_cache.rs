//! Checks of the fast cache: blocks that hold one bit a cell (`ftl.slc_cache`, `ftl.slc_fixed`).

use super::super::DriveConfig;
use super::super::build::Values;
use super::{entry_of, refuse};
use crate::layers::layers;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::parse::format_ratio;
use palimpsest_ftl_api::keys::blocks::BlockCount;

/// Refuses a share of a plane that is above none and still no block: the feature would silently be off.
fn shares_of_planes(drive: &DriveConfig, values: &Values) -> Result<()> {
    let blocks = drive.geometry.blocks_per_plane;
    for key in ["ftl.slc_cache", "ftl.slc_fixed"] {
        let count = drive.ftl.blocks(key);
        if !matches!(count, BlockCount::Share(share) if share > 0.0 && count.of(blocks) == 0)
            || !values.key(key).key.is_read_on(entry_of(drive))
        {
            continue;
        }
        // Rounded up to the next hundredth of a percent.
        let least = format_ratio(f64::from(10_000u32.div_ceil(blocks)) / 10_000.0);
        let what = format!(
            "that share of the {blocks} blocks of a plane is no whole block; expected \"1 block\", \"{least}\" or more, or \"0%\""
        );
        return refuse(values, &[key, "ssd.blocks_per_plane"], &what);
    }
    Ok(())
}

/// A fast cache is folded into blocks of moved data, and its blocks have pages; of its shares a layer has the fixed one or not.
pub(super) fn check(drive: &DriveConfig, values: &Values) -> Result<()> {
    shares_of_planes(drive, values)?;
    let (blocks, fixed) = (drive.geometry.blocks_per_plane, drive.fixed_single());
    if fixed == 0 && values.text("ftl.slc_full") != "direct" {
        let what = "a block of the fixed share is folded; expected ftl.slc_fixed above 0, or ftl.slc_full = \"direct\"";
        return refuse(values, &["ftl.slc_full", "ftl.slc_fixed"], what);
    }
    if drive.ftl.blocks("ftl.slc_cache").of(blocks) + fixed == 0 {
        return Ok(());
    }
    let share = if fixed > 0 { "ftl.slc_fixed" } else { "ftl.slc_cache" };
    if fixed > 0 && !entry_of(drive).fast_cache {
        let can: Vec<&str> = layers().filter(|entry| entry.fast_cache).map(|entry| entry.name).collect();
        let what = format!(
            "this layer has no fixed share of a fast cache; expected ftl.slc_fixed = \"0%\", or one of {}",
            can.join(", ")
        );
        return refuse(values, &["ftl.slc_fixed", "ftl.name"], &what);
    }
    if values.count("ftl.streams") < 2 || values.text("ftl.moved") == "class" {
        let what = "the fast cache is folded into blocks of moved data; expected ftl.streams of 2 or 3, and ftl.moved = \"together\"";
        return refuse(values, &[share, "ftl.streams", "ftl.moved"], what);
    }
    if drive.part.cell.bits() < 2 || drive.part.paired() || drive.part.code.is_some() {
        let what = "blocks of tlc and qlc can hold one bit a cell instead; expected part.cell = \"tlc\" or \"qlc\"";
        return refuse(values, &[share, "part.cell"], what);
    }
    if drive.part.pages_per_block < drive.part.cell.bits() {
        let what = format!(
            "a block with one bit a cell would have no page; expected at least {} pages",
            drive.part.cell.bits()
        );
        return refuse(values, &["part.pages_per_block", share, "part.cell"], &what);
    }
    Ok(())
}
