//! Checks of a whole drive: the rules that involve more than one key.
//!
//! Every refusal names the keys with their values and sources, and what is possible. Unwise drives are not refused.

mod fast_cache;
mod parity;
mod word_lines;

use super::build::Values;
use super::{DriveConfig, ResolvedKey};
use crate::ftl;
use crate::layers::{find_layer, layers};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{format_bytes, format_ratio, format_time};
use palimpsest_ftl::log::settings::read_policy;
use palimpsest_ftl::log::streams;
use palimpsest_ftl_api::Proposal;
use palimpsest_ftl_api::keys::{Value, ValueType};
use palimpsest_sim::die_failures::DieFailures;
use palimpsest_sim::power_cuts::PowerCuts;
use palimpsest_workload::request::SECTOR_BYTES;
use palimpsest_workload::settings::Acknowledge;

/// Physical subpages of the largest drive: their numbers, and some reserved ones, fit 32 bits.
pub const MOST_SUBPAGES: u64 = (1 << 32) - (1 << 18);
/// Most subpages of a page: their masks, and shifts by their number, fit 64 bits.
pub const MOST_SUBPAGES_PER_PAGE: u32 = 32;
/// Most code words of a page: their masks fit 64 bits.
const MOST_WORDS: u32 = 64;
/// Most dies, and most pages of a block: operations name them with 16 bits.
const MOST_DIES: u32 = (1 << 16) - 1;
const MOST_PAGES_PER_BLOCK: u32 = 1 << 16;
/// Pieces of compacted addresses are multiples of this.
const LEAST_PIECE: u64 = 4 << 10;
/// Array operations take less than this: operations count their time with 32 bits.
const LONGEST_OPERATION: Nanos = 2_000_000_000;

/// Refuses an impossible drive.
///
/// # Errors
/// [`Error::Input`] at the place of the key of the last overlay.
pub(super) fn drive(drive: &DriveConfig, values: &Values) -> Result<()> {
    page_shape(values)?;
    word_lines::pages(drive, values)?;
    size(values)?;
    counts(drive, values)?;
    times(values)?;
    word_lines::page_types(drive, values)?;
    superblocks(drive, values)?;
    fast_cache::check(drive, values)?;
    program_order(drive, values)?;
    words(drive, values)?;
    wear(drive, values)?;
    spare_blocks(drive, values)?;
    thresholds(drive, values)?;
    layer(drive, values)?;
    read_errors(drive, values)?;
    die_failures(drive, values)?;
    parity::check(drive, values)?;
    read_ahead(drive, values)?;
    checkpoints(drive, values)?;
    buffer(drive, values)
}

/// A ladder has a time and a rate for each step, and ends below what flash operations may take.
fn read_errors(drive: &DriveConfig, values: &Values) -> Result<()> {
    let errors = &drive.errors;
    if errors.retries.len() != errors.retry_rates.len() {
        let what = "expected a time and a rate for each step";
        return refuse(values, &["ecc.t_retries", "ecc.retry_rates"], what);
    }
    if errors.retries.iter().sum::<Nanos>() > LONGEST_OPERATION / 2 {
        let what = format!("all steps together take at most {}", format_time(LONGEST_OPERATION / 2));
        return refuse(values, &["ecc.t_retries"], &what);
    }
    if errors.retry_rates.iter().zip(errors.retry_rates.iter().skip(1)).any(|(one, next)| one < next) {
        return refuse(values, &["ecc.retry_rates"], "expected rates of which none is above the one before");
    }
    if values.time("ftl.patrol") > 0 && errors.strength == 0 {
        let what = "a patrol looks for read errors; expected ecc.strength above 0, or ftl.patrol = 0ns";
        return refuse(values, &["ftl.patrol", "ecc.strength"], what);
    }
    if errors.strength > 0 && entry_of(drive).is_file_system() {
        let what = "a file system does not go on when its records are lost; expected ecc.strength = 0, or a layer that is none";
        return refuse(values, &["ecc.strength", "ftl.name"], what);
    }
    Ok(())
}

/// Dies that fail are dies of the drive, and what goes on without them is a layer that can.
fn die_failures(drive: &DriveConfig, values: &Values) -> Result<()> {
    const KEY: &str = "faults.die_failure";
    let (failures, dies) = (&drive.die_failures, drive.physical.dies());
    if *failures == DieFailures::Never {
        return Ok(());
    }
    if failures.count() > dies || failures.last_die().is_some_and(|last| last >= dies) {
        let what = format!("the drive has {dies} dies; expected each to fail once, and dies from 0 to {}", dies - 1);
        return refuse(values, &[KEY], &what);
    }
    if !entry_of(drive).outlives_dies {
        let can: Vec<&str> = layers().filter(|entry| entry.outlives_dies).map(|entry| entry.name).collect();
        let what =
            format!("this layer does not go on when a die has failed; expected never, or one of {}", can.join(", "));
        return refuse(values, &[KEY, "ftl.name"], &what);
    }
    if drive.kept_blocks() > 0 {
        let what = "what the controller keeps on flash is on one die; expected never, ftl.checkpoint = 0B and part.pair_corruption = false";
        return refuse(values, &[KEY, "ftl.checkpoint", "part.pair_corruption"], what);
    }
    Ok(())
}

fn checkpoints(drive: &DriveConfig, values: &Values) -> Result<()> {
    if values.bytes("ftl.checkpoint") == 0 || drive.part.code.is_none() {
        return Ok(());
    }
    let what = "a checkpoint is programmed without the code of this part's word lines; expected ftl.checkpoint = 0B, or a layer without a code";
    refuse(values, &["ftl.checkpoint", "ftl.name"], what)
}

/// Reads of a file system have places below it that only it knows.
fn read_ahead(drive: &DriveConfig, values: &Values) -> Result<()> {
    if drive.read_ahead.pages > 0 && entry_of(drive).is_file_system() {
        let what =
            "the controller does not see files; expected controller.read_ahead = 0, or a layer that is no file system";
        return refuse(values, &["controller.read_ahead", "ftl.name"], what);
    }
    Ok(())
}

/// The checks of the layer, of the layer below a file system, and of the classifier.
fn layer(drive: &DriveConfig, values: &Values) -> Result<()> {
    let (entry, all) = (entry_of(drive), layers().collect::<Vec<_>>());
    let proposal = Proposal {
        settings: &drive.ftl,
        part: &drive.part,
        geometry: &drive.geometry,
        logical_pages: drive.logical_pages(),
    };
    let below = entry.below.map_or(Ok(()), |below| (below.check)(&proposal));
    let fits = below.and_then(|()| (entry.check)(&proposal));
    fits.or_else(|unfit| refuse(values, &unfit.keys, &unfit.what))?;
    streams::check(&drive.ftl, entry, &all).or_else(|unfit| refuse(values, &unfit.keys, &unfit.what))
}

/// The layer that the drive names.
fn entry_of(drive: &DriveConfig) -> &'static ftl::Entry {
    find_layer(&drive.ftl.name).expect("the name was read as that of a layer")
}

fn counts(drive: &DriveConfig, values: &Values) -> Result<()> {
    if drive.physical.dies() > MOST_DIES {
        let keys = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"];
        let what = format!("that makes {} dies; at most {MOST_DIES} can be simulated", drive.physical.dies());
        return refuse(values, &keys, &what);
    }
    if drive.geometry.pages_per_block > MOST_PAGES_PER_BLOCK {
        let what = format!("at most {MOST_PAGES_PER_BLOCK} pages a block can be simulated");
        return refuse(values, &["part.pages_per_block"], &what);
    }
    if drive.faults.power_cut_at.is_some() && drive.power_cuts != PowerCuts::Never {
        let keys = ["faults.power_cut_at", "faults.power_cuts"];
        return refuse(
            values,
            &keys,
            "the power fails by one of the two; expected power_cut_at = 0 or power_cuts = never",
        );
    }
    Ok(())
}

fn times(values: &Values) -> Result<()> {
    let keys = [
        "part.t_read",
        "part.t_read_high",
        "part.t_read_retry",
        "part.t_program",
        "part.t_program_high",
        "part.t_read_slc",
        "part.t_program_slc",
        "part.t_erase",
        "part.t_command",
        "part.t_suspend",
        "part.t_resume",
    ];
    for key in keys {
        if values.time(key) > LONGEST_OPERATION {
            let what = format!("an operation of flash takes at most {}", format_time(LONGEST_OPERATION));
            return refuse(values, &[key], &what);
        }
    }
    Ok(())
}

/// Superblocks must cover the dies, and take turns.
fn superblocks(drive: &DriveConfig, values: &Values) -> Result<()> {
    // Of a drive with parity a die is a group of them.
    let parity = drive.stripes.is_some_and(|shape| shape.parity);
    let shape = if parity { &drive.geometry } else { &drive.physical };
    let (dies, of) = (values.count("ftl.superblock_dies"), u64::from(shape.dies()));
    if dies == 0 {
        return Ok(());
    }
    let keys = ["ftl.superblock_dies", "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"];
    if !of.is_multiple_of(dies) {
        return refuse(values, &keys, &format!("the drive has {of} dies; expected a number that divides it, or 0"));
    }
    let allocation = values.text("ftl.allocation");
    if allocation != "round-robin" {
        let what = "planes of a superblock take turns; expected ftl.allocation = \"round-robin\"";
        return refuse(values, &["ftl.superblock_dies", "ftl.allocation"], what);
    }
    Ok(())
}

fn page_shape(values: &Values) -> Result<()> {
    let (page, subpage) = (values.small_bytes("part.page_size"), values.small_bytes("part.subpage_size"));
    let keys = ["part.page_size", "part.subpage_size"];
    if !u64::from(subpage).is_multiple_of(SECTOR_BYTES) {
        return refuse(values, &keys[1..], "a subpage must be a whole number of sectors of 512 bytes");
    }
    if !page.is_multiple_of(subpage) {
        return refuse(values, &keys, "a page must be a whole number of subpages");
    }
    if page / subpage > MOST_SUBPAGES_PER_PAGE {
        let least = format_bytes(u64::from(page / MOST_SUBPAGES_PER_PAGE));
        return refuse(
            values,
            &keys,
            &format!(
                "that is {} subpages a page; at most {MOST_SUBPAGES_PER_PAGE} are possible, so subpages of {least}",
                page / subpage
            ),
        );
    }
    Ok(())
}

/// Bounds the subpages of the drive; after this, products of the geometry do not overflow.
fn size(values: &Values) -> Result<()> {
    let keys = [
        "ssd.channels",
        "ssd.chips_per_channel",
        "ssd.dies_per_chip",
        "ssd.planes_per_die",
        "ssd.blocks_per_plane",
        "part.pages_per_block",
    ];
    let pages = keys.iter().fold(1u128, |product, key| product * u128::from(values.count(key)));
    let page = values.bytes("part.page_size");
    let subpage = values.bytes("part.subpage_size");
    let subpages = pages * u128::from(page / subpage);
    if subpages <= u128::from(MOST_SUBPAGES) {
        return Ok(());
    }
    let cure = coarser_units(values, pages * u128::from(page)).unwrap_or_else(|| "a smaller drive".into());
    let what = format!("that makes {subpages} subpages; at most {MOST_SUBPAGES} can be simulated; expected {cure}");
    let capacity = values.key("ssd.capacity");
    if capacity.rank >= values.key("ssd.blocks_per_plane").rank && capacity.value != Value::Capacity(0) {
        return refuse(values, &["ssd.capacity", "ssd.over_provisioning", "part.subpage_size"], &what);
    }
    refuse(values, &keys, &what)
}

/// The settings by which `bytes` of flash are few enough subpages, as drives of this size have them: units of several sectors of 4 KiB,
/// of which a small write rewrites one. `None` where only the number of pages counts.
fn coarser_units(values: &Values, bytes: u128) -> Option<String> {
    let (page, subpage) = (values.bytes("part.page_size"), values.bytes("part.subpage_size"));
    let enough = |size: u64| bytes.div_ceil(size.into()) <= MOST_SUBPAGES.into();
    let least = (1..16).map(|doublings| subpage << doublings).find(|&size| enough(size))?;
    let within = format!("part.subpage_size={}", format_bytes(least));
    if page.is_multiple_of(least) {
        return Some(within);
    }
    // Larger pages are fewer only where the capacity says how many.
    let by_capacity = values.key("ssd.capacity").value != Value::Capacity(0);
    (by_capacity && least.is_multiple_of(page)).then(|| format!("{within} and part.page_size={}", format_bytes(least)))
}

fn program_order(drive: &DriveConfig, values: &Values) -> Result<()> {
    let part = &drive.part;
    if part.paired() && !part.pages_per_block.is_multiple_of(2) {
        return refuse(
            values,
            &["part.pages_per_block", "part.cell"],
            "pages of mlc come in pairs, so a block needs an even number",
        );
    }
    if part.order.pairs() && !part.paired() {
        return refuse(
            values,
            &["part.order", "part.cell"],
            "that order needs low and high pages: part.cell = \"mlc\"",
        );
    }
    Ok(())
}

fn words(drive: &DriveConfig, values: &Values) -> Result<()> {
    let part = &drive.part;
    let mode = read_policy(&drive.ftl).mode;
    if mode == ReadMode::Spread && part.t_read_words.is_empty() {
        let what = "the part has no spread command: part.t_read_words gives its times (part vnand-16k has them)";
        let named = entry_of(drive).read.is_some();
        return refuse(values, &[if named { "ftl.name" } else { "ftl.read" }, "ssd.part"], what);
    }
    if part.words_per_page() > MOST_WORDS {
        let least = part.page_bytes.div_ceil(MOST_WORDS).next_power_of_two();
        let (words, least) = (part.words_per_page(), format_bytes(least.into()));
        let what = format!("that is {words} code words a page; at most {MOST_WORDS} are possible, so words of {least}");
        return refuse(values, &["part.word_size", "part.page_size"], &what);
    }
    let used = mode != ReadMode::Page || !part.t_read_words.is_empty() || !part.t_dma_words.is_empty();
    if used && !part.page_bytes.is_multiple_of(part.word_bytes) {
        return refuse(values, &["part.word_size", "part.page_size"], "a page must be a whole number of words");
    }
    let words = part.words_per_page() as usize;
    for (key, what, entries) in [
        ("part.t_read_words", "times", part.t_read_words.len()),
        ("part.t_dma_words", "times", part.t_dma_words.len()),
        ("part.e_read_words", "energies", part.e_read_words.len()),
    ] {
        if entries != 0 && entries != words {
            let what = format!("{entries} {what} for {words} words a page; expected one for each number of words");
            return refuse(values, &[key, "part.page_size", "part.word_size"], &what);
        }
    }
    word_times(drive, values)
}

/// Refuses tables that would be ignored, or would override an explicit rate.
fn word_times(drive: &DriveConfig, values: &Values) -> Result<()> {
    let part = &drive.part;
    if !part.e_read_words.is_empty() && part.t_read_words.is_empty() {
        let what = "the part has no spread command; expected its times in part.t_read_words too";
        return refuse(values, &["part.e_read_words", "part.t_read_words"], what);
    }
    if let Some(&longest) = part.t_read_words.iter().chain(&part.t_dma_words).max()
        && longest > LONGEST_OPERATION
    {
        let what = format!("an operation of flash takes at most {}", format_time(LONGEST_OPERATION));
        return refuse(values, &["part.t_read_words", "part.t_dma_words"], &what);
    }
    let (rate, table) = (values.key("part.bus_rate"), values.key("part.t_dma_words"));
    if !part.t_dma_words.is_empty() && rate.rank > table.rank {
        let what = "the table gives the time of every transfer of whole words, whatever the rate; \
                    expected part.t_dma_words = [] for the rate to decide, or a new table";
        return refuse(values, &["part.bus_rate", "part.t_dma_words"], what);
    }
    Ok(())
}

/// Whole blocks of spare space in each plane when the drive is full.
fn all_spare(drive: &DriveConfig) -> u64 {
    let spare = drive.geometry.pages() - drive.logical_pages();
    spare / u64::from(drive.geometry.pages_per_block) / u64::from(drive.geometry.planes())
}

/// As [`all_spare`], without the blocks that the layer reserves.
fn spare(drive: &DriveConfig) -> u64 {
    all_spare(drive).saturating_sub(reserved(drive, drive.geometry.blocks_per_plane))
}

/// Blocks of each plane that the layer reserves, where a plane has `blocks`.
fn reserved(drive: &DriveConfig, blocks: u32) -> u64 {
    let geometry = Geometry { blocks_per_plane: blocks, ..drive.geometry };
    let fixed = drive.ftl.blocks("ftl.slc_fixed").of(blocks);
    u64::from((entry_of(drive).reserved)(&drive.ftl, &geometry)) + u64::from(drive.kept_blocks() + fixed)
}

/// A full drive needs an open block for each stream and one to clean into, besides the blocks that the layer reserves.
fn spare_blocks(drive: &DriveConfig, values: &Values) -> Result<()> {
    let (has, kept) = (all_spare(drive), reserved(drive, drive.geometry.blocks_per_plane));
    let open = u64::from(entry_of(drive).frontiers(&drive.ftl)) + 1;
    let needs = open + kept;
    if has >= needs && drive.logical_pages() > 0 {
        return Ok(());
    }
    let fixed = u64::from(drive.fixed_single());
    let reserved_key = if fixed > 0 { "ftl.slc_fixed" } else { entry_of(drive).reserved_key };
    let keys = ["ssd.over_provisioning", "ssd.blocks_per_plane", "ftl.streams", reserved_key];
    let keys = &keys[..if kept > 0 && !reserved_key.is_empty() { 4 } else { 3 }];
    if drive.logical_pages() == 0 {
        return refuse(values, keys, "that leaves no logical page; expected less over-provisioning");
    }
    let blocks = u64::from(drive.geometry.blocks_per_plane);
    let mut cures = Vec::new();
    if fixed > 0 && has + fixed >= needs {
        cures.push(format!("ftl.slc_fixed = \"{} blocks\"", has + fixed - needs));
    } else if fixed == 0 && kept > 1 && has > open && !reserved_key.is_empty() {
        cures.push(match values.key(reserved_key).key.value_type {
            ValueType::Count { .. } => format!("{reserved_key} = {}", has - open),
            _ => {
                // Rounded down to the next hundredth of a percent.
                let hundredths = (has - open) * 10_000 / blocks;
                format!("{reserved_key} = \"{}\"", format_ratio(hundredths as f64 / 10_000.0))
            }
        });
    }
    if blocks > needs {
        // Rounded up to the next hundredth of a percent.
        let hundredths = (needs * 10_000).div_ceil(blocks - needs);
        cures.push(format!("ssd.over_provisioning = \"{}\"", format_ratio(hundredths as f64 / 10_000.0)));
    }
    if drive.over_provisioning > 0.0
        && let Some(enough) = enough_blocks(drive, open)
    {
        cures.push(format!("ssd.blocks_per_plane = {enough}"));
    }
    let cures = if cures.is_empty() { "more blocks".into() } else { cures.join(" or ") };
    let of_which = match kept {
        0 => String::new(),
        _ if fixed > 0 => format!(", of which the fixed share of the fast cache takes {fixed}"),
        _ => format!(", of which {} reserves {kept}", drive.ftl.name),
    };
    let what =
        format!("a full drive has {has} spare blocks in a plane, and {needs} are needed{of_which}; expected {cures}");
    refuse(values, keys, &what)
}

/// Blocks of a plane that yield `needs` spare ones, at the drive's over-provisioning.
fn enough_blocks(drive: &DriveConfig, needs: u64) -> Option<u64> {
    let mut kept = 0;
    // More blocks may mean more reserved ones; where this does not converge there is no such number.
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

/// Collection must be able to stop: a full drive has no more free blocks than spare ones.
fn thresholds(drive: &DriveConfig, values: &Values) -> Result<()> {
    let blocks = drive.geometry.blocks_per_plane;
    let (start, stop) =
        (u64::from(drive.ftl.blocks("ftl.gc_start").of(blocks)), u64::from(drive.ftl.blocks("ftl.gc_stop").of(blocks)));
    let most = spare(drive) - 1;
    if start == 0 {
        return refuse(
            values,
            &["ftl.gc_start", "ssd.blocks_per_plane"],
            "that is no block; collection needs one to clean into",
        );
    }
    if drive.ftl.flag("ftl.gc_background") && stop == start {
        // Collection by host writes reaches the start threshold: background collection would have no work.
        let what = "in the background a drive collects up to ftl.gc_stop; expected ftl.gc_stop above ftl.gc_start";
        return refuse(values, &["ftl.gc_background", "ftl.gc_stop", "ftl.gc_start"], what);
    }
    if stop < start {
        let what = format!(
            "collection would stop at {stop} free blocks and start at {start}; expected gc_stop no less than gc_start"
        );
        return refuse(values, &["ftl.gc_stop", "ftl.gc_start"], &what);
    }
    if stop <= most {
        return Ok(());
    }
    let share = format_ratio((most * 10_000 / u64::from(blocks)) as f64 / 10_000.0);
    let what = format!(
        "collection could never stop: a plane of a full drive has {} spare blocks, and it stops above {stop} free ones; \
         expected at most \"{most} block{}\" (\"{share}\"), or more over-provisioning",
        most + 1,
        if most == 1 { "" } else { "s" },
    );
    refuse(values, &["ftl.gc_stop", "ssd.over_provisioning", "ssd.blocks_per_plane"], &what)
}

/// Bit error rates must grow; the tables of losses must ascend and match.
fn wear(drive: &DriveConfig, values: &Values) -> Result<()> {
    let wear = &drive.part.wear;
    if wear.fresh_rate <= 0.0 || wear.fresh_rate >= wear.limit_rate {
        let what = "a block wears from its fresh rate to its limit; expected 0 < part.ber_fresh < part.ber_limit";
        return refuse(values, &["part.ber_fresh", "part.ber_limit"], what);
    }
    let ascend = |list: &[f64]| list.iter().zip(list.iter().skip(1)).all(|(one, next)| one < next);
    if !ascend(&wear.shares) || wear.shares.first() == Some(&0.0) || wear.shares.last().is_some_and(|&last| last < 1.0)
    {
        let what = "expected shares that ascend from above 0% to 100%, or none";
        return refuse(values, &["part.reuse_shares"], what);
    }
    for (key, losses) in [("part.reuse_loss", &wear.reprogram_loss), ("part.voltage_loss", &wear.voltage_loss)] {
        if !losses.is_empty() && losses.len() != wear.shares.len() {
            return refuse(values, &[key, "part.reuse_shares"], "expected a loss for each share, or none");
        }
        if !ascend(losses) || losses.last().is_some_and(|&last| last >= 1.0) {
            return refuse(values, &[key], "expected losses that ascend and stay below 100%");
        }
    }
    Ok(())
}

fn buffer(drive: &DriveConfig, values: &Values) -> Result<()> {
    if !drive.host.piece_bytes.is_multiple_of(LEAST_PIECE) {
        return refuse(values, &["host.compact"], "expected a multiple of 4KiB, such as 1MiB");
    }
    if drive.host.flush_is_free && drive.host.acknowledge != Acknowledge::Buffer {
        let what = "only a protected buffer makes a flush free; expected buffer.ack = \"buffer\", or buffer.flush = \"programs\"";
        return refuse(values, &["buffer.flush", "buffer.ack"], what);
    }
    if drive.host.buffer_bytes >= u64::from(drive.part.page_bytes) {
        return Ok(());
    }
    if drive.part.pages_per_program > 1 {
        let what = "the write buffer must hold at least one word line";
        return refuse(values, &["buffer.size", "part.page_size", "part.pages_per_program"], what);
    }
    refuse(values, &["buffer.size", "part.page_size"], "the write buffer must hold at least one page")
}

/// The refusal `what` of the values of `keys`.
fn refuse(values: &Values, keys: &[&str], what: &str) -> Result<()> {
    let named: Vec<&ResolvedKey> = keys.iter().map(|key| values.key(key)).collect();
    // The first key of the last overlay is the most likely mistake.
    let blamed = named.iter().rev().max_by_key(|key| key.rank).expect("a refusal names a key");
    let shown = |key: &&ResolvedKey| match key.source == blamed.source {
        true => format!("{} = {}", key.key.name, key.value.to_text()),
        false => format!("{} = {} ({})", key.key.name, key.value.to_text(), key.source),
    };
    let shown: Vec<String> = named.iter().map(shown).collect();
    Err(Error::input(&blamed.source, format!("{}: {what}", shown.join(", "))))
}
