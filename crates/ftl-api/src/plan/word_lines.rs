//! Word lines programmed in one shot: one page of the layer consists of several flash pages that are read one by one.
//!
//! A read of several of these pages takes one command each, because the array senses them separately. In a block with
//! one bit a cell, such a page is programmed as several word lines in sequence, up to the last with data. Ignored: that
//! reads and other operations could run between these programs.

use super::{Io, Program, Read};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::{Flash, PADDING, first_subpages};

/// Pages of single bits that `program` writes: at least one, up to the last with more than padding.
pub(super) fn single_pages(part: &Part, program: &Program<'_>) -> u32 {
    let held = program.logical.iter().rposition(|&lsn| lsn != PADDING).map_or(1, |last| last as u32 + 1);
    let held = if program.own.is_empty() { held } else { part.subpages_per_page() };
    held.div_ceil(part.sensed_subpages())
}

impl Io {
    /// Reads pages of a word line, each with its own commands.
    pub(super) fn read_word_line(&mut self, read: Read) -> Flash<()> {
        let part = self.nand.part();
        let (width, per_page) = (part.sensed_subpages(), part.sensed_bytes() / part.word_bytes);
        let mut left = read.subpages;
        while left != 0 {
            let page = left.trailing_zeros() / width;
            let subpages = left & first_subpages(width) << (page * width);
            left &= !subpages;
            let words = read.words & first_subpages(per_page) << (page * per_page);
            self.read_page(Read { subpages, words, ..read })?;
        }
        Ok(())
    }
}
