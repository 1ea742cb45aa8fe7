//! What the ledger knows of physical subpages and blocks: which program stores each subpage and where its data came from, what was
//! planned last for each block, and which reads of a block come before what changes it.

use rustc_hash::FxHashMap;

/// Reads of a block that are kept before those that have ended are dropped.
const MOST_READS: usize = 64;

pub(super) struct Cells {
    /// Origin of the data of each physical subpage, where it was programmed since times are noted.
    origins: Vec<u32>,
    /// The operation of the plan that programs each physical subpage; 0: one before that.
    programs: Vec<u64>,
    /// The last program or erase of each block.
    changes: FxHashMap<u32, u64>,
    /// Reads of each block since what changed its content last.
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
        // New memory is not touched before it is used.
        (self.origins, self.programs) = (vec![0; self.origins.len()], vec![0; self.programs.len()]);
        self.changes.clear();
        self.reads.clear();
    }

    /// Origin of the data in physical subpage `psn`.
    pub fn origin(&self, psn: u32) -> u32 {
        self.origins[psn as usize]
    }

    /// Operation `order` programs physical subpage `psn` with data of `origin`.
    pub fn program(&mut self, psn: u32, origin: u32, order: u64) {
        (self.origins[psn as usize], self.programs[psn as usize]) = (origin, order);
    }

    /// Operation `order` reads physical subpages `psns` of `block`. Returns the programs that stored them, among those from number
    /// `from` on.
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

    /// Operation `order` programs or erases `block`: the change of it that was planned before, from number `from` on.
    pub fn change(&mut self, block: u32, order: u64, from: u64) -> Option<u64> {
        self.changes.insert(block, order).filter(|&before| before >= from)
    }

    /// What is planned next changes what `block` holds: the reads of it from number `from` on, which come before.
    pub fn take_reads(&mut self, block: u32, from: u64) -> Vec<u64> {
        let mut reads = self.reads.remove(&block).unwrap_or_default();
        reads.retain(|&read| read >= from);
        reads
    }
}
