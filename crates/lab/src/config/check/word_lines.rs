//! Checks of the pages of a word line: their types, and whether one shot programs them all.

use super::{LONGEST_OPERATION, MOST_SUBPAGES_PER_PAGE, Values, entry_of, refuse};
use crate::config::DriveConfig;
use crate::layers::layers;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::format_time;

/// All pages of a word line are programmed together, by a layer that has such pages; what a read senses is a page.
pub(super) fn pages(drive: &DriveConfig, values: &Values) -> Result<()> {
    let (pages, part) = (values.small("part.pages_per_program"), &drive.part);
    let key = "part.pages_per_program";
    if pages == 1 {
        return Ok(());
    }
    let bits = part.cell.bits();
    if bits < 3 || pages != bits {
        let what = "expected 1, or all pages of a word line: 3 of tlc, 4 of qlc";
        return refuse(values, &[key, "part.cell"], what);
    }
    if !values.small("part.pages_per_block").is_multiple_of(pages) {
        let what = format!("a block has whole word lines; expected a multiple of {pages}");
        return refuse(values, &["part.pages_per_block", key], &what);
    }
    if !entry_of(drive).word_lines {
        let can: Vec<&str> = layers().filter(|entry| entry.word_lines).map(|entry| entry.name).collect();
        let what = format!(
            "this layer does not write word lines of several pages; expected part.pages_per_program = 1, or one of {}",
            can.join(", ")
        );
        return refuse(values, &[key, "ftl.name"], &what);
    }
    if values.small("part.nop") > 1 {
        return refuse(values, &["part.nop", key], "a word line is programmed once; expected part.nop = 1");
    }
    if values.text("ftl.read") == "spread" || !part.t_read_words.is_empty() || !part.t_dma_words.is_empty() {
        let what = "expected ftl.read = page or dma, and no times of words";
        return refuse(values, &[key, "ftl.read", "part.t_read_words", "part.t_dma_words"], what);
    }
    if !part.sensed_bytes().is_multiple_of(part.word_bytes) {
        return refuse(values, &["part.word_size", "part.page_size"], "a page must be a whole number of words");
    }
    if part.subpages_per_page() > MOST_SUBPAGES_PER_PAGE {
        let what = format!(
            "that is {} subpages a word line; at most {MOST_SUBPAGES_PER_PAGE} are possible",
            part.subpages_per_page()
        );
        return refuse(values, &[key, "part.page_size", "part.subpage_size"], &what);
    }
    if Nanos::from(pages) * part.t_program_slc > LONGEST_OPERATION {
        let what = format!("{pages} of them take at most {}", format_time(LONGEST_OPERATION));
        return refuse(values, &["part.t_program_slc", key], &what);
    }
    Ok(())
}

/// Low and high pages are those of mlc; pages of tlc and qlc have a list of times.
pub(super) fn page_types(drive: &DriveConfig, values: &Values) -> Result<()> {
    let part = &drive.part;
    let types = &part.t_read_types;
    if !part.paired() {
        for (high, low) in [("part.t_read_high", "part.t_read"), ("part.t_program_high", "part.t_program")] {
            if values.time(high) != values.time(low) {
                let what = "only pages of mlc come in low and high pairs; expected part.t_read_types for the pages of a word line";
                return refuse(values, &[high, "part.cell"], what);
            }
        }
    }
    if types.is_empty() || part.code.is_some() {
        return Ok(());
    }
    if part.cell.bits() < 3 || types.len() != part.cell.bits() as usize {
        let what = format!("{} times; expected three for tlc, four for qlc, none for others", types.len());
        return refuse(values, &["part.t_read_types", "part.cell"], &what);
    }
    if types.iter().max().is_some_and(|&longest| longest > LONGEST_OPERATION) {
        let what = format!("an operation of flash takes at most {}", format_time(LONGEST_OPERATION));
        return refuse(values, &["part.t_read_types"], &what);
    }
    Ok(())
}
