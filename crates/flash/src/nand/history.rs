//! The last operations of the run, to explain a refused operation.
//!
//! A ring of fixed size, written on every operation and read only on a refusal: a few nanoseconds an operation.

use super::Nand;

const LENGTH: usize = 4096;

/// Type of a recorded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// An unused entry.
    Nothing,
    /// A page read.
    Read,
    /// A page program.
    Program,
    /// A block erase.
    Erase,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    mask: u64,
    block: u32,
    page: u16,
    kind: RecordKind,
}

/// The ring.
pub struct History {
    entries: Box<[Record; LENGTH]>,
    /// Records so far, of which the ring keeps the last.
    noted: u64,
}

impl Default for History {
    /// An empty history.
    fn default() -> Self {
        let nothing = Record { mask: 0, block: 0, page: 0, kind: RecordKind::Nothing };
        History { entries: Box::new([nothing; LENGTH]), noted: 0 }
    }
}

impl History {
    /// Records an operation.
    #[inline]
    pub fn note(&mut self, kind: RecordKind, block: u32, page: u32, mask: u64) {
        self.entries[self.noted as usize % LENGTH] = Record { mask, block, page: page as u16, kind };
        self.noted += 1;
    }

    /// The records, oldest first.
    fn records(&self) -> impl Iterator<Item = &Record> {
        let (newer, older) = self.entries.split_at(self.noted as usize % LENGTH);
        older.iter().chain(newer).filter(|entry| entry.kind != RecordKind::Nothing)
    }

    /// The recorded operations on `block` before the refused one, oldest first, one short text each.
    pub fn of(&self, block: u32) -> Vec<String> {
        let matching = self.records().filter(|entry| entry.block == block);
        let mut texts: Vec<String> = matching
            .map(|entry| match entry.kind {
                RecordKind::Erase => "erase".to_owned(),
                RecordKind::Read => format!("read page {} subpages {:#b}", entry.page, entry.mask),
                _ => format!("program page {} subpages {:#b}", entry.page, entry.mask),
            })
            .collect();
        texts.pop(); // the refused operation itself
        texts.split_off(texts.len().saturating_sub(12))
    }

    /// The last `count` recorded operations, oldest first, one short text each; the subpages of a page are named unless
    /// they are `all`.
    pub fn last(&self, count: usize, all: u64) -> Vec<String> {
        let subpages = |mask: u64| if mask == all { String::new() } else { format!(", subpages {mask:#b}") };
        let text = |&Record { mask, block, page, kind }: &Record| match kind {
            RecordKind::Erase => format!("erase block {block}"),
            RecordKind::Read => format!("read block {block} page {page}{}", subpages(mask)),
            _ => format!("program block {block} page {page}{}", subpages(mask)),
        };
        let texts: Vec<String> = self.records().map(text).collect();
        texts[texts.len().saturating_sub(count)..].to_vec()
    }
}

impl Nand {
    /// Texts of the last `count` operations that are recorded, oldest first.
    pub fn recent_operations(&self, count: usize) -> Vec<String> {
        self.records.history.last(count, self.widths.all_subpages)
    }

    /// Operations recorded so far. Scans of recovery are not recorded, and copies of several pages are one record.
    pub fn recorded(&self) -> u64 {
        self.records.history.noted
    }
}
