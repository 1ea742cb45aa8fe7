//! The fountain code: a transposed Raptor code, close to the capacity. Not from a paper.
//!
//! The message is a sum of cells, m = Hy, H sparse (see `graph`): decoding is some thousand rotations and sums of
//! words. Stuck cells hold 0 and add nothing, so the encoder solves m = Hy over the writable cells alone. A solution
//! exists for every m exactly if the columns of the writable cells have full rank: if a receiver of those columns as
//! encoded symbols could decode the fountain code of these symbols. Raptor codes need hardly more symbols than bits,
//! and their decoder's method solves the transposed system too: peeling with inactivation (`peel`), and elimination of
//! a few hundred dense equations (`dense`). Wet paper codes (Fridrich, Goljan, Lisoněk and Soukal 2005) are the same
//! idea with other matrices.
//!
//! The code fails if the writable cells are fewer, or hardly more, than the coded bits of the message. An erased spare
//! of s bytes stores the last s bytes of the message. Cells must be a multiple of 8 bytes.

mod dense;
mod graph;
mod peel;

use super::curves::Curve;
use super::polar::{load, store};
use super::{Code, CodeEntry, Effort, Failed, Shape, Unfit, least, word_of};
use dense::Dense;
use graph::Graph;
use palimpsest_flash::rng::Rng;
use peel::{INACTIVE, NOTHING, Peel, rows_of, rows_of_check};
use std::f64::consts::LN_2;

pub(super) const ENTRY: CodeEntry = CodeEntry {
    name: "fountain",
    about: "sparse sums of cells, solved by peeling with inactivation; least spare, slower to encode, decoded in 5 us",
    build: |shape| Ok(Box::new(Fountain::new(shape)?)),
    spare_needed,
    curves: &[
        Curve { cell_bytes: 1024, points: &[(0, 150, 150), (1, 150, 150), (2, 154, 150), (4, 543, 150), (6, 724, 10)] },
        Curve { cell_bytes: 4096, points: &[(1, 155, 150), (2, 140, 96), (3, 167, 90), (4, 177, 46), (6, 189, 13)] },
        Curve { cell_bytes: 8192, points: &[(1, 62, 61), (2, 58, 55), (3, 52, 33), (4, 102, 37), (6, 119, 7)] },
        Curve { cell_bytes: 16384, points: &[(2, 37, 37), (4, 36, 26), (6, 41, 10), (8, 45, 1), (10, 50, 1)] },
    ],
};

/// As for a random matrix, plus the excess: with r more writable cells than coded bits the code fails with probability
/// 2^-r, with r < 0 always.
fn spare_needed(message_bytes: usize, cell_bytes: usize, failure: f64) -> Result<usize, Unfit> {
    check(Shape { message_bytes, cell_bytes, spare_bytes: message_bytes })?;
    let cells = 8 * cell_bytes;
    let log_all = |m: usize| libm::lgamma(m as f64 + 1.0);
    // Writable cells are binomial; beyond 16 standard deviations the probability is negligible.
    let reach = 8 * libm::sqrt(cells as f64) as usize;
    let shares: Vec<(usize, f64)> = (cells / 2 - reach.min(cells / 2)..=(cells / 2 + reach).min(cells))
        .map(|writable| {
            let log = log_all(cells) - log_all(writable) - log_all(cells - writable) - cells as f64 * LN_2;
            (writable, libm::exp(log))
        })
        .collect();
    let fails = |spare: usize| -> f64 {
        let coded = 8 * (message_bytes - spare) + cells / EXCESS_SHARE;
        let given = |writable: usize| libm::exp2(-(writable.saturating_sub(coded).min(1000) as f64));
        shares.iter().map(|&(writable, share)| share * given(writable)).sum()
    };
    Ok(least(message_bytes, |spare| fails(spare) <= failure))
}

fn check(Shape { message_bytes, cell_bytes, spare_bytes }: Shape) -> Result<(), Unfit> {
    let coded = message_bytes.saturating_sub(spare_bytes);
    if cell_bytes == 0 || cell_bytes % 8 != 0 || cell_bytes > MAX_CELL_BYTES {
        return Err(Unfit(format!(
            "the fountain code cannot have {cell_bytes} bytes of cells; expected a multiple of 8 from 8 to \
             {MAX_CELL_BYTES}"
        )));
    }
    if message_bytes == 0 || coded > cell_bytes {
        return Err(Unfit(format!(
            "the fountain code cannot store {message_bytes} bytes in {cell_bytes} bytes of cells and {spare_bytes} of \
             spare; expected a message of 1 to {} bytes",
            cell_bytes + spare_bytes
        )));
    }
    Ok(())
}

/// Marks the number of a parity bit among the names of columns.
const CHECK: u32 = 1 << 31;
/// Sparse rows need one writable cell in this many more than random rows: above the measured 60 cells at 4 KiB over 8
/// KiB, 160 at 16 KiB over 32 KiB, none at 512 bytes over 1 KiB.
const EXCESS_SHARE: usize = 800;
/// Columns tried beyond the number of equations, before the more expensive ones.
const SPARE_COLUMNS: usize = 32;

/// Most cell bytes that the words of an edge can address.
const MAX_CELL_BYTES: usize = 1 << 18;

struct Fountain {
    shape: Shape,
    /// Bytes of the message that are coded; the rest is raw in the spare.
    coded: usize,
    graph: Graph,
    peel: Peel,
    dense: Dense,
    cells: Vec<u64>,
    writable: Vec<u64>,
    /// A bit an equation: the required sum of the cells, less the cells already set.
    left: Vec<u64>,
    /// For each step, the inactive equations to which the step's equation is added, which eliminates the step's cell.
    added: Vec<u64>,
    /// Start of each step in `added`: a word for each 64 equations that were inactive before the step.
    begins: Vec<u32>,
    /// Writable cells that solve no equation.
    free: Vec<u64>,
    column: Vec<u64>,
}

impl Fountain {
    fn new(shape: Shape) -> Result<Self, Unfit> {
        check(shape)?;
        let Shape { message_bytes, cell_bytes, spare_bytes } = shape;
        let coded = message_bytes.saturating_sub(spare_bytes);
        let graph = Graph::new(cell_bytes / 8, coded.div_ceil(8));
        Ok(Fountain {
            shape,
            coded,
            peel: Peel::default(),
            dense: Dense::default(),
            cells: vec![0; graph.columns],
            writable: vec![0; graph.columns],
            left: vec![0; graph.rows],
            added: Vec::new(),
            begins: Vec::new(),
            free: vec![0; graph.columns],
            column: Vec::new(),
            graph,
        })
    }

    /// Computes for each step the additions that eliminate the cell from the inactive equations.
    fn trace(&mut self) {
        let Fountain { graph, peel, added, begins, .. } = self;
        // Cells of the steps before the first inactive equation are in none.
        let plain = peel.inactive.first().map_or(peel.steps.len(), |&(_, before)| before as usize);
        added.clear();
        begins.clear();
        begins.resize(plain + 1, 0);
        let mut inactive = 0;
        for (at, &(row, cell)) in peel.steps.iter().enumerate().skip(plain) {
            while peel.inactive.get(inactive).is_some_and(|&(_, before)| before as usize <= at) {
                inactive += 1;
            }
            let begin = added.len();
            added.resize(begin + inactive.div_ceil(64), 0);
            let (earlier, own) = added.split_at_mut(begin);
            for other in rows_of(graph, cell).filter(|&other| other != row) {
                add_row(peel.state[other as usize], begins, earlier, own);
            }
            begins.push(added.len() as u32);
        }
    }

    /// Adds free columns until every inactive equation is solvable: cells, which are many and cheap, then parity bits,
    /// the only columns of equations without writable cells, then more cells.
    fn eliminate(&mut self) {
        let Fountain { graph, peel, dense, added, begins, free, column, .. } = self;
        let equations = peel.inactive.len();
        dense.clear(equations);
        let cells = || {
            free.iter().enumerate().flat_map(|(word, &bits)| {
                (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
            })
        };
        let checks = (0..64 * (graph.rows - graph.message_rows) as u32).map(|check| check | CHECK);
        let first = equations + SPARE_COLUMNS;
        for name in cells().take(first).chain(checks).chain(cells().skip(first)) {
            if dense.rank() == equations {
                break;
            }
            column.clear();
            column.resize(equations.div_ceil(64), 0);
            let add = |row: u32| add_row(peel.state[row as usize], begins, added, column);
            if name & CHECK == 0 {
                rows_of(graph, name).for_each(add);
            } else {
                rows_of_check(graph, name & !CHECK).for_each(add);
            }
            dense.push(name, column);
        }
    }

    /// Sets the cells so that every equation holds. False if that is impossible.
    fn set(&mut self, message: &[u8], rng: &mut Rng) -> bool {
        let Fountain { graph, peel, dense, added, begins, free, column, cells, left, .. } = self;
        // Columns that elimination leaves free are random, so that the page looks random.
        cells.iter_mut().zip(&*free).for_each(|(cell, &free)| *cell = rng.next_u64() & free);
        graph.sums(cells, left);
        left.iter_mut().zip(message.chunks(8)).for_each(|(word, chunk)| *word ^= word_of(chunk));
        column.clear();
        column.resize(peel.inactive.len().div_ceil(64), 0);
        for (word, &bits) in left.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let row = 64 * word + bits.trailing_zeros() as usize;
                add_row(peel.state[row], begins, added, column);
                bits &= bits - 1;
            }
        }
        let mut toggle = |row: u32| left[row as usize / 64] ^= 1 << (row % 64);
        let solved = dense.solve(column, |name| {
            if name & CHECK == 0 {
                cells[name as usize / 64] ^= 1 << (name % 64);
                rows_of(graph, name).for_each(&mut toggle);
            } else {
                rows_of_check(graph, name & !CHECK).for_each(&mut toggle);
            }
        });
        for &(row, cell) in peel.steps.iter().rev() {
            if left[row as usize / 64] >> (row % 64) & 1 == 1 {
                cells[cell as usize / 64] |= 1 << (cell % 64);
                rows_of(graph, cell).for_each(|row| left[row as usize / 64] ^= 1 << (row % 64));
            }
        }
        solved
    }
}

/// Adds the contribution of an equation of `state` to `column`, a bit for each inactive equation.
#[inline]
fn add_row(state: u32, begins: &[u32], added: &[u64], column: &mut [u64]) {
    if state < NOTHING {
        let (begin, end) = (begins[state as usize] as usize, begins[state as usize + 1] as usize);
        column.iter_mut().zip(&added[begin..end]).for_each(|(to, from)| *to ^= from);
    } else if state & INACTIVE != 0 {
        let number = state & !INACTIVE;
        column[number as usize / 64] ^= 1 << (number % 64);
    }
}

impl Code for Fountain {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn encode(&mut self, page: &mut [u8], message: &[u8], seed: u64) -> Result<Effort, Failed> {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let (cells, spare) = page.split_at_mut(self.shape.cell_bytes);
        let (message, raw) = message.split_at(self.coded);
        if raw.iter().zip(&*spare).any(|(&new, &old)| new & !old != 0) {
            return Err(Failed);
        }
        load(cells, &mut self.writable);
        self.peel.run(&self.graph, 8 * self.coded, &self.writable);
        self.free.copy_from_slice(&self.writable);
        for &(_, cell) in &self.peel.steps {
            self.free[cell as usize / 64] &= !(1 << (cell % 64));
        }
        self.trace();
        self.eliminate();
        if !self.set(message, &mut Rng::new(seed, 0)) {
            return Err(Failed);
        }
        store(&self.cells, cells);
        spare[..raw.len()].copy_from_slice(raw);
        Ok(Effort { attempts: 1, equations: self.peel.inactive.len() as u32 })
    }

    fn decode(&mut self, page: &[u8], message: &mut [u8]) {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let (cells, spare) = page.split_at(self.shape.cell_bytes);
        load(cells, &mut self.cells);
        self.graph.sums(&self.cells, &mut self.left);
        self.graph.add_parity(&mut self.left);
        let (coded, raw) = message.split_at_mut(self.coded);
        store(&self.left, coded);
        raw.copy_from_slice(&spare[..raw.len()]);
    }
}
