//! Peeling with inactivation (Shokrollahi, Lassen and Karp, US 6,856,263; RFC 6330 section 5.4): an order in which cells
//! solve the equations one after the other, but for a few hundred equations that are left to dense elimination.
//!
//! A writable cell that stands in one remaining equation solves it, whatever the others are: the equation is taken off,
//! which leaves fewer in other cells. Where no such cell is left, one equation is made inactive.

use super::graph::Graph;

/// What became of an equation.
pub(super) const WAITING: u32 = u32::MAX;
/// Set in the state of an inactive equation; the rest is its number among the inactive.
pub(super) const INACTIVE: u32 = 1 << 31;

/// Added to the degree of a stuck cell, so that it is never 1.
const STUCK: u8 = 128;

#[derive(Default)]
pub(super) struct Peel {
    /// Remaining equations of each cell.
    degree: Vec<u8>,
    /// Each equation's number in `steps`, [`INACTIVE`] and its number in `inactive`, or [`WAITING`].
    pub(super) state: Vec<u32>,
    /// Equation and the cell that solves it, in order; the cell stands in no later one.
    pub(super) steps: Vec<(u32, u32)>,
    /// Inactive equations, and how many steps were made before each.
    pub(super) inactive: Vec<(u32, u32)>,
    ready: Vec<u32>,
    pairs: Vec<u32>,
}

impl Peel {
    /// Orders the equations of `graph` below `message_bits`, and those of the parity, over the cells set in `writable`.
    pub(super) fn run(&mut self, graph: &Graph, message_bits: usize, writable: &[u64]) {
        self.start(graph, message_bits, writable);
        let mut waiting = message_bits + 64 * (graph.rows - graph.message_rows) - self.steps.len();
        let mut next_row = 0;
        while waiting > 0 {
            if let Some(cell) = self.ready.pop() {
                if self.degree[cell as usize] != 1 {
                    continue;
                }
                let row = self.waiting_row(graph, cell, 0);
                self.state[row as usize] = self.steps.len() as u32;
                self.steps.push((row, cell));
                self.take_off(graph, row);
            } else {
                let row = self.row_to_leave(graph, &mut next_row);
                self.state[row as usize] = INACTIVE | self.inactive.len() as u32;
                self.inactive.push((row, self.steps.len() as u32));
                self.take_off(graph, row);
            }
            waiting -= 1;
        }
    }

    fn start(&mut self, graph: &Graph, message_bits: usize, writable: &[u64]) {
        self.steps.clear();
        self.inactive.clear();
        self.ready.clear();
        self.pairs.clear();
        self.state.clear();
        self.state.resize(64 * graph.rows, WAITING);
        self.degree.clear();
        for (column, &word) in writable.iter().enumerate() {
            let degree = graph.of_column.of(column).len() as u8;
            self.degree.extend((0..64).map(|bit| degree + STUCK * (word >> bit & 1 == 0) as u8));
        }
        // The last word of the message may have bits that stand for nothing.
        for row in message_bits..64 * graph.message_rows {
            self.state[row] = INACTIVE - 1;
            self.take_off(graph, row as u32);
        }
        self.ready.clear();
        self.pairs.clear();
        for (cell, &degree) in self.degree.iter().enumerate() {
            match degree {
                1 => self.ready.push(cell as u32),
                2 => self.pairs.push(cell as u32),
                _ => {}
            }
        }
    }

    /// Equation `row` is no longer waiting.
    #[inline]
    fn take_off(&mut self, graph: &Graph, row: u32) {
        let bit = row % 64;
        for edge in graph.of_row.of(row as usize / 64) {
            let cell = u32::from(edge.word) * 64 + (bit.wrapping_sub(u32::from(edge.shift)) % 64);
            let degree = &mut self.degree[cell as usize];
            *degree -= 1;
            match *degree {
                1 => self.ready.push(cell),
                2 => self.pairs.push(cell),
                _ => {}
            }
        }
    }

    /// The waiting equation of `cell` after `skip` others.
    fn waiting_row(&self, graph: &Graph, cell: u32, skip: usize) -> u32 {
        let rows = rows_of(graph, cell).filter(|&row| self.state[row as usize] == WAITING);
        rows.skip(skip).next().expect("the degree counts them")
    }

    /// One of the two equations of a cell that has two left; where there is none, any that waits.
    fn row_to_leave(&mut self, graph: &Graph, next_row: &mut u32) -> u32 {
        while let Some(cell) = self.pairs.pop() {
            if self.degree[cell as usize] == 2 {
                let rows = [self.waiting_row(graph, cell, 0), self.waiting_row(graph, cell, 1)];
                let weights = rows.map(|row| self.pairs_in(graph, row));
                return rows[usize::from(weights[1] > weights[0])];
            }
        }
        while self.state[*next_row as usize] != WAITING {
            *next_row += 1;
        }
        *next_row
    }

    /// Cells of equation `row` that have two left.
    fn pairs_in(&self, graph: &Graph, row: u32) -> usize {
        let edges = graph.of_row.of(row as usize / 64).iter();
        let cells = edges.map(|edge| u32::from(edge.word) * 64 + (row % 64).wrapping_sub(u32::from(edge.shift)) % 64);
        cells.filter(|&cell| self.degree[cell as usize] == 2).count()
    }
}

/// Equations that `cell` stands in.
pub(super) fn rows_of(graph: &Graph, cell: u32) -> impl Iterator<Item = u32> {
    let bit = cell % 64;
    let edges = graph.of_column.of(cell as usize / 64).iter();
    edges.map(move |edge| u32::from(edge.word) * 64 + (bit + u32::from(edge.shift)) % 64)
}

/// Equations that bit `check` of the parity stands in: its own, and those of the message.
pub(super) fn rows_of_check(graph: &Graph, check: u32) -> impl Iterator<Item = u32> {
    let bit = check % 64;
    let edges = graph.messages_of_check.of(check as usize / 64).iter();
    let own = graph.message_rows as u32 * 64 + check;
    edges.map(move |edge| u32::from(edge.word) * 64 + (bit + u32::from(edge.shift)) % 64).chain([own])
}
