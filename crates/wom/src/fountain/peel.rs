//! Peeling with inactivation (Shokrollahi, Lassen and Karp, US 6,856,263; RFC 6330 section 5.4): an order in which
//! cells solve the equations one after the other, except a few hundred for dense elimination.
//!
//! A writable cell in a single remaining equation solves that equation for any values of other cells: the equation is
//! removed, which lowers the degree of other cells. If no such cell is left, one equation becomes inactive.

use super::graph::Graph;

/// State of a row that is no equation.
pub(super) const NOTHING: u32 = INACTIVE - 1;
/// Set in the state of an inactive equation; the rest is the number among the inactive.
pub(super) const INACTIVE: u32 = 1 << 31;

/// Added to the degree of a stuck cell, so that the degree is never 1 or 2.
const STUCK: u8 = 128;

#[derive(Default)]
pub(super) struct Peel {
    /// Remaining equations of each cell.
    degree: Vec<u8>,
    /// A bit for each equation that remains.
    waiting: Vec<u64>,
    /// Each equation's number in `steps`, or [`INACTIVE`] and the number in `inactive`.
    pub(super) state: Vec<u32>,
    /// Equation and the solving cell, in order; the cell is in no later equation.
    pub(super) steps: Vec<(u32, u32)>,
    /// Inactive equations, and the number of steps before each.
    pub(super) inactive: Vec<(u32, u32)>,
    ready: Vec<u32>,
    bare: Vec<u32>,
    /// Begin of the next search for cells with two remaining equations.
    pair: usize,
}

impl Peel {
    /// Orders the equations of `graph` below `message_bits`, and the equations of the parity, over the cells set in
    /// `writable`.
    pub(super) fn run(&mut self, graph: &Graph, message_bits: usize, writable: &[u64]) {
        self.start(graph, message_bits, writable);
        self.leave_bare(graph, writable);
        let mut left: usize = self.waiting.iter().map(|word| word.count_ones() as usize).sum();
        while left > 0 {
            if let Some(cell) = self.ready.pop() {
                if self.degree[cell as usize] != 1 {
                    continue;
                }
                let row = self.waiting_rows(graph, cell).next().expect("the degree counts it");
                self.state[row as usize] = self.steps.len() as u32;
                self.steps.push((row, cell));
                self.take_off(graph, row);
            } else {
                let row = self.row_to_leave(graph);
                self.state[row as usize] = INACTIVE | self.inactive.len() as u32;
                self.inactive.push((row, self.steps.len() as u32));
                self.take_off(graph, row);
            }
            left -= 1;
        }
        for &row in &self.bare {
            self.state[row as usize] = INACTIVE | self.inactive.len() as u32;
            self.inactive.push((row, self.steps.len() as u32));
        }
    }

    /// Sets equations without writable cells aside: inactive, after all others.
    fn leave_bare(&mut self, graph: &Graph, writable: &[u64]) {
        self.bare.clear();
        for (row, waiting) in self.waiting.iter_mut().enumerate() {
            let edges = graph.of_row.of(row).iter();
            let covered = edges
                .fold(0, |covered, edge| covered | writable[usize::from(edge.word)].rotate_left(u32::from(edge.shift)));
            let bare = *waiting & !covered;
            self.bare.extend((0..64).filter(|bit| bare >> bit & 1 == 1).map(|bit| 64 * row as u32 + bit));
            *waiting &= covered;
        }
    }

    fn start(&mut self, graph: &Graph, message_bits: usize, writable: &[u64]) {
        self.steps.clear();
        self.inactive.clear();
        self.pair = 0;
        self.state.clear();
        self.state.resize(64 * graph.rows, NOTHING);
        self.waiting.clear();
        self.waiting.resize(graph.rows, u64::MAX);
        self.degree.resize(64 * graph.columns, 0);
        for (column, (&word, degrees)) in writable.iter().zip(self.degree.as_chunks_mut::<64>().0).enumerate() {
            let degree = graph.of_column.of(column).len() as u8;
            for (bit, each) in degrees.iter_mut().enumerate() {
                *each = degree | STUCK & ((word >> bit & 1) as u8).wrapping_sub(1);
            }
        }
        // The last word of the message may have unused bits.
        for row in message_bits..64 * graph.message_rows {
            self.take_off(graph, row as u32);
        }
        self.ready.clear();
        let singles = self.degree.iter().enumerate().filter(|&(_, &degree)| degree == 1);
        self.ready.extend(singles.map(|(cell, _)| cell as u32));
    }

    #[inline]
    fn take_off(&mut self, graph: &Graph, row: u32) {
        self.waiting[row as usize / 64] &= !(1 << (row % 64));
        for edge in graph.of_row.of(row as usize / 64) {
            let cell = u32::from(edge.word) << 6 | row.wrapping_sub(u32::from(edge.shift)) & 63;
            let degree = &mut self.degree[cell as usize];
            *degree -= 1;
            if *degree == 1 {
                self.ready.push(cell);
            }
        }
    }

    #[inline]
    fn waiting_rows(&self, graph: &Graph, cell: u32) -> impl Iterator<Item = u32> {
        rows_of(graph, cell).filter(|&row| self.waiting[row as usize / 64] >> (row % 64) & 1 == 1)
    }

    /// The equation to make inactive: of a cell with two equations left, the equation with more such cells; else any.
    fn row_to_leave(&mut self, graph: &Graph) -> u32 {
        let (before, after) = self.degree.split_at(self.pair);
        let two = |&degree: &u8| degree == 2;
        let next = after.iter().position(two).map(|at| self.pair + at).or_else(|| before.iter().position(two));
        if let Some(cell) = next {
            self.pair = cell;
            let pairs = |row: u32| {
                let edges = graph.of_row.of(row as usize / 64).iter();
                let cells = edges.map(|edge| u32::from(edge.word) << 6 | row.wrapping_sub(u32::from(edge.shift)) & 63);
                cells.filter(|&cell| self.degree[cell as usize] == 2).count()
            };
            return self.waiting_rows(graph, cell as u32).max_by_key(|&row| pairs(row)).expect("there are two");
        }
        let word = self.waiting.iter().position(|&word| word != 0).expect("an equation is left");
        64 * word as u32 + self.waiting[word].trailing_zeros()
    }
}

/// Equations of `cell`.
pub(super) fn rows_of(graph: &Graph, cell: u32) -> impl Iterator<Item = u32> {
    let edges = graph.of_column.of(cell as usize / 64).iter();
    edges.map(move |edge| u32::from(edge.word) << 6 | cell.wrapping_add(u32::from(edge.shift)) & 63)
}

/// Equations of bit `check` of the parity: of the parity and of the message.
pub(super) fn rows_of_check(graph: &Graph, check: u32) -> impl Iterator<Item = u32> {
    let edges = graph.messages_of_check.of(check as usize / 64).iter();
    let own = graph.message_rows as u32 * 64 + check;
    edges.map(move |edge| u32::from(edge.word) << 6 | check.wrapping_add(u32::from(edge.shift)) & 63).chain([own])
}
