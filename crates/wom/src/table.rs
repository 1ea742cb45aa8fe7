//! The table code: two bits in three cells, twice (Rivest and Shamir, "How to reuse a write-once memory", 1982).
//!
//! | message | 11 | 01 | 10 | 00 |
//! | --- | --- | --- | --- | --- |
//! | first write | 111 | 011 | 101 | 110 |
//! | second write | 000 | 100 | 010 | 001 |
//!
//! The code never fails over a first write of the same code, which the encoder reads: an unchanged pair keeps the
//! cells. Both writes need 3 cells for 2 bits. Pairs and triples are bit-sliced, so that 64 of them are one word: with
//! P = ⌈message bytes / 2⌉, pair t is bit t of the first P bytes and bit t of the rest of the message (1 beyond the
//! end); the cells are bit t of the first, second and third P bytes of the page. No spare is used.

use super::{Code, CodeEntry, Effort, Failed, Shape, Unfit};

pub(super) const ENTRY: CodeEntry = CodeEntry {
    name: "table",
    about: "two bits in three cells, twice; never fails, 50 % overhead on both writes (Rivest and Shamir)",
    build,
    spare_needed: |message_bytes, cell_bytes, _| {
        let shape = Shape { message_bytes, cell_bytes, spare_bytes: 0 };
        build(shape).map(|code| code.shape().spare_bytes)
    },
    // A first write of the table code leaves enough writable cells for any message.
    curves: &[],
};

struct Table {
    shape: Shape,
    /// Bytes of each slice.
    plane: usize,
}

fn build(shape: Shape) -> Result<Box<dyn Code>, Unfit> {
    let plane = shape.message_bytes.div_ceil(2);
    if shape.message_bytes == 0 || shape.cell_bytes < 3 * plane {
        return Err(Unfit(format!(
            "the table code cannot store {} bytes in {} bytes of cells; expected a message of a byte or more, and {} \
             bytes of cells or more",
            shape.message_bytes,
            shape.cell_bytes,
            3 * plane.max(1)
        )));
    }
    Ok(Box::new(Table { shape, plane }))
}

/// Pairs (high, low) of 8 triples.
fn pairs([a, b, c]: [u8; 3]) -> [u8; 2] {
    let majority = a & b | a & c | b & c;
    let (a, b, c) = (a ^ !majority, b ^ !majority, c ^ !majority);
    [a & c, b & c]
}

fn first([high, low]: [u8; 2]) -> [u8; 3] {
    [high | !low, low | !high, high | low]
}

/// 8 triples after a second write of 8 pairs, and the cells that would have to go from 0 to 1.
fn second(old: [u8; 3], new: [u8; 2]) -> ([u8; 3], u8) {
    let present = pairs(old);
    let changed = present[0] ^ new[0] | present[1] ^ new[1];
    let target = first(new);
    let cells: [u8; 3] = std::array::from_fn(|cell| !changed & old[cell] | changed & !target[cell]);
    (cells, cells[0] & !old[0] | cells[1] & !old[1] | cells[2] & !old[2])
}

impl Table {
    fn message_at(&self, message: &[u8], at: usize) -> [u8; 2] {
        [message[at], message.get(self.plane + at).copied().unwrap_or(0xff)]
    }

    fn cells_at(&self, page: &[u8], at: usize) -> [u8; 3] {
        std::array::from_fn(|cell| page[cell * self.plane + at])
    }

    fn put(&self, page: &mut [u8], at: usize, cells: [u8; 3]) {
        cells.iter().enumerate().for_each(|(cell, &byte)| page[cell * self.plane + at] = byte);
    }

    fn check(&self, page: &[u8], message: &[u8]) {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
    }
}

impl Code for Table {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn first_bytes(&self) -> usize {
        self.shape.message_bytes
    }

    fn write_first(&mut self, page: &mut [u8], message: &[u8]) {
        self.check(page, message);
        (0..self.plane).for_each(|at| self.put(page, at, first(self.message_at(message, at))));
    }

    fn read_first(&mut self, page: &[u8], message: &mut [u8]) {
        self.decode(page, message);
    }

    fn encode(&mut self, page: &mut [u8], message: &[u8], _seed: u64) -> Result<Effort, Failed> {
        self.check(page, message);
        let triples = |page: &[u8], at| second(self.cells_at(page, at), self.message_at(message, at));
        let rising = (0..self.plane).fold(0, |rising, at| rising | triples(page, at).1);
        if rising != 0 {
            return Err(Failed);
        }
        for at in 0..self.plane {
            let (cells, _) = triples(page, at);
            self.put(page, at, cells);
        }
        Ok(Effort { attempts: 1, equations: 0 })
    }

    fn decode(&mut self, page: &[u8], message: &mut [u8]) {
        self.check(page, message);
        for at in 0..self.plane {
            let [high, low] = pairs(self.cells_at(page, at));
            message[at] = high;
            if let Some(byte) = message.get_mut(self.plane + at) {
                *byte = low;
            }
        }
    }
}

#[cfg(test)]
mod tests;
