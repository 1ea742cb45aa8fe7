//! The ledger's records of one call, by physical subpage: how the present content was read, and loads without a read.
//!
//! A table of few entries, because a call touches few subpages of many. A new call forgets all entries at once.
//! Ignored: reads of earlier calls.

/// The first multiple of the golden ratio, which spreads consecutive numbers.
const SPREAD: u32 = 0x9e37_79b9;

/// Entries of a new table.
const FIRST_BITS: u32 = 5;

/// How the call read the present content of a subpage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not at all.
    No,
    /// By this operation.
    Read(u64),
    /// From memory, where the program had not ended.
    Hit,
    /// From other pages; the data has this origin.
    Rebuilt(u32),
}

/// The record of a subpage.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    psn: u32,
    /// Number of the call that made the entry.
    call: u32,
    pub seen: Seen,
    /// Origin of data that was loaded before a read; 0: none.
    pub unread: u32,
}

impl Mark {
    const NONE: Mark = Mark { psn: 0, call: 0, seen: Seen::No, unread: 0 };
}

pub(super) struct Marks {
    table: Vec<Mark>,
    /// Bits of a hash that do not count.
    shift: u32,
    call: u32,
    used: usize,
}

impl Marks {
    pub fn new() -> Self {
        Marks { table: vec![Mark::NONE; 1 << FIRST_BITS], shift: 32 - FIRST_BITS, call: 1, used: 0 }
    }

    /// Forgets all entries.
    #[inline]
    pub fn clear(&mut self) {
        if self.used > 0 {
            (self.used, self.call) = (0, self.call.wrapping_add(1));
            if self.call == 0 {
                *self = Self::new();
            }
        }
    }

    /// The place of `psn`, or the free place for it.
    #[inline]
    fn place(&self, psn: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut place = (psn.wrapping_mul(SPREAD) >> self.shift) as usize;
        while self.table[place].call == self.call && self.table[place].psn != psn {
            place = (place + 1) & mask;
        }
        place
    }

    #[inline]
    pub fn seen(&self, psn: u32) -> Seen {
        if self.used == 0 { Seen::No } else { self.get(psn).map_or(Seen::No, |mark| mark.seen) }
    }

    /// The entry of `psn`, if there is one.
    #[inline]
    fn get(&self, psn: u32) -> Option<&Mark> {
        Some(&self.table[self.place(psn)]).filter(|mark| mark.call == self.call)
    }

    /// The entry of `psn`, new if there is none.
    #[inline]
    pub fn at(&mut self, psn: u32) -> &mut Mark {
        let mut place = self.place(psn);
        if self.table[place].call != self.call {
            if 2 * self.used >= self.table.len() {
                self.grow();
                place = self.place(psn);
            }
            self.used += 1;
            self.table[place] = Mark { psn, call: self.call, ..Mark::NONE };
        }
        &mut self.table[place]
    }

    /// Forgets the entry of `psn`, because a program replaces the content.
    #[inline]
    pub fn forget(&mut self, psn: u32) {
        if self.used > 0 {
            let place = self.place(psn);
            (self.table[place].seen, self.table[place].unread) = (Seen::No, 0);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let all = vec![Mark::NONE; 2 * self.table.len()];
        self.shift -= 1;
        for mark in std::mem::replace(&mut self.table, all).into_iter().filter(|mark| mark.call == self.call) {
            let place = self.place(mark.psn);
            self.table[place] = mark;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_finds_its_own_marks_and_no_others() {
        let mut marks = Marks::new();
        for call in 0..3u64 {
            for psn in (0..1000).step_by(1 + call as usize) {
                assert_eq!(marks.seen(psn), Seen::No);
                marks.at(psn).seen = Seen::Read(call + u64::from(psn));
            }
            for psn in (0..1000).step_by(1 + call as usize) {
                assert_eq!(marks.seen(psn), Seen::Read(call + u64::from(psn)));
            }
            marks.forget(0);
            assert_eq!((marks.seen(0), marks.seen(1001)), (Seen::No, Seen::No));
            marks.clear();
        }
    }
}
