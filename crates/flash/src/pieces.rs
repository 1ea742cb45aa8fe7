//! A table in pieces that take memory when an entry is written, for drives whose tables exceed the memory. Entries that
//! were never written have the default value. Ignored: entries that become the default again.

use crate::prefetch::prefetch_place;

/// Entries of a piece, as a power of two.
const BITS: usize = 10;

/// A table of entries of the type `T`.
pub struct Pieces<T> {
    pieces: Vec<Option<Box<[T; 1 << BITS]>>>,
}

impl<T: Copy + Default> Pieces<T> {
    /// A table of `entries` entries.
    pub fn new(entries: usize) -> Self {
        Pieces { pieces: std::iter::repeat_with(|| None).take((entries >> BITS) + 1).collect() }
    }

    /// The entry at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        match &self.pieces[index >> BITS] {
            Some(piece) => piece[index & ((1 << BITS) - 1)],
            None => T::default(),
        }
    }

    /// Prefetches the entry at `index`, if it was written.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if let Some(Some(piece)) = self.pieces.get(index >> BITS) {
            prefetch_place(&piece[index & ((1 << BITS) - 1)]);
        }
    }

    /// The entry at `index`, to be written.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut T {
        let piece = self.pieces[index >> BITS].get_or_insert_with(|| Box::new([T::default(); 1 << BITS]));
        &mut piece[index & ((1 << BITS) - 1)]
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.pieces.fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_entries_differ_from_the_default() {
        let mut table: Pieces<u64> = Pieces::new(1 << 33);
        for index in [0, 1023, 1024, 1 << 33] {
            assert_eq!(table.get(index), 0);
            *table.at(index) += 7;
            assert_eq!((table.get(index), table.get(index ^ 1)), (7, 0));
        }
        table.clear();
        assert_eq!(table.get(1024), 0);
    }
}
