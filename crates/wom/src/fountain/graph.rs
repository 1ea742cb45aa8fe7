//! The sparse matrix of the fountain code: the equations of each cell.
//!
//! The matrix consists of blocks of 64 x 64 that are 0 or a rotation, so that 64 equations are one word: bit b of
//! column word c is in equation (b + shift) mod 64 of the row words that c has edges to. Rows have nearly equal weights
//! a, of which half the cells are writable. The degrees of the columns follow from density evolution (Luby and others
//! 2001; Shokrollahi 1999, right-regular sequences): with edge shares λ(y) = ((1 + y) / 2)^(a − 1) of rows, peeling
//! completes at capacity for ρ(z) = 2 − 2 (1 − z)^α, α = 1 / (a − 1). Equal row weights leave five times fewer
//! equations to dense elimination than the soliton distribution, which is for rows of random weight. Parity rows follow
//! the rows of the message: each parity bit is a sum of cells, and is added to the message bits of [`CHECKS`]
//! rotations, so that a message bit depends on many cells.

use palimpsest_flash::rng::Rng;

/// Parity words that each word of the message is connected to.
const CHECKS: usize = 3;
/// Row weight of the degree distribution, and the largest degree of a column. By trial: of weights 8 to 11 and degrees
/// to 25, 30 and 40 these left the fewest inactive equations at 4 KiB over 8 KiB.
const ROW_WEIGHT: f64 = 9.0;
const MAX_DEGREE: usize = 40;
/// Share of columns in one row, which start the peeling.
const SINGLE: f64 = 0.005;

/// A rotation: the word at the other end, and how far left a bit moves from column to row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) word: u16,
    pub(super) shift: u8,
}

/// Edges of each word, in one list.
#[derive(Debug, Default)]
pub(super) struct Lists {
    begins: Vec<u32>,
    edges: Vec<Edge>,
}

impl Lists {
    fn new(lists: &[Vec<Edge>]) -> Self {
        let mut all = Lists { begins: vec![0], edges: Vec::new() };
        for list in lists {
            all.edges.extend(list);
            all.begins.push(all.edges.len() as u32);
        }
        all
    }

    #[inline]
    pub(super) fn of(&self, word: usize) -> &[Edge] {
        &self.edges[self.begins[word] as usize..self.begins[word + 1] as usize]
    }
}

pub(super) struct Graph {
    /// Words of cells.
    pub(super) columns: usize,
    /// Words of message, and of message and parity.
    pub(super) message_rows: usize,
    pub(super) rows: usize,
    pub(super) of_column: Lists,
    pub(super) of_row: Lists,
    /// Parity words added to each message word, and the reverse; shifts left from parity to message.
    checks_of_message: Lists,
    pub(super) messages_of_check: Lists,
}

/// Degrees of `columns` words in a random order: a share of [`SINGLE`] has 1, the others follow a right-regular
/// sequence: of their edges, 2 c(i) go to degree i + 1, c(1) = α, c(i + 1) = c(i) (i − α) / (i + 1), and the rest to
/// [`MAX_DEGREE`].
fn degrees(columns: usize, rows: usize, rng: &mut Rng) -> Vec<usize> {
    let alpha = 1.0 / (ROW_WEIGHT - 1.0);
    let mut nodes = [0.0; MAX_DEGREE + 1];
    let (mut edges, mut rest) = (alpha, 1.0);
    for i in 1..MAX_DEGREE - 1 {
        nodes[i + 1] = 2.0 * edges / (i + 1) as f64;
        rest -= 2.0 * edges;
        edges *= (i as f64 - alpha) / (i + 1) as f64;
    }
    nodes[MAX_DEGREE] = rest / MAX_DEGREE as f64;
    let all: f64 = nodes.iter().sum();
    nodes.iter_mut().for_each(|share| *share *= (1.0 - SINGLE) / all);
    nodes[1] = SINGLE;
    let mut degrees = Vec::with_capacity(columns);
    let mut below = 0.0;
    for (degree, share) in nodes.iter().enumerate() {
        below += share;
        degrees.resize((below * columns as f64).round() as usize, degree.min(rows));
    }
    for at in (1..columns).rev() {
        degrees.swap(at, rng.below(at as u64 + 1) as usize);
    }
    degrees
}

impl Graph {
    pub(super) fn new(columns: usize, message_rows: usize) -> Self {
        let mut rng = Rng::new(message_rows as u64, columns as u64);
        let parity_rows = if message_rows == 0 { 0 } else { (message_rows / 56).clamp(4, 64) };
        let rows = message_rows + parity_rows;
        let mut of_column: Vec<Vec<Edge>> = vec![Vec::new(); columns];
        let mut of_row: Vec<Vec<Edge>> = vec![Vec::new(); rows];
        for (column, degree) in degrees(columns, rows, &mut rng).into_iter().enumerate() {
            while of_column[column].len() < degree {
                // The lightest of a few rows drawn at random.
                let drawn = (0..6).map(|_| rng.below(rows as u64) as usize);
                let fresh = drawn.filter(|&row| of_column[column].iter().all(|edge| usize::from(edge.word) != row));
                let Some(row) = fresh.min_by_key(|&row| of_row[row].len()) else { continue };
                let shift = rng.below(64) as u8;
                of_column[column].push(Edge { word: row as u16, shift });
                of_row[row].push(Edge { word: column as u16, shift });
            }
        }
        let mut of_message: Vec<Vec<Edge>> = vec![Vec::new(); message_rows];
        let mut of_check: Vec<Vec<Edge>> = vec![Vec::new(); parity_rows];
        for (message, edges) in of_message.iter_mut().enumerate() {
            while edges.len() < CHECKS {
                let check = rng.below(parity_rows as u64) as usize;
                if edges.iter().all(|edge| usize::from(edge.word) != check) {
                    let shift = rng.below(64) as u8;
                    edges.push(Edge { word: check as u16, shift });
                    of_check[check].push(Edge { word: message as u16, shift });
                }
            }
        }
        Graph {
            columns,
            message_rows,
            rows,
            of_column: Lists::new(&of_column),
            of_row: Lists::new(&of_row),
            checks_of_message: Lists::new(&of_message),
            messages_of_check: Lists::new(&of_check),
        }
    }

    /// The sums of all rows over `cells`, without the parity in the message rows.
    pub(super) fn sums(&self, cells: &[u64], sums: &mut [u64]) {
        debug_assert_eq!((cells.len(), sums.len()), (self.columns, self.rows));
        for (row, sum) in sums.iter_mut().enumerate() {
            let edges = self.of_row.of(row);
            *sum = edges
                .iter()
                .fold(0, |sum, edge| sum ^ cells[usize::from(edge.word)].rotate_left(u32::from(edge.shift)));
        }
    }

    /// Adds the parity to the message rows of `sums`, which are then the message.
    pub(super) fn add_parity(&self, sums: &mut [u64]) {
        let (message, parity) = sums.split_at_mut(self.message_rows);
        for (row, sum) in message.iter_mut().enumerate() {
            for edge in self.checks_of_message.of(row) {
                *sum ^= parity[usize::from(edge.word)].rotate_left(u32::from(edge.shift));
            }
        }
    }
}
