//! Logical subpages stored by programs that have not ended. An erase must follow programs that replace data of its
//! block, and a second write those that replace data of its page.
//!
//! Ignored: copies by the layer's own collection, and merges by the call that erases for them. The erase of the source
//! block must follow them by the layer's gate, so that the check of times finds a layer without one. Programs of the
//! source stay listed until they have ended.
//!
//! `replacing` and `operations` use each other: the operations of a plan hold this list, and an operation states the
//! data that it replaces.

use super::operations::Program;

/// No entry.
pub const NONE: u32 = u32::MAX;
const BUCKETS: u32 = 1 << 12;

/// Logical subpages of programs under way.
#[derive(Default)]
pub struct Replacing {
    /// The last entry of each bucket.
    heads: Vec<u32>,
    entries: Vec<Stored>,
    free: Vec<u32>,
}

struct Stored {
    lsn: u32,
    /// Block of the program.
    block: u32,
    program: Program,
    /// The entry before in the same bucket.
    previous: u32,
    /// The next entry of the same program.
    next: u32,
}

impl Replacing {
    /// Lists `logical` as stored by `program` in `block`. Returns the first of the entries, or [`NONE`].
    #[inline]
    pub fn add(&mut self, block: u32, program: Program, logical: impl Iterator<Item = u32>) -> u32 {
        if self.heads.is_empty() {
            self.heads.resize(BUCKETS as usize, NONE);
        }
        let mut first = NONE;
        for lsn in logical {
            let head = &mut self.heads[(lsn % BUCKETS) as usize];
            let stored = Stored { lsn, block, program, previous: *head, next: first };
            first = match self.free.pop() {
                Some(entry) => {
                    self.entries[entry as usize] = stored;
                    entry
                }
                None => {
                    self.entries.push(stored);
                    self.entries.len() as u32 - 1
                }
            };
            *head = first;
        }
        first
    }

    /// Gives the program with the entries from `first` on its number `number` in the engine.
    #[inline]
    pub fn run(&mut self, first: u32, number: u32) {
        let mut next = first;
        while let Some(stored) = self.entries.get_mut(next as usize) {
            stored.program = Program::Running(number);
            next = stored.next;
        }
    }

    /// Removes the entries from `first` on, because their program has ended.
    #[inline]
    pub fn remove(&mut self, first: u32) {
        let mut entry = first;
        while entry != NONE {
            let Stored { lsn, previous, next, .. } = self.entries[entry as usize];
            let head = &mut self.heads[(lsn % BUCKETS) as usize];
            if *head == entry {
                *head = previous;
            } else {
                let mut later = *head;
                while self.entries[later as usize].previous != entry {
                    later = self.entries[later as usize].previous;
                }
                self.entries[later as usize].previous = previous;
            }
            self.free.push(entry);
            entry = next;
        }
    }

    /// True if a program may store logical subpage `lsn`. Must be called only while programs are listed.
    #[inline]
    pub fn may_store(&self, lsn: u32) -> bool {
        self.heads[(lsn % BUCKETS) as usize] != NONE
    }

    /// The programs that store logical subpage `lsn` in blocks other than `besides`.
    #[inline]
    pub fn of(&self, lsn: u32, besides: Option<u32>) -> impl Iterator<Item = Program> {
        let mut next = self.heads.get((lsn % BUCKETS) as usize).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let stored = self.entries.get(next as usize)?;
            next = stored.previous;
            Some(stored)
        })
        .filter(move |stored| stored.lsn == lsn && Some(stored.block) != besides)
        .map(|stored| stored.program)
    }

    /// True if no program is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }

    /// Removes all programs after a power cut.
    pub fn clear(&mut self) {
        self.heads.fill(NONE);
        self.entries.clear();
        self.free.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_what_they_store_until_they_end() {
        let mut replacing = Replacing::default();
        let list = |replacing: &Replacing, lsn| replacing.of(lsn, Some(9)).collect::<Vec<_>>();
        assert!(list(&replacing, 1).is_empty() && replacing.is_empty());
        // Subpages 1 and 1 + BUCKETS share a bucket.
        let first = replacing.add(3, Program::Planned(0), [1, 2, 1 + BUCKETS].into_iter());
        let second = replacing.add(4, Program::Planned(1), [1].into_iter());
        let own = replacing.add(9, Program::Planned(2), [1].into_iter());
        replacing.run(first, 7);
        assert_eq!(list(&replacing, 1), [Program::Planned(1), Program::Running(7)]);
        assert_eq!(list(&replacing, 1 + BUCKETS), [Program::Running(7)]);
        replacing.remove(first);
        assert_eq!((list(&replacing, 1), list(&replacing, 2)), (vec![Program::Planned(1)], vec![]));
        let third = replacing.add(5, Program::Planned(3), [2].into_iter());
        assert_eq!(list(&replacing, 2), [Program::Planned(3)]);
        [second, own, third].into_iter().for_each(|entry| replacing.remove(entry));
        assert!(list(&replacing, 1).is_empty() && replacing.is_empty());
        assert_eq!(replacing.add(5, Program::Planned(0), std::iter::empty()), NONE);
    }
}
