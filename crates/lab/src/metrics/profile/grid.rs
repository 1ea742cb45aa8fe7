//! Requests counted over time and address: a grid of fixed size whose cells double if a request is beyond the grid.
//! Ignored: sizes of requests.

use serde::Serialize;

/// Cells along time.
const COLUMNS: u64 = 256;
/// Cells along addresses.
const ROWS: u64 = 128;

/// The counts.
#[derive(Debug)]
pub struct Grid {
    /// Reads and writes, column by column, because requests of about one time are near each other.
    cells: Vec<[u64; 2]>,
    /// Time of a column and bytes of a row, as powers of two.
    column_bits: u32,
    row_bits: u32,
    used: bool,
}

/// The counts for a picture.
#[derive(Debug, Clone, Serialize)]
pub struct Map {
    /// Whether columns are nanoseconds; else numbers of requests, because requests of a closed loop have no time.
    pub is_time: bool,
    /// Nanoseconds, or requests, of a column.
    pub column_width: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Reads by row (rising address) and column, up to the last used ones.
    pub read: Vec<Vec<u64>>,
    /// Writes, in the same order.
    pub write: Vec<Vec<u64>>,
}

impl Default for Grid {
    fn default() -> Self {
        Grid { cells: vec![[0; 2]; (COLUMNS * ROWS) as usize], column_bits: 0, row_bits: 12, used: false }
    }
}

impl Grid {
    /// Counts a read (`kind` 0) or write (1).
    pub fn add(&mut self, time: u64, address: u64, kind: usize) {
        while time >> self.column_bits >= COLUMNS {
            self.fold_columns();
        }
        while address >> self.row_bits >= ROWS {
            self.fold_rows();
        }
        self.used = true;
        let cell = (time >> self.column_bits) * ROWS + (address >> self.row_bits);
        self.cells[cell as usize][kind] += 1;
    }

    fn fold_columns(&mut self) {
        self.column_bits += 1;
        self.fold(|row, column| column / 2 * ROWS + row);
    }

    fn fold_rows(&mut self) {
        self.row_bits += 1;
        self.fold(|row, column| column * ROWS + row / 2);
    }

    fn fold(&mut self, to: impl Fn(u64, u64) -> u64) {
        if !self.used {
            return;
        }
        let mut folded = vec![[0; 2]; self.cells.len()];
        for (at, [read, write]) in self.cells.iter().enumerate() {
            let cell: &mut [u64; 2] = &mut folded[to(at as u64 % ROWS, at as u64 / ROWS) as usize];
            cell[0] += read;
            cell[1] += write;
        }
        self.cells = folded;
    }

    /// The counts as rows.
    pub fn map(&self, is_time: bool) -> Map {
        let used = |at: usize| self.cells[at] != [0; 2];
        let cells = (0..self.cells.len()).filter(|&at| used(at));
        let rows = cells.clone().map(|at| at % ROWS as usize + 1).max().unwrap_or(0);
        let columns = cells.map(|at| at / ROWS as usize + 1).max().unwrap_or(0);
        let of = |kind: usize| {
            let row = |row: usize| (0..columns).map(|column| self.cells[column * ROWS as usize + row][kind]).collect();
            (0..rows).map(row).collect()
        };
        let (column_width, row_bytes) = (1 << self.column_bits, 1 << self.row_bits);
        Map { is_time, column_width, row_bytes, read: of(0), write: of(1) }
    }
}
