//! `ssd.capacity`: the number of blocks of a plane for a given capacity. Dies, timing and over-provisioning stay. With
//! `ssd.spare = added` an overlay that changes the over-provisioning changes the blocks, and the capacity stays.
//!
//! The drive exports the capacity, rounded up to a block in each plane. `ssd.blocks_per_plane` of a later overlay
//! replaces the capacity. If one overlay sets both, they must agree, as in a file that `palimpsest show` wrote.

use super::overlay::Overlay;
use super::schema::{index, keys};
use super::{DriveConfig, ResolvedKey, build};
use palimpsest_flash::geometry::Geometry;
use palimpsest_ftl_api::Unfit;
use palimpsest_ftl_api::keys::{Value, ValueType};

/// More planes than the largest drive has.
const MOST_PLANES: u64 = 1 << 24;

/// Sets `ssd.blocks_per_plane` of `resolved` if a capacity is given.
///
/// # Errors
/// The capacity takes more blocks than a plane can have, or contradicts the given blocks.
pub(super) fn apply(resolved: &mut [ResolvedKey], overlays: &[Overlay]) -> Result<(), Unfit> {
    let (capacity, blocks) = (index("ssd.capacity"), index("ssd.blocks_per_plane"));
    let bytes = match resolved[capacity].value {
        Value::Capacity(bytes) if bytes > 0 && resolved[capacity].rank >= resolved[blocks].rank => bytes,
        _ => return keep(resolved, overlays),
    };
    let place = resolved[capacity].source.clone();
    let values = build::Values::new(resolved);
    let dies = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip", "ssd.planes_per_die"];
    if dies.iter().map(|key| values.get::<u64>(key)).product::<u64>() > MOST_PLANES {
        // The check of the drive reports this.
        return Ok(());
    }
    let drive = build::drive("", "", &values);
    let ValueType::Count { max, .. } = resolved[blocks].key.value_type else { panic!("blocks are counted") };
    let Some(needed) = needed(&drive, bytes, max) else {
        let what = format!(
            "that is more than {max} blocks in each of {} planes; expected less, or more dies",
            drive.geometry.planes(),
        );
        return Err(Unfit::new(&["ssd.capacity"], what));
    };
    if resolved[capacity].rank == resolved[blocks].rank && resolved[blocks].value != Value::Count(needed) {
        let what = format!(
            "ssd.capacity = {} makes ssd.blocks_per_plane = {needed}, which is given as {}; expected one of the two",
            resolved[capacity].value.to_text(),
            resolved[blocks].value.to_text(),
        );
        return Err(Unfit::new(&["ssd.capacity"], what).or(&[("ssd.blocks_per_plane", &needed.to_string())]));
    }
    let rank = resolved[capacity].rank;
    resolved[blocks].set(Value::Count(needed), place, rank);
    Ok(())
}

/// If a later overlay changes `ssd.over_provisioning` and `ssd.spare` lets this add flash: sets the blocks for the
/// capacity with the earlier over-provisioning.
fn keep(resolved: &mut [ResolvedKey], overlays: &[Overlay]) -> Result<(), Unfit> {
    let (spare, blocks, share) = (index("ssd.spare"), index("ssd.blocks_per_plane"), index("ssd.over_provisioning"));
    let rank = resolved[blocks].rank;
    if resolved[spare].value != Value::Text("added".into()) || resolved[share].rank <= rank {
        return Ok(());
    }
    let before = overlays[..rank].iter().rev().find_map(|overlay| overlay.get(share)).map(|setting| &setting.value);
    let value = before.or(keys()[share].fallback.as_ref()).expect("over-provisioning has a default").clone();
    let mut without = resolved.to_vec();
    without[share].value = value;
    let bytes = build::drive("", "", &build::Values::new(&without)).logical_bytes();
    let drive = build::drive("", "", &build::Values::new(resolved));
    let ValueType::Count { max, .. } = resolved[blocks].key.value_type else { panic!("blocks are counted") };
    let place = resolved[share].source.clone();
    let Some(needed) = needed(&drive, bytes, max) else {
        let what = format!("that takes more than {max} blocks in a plane; expected less");
        return Err(Unfit::new(&["ssd.over_provisioning"], what));
    };
    resolved[blocks].set(Value::Count(needed), place, rank);
    Ok(())
}

/// The fewest blocks of a plane, at most `max`, for which the drive exports `bytes`.
fn needed(drive: &DriveConfig, bytes: u64, max: u64) -> Option<u64> {
    let with = |blocks: u64| DriveConfig {
        geometry: Geometry { blocks_per_plane: blocks as u32, ..drive.geometry },
        physical: Geometry { blocks_per_plane: blocks as u32, ..drive.physical },
        ..drive.clone()
    };
    let one = with(1);
    let per_block =
        one.geometry.pages() as f64 * f64::from(one.geometry.page_bytes()) / (1.0 + drive.over_provisioning);
    // Rounding of logical pages may change the number by one.
    let about = (bytes as f64 / per_block) as u64;
    (about.saturating_sub(1).max(1)..=about.saturating_add(2).min(max))
        .find(|&blocks| with(blocks).logical_bytes() >= bytes)
}
