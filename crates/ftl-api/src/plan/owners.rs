//! The tenants behind the data on flash: the owner of the last write of each logical subpage, and the programmed
//! subpages of each owner's data, whatever the reason of the program.
//!
//! A tenant is an owner of commands: a job of a job file, or a volume of a trace. Ignored: padding, and records of the
//! layer and the controller, which no tenant wrote; and owners after the first 65,535, whose data counts as no owner's.

use super::Cause;
use palimpsest_flash::nand::SubpageMask;
use std::collections::HashMap;
use std::ops::Range;

/// The owners of the data on a drive.
#[derive(Default)]
pub struct Owners {
    // For look-ups only: the order never affects a result.
    numbers: HashMap<u32, u16>,
    /// The owner of the last write, and its number.
    last: (u32, u16),
    /// The number of the owner of each logical subpage; 0: none.
    of: Vec<u16>,
    /// Subpages programmed since the start, by number.
    programmed: Vec<u64>,
}

impl Owners {
    /// A drive of `logical` logical subpages, whose data has no owner.
    pub fn new(logical: u64) -> Self {
        Owners { of: vec![0; logical as usize], programmed: vec![0], ..Owners::default() }
    }

    /// Records that `owner` writes the logical subpages `lsns`.
    #[inline]
    pub fn wrote(&mut self, lsns: Range<u32>, owner: u32) {
        if self.last.1 == 0 || self.last.0 != owner {
            self.last = (owner, self.number(owner));
        }
        self.of[lsns.start as usize..lsns.end as usize].fill(self.last.1);
    }

    #[cold]
    fn number(&mut self, owner: u32) -> u16 {
        let next = u16::try_from(self.programmed.len()).unwrap_or(0);
        let number = *self.numbers.entry(owner).or_insert(next);
        self.programmed.resize(self.programmed.len().max(usize::from(number) + 1), 0);
        number
    }

    /// Counts a program for `cause` of the subpages `written` of a page with these logical numbers.
    pub(super) fn programmed(&mut self, cause: Cause, written: SubpageMask, logical: &[u32]) {
        if !matches!(cause, Cause::Metadata | Cause::Checkpoint | Cause::Parity) {
            let written = logical.iter().enumerate().filter(|(at, _)| written >> at & 1 == 1);
            written.for_each(|(_, &lsn)| self.programmed_one(lsn));
        }
    }

    #[inline]
    pub(super) fn programmed_one(&mut self, lsn: u32) {
        if let Some(&number) = self.of.get(lsn as usize) {
            self.programmed[usize::from(number)] += 1;
        }
    }

    /// Sets all counts to 0.
    pub fn restart(&mut self) {
        self.programmed.fill(0);
    }

    /// Subpages programmed of data of `owner`.
    pub fn programmed_of(&self, owner: u32) -> u64 {
        let number = self.numbers.get(&owner).filter(|&&number| number > 0);
        number.map_or(0, |&number| self.programmed[usize::from(number)])
    }
}

#[cfg(test)]
mod tests;
