//! Checks of sizes: limits of the simulator, spare blocks, thresholds of collection.

use super::{Fit, MOST_PAGES_PER_BLOCK, entry_of};
use crate::config::DriveConfig;
use crate::config::build::Values;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::units::parse::{format_bytes, format_ratio};
use palimpsest_ftl_api::keys::{Value, ValueType};
use palimpsest_ftl_api::{Cure, Unfit, refuse_if};

/// Physical subpages of the largest drive: their numbers, and some reserved ones, fit 32 bits.
const MOST_SUBPAGES: u64 = (1 << 32) - (1 << 18);
/// Most dies: operations name them with 16 bits.
const MOST_DIES: u32 = (1 << 16) - 1;

pub(super) fn counts(drive: &DriveConfig) -> Fit {
    let dies = drive.physical.dies();
    refuse_if!(dies > MOST_DIES => "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip";
        "that makes {dies} dies; at most {MOST_DIES} can be simulated");
    refuse_if!(drive.physical.pages_per_block > MOST_PAGES_PER_BLOCK => "part.pages_per_block";
        "at most {MOST_PAGES_PER_BLOCK} pages a block can be simulated");
    Ok(())
}

/// Bounds the subpages of the drive; after this, products of the geometry do not overflow.
pub(super) fn subpages(values: &Values) -> Fit {
    let keys = [
        "ssd.channels",
        "ssd.chips_per_channel",
        "ssd.dies_per_chip",
        "ssd.planes_per_die",
        "ssd.blocks_per_plane",
        "part.pages_per_block",
    ];
    let pages = keys.iter().fold(1u128, |product, key| product * u128::from(values.get::<u32>(key)));
    let (page, subpage) = (values.get::<u64>("part.page_size"), values.get::<u64>("part.subpage_size"));
    let subpages = pages * u128::from(page / subpage);
    if subpages <= u128::from(MOST_SUBPAGES) {
        return Ok(());
    }
    let what = format!("that makes {subpages} subpages; at most {MOST_SUBPAGES} can be simulated");
    let coarser = |unfit: Unfit| {
        let cure = coarser_units(values, pages * u128::from(page));
        Unfit { cures: cure.into_iter().collect(), ..unfit }
    };
    let capacity = values.key("ssd.capacity");
    if capacity.rank >= values.key("ssd.blocks_per_plane").rank && capacity.value != Value::Capacity(0) {
        return Err(coarser(Unfit::new(&["ssd.capacity", "ssd.over_provisioning", "part.subpage_size"], what)));
    }
    Err(coarser(Unfit::new(&keys, what)))
}

/// Coarser settings under which `bytes` of flash are few enough subpages, as in real drives of this size: a unit of
/// several sectors of 4 KiB, which a small write must rewrite. `None` if only the number of pages counts.
fn coarser_units(values: &Values, bytes: u128) -> Option<Cure> {
    let (page, subpage) = (values.get::<u64>("part.page_size"), values.get::<u64>("part.subpage_size"));
    let enough = |size: u64| bytes.div_ceil(size.into()) <= MOST_SUBPAGES.into();
    let least = (1..16).map(|doublings| subpage << doublings).find(|&size| enough(size))?;
    let within = ("part.subpage_size", format_bytes(least));
    if page.is_multiple_of(least) {
        return Some(vec![within]);
    }
    // Larger pages reduce their number only if the capacity is given.
    let by_capacity = values.key("ssd.capacity").value != Value::Capacity(0);
    (by_capacity && least.is_multiple_of(page)).then(|| vec![within, ("part.page_size", format_bytes(least))])
}

/// Whole blocks of spare space in each plane when the drive is full.
fn all_spare(drive: &DriveConfig) -> u64 {
    let spare = drive.geometry.pages() - drive.data_pages();
    spare / u64::from(drive.geometry.pages_per_block) / u64::from(drive.geometry.planes())
}

/// Blocks of each plane that the layer reserves, where a plane has `blocks`.
fn reserved(drive: &DriveConfig, blocks: u32) -> u64 {
    let geometry = Geometry { blocks_per_plane: blocks, ..drive.geometry };
    let fixed = drive.log.slc_fixed.of(blocks);
    u64::from((entry_of(drive).reserved)(&drive.ftl, &geometry)) + u64::from(drive.kept_blocks() + fixed)
}

impl DriveConfig {
    /// Blocks of each plane when the drive is full: spare ones, those among them that the layer or the controller
    /// reserves, and those that the layer fills at the same time, one for collection included.
    pub fn spare_blocks(&self) -> [u64; 3] {
        [all_spare(self), reserved(self, self.geometry.blocks_per_plane), open_blocks(self)]
    }
}

/// Spare blocks of a plane of the full drive beside reserved ones, and the open blocks among them.
pub(super) fn spare_and_open_blocks(drive: &DriveConfig) -> (u64, u64) {
    let [spare, reserved, open] = drive.spare_blocks();
    (spare.saturating_sub(reserved), open)
}

/// Open blocks of a plane: one for each stream, one for collection.
fn open_blocks(drive: &DriveConfig) -> u64 {
    u64::from(entry_of(drive).frontiers(&drive.ftl)) + 1
}

/// A full drive must have an open block for each stream, one for collection, and the reserved blocks of the layer.
pub(super) fn spare_blocks(drive: &DriveConfig, values: &Values) -> Fit {
    let [has, kept, open] = drive.spare_blocks();
    let needs = open + kept;
    if has >= needs && drive.data_pages() > 0 {
        return Ok(());
    }
    let fixed = u64::from(drive.fixed_single());
    let reserved_key = if fixed > 0 { "ftl.slc_fixed" } else { entry_of(drive).reserved_key };
    let frontiers_key = entry_of(drive).frontiers_key;
    let keys = ["ssd.over_provisioning", "ssd.blocks_per_plane", frontiers_key, reserved_key];
    let keys = &keys[..if kept > 0 && !reserved_key.is_empty() { 4 } else { 3 }];
    if drive.data_pages() == 0 {
        return Err(Unfit::new(keys, "that leaves no logical page; expected less over-provisioning"));
    }
    let blocks = u64::from(drive.geometry.blocks_per_plane);
    let mut cures: Vec<Cure> = Vec::new();
    let frontiers = u64::from(values.get::<u32>(frontiers_key));
    if has + frontiers > needs && !entry_of(drive).hot_and_cold {
        cures.push(vec![(frontiers_key, (has + frontiers - needs).to_string())]);
    }
    if fixed > 0 && has + fixed >= needs {
        cures.push(vec![("ftl.slc_fixed", format!("{} blocks", has + fixed - needs))]);
    } else if fixed == 0 && kept > 1 && has > open && !reserved_key.is_empty() {
        let value = match values.key(reserved_key).key.value_type {
            ValueType::Count { .. } => (has - open).to_string(),
            _ => percent((has - open) * 10_000 / blocks),
        };
        cures.push(vec![(reserved_key, value)]);
    }
    let share = if blocks > needs { (needs * 10_000).div_ceil(blocks - needs) } else { 10_000 };
    cures.push(vec![("ssd.over_provisioning", percent(share))]);
    cures.push(vec![("ssd.over_provisioning", percent(share + share / 2))]);
    if drive.over_provisioning > 0.0 {
        // Thresholds and caches of a larger drive may need more.
        let enough =
            enough_blocks(drive, open).into_iter().flat_map(|enough| [enough, enough + enough / 4, 2 * enough]);
        cures.extend(enough.map(|enough| vec![("ssd.blocks_per_plane", enough.to_string())]));
    }
    let of_which = match kept {
        0 => String::new(),
        _ if fixed > 0 => format!(", {fixed} of them for ftl.slc_fixed"),
        _ => format!(", {kept} of them for {}", drive.ftl.name),
    };
    let plural = if has == 1 { "" } else { "s" };
    let what = format!("a full drive has {has} spare block{plural} in a plane and needs {needs}{of_which}");
    Err(Unfit { cures, ..Unfit::new(keys, what) })
}

/// Blocks of a plane with at least `needs` spare blocks, at the drive's over-provisioning.
fn enough_blocks(drive: &DriveConfig, needs: u64) -> Option<u64> {
    let mut kept = 0;
    // More blocks may mean more reserved blocks. If this does not converge, no number suffices.
    for _ in 0..100 {
        let enough = (needs + kept) as f64 * (1.0 + drive.over_provisioning) / drive.over_provisioning;
        if enough >= f64::from(1 << 24) {
            return None;
        }
        let enough = enough.ceil() as u64 + 1;
        let keeps = reserved(drive, enough as u32);
        if keeps <= kept {
            return Some(enough);
        }
        kept = keeps;
    }
    None
}

/// `hundredths` hundredths of a percent, for messages.
pub(super) fn percent(hundredths: u64) -> String {
    format_ratio(hundredths as f64 / 10_000.0)
}

fn blocks_text(blocks: u64) -> String {
    format!("{blocks} block{}", if blocks == 1 { "" } else { "s" })
}

/// Collection must be able to stop: a full drive never has more free blocks than spare blocks.
pub(super) fn thresholds(drive: &DriveConfig) -> Fit {
    if !entry_of(drive).lists("ftl.gc_stop") {
        return Ok(());
    }
    let blocks = drive.geometry.blocks_per_plane;
    let [start, stop, idle] =
        [drive.log.gc_start, drive.log.gc_stop, drive.log.gc_idle_stop].map(|count| u64::from(count.of(blocks)));
    let most = all_spare(drive).saturating_sub(reserved(drive, blocks)) - 1;
    let is_idle = drive.log.gc_background;
    refuse_if!(start == 0 => "ftl.gc_start", "ssd.blocks_per_plane" => ["ftl.gc_start" = "1 block"];
        "that is no block; collection needs one to clean into");
    // Collection by host writes reaches the start threshold, so background collection would have no work.
    refuse_if!(is_idle && idle <= start => "ftl.gc_background", "ftl.gc_idle_stop", "ftl.gc_start"
        => ["ftl.gc_idle_stop" = &blocks_text(start + 1)];
        "in the background a drive collects up to ftl.gc_idle_stop; expected it above ftl.gc_start");
    refuse_if!(stop < start => "ftl.gc_stop", "ftl.gc_start" => ["ftl.gc_stop" = &blocks_text(start)];
        "collection would stop at {stop} free blocks and start at {start}; expected gc_stop no less than gc_start");
    for (key, stop) in [("ftl.gc_stop", stop), ("ftl.gc_idle_stop", if is_idle { idle } else { 0 })] {
        if stop > most {
            let at_most = blocks_text(most);
            let what = format!(
                "collection would never stop: a plane of a full drive has {} spare blocks, and {stop} must be free",
                most + 1
            );
            let unfit = Unfit::new(&[key, "ssd.over_provisioning", "ssd.blocks_per_plane"], what);
            let all = [("ftl.gc_start", at_most.as_str()), ("ftl.gc_stop", &at_most)];
            return Err(unfit.or(&[(key, &at_most)]).or(&all));
        }
    }
    Ok(())
}
