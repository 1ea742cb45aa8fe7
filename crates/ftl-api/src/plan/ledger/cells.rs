//! The ledger's records of physical subpages and blocks: the program and the origin of each subpage, the last change of
//! each block, and the reads since.
//!
//! Ignored: operations that ended before the ledger was restarted.

use rustc_hash::FxHashMap;

/// Reads of a block above which ended ones are dropped.
const MOST_READS: usize = 64;

pub(super) struct Cells {
    /// Origin of the data of each physical subpage; 0 if programmed before the ledger was restarted.
    origins: Vec<u32>,
    /// The planned operation that programs each physical subpage; 0 if before the ledger was restarted.
    programs: Vec<u64>,
    /// The last program or erase of each block.
    changes: FxHashMap<u32, u64>,
    /// Reads of each block since the last change of its content.
    reads: FxHashMap<u32, Vec<u64>>,
}

impl Cells {
    pub fn new(subpages: usize) -> Self {
        Cells {
            origins: vec![0; subpages],
            programs: vec![0; subpages],
            changes: FxHashMap::default(),
            reads: FxHashMap::default(),
        }
    }

    pub fn clear(&mut self) {
        // Zeroed new memory costs nothing until it is touched.
        (self.origins, self.programs) = (vec![0; self.origins.len()], vec![0; self.programs.len()]);
        self.changes.clear();
        self.reads.clear();
    }

    pub fn origin(&self, psn: u32) -> u32 {
        self.origins[psn as usize]
    }

    /// Records that operation `order` programs physical subpage `psn` with data of `origin`.
    pub fn program(&mut self, psn: u32, origin: u32, order: u64) {
        (self.origins[psn as usize], self.programs[psn as usize]) = (origin, order);
    }

    /// Records that operation `order` reads the physical subpages `psns` of `block`. Returns the programs, from number
    /// `from` on, that stored them.
    pub fn read(&mut self, block: u32, psns: impl Iterator<Item = u32>, order: u64, from: u64) -> Vec<u64> {
        let reads = self.reads.entry(block).or_default();
        if reads.len() >= MOST_READS {
            reads.retain(|&read| read >= from);
        }
        reads.push(order);
        let mut stored: Vec<u64> =
            psns.map(|psn| self.programs[psn as usize]).filter(|&by| by >= from.max(1)).collect();
        stored.dedup();
        stored
    }

    /// Records that operation `order` programs or erases `block`. Returns the planned change before, if its number is
    /// at least `from`.
    pub fn change(&mut self, block: u32, order: u64, from: u64) -> Option<u64> {
        self.changes.insert(block, order).filter(|&before| before >= from)
    }

    /// Removes and returns the reads of `block` from number `from` on, because the next operation changes the content
    /// and must follow them.
    pub fn take_reads(&mut self, block: u32, from: u64) -> Vec<u64> {
        let mut reads = self.reads.remove(&block).unwrap_or_default();
        reads.retain(|&read| read >= from);
        reads
    }
}
