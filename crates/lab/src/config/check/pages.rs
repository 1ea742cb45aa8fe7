//! Checks of the part: pages, word lines and code words, the order of programs, wear.

use super::{Fit, entry_of, names_with};
use crate::config::DriveConfig;
use crate::config::build::Values;
use palimpsest_flash::keys::value::LONGEST_OPERATION;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{format_bytes, format_time};
use palimpsest_ftl_api::{Programs, refuse_if};

/// Most subpages of a page: their masks, and shifts by their number, fit 64 bits.
const MOST_SUBPAGES_PER_PAGE: u32 = 32;
/// Most code words of a page: their masks fit 64 bits.
const MOST_WORDS: u32 = 64;

pub(super) fn page_shape(values: &Values) -> Fit {
    let (page, subpage) = (values.get::<u32>("part.page_size"), values.get::<u32>("part.subpage_size"));
    refuse_if!(!page.is_multiple_of(subpage) => "part.page_size", "part.subpage_size";
        "a page must be a whole number of subpages");
    refuse_if!(page / subpage > MOST_SUBPAGES_PER_PAGE => "part.page_size", "part.subpage_size";
        "that is {} subpages a page; at most {MOST_SUBPAGES_PER_PAGE} are possible, so subpages of {}",
        page / subpage, format_bytes(u64::from(page / MOST_SUBPAGES_PER_PAGE)));
    Ok(())
}

/// A shot must program all pages of a word line, and the layer must support such word lines.
pub(super) fn word_lines(drive: &DriveConfig, values: &Values) -> Fit {
    const KEY: &str = "part.pages_per_program";
    let (pages, part) = (values.get::<u32>(KEY), &drive.part);
    if pages == 1 {
        return Ok(());
    }
    refuse_if!(entry_of(drive).programs != Programs::Once && !entry_of(drive).word_lines => KEY, "ftl.name";
        "this layer programs pages several times, and a word line of several pages is programmed once; \
         expected 1, or one of {}", names_with(|entry| entry.word_lines));
    let bits = part.cell.bits();
    refuse_if!(bits < 3 || pages != bits => KEY, "part.cell";
        "expected 1, or all pages of a word line: 3 of tlc, 4 of qlc");
    refuse_if!(!values.get::<u32>("part.pages_per_block").is_multiple_of(pages) => "part.pages_per_block", KEY;
        "a block has whole word lines; expected a multiple of {pages}");
    refuse_if!(!entry_of(drive).word_lines => KEY, "ftl.name";
        "this layer does not write word lines of several pages; expected 1, or one of {}",
        names_with(|entry| entry.word_lines));
    refuse_if!(values.get::<u32>("part.nop") > 1 => "part.nop", KEY => ["part.nop" = "1"];
        "a word line is programmed once");
    refuse_if!(!part.sensed_bytes().is_multiple_of(part.word_bytes) => "part.word_size", "part.page_size";
        "a page must be a whole number of words");
    refuse_if!(part.subpages_per_page() > MOST_SUBPAGES_PER_PAGE => KEY, "part.page_size", "part.subpage_size";
        "that is {} subpages a word line; at most {MOST_SUBPAGES_PER_PAGE} are possible", part.subpages_per_page());
    refuse_if!(Nanos::from(pages) * part.t_program_slc > LONGEST_OPERATION => "part.t_program_slc", KEY;
        "{pages} of them take at most {}", format_time(LONGEST_OPERATION));
    Ok(())
}

/// Only MLC has low and high pages; pages of TLC and QLC have a list of times.
pub(super) fn page_types(drive: &DriveConfig, values: &Values) -> Fit {
    let (part, types) = (&drive.part, &drive.part.t_read_types);
    for (high, low) in [("part.t_read_high", "part.t_read"), ("part.t_program_high", "part.t_program")] {
        refuse_if!(!part.paired() && values.get::<Nanos>(high) != values.get::<Nanos>(low) => high, "part.cell";
            "only pages of mlc come in low and high pairs; expected part.t_read_types for the pages of a word line");
    }
    if types.is_empty() || part.code.is_some() {
        return Ok(());
    }
    refuse_if!(part.cell.bits() < 3 || types.len() != part.cell.bits() as usize => "part.t_read_types", "part.cell";
        "{} times; expected three for tlc, four for qlc, none for others", types.len());
    refuse_if!(types.iter().any(|&time| time > LONGEST_OPERATION) => "part.t_read_types";
        "an operation of flash takes at most {}", format_time(LONGEST_OPERATION));
    Ok(())
}

pub(super) fn program_order(drive: &DriveConfig) -> Fit {
    let part = &drive.part;
    refuse_if!(part.paired() && !part.pages_per_block.is_multiple_of(2) => "part.pages_per_block", "part.cell";
        "pages of mlc come in pairs, so a block needs an even number");
    refuse_if!(part.order.pairs() && !part.paired() => "part.order", "part.cell" => ["part.cell" = "mlc"];
        "that order needs low and high pages");
    Ok(())
}

pub(super) fn words(drive: &DriveConfig, values: &Values) -> Fit {
    let (part, mode) = (&drive.part, drive.log.read.mode);
    let spread = if entry_of(drive).read.is_some() { "ftl.name" } else { "ftl.read" };
    refuse_if!(mode == ReadMode::Spread && part.t_read_words.is_empty() => spread, "ssd.part";
        "the part has no spread command: part.t_read_words gives its times (part vnand-16k has them)");
    let words = part.words_per_page();
    refuse_if!(words > MOST_WORDS => "part.word_size", "part.page_size";
        "that is {words} code words a page; at most {MOST_WORDS} are possible, so words of {}",
        format_bytes(part.page_bytes.div_ceil(MOST_WORDS).next_power_of_two().into()));
    let used = mode != ReadMode::Page || !part.t_read_words.is_empty() || !part.t_dma_words.is_empty();
    refuse_if!(used && !part.page_bytes.is_multiple_of(part.word_bytes) => "part.word_size", "part.page_size";
        "a page must be a whole number of words");
    let sensed = part.sensed_bytes().div_ceil(part.word_bytes);
    for (key, what, entries) in [
        ("part.t_read_words", "times", part.t_read_words.len()),
        ("part.t_dma_words", "times", part.t_dma_words.len()),
        ("part.e_read_words", "energies", part.e_read_words.len()),
    ] {
        refuse_if!(entries != 0 && entries != sensed as usize => key, "part.page_size", "part.word_size";
            "{entries} {what} for {sensed} words a page; expected one for each number of words");
    }
    word_times(drive, values)
}

/// Refuses tables that would be ignored, or would override an explicit rate.
fn word_times(drive: &DriveConfig, values: &Values) -> Fit {
    let part = &drive.part;
    refuse_if!(!part.e_read_words.is_empty() && part.t_read_words.is_empty()
        => "part.e_read_words", "part.t_read_words";
        "the part has no spread command; expected its times in part.t_read_words too");
    let mut times = part.t_read_words.iter().chain(&part.t_dma_words);
    refuse_if!(times.any(|&time| time > LONGEST_OPERATION) => "part.t_read_words", "part.t_dma_words";
        "an operation of flash takes at most {}", format_time(LONGEST_OPERATION));
    let is_later = values.key("part.bus_rate").rank > values.key("part.t_dma_words").rank;
    refuse_if!(!part.t_dma_words.is_empty() && is_later => "part.bus_rate", "part.t_dma_words"
        => ["part.t_dma_words" = "[]"];
        "the table gives the time of every transfer of whole words, whatever the rate; expected no table for the rate \
         to decide, or a new one");
    Ok(())
}

/// Bit error rates must grow, the tables of losses must match, and each stacked layer must have word lines.
pub(super) fn wear(drive: &DriveConfig) -> Fit {
    let wear = &drive.part.wear;
    refuse_if!(wear.fresh_rate <= 0.0 || wear.fresh_rate >= wear.limit_rate => "part.ber_fresh", "part.ber_limit";
        "a block wears from its fresh rate to its limit; expected 0 < part.ber_fresh < part.ber_limit");
    for (key, losses) in [("part.reuse_loss", &wear.reprogram_loss), ("part.voltage_loss", &wear.voltage_loss)] {
        refuse_if!(!losses.is_empty() && losses.len() != wear.shares.len() => key, "part.reuse_shares";
            "expected a loss for each share, or none");
    }
    let (layers, lines) = (drive.errors.cells.layers.len(), drive.part.word_lines());
    refuse_if!(layers > lines as usize => "part.ber_layers", "part.pages_per_block", "part.cell";
        "{layers} stacked layers for {lines} word lines; expected at most as many layers as word lines");
    Ok(())
}
