//! Word lines that are programmed in one shot: what is a page to the layer has several pages, which are read one by one.
//!
//! A read of what lies in several of them is a command for each, as each is sensed by itself. In a block of single bits such a page is as many
//! word lines, programmed one after the other: the last of them only where they hold something. Ignored: that reads and other operations could
//! come between these.

use super::{Io, Program, Read};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::{Flash, PADDING, first_subpages};

/// Pages of single bits that `program` writes: up to the last that holds more than padding, and one at least.
pub(super) fn single_pages(part: &Part, program: &Program<'_>) -> u32 {
    let held = program.logical.iter().rposition(|&lsn| lsn != PADDING).map_or(1, |last| last as u32 + 1);
    let held = if program.own.is_empty() { held } else { part.subpages_per_page() };
    held.div_ceil(part.sensed_subpages())
}

impl Io {
    /// Reads pages of a word line, each with commands of its own.
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
