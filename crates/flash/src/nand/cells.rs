//! Codes of cells of several levels: what a controller writes into a word line, and how often between two erases.
//!
//! A cell of N bits has 2^N levels, a charge that a program raises and only an erase lowers. A part as its data sheet has it stores
//! N pages in the cells of a word line, once. With a code of cells it stores fewer, several times: each write, a *generation*,
//! raises the cells to levels of its own. [`super::Nand`] keeps the levels where contents are bytes, and refuses a write
//! that would lower one; it counts the generations in any case. Ignored: that a program moves a charge by steps, and errors.

use std::fmt;

/// Which levels the cells of a word line take in each generation, and what they mean.
pub trait CellCode: Send + Sync {
    /// Name, as in messages.
    fn name(&self) -> &'static str;

    /// Bits that a cell stores.
    fn data_bits(&self) -> u32;

    /// Bits of a cell as the part has it: 2^this levels.
    fn cell_bits(&self) -> u32;

    /// Writes between two erases.
    fn generations(&self) -> u32;

    /// Raises `levels`, one a cell, from what generation `generation` - 1 or an earlier one left, so that they store `message`. Bit i of a
    /// message is that of weight 2^(i mod 8) of byte i / 8. Generations count from 0; cells beyond the message store zeros.
    fn write(&self, levels: &mut [u8], generation: u32, message: &[u8]);

    /// Reads `message` from its bit `first` on; needs no generation.
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
