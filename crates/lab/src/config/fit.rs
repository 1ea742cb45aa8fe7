//! Drives scaled to the memory at hand (`--fit-memory`): fewer blocks in each plane, then fewer dies, with all ratios
//! of sizes kept.
//!
//! Ratios stay because shares are relative, and because keys that declare a [`Growth`] scale in proportion. Blocks of a
//! plane are reduced until a plane of a full drive has 8 ([`SPARE`]) spare blocks for each open block; then dies of a
//! chip, chips and channels are halved, which takes throughput with them. Ignored: times, which stay; the memory of the
//! engine and of requests, for which a quarter of the memory is left.

use super::size::{Touched, needed};
use super::unread::{Reading, reading};
use super::{DriveConfig, ReadFile, Resolved, check, resolve};
use crate::layers::find_layer;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_ftl_api::keys::blocks::{BlockCount, format_blocks};
use palimpsest_ftl_api::keys::{Growth, Value};

/// Spare blocks of a plane for each open block, so that open blocks take no large share of the spare space. The next is
/// for drives on which nothing smaller has so many.
const SPARE: [u64; 4] = [8, 4, 2, 0];
/// Keys of dies, halved in this order.
const DIES: [&str; 3] = ["ssd.dies_per_chip", "ssd.chips_per_channel", "ssd.channels"];
/// The key that a number of blocks replaces.
const REPLACED: &str = "ssd.capacity";

/// A drive as the user gives it.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// Preset or path.
    pub ssd: &'a str,
    /// The layer, if another than the drive's own.
    pub ftl: Option<&'a str>,
    /// Options, each `key=value`.
    pub overrides: &'a [String],
}

/// A drive for the memory at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The options of the scaled drive, each `key=value`.
    pub overrides: Vec<String>,
    /// Size of the scaled drive over the whole drive; 1: the whole drive fits.
    pub factor: f64,
    /// Capacity of the whole drive, and of the scaled one, in bytes.
    pub capacity: [u64; 2],
    /// Memory for the whole drive, and for the scaled one, in bytes.
    pub needs: [u64; 2],
    /// The scaled keys, each with both values.
    pub scaled: Vec<(&'static str, String, String)>,
    /// Dies of the scaled drive over those of the whole drive.
    pub dies: f64,
    /// Spare blocks of a plane for each open block, at least.
    pub spare: u64,
}

/// Dies of a chip, chips of a channel and channels.
type Shape = [u32; 3];

/// The largest drive of the proportions of `described`, at most `most` of its size, whose run with `touched` takes
/// three quarters of `memory` bytes.
///
/// # Errors
/// The drive is impossible, or no smaller one fits in the memory.
pub fn fit_memory(
    described: Described<'_>,
    touched: &Touched,
    memory: u64,
    most: f64,
    read_file: ReadFile,
) -> Result<Fitted> {
    let resolve = |overrides: &[String]| resolve(described.ssd, described.ftl, overrides, read_file);
    let whole = resolve(described.overrides)?;
    let budget = memory - memory / 4;
    let needs = needed(&whole.drive, touched);
    let capacity = whole.drive.logical_bytes();
    if needs <= budget && most >= 1.0 {
        let overrides = described.overrides.to_vec();
        let (capacity, needs) = ([capacity; 2], [needs; 2]);
        return Ok(Fitted { overrides, factor: 1.0, capacity, needs, scaled: Vec::new(), dies: 1.0, spare: SPARE[0] });
    }
    let first = shape_of(&whole);
    let blocks = whole.drive.physical.blocks_per_plane;
    let shapes = std::iter::successors(Some(first), halved);
    for (spare, shape) in SPARE.into_iter().flat_map(|spare| shapes.clone().map(move |shape| (spare, shape))) {
        let dies = product(shape) / product(first);
        let made = |blocks_now: u32| {
            let settings = scaled(&whole, shape, blocks_now, dies);
            let overrides = overridden(described.overrides, &settings);
            resolve(&overrides).ok().map(|resolved| (resolved, settings, overrides))
        };
        let factor = |blocks_now: u32| f64::from(blocks_now) / f64::from(blocks) * dies;
        let fits = |drive: &DriveConfig, blocks_now: u32| {
            needed(drive, touched) <= budget && factor(blocks_now) <= most * (1.0 + 1e-9)
        };
        // Impossible drives count as too small: all rules about the number of blocks demand more.
        let (mut least, mut above) = (0, blocks + 1);
        while above - least > 1 {
            let middle = least + (above - least) / 2;
            match made(middle) {
                Some((resolved, ..)) if !fits(&resolved.drive, middle) => above = middle,
                _ => least = middle,
            }
        }
        let Some((resolved, settings, overrides)) = made(least.max(1)) else { continue };
        let drive = &resolved.drive;
        if fits(drive, least.max(1)) && (least == blocks || has_spare(drive, spare)) {
            let of = |(key, value): &(&'static str, String)| {
                let before = whole.key(key).map_or_else(String::new, |own| own.value.to_text());
                (*key, before, value.clone())
            };
            return Ok(Fitted {
                overrides,
                factor: factor(least.max(1)),
                capacity: [capacity, drive.logical_bytes()],
                needs: [needs, needed(drive, touched)],
                scaled: settings.iter().map(of).collect(),
                dies,
                spare,
            });
        }
    }
    let what = format!(
        "no drive of these proportions fits in {} of memory, where this one takes {}; expected more memory, or \
         --payload none",
        shown(memory),
        shown(needs)
    );
    Err(Error::input("--fit-memory", what))
}

fn shape_of(resolved: &Resolved) -> Shape {
    let dies = &resolved.drive.physical;
    [dies.dies_per_chip, dies.chips_per_channel, dies.channels]
}

fn product(shape: Shape) -> f64 {
    shape.iter().map(|&count| f64::from(count)).product()
}

/// The shape with half of the dies; `None` if no count is even.
fn halved(shape: &Shape) -> Option<Shape> {
    let at = shape.iter().position(|count| count.is_multiple_of(2))?;
    let mut next = *shape;
    next[at] /= 2;
    Some(next)
}

/// Whether a plane of the full drive has `each` spare blocks for each open block.
fn has_spare(drive: &DriveConfig, each: u64) -> bool {
    let (spare, open) = check::spare_and_open_blocks(drive);
    spare >= each * open
}

/// The settings of `whole` with this shape, these blocks in a plane, and `dies` of its dies.
fn scaled(whole: &Resolved, shape: Shape, blocks: u32, dies: f64) -> Vec<(&'static str, String)> {
    let plane = f64::from(blocks) / f64::from(whole.drive.physical.blocks_per_plane);
    let mut settings = vec![("ssd.blocks_per_plane", blocks.to_string())];
    let counts = DIES.into_iter().zip(shape).zip(shape_of(whole));
    settings.extend(counts.filter(|((_, now), before)| now != before).map(|((key, now), _)| (key, now.to_string())));
    let entry = find_layer(&whole.drive.ftl.name).expect("the name was read as that of a layer");
    let value_of = |name: &str| whole.key(name).map_or_else(|| Value::Text(String::new()), |key| key.value.clone());
    for key in &whole.keys {
        let share = match key.key.growth {
            [] => continue,
            [Growth::Plane, ..] => plane,
            [Growth::Capacity, ..] => plane * dies,
        };
        let value = proportional(&key.value, share, u64::from(whole.drive.part.page_bytes));
        let is_read = reading(key.key, entry, &value_of) == Reading::Read;
        if let Some(text) = value.filter(|text| is_read && *text != key.value.to_text()) {
            settings.push((key.key.name, text));
        }
    }
    settings
}

/// The text of `share` of `value`, at least one block, or one page of `page` bytes; `None` for shares, and for none.
fn proportional(value: &Value, share: f64, page: u64) -> Option<String> {
    let times = |number: u64| ((number as f64 * share).round() as u64).max(1);
    match value {
        Value::Bytes(0) | Value::Count(0) | Value::Blocks(BlockCount::Blocks(0)) => None,
        Value::Bytes(bytes) if *bytes >= page => Some(format_bytes((times(*bytes) / page).max(1) * page)),
        Value::Bytes(bytes) => Some(format_bytes(times(*bytes))),
        Value::Count(count) => Some(times(*count).to_string()),
        Value::Blocks(BlockCount::Blocks(blocks)) => {
            Some(format_blocks(BlockCount::Blocks(times((*blocks).into()) as u32)))
        }
        _ => None,
    }
}

/// The options `overrides`, in which `settings` replace those of the same keys, and of keys that the blocks replace.
fn overridden(overrides: &[String], settings: &[(&'static str, String)]) -> Vec<String> {
    let key = |text: &String| text.split('=').next().unwrap_or_default().trim().to_owned();
    let is_replaced = |text: &&String| {
        let key = key(text);
        key == REPLACED || settings.iter().any(|(name, _)| *name == key)
    };
    let kept = overrides.iter().filter(|text| !is_replaced(text)).cloned();
    kept.chain(settings.iter().map(|(key, value)| format!("{key}={value}"))).collect()
}

/// A capacity as drives are sold.
fn size(bytes: u64) -> String {
    let gigabytes = bytes as f64 / 1e9;
    if gigabytes < 1000.0 { format!("{gigabytes:.2} GB") } else { format!("{:.2} TB", gigabytes / 1000.0) }
}

fn shown(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

impl Fitted {
    /// The change in one line, for messages and results.
    pub fn text(&self, memory: u64) -> String {
        let [before, after] = self.capacity;
        if self.factor >= 1.0 {
            return format!(
                "the drive of {} takes {} of {} of memory, and keeps its size",
                size(before),
                shown(self.needs[0]),
                shown(memory)
            );
        }
        let keys: Vec<String> =
            self.scaled.iter().map(|(key, before, after)| format!("{key} {before} to {after}")).collect();
        let mut rates = String::new();
        if self.dies < 1.0 {
            rates += &format!("; throughput is that of {:.4} of the dies", self.dies);
        }
        if self.spare < SPARE[0] {
            rates += "; planes have few spare blocks, so collection costs more than on the whole drive";
        }
        format!(
            "scaled from {} to {}, factor {:.4}, for {} of memory: {}; over-provisioning and other shares stay; \
             times to fill, bytes of the map and of a lifetime are {:.4} of those of the whole drive{rates}",
            size(before),
            size(after),
            self.factor,
            shown(memory),
            keys.join(", "),
            self.factor,
        )
    }
}

#[cfg(test)]
mod tests;
