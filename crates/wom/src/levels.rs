//! Voltage-based write-once-memory codes, WOM-v(k, N): k bits in a cell of N bits, several times (Jaffer, Mahdaviani
//! and Schroeder, "Improving the reliability of next generation SSDs using WOM-v codes", FAST 2022).
//!
//! A cell has q = 2^N levels, of which generation g, from 0 on, uses the 2^k from g (2^k - 1) on: neighbours share a
//! level, so that a cell that rises to the highest of one generation is at the lowest of the next. Level v means the k
//! bits v mod 2^k, so each window of 2^k levels in a row has every value once, and
//!
//! - a write raises each cell to the level of the write's generation for the new value, which is never below the
//!   present level, so no read is necessary;
//! - a read needs the level, not the generation;
//! - there are t = floor((q - 1) / (2^k - 1)) generations. No code of single cells has more in the worst case: each
//!   write may have to pass 2^k - 1 other values (Jiang, Bohossian and Bruck, "Floating codes for joint information
//!   storage in write asymmetric memories", ISIT 2007, with one variable).
//!
//! A block stores t k / N times the data of a block without the code ([`LevelCode::gain`]), which bounds the reduction
//! of erases if as much of the coded space is spare. The paper's full text was not at hand; the abstract, and the
//! published gains (0.67, 0.40, 0.27 of the erases for k = 3, 2, 1 of N = 4), agree with this scheme and with none that
//! does not share levels (t = 2, 4, 8: 0.67, 0.50, 0.50). Ignored: errors, and gains from spare levels above the last
//! generation.

use super::word_of;
use palimpsest_flash::nand::cells::CellCode;

/// A code WOM-v(k, N).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelCode {
    name: &'static str,
    data_bits: u32,
    cell_bits: u32,
}

/// The codes for cells of four bits, by k: WOM-v(1, 4), (2, 4) and (3, 4).
pub static WOM_V: [LevelCode; 3] = [
    LevelCode { name: "WOM-v(1, 4)", data_bits: 1, cell_bits: 4 },
    LevelCode { name: "WOM-v(2, 4)", data_bits: 2, cell_bits: 4 },
    LevelCode { name: "WOM-v(3, 4)", data_bits: 3, cell_bits: 4 },
];

impl LevelCode {
    /// Highest level of a cell.
    pub fn top(&self) -> u8 {
        ((1u32 << self.cell_bits) - 1) as u8
    }

    /// Levels between the first levels of two generations: 2^k - 1.
    fn step(&self) -> u32 {
        (1 << self.data_bits) - 1
    }

    /// The level that means `value` in `generation`.
    #[inline]
    pub fn level(&self, generation: u32, value: u32) -> u8 {
        let lowest = generation * self.step();
        (lowest + (value.wrapping_sub(lowest) & self.step())) as u8
    }

    /// The value of `level`.
    #[inline]
    pub fn value(&self, level: u8) -> u32 {
        u32::from(level) & self.step()
    }

    /// Data between two erases, relative to uncoded cells: t k / N.
    pub fn gain(&self) -> f64 {
        f64::from(self.generations() * self.data_bits) / f64::from(self.cell_bits)
    }
}

impl CellCode for LevelCode {
    fn name(&self) -> &'static str {
        self.name
    }

    fn data_bits(&self) -> u32 {
        self.data_bits
    }

    fn cell_bits(&self) -> u32 {
        self.cell_bits
    }

    fn generations(&self) -> u32 {
        u32::from(self.top()) / self.step()
    }

    fn write(&self, levels: &mut [u8], generation: u32, message: &[u8]) {
        assert!(generation < self.generations(), "{} has no generation {generation}", self.name);
        let bits = message.len() * 8;
        assert!(bits <= levels.len() * self.data_bits as usize, "the message fits the cells");
        let lowest = generation * self.step();
        match self.data_bits {
            1 => raise::<1>(levels, lowest, message),
            2 => raise::<2>(levels, lowest, message),
            _ => raise::<3>(levels, lowest, message),
        }
    }

    fn read(&self, levels: &[u8], first: usize, message: &mut [u8]) {
        let (cell, skipped) = (first / self.data_bits as usize, first as u32 % self.data_bits);
        match self.data_bits {
            1 => sense::<1>(&levels[cell..], skipped, message),
            2 => sense::<2>(&levels[cell..], skipped, message),
            _ => sense::<3>(&levels[cell..], skipped, message),
        }
    }
}

/// Cells in a word, a byte each, the first lowest; they store K bytes.
const GROUP: usize = 8;

const fn in_each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; GROUP])
}

/// The lowest K bits of the cells, side by side.
fn gather<const K: usize>(cells: u64) -> u64 {
    let pair = |cells: u64, width: usize, kept: u64| (cells | cells >> (width - width / 8 * K)) & kept;
    let bits = cells & in_each((1 << K) - 1);
    let bits = pair(bits, 8, u64::MAX / 0xffff * ((1 << (2 * K)) - 1));
    let bits = pair(bits, 16, u64::MAX / 0xffff_ffff * ((1 << (4 * K)) - 1));
    pair(bits, 32, (1 << (8 * K)) - 1)
}

/// The opposite of [`gather`]: K bits in each cell.
fn spread<const K: usize>(bits: u64) -> u64 {
    let part = |bits: u64, width: usize, kept: u64| (bits | bits << (width - width / 8 * K)) & kept;
    let cells = part(bits, 32, u64::MAX / 0xffff_ffff * ((1 << (4 * K)) - 1));
    let cells = part(cells, 16, u64::MAX / 0xffff * ((1 << (2 * K)) - 1));
    part(cells, 8, in_each((1 << K) - 1))
}

/// Raises `levels`, from `lowest` on, to store `message` and zeros after, K bits a cell.
fn raise<const K: usize>(levels: &mut [u8], lowest: u32, message: &[u8]) {
    let lowest = in_each(lowest as u8);
    // The subtraction of a byte may borrow bit 7, because no level has that bit.
    let raised = |values: u64| lowest + (((values | in_each(0x80)) - lowest) & in_each((1 << K) - 1));
    let mut bytes = message.chunks(K);
    for cells in levels.chunks_mut(GROUP) {
        let values = spread::<K>(bytes.next().map_or(0, word_of));
        cells.copy_from_slice(&raised(values).to_le_bytes()[..cells.len()]);
    }
}

/// Reads `message`, K bits a cell, from `levels` after the first `skipped` bits.
fn sense<const K: usize>(levels: &[u8], skipped: u32, message: &mut [u8]) {
    let mut groups = levels.chunks(GROUP).map(|cells| gather::<K>(word_of(cells)));
    if skipped == 0 {
        for bytes in message.chunks_mut(K) {
            let group = groups.next().unwrap_or(0).to_le_bytes();
            bytes.copy_from_slice(&group[..bytes.len()]);
        }
        return;
    }
    // Fewer than 8 bits wait for the next group.
    let (mut waiting, mut count) = (groups.next().unwrap_or(0) >> skipped, 8 * K as u32 - skipped);
    for byte in message {
        if count < 8 {
            waiting |= groups.next().unwrap_or(0) << count;
            count += 8 * K as u32;
        }
        *byte = waiting as u8;
        (waiting, count) = (waiting >> 8, count - 8);
    }
}

#[cfg(test)]
mod tests;
