//! Elimination of the inactive equations over the free columns.

/// Columns of the inactive equations in echelon form, built one by one.
#[derive(Default)]
pub(super) struct Dense {
    words: usize,
    /// The reduced columns, `words` each.
    columns: Vec<u64>,
    /// For each column, the earlier reduced columns that were added to it.
    added: Vec<u64>,
    /// For each column, the first equation, which is in no later column.
    pivots: Vec<u32>,
    /// The column of each pivot equation, or `u32::MAX`.
    of_pivot: Vec<u32>,
    names: Vec<u32>,
    scratch: Vec<u64>,
}

impl Dense {
    pub(super) fn clear(&mut self, equations: usize) {
        self.words = equations.div_ceil(64);
        self.columns.clear();
        self.added.clear();
        self.pivots.clear();
        self.names.clear();
        self.of_pivot.clear();
        self.of_pivot.resize(equations, u32::MAX);
        self.scratch.clear();
        self.scratch.resize(self.words, 0);
    }

    pub(super) fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Reduces `column`; records the added columns in `scratch`. Returns the first equation left.
    fn reduce(&mut self, column: &mut [u64]) -> Option<usize> {
        self.scratch.fill(0);
        let mut first = None;
        for word in 0..self.words {
            let mut skip = 0;
            loop {
                let left = column[word] & !skip;
                if left == 0 {
                    break;
                }
                let bit = left.trailing_zeros();
                let equation = 64 * word + bit as usize;
                let by = self.of_pivot[equation];
                if by == u32::MAX {
                    first = first.or(Some(equation));
                    skip |= 1 << bit;
                    continue;
                }
                let at = by as usize * self.words;
                let other = &self.columns[at + word..at + self.words];
                column[word..].iter_mut().zip(other).for_each(|(to, from)| *to ^= from);
                self.scratch[by as usize / 64] ^= 1 << (by % 64);
            }
        }
        first
    }

    /// Adds a column called `name`. False if the column is a sum of earlier ones.
    pub(super) fn push(&mut self, name: u32, column: &mut [u64]) -> bool {
        let Some(pivot) = self.reduce(column) else { return false };
        self.of_pivot[pivot] = self.pivots.len() as u32;
        self.pivots.push(pivot as u32);
        self.columns.extend_from_slice(column);
        self.added.extend_from_slice(&self.scratch);
        self.names.push(name);
        true
    }

    /// Passes the names of the columns whose sum is `wanted` to `take`; false if no sum is.
    pub(super) fn solve(&mut self, wanted: &mut [u64], mut take: impl FnMut(u32)) -> bool {
        if self.reduce(wanted).is_some() {
            return false;
        }
        for at in (0..self.pivots.len()).rev() {
            if self.scratch[at / 64] >> (at % 64) & 1 == 1 {
                let added = &self.added[at * self.words..(at + 1) * self.words];
                self.scratch.iter_mut().zip(added).for_each(|(sum, added)| *sum ^= added);
                take(self.names[at]);
            }
        }
        true
    }
}
