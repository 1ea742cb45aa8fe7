//! Checks of the fast cache: blocks that hold one bit a cell (`ftl.slc_cache`, `ftl.slc_fixed`).

use super::space::percent;
use super::{Fit, entry_of, names_with};
use crate::config::DriveConfig;
use crate::config::build::Values;
use palimpsest_ftl::log::settings::{Moved, WhenFull};
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::{Unfit, refuse_if};

/// Refuses a share above zero that is less than one block, because the feature would silently be off.
fn shares_of_planes(drive: &DriveConfig, values: &Values) -> Fit {
    let blocks = drive.geometry.blocks_per_plane;
    for (key, count) in [("ftl.slc_cache", drive.log.slc_cache), ("ftl.slc_fixed", drive.log.slc_fixed)] {
        let is_none = matches!(count, BlockCount::Share(share) if share > 0.0 && count.of(blocks) == 0);
        if is_none && values.key(key).key.is_read_on(entry_of(drive)) {
            let least = percent(10_000u64.div_ceil(blocks.into()));
            let what = format!("that share of the {blocks} blocks of a plane is no whole block");
            let unfit = Unfit::new(&[key, "ssd.blocks_per_plane"], what).or(&[(key, "1 block")]);
            return Err(unfit.or(&[(key, &least)]).or(&[(key, "0%")]));
        }
    }
    Ok(())
}

/// A fast cache must have a stream of moved data to fold into, a block of single bits at least a page, and a fixed
/// share a layer that supports it.
pub(super) fn check(drive: &DriveConfig, values: &Values) -> Fit {
    shares_of_planes(drive, values)?;
    let (log, part, fixed) = (&drive.log, &drive.part, drive.fixed_single());
    refuse_if!(fixed == 0 && log.slc_full == WhenFull::Fold => "ftl.slc_full", "ftl.slc_fixed"
        => ["ftl.slc_full" = "direct"], ["ftl.slc_fixed" = "2 blocks"]; "a block of the fixed share is folded");
    if log.slc_cache.of(drive.geometry.blocks_per_plane) + fixed == 0 {
        return Ok(());
    }
    let share = if fixed > 0 { "ftl.slc_fixed" } else { "ftl.slc_cache" };
    refuse_if!(fixed > 0 && !entry_of(drive).lists("ftl.slc_fixed") => "ftl.slc_fixed", "ftl.name";
        "{}; expected 0%, or one of {}",
        entry_of(drive).why_not("ftl.slc_fixed", "this layer has no fixed share of a fast cache"),
        names_with(|entry| entry.lists("ftl.slc_fixed")));
    // Layers without streams fold into data blocks.
    let has_streams = entry_of(drive).lists("ftl.streams") || entry_of(drive).hot_and_cold;
    if has_streams && (log.streams < 2 || log.moved == Moved::Class) {
        let what = "the fast cache is folded into blocks of moved data";
        let unfit = Unfit::new(&[share, "ftl.streams", "ftl.moved"], what);
        let none = [("ftl.slc_cache", "0%"), ("ftl.slc_fixed", "0%")];
        let unfit = if log.streams < 2 { unfit.or(&[("ftl.streams", "2")]) } else { unfit };
        let unfit = if log.moved == Moved::Class { unfit.or(&[("ftl.moved", "together")]) } else { unfit };
        let both = [("ftl.streams", "3"), ("ftl.moved", "together")];
        return Err(unfit.or(&both).or(&[(share, "0%")]).or(&none));
    }
    refuse_if!(part.cell.bits() < 2 => share, "part.cell"
        => ["part.cell" = "mlc"], ["part.cell" = "tlc"], ["part.cell" = "qlc"], [share = "0%"];
        "blocks of mlc, tlc and qlc can hold one bit a cell instead");
    refuse_if!(part.stored_bits() < 2 => share, "ftl.womv_code" => [share = "0%"];
        "cells under that code store one bit in every block; expected a code of more bits");
    refuse_if!(part.pages_per_block < part.stored_bits() => "part.pages_per_block", share, "part.cell";
        "a block with one bit a cell would have no page; expected at least {} pages", part.stored_bits());
    Ok(())
}
