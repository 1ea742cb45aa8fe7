//! The drive of `palimpsest check --ssd`, scaled down: all cases have the planes of a die, the page, the cells, the
//! order and the number of programs of a given drive, with fewer channels, chips, dies and pages of a block.
//!
//! Planes of a die stay as they are, because layers join them. Channels, chips and dies are halved, the largest first,
//! down to two each, until few planes are left; a block keeps a divisor of its pages. The over-provisioning stays where
//! [`MOST_BLOCKS`] blocks of a plane can have it. Ignored: the capacity, sizes of buffers and caches, and keys of
//! layers, which cases draw.

use crate::drives::{Drawn, MOST_BLOCKS, build, with};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::ftl::keys::value::Value;
use palimpsest_lab::geometry::Geometry;
use serde::Serialize;

/// Planes of a scaled drive at most, unless the planes of one die are more.
const MOST_PLANES: u32 = 4;

/// Spare blocks of a plane: three open ones, and two for collection.
const SPARE: f64 = 5.0;

/// Blocks of a plane for the files of a file system.
const FILES: f64 = 13.0;

/// Pages of the write buffer.
const BUFFER: u32 = 16;

/// Pages of a block that are tried, beside all pages.
const PAGES: [u32; 9] = [4, 6, 8, 12, 16, 24, 32, 48, 64];

/// A dimension that is smaller in the scaled drive.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// The key.
    pub key: &'static str,
    /// The value of the given drive.
    pub given: String,
    /// The value of the scaled drive.
    pub scaled: String,
}

/// A scaled drive.
#[derive(Debug, Clone, Serialize)]
pub struct Scaled {
    /// Name or path of the given drive.
    pub name: String,
    /// Settings of all cases, each `key=value`.
    pub settings: Vec<String>,
    /// The scaled keys.
    pub changes: Vec<Change>,
}

/// Whether a key of the given drive holds in the cases: sizes and the keys of layers do not.
fn holds(entry: &Entry, key: &str, is_given: bool) -> bool {
    let left_out = ["ssd.part", "ssd.capacity", "ssd.blocks_per_plane", "ssd.over_provisioning", "ssd.namespaces"];
    let sizes = ["buffer.size", "faults.power_cuts", "faults.power_cut_at"];
    match key.split_once('.') {
        _ if left_out.contains(&key) || sizes.contains(&key) => false,
        // Other keys of the drive depend on these defaults.
        Some(("ssd" | "part", _) | ("buffer", "ack")) => true,
        Some(("ftl", "read")) => entry.lists(key),
        Some(("sim" | "host" | "buffer" | "controller" | "ecc" | "faults", _)) => is_given,
        _ => false,
    }
}

/// The shape of `given` as settings of small drives of the layer `entry`; `name` is the name or path of the drive.
///
/// # Errors
/// The reason why the layer or the configuration refuses every scaled drive.
pub fn scaled(entry: &'static Entry, name: &str, given: &Resolved, settings: &[String]) -> Drawn<Scaled> {
    let is_given = |key: &str| given.key(key).is_some_and(|key| !key.source.starts_with("default"));
    let values = given.values().filter(|(key, _)| holds(entry, key, is_given(key)));
    let base: Vec<String> = values.map(|(key, value)| format!("{key}={}", value.to_text())).collect();
    let (geometry, over_provisioning) = (&given.drive.physical, given.drive.over_provisioning);
    let [channels, chips, dies] = few_dies(geometry);
    // Spare blocks S of B blocks: OP = S / (B - S). A file system needs space for its metadata, too.
    let (spare, least) =
        if entry.is_file_system() { (2.0 * FILES, 2.0) } else { (SPARE, SPARE / (MOST_BLOCKS as f64 - SPARE)) };
    let op = over_provisioning.max(least);
    let percent = format!("{}%", (op * 1e4).ceil() / 1e2);
    let blocks = (spare * (1.0 + op) / op).ceil() as u32;
    // The fullest page of a part whose word lines are programmed in one shot.
    let buffer = format!("buffer.size={}B", BUFFER * geometry.page_bytes());
    // Pages before word lines of one shot join them.
    let all_pages = match given.key("part.pages_per_block").map(|key| &key.value) {
        Some(&Value::Count(pages)) => pages as u32,
        _ => geometry.pages_per_block,
    };
    let own: Vec<&str> = settings.iter().map(String::as_str).collect();
    let divides = |pages: &u32| all_pages.is_multiple_of(*pages);
    let mut refusal = None;
    // Of a block with no small divisor, whole word lines of two, three or four bits.
    for pages in PAGES.into_iter().filter(divides).chain([12, 24]).chain([all_pages]) {
        let numbers = [
            ("ssd.channels", geometry.channels, channels),
            ("ssd.chips_per_channel", geometry.chips_per_channel, chips),
            ("ssd.dies_per_chip", geometry.dies_per_chip, dies),
            ("part.pages_per_block", all_pages, pages),
            ("ssd.blocks_per_plane", geometry.blocks_per_plane, blocks),
        ];
        let mut small: Vec<String> = numbers.iter().map(|(key, _, scaled)| format!("{key}={scaled}")).collect();
        small.extend([format!("ssd.over_provisioning={percent}"), buffer.clone()]);
        let settings = with(&base, &small.iter().map(String::as_str).collect::<Vec<_>>());
        if let Err(error) = build(entry.name, &with(&settings, &own)) {
            refusal = refusal.or(Some(error));
            continue;
        }
        let text = |(key, given, scaled): (&'static str, u32, u32)| Change {
            key,
            given: given.to_string(),
            scaled: scaled.to_string(),
        };
        let mut changes: Vec<Change> =
            numbers.into_iter().filter(|(_, given, scaled)| given != scaled).map(text).collect();
        if op > over_provisioning {
            let given = format!("{}%", (over_provisioning * 1e4).round() / 1e2);
            changes.push(Change { key: "ssd.over_provisioning", given, scaled: percent });
        }
        return Ok(Scaled { name: name.into(), settings, changes });
    }
    Err(refusal.unwrap_or_default())
}

/// Channels, chips of a channel and dies of a chip: halved, the largest first, until there are few planes.
fn few_dies(geometry: &Geometry) -> [u32; 3] {
    let mut counts = [geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip];
    while counts.iter().product::<u32>() * geometry.planes_per_die > MOST_PLANES {
        let Some(largest) = counts.iter_mut().filter(|count| **count > 2).max() else { break };
        *largest = largest.div_ceil(2);
    }
    counts
}
