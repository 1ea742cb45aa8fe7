//! Codes of multi-level cells: the data that a controller writes into a word line, several times between two erases.
//!
//! A cell of N bits has 2^N levels of charge; a program raises the level, and only an erase lowers it. A plain part
//! stores N pages in the cells of a word line, once. A code of cells stores fewer bits several times: each write, a
//! *generation*, raises the cells to further levels. [`super::Nand`] stores the levels if contents are bytes, and
//! refuses a write that would lower a level; generations are always counted. Ignored: errors, and the steps in which a
//! program moves a charge.

use std::fmt;

/// The levels of a word line's cells in each generation, and the data that they encode.
pub trait CellCode: Send + Sync {
    /// Name, for messages.
    fn name(&self) -> &'static str;

    /// Bits that a cell stores.
    fn data_bits(&self) -> u32;

    /// Bits of a cell of the plain part, which has 2^`cell_bits` levels.
    fn cell_bits(&self) -> u32;

    /// Writes between two erases.
    fn generations(&self) -> u32;

    /// Raises `levels`, one a cell, so that they store `message`. The cells must be as generation `generation` - 1 or
    /// an earlier one left them. Bit i of a message has the weight 2^(i mod 8) in byte i / 8. Generations count from 0;
    /// cells beyond the message store zeros.
    fn write(&self, levels: &mut [u8], generation: u32, message: &[u8]);

    /// Reads `message` from bit `first` of the stored message on; the generation need not be known.
    fn read(&self, levels: &[u8], first: usize, message: &mut [u8]);
}

/// The code of a part.
#[derive(Clone, Copy)]
pub struct Coded(pub &'static dyn CellCode);

impl fmt::Debug for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl PartialEq for Coded {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}
