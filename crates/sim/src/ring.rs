//! A queue whose entries keep their numbers: entry `n` is in place `n` modulo a power of two, so that finding one costs
//! a mask. Ignored: entries that leave in another order than they came.

/// A queue of entries that are numbered in the order of their addition.
pub struct Ring<T> {
    /// The length is a power of two.
    places: Vec<T>,
    /// Number of the first entry, and of the next one to add.
    first: u64,
    end: u64,
}

impl<T: Copy> Ring<T> {
    /// An empty queue whose first entry will have number `first`; `any` is in places without an entry.
    pub fn new(first: u64, any: T) -> Self {
        Ring { places: vec![any; 64], first, end: first }
    }

    /// Number of the first entry.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next entry to add.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.places.len() - 1)
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.end - self.first == self.places.len() as u64 {
            self.grow();
        }
        let place = self.place(self.end);
        self.places[place] = entry;
        self.end += 1;
    }

    /// Moves all of `entries` to the end.
    #[inline]
    pub fn take(&mut self, entries: &mut Vec<T>) {
        if !entries.is_empty() {
            entries.iter().for_each(|&entry| self.push(entry));
            entries.clear();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut places = vec![self.places[0]; 2 * self.places.len()];
        let mask = places.len() - 1;
        (self.first..self.end).for_each(|number| places[number as usize & mask] = self.places[self.place(number)]);
        self.places = places;
    }

    /// Drops the entries before number `first`, at most all.
    #[inline]
    pub fn drop_before(&mut self, first: u64) {
        self.first = first.clamp(self.first, self.end);
    }

    /// Entry `number`; `None` if it left or was not added.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        (self.first..self.end).contains(&number).then(|| &self.places[self.place(number)])
    }

    /// As [`Self::get`], mutable.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number);
        (self.first..self.end).contains(&number).then(|| &mut self.places[place])
    }

    /// The entries from number `first` to before `end`.
    #[inline]
    pub fn range(&self, first: u64, end: u64) -> impl DoubleEndedIterator<Item = (u64, T)> {
        (first.max(self.first)..end.min(self.end)).map(|number| (number, self.places[self.place(number)]))
    }

    /// The number in the queue whose lower half is `low`, if the entry is there or the next.
    #[inline]
    pub fn widened(&self, low: u32) -> u64 {
        self.first + u64::from(low.wrapping_sub(self.first as u32))
    }

    /// All entries with their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, T)> {
        self.range(self.first, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;
    use std::collections::VecDeque;

    /// Random additions and removals, against a queue of the standard library.
    #[test]
    fn entries_keep_their_numbers() {
        let mut rng = Rng::new(1, 0);
        let (mut ring, mut model, mut base) = (Ring::new(1_000, 0), VecDeque::new(), 1_000);
        for turn in 0..50_000_u64 {
            // Fills up to some hundred entries, and then empties.
            if rng.below(100) < [70, 30][(turn / 700 % 2) as usize] {
                ring.push(turn);
                model.push_back(turn);
            } else if !model.is_empty() {
                let left = rng.below(3).min(model.len() as u64);
                model.drain(..left as usize);
                base += left;
                ring.drop_before(base);
            }
            assert_eq!([ring.first(), ring.end()], [base, base + model.len() as u64]);
            let number = base.saturating_sub(2) + rng.below(model.len() as u64 + 4);
            let expected = number.checked_sub(base).and_then(|index| model.get(index as usize));
            assert_eq!(ring.get(number), expected);
            assert_eq!(ring.get_mut(number).map(|entry| *entry), expected.copied());
        }
        assert!(ring.iter().map(|(_, entry)| entry).eq(model));
    }
}
