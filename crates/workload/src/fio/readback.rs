//! The writes of a job that are read back: fio's `verify`.
//!
//! After a pass, the job reads the written extents: in the order of the writes, or by address if writes may overlap (as
//! in fio; a newer write replaces an older one in its way). It also reads a batch of them after a write if their number
//! is a multiple of `verify_backlog`; what a batch finds no extents for, it reads after the next writes. Reads begin
//! after the writes in flight. `--check` compares the contents. Ignored: fio's headers, and reads beside writes in
//! flight.

use super::distribution::Distribution;
use super::spec::FioSpec;
use crate::request::Extent;
use std::collections::{BTreeMap, VecDeque};

/// Extents to read back.
#[derive(Debug, Clone)]
pub struct ReadBack {
    backlog: u64,
    batch: u64,
    written: Written,
    /// Whether the last request of the job was a write.
    fresh: bool,
    /// Reads left of the batch.
    left: u64,
}

#[derive(Debug, Clone)]
enum Written {
    InOrder(VecDeque<Extent>),
    /// Sectors by the first.
    ByAddress(BTreeMap<u64, u32>),
}

impl ReadBack {
    /// The read-back of `spec`; `None` without.
    pub fn new(spec: &FioSpec) -> Option<ReadBack> {
        let is_random = spec.pattern.random && (spec.no_map || spec.distribution != Distribution::Random);
        let may_overlap = is_random || spec.skip != 0 || spec.run > 1 || spec.io_size.is_some() || spec.files.is_some();
        let written = match may_overlap {
            true => Written::ByAddress(BTreeMap::new()),
            false => Written::InOrder(VecDeque::new()),
        };
        let batch = if spec.check.batch == 0 { spec.check.backlog } else { spec.check.batch };
        let backlog = spec.check.backlog;
        spec.reads_back().then_some(ReadBack { backlog, batch, written, fresh: false, left: 0 })
    }

    /// Notes a write.
    pub fn wrote(&mut self, extent: Extent) {
        self.fresh = true;
        match &mut self.written {
            Written::InOrder(extents) => extents.push_back(extent),
            Written::ByAddress(extents) => {
                let end = extent.end();
                while let Some((&start, &sectors)) = extents.range(..end).next_back() {
                    if start + u64::from(sectors) <= extent.sector {
                        break;
                    }
                    extents.remove(&start);
                }
                extents.insert(extent.sector, extent.sectors);
            }
        }
    }

    fn len(&self) -> u64 {
        match &self.written {
            Written::InOrder(extents) => extents.len() as u64,
            Written::ByAddress(extents) => extents.len() as u64,
        }
    }

    /// True while reads follow each other.
    pub fn is_reading(&self) -> bool {
        self.left > 0 && self.len() > 0
    }

    /// True if a batch is due after the last write.
    pub fn is_due(&self) -> bool {
        self.backlog > 0 && self.fresh && self.len().is_multiple_of(self.backlog)
    }

    /// Begins to read a batch, or everything at the end of a pass; false if there is nothing to read.
    pub fn begin(&mut self, all: bool) -> bool {
        self.left = if all { self.len() } else { self.batch };
        self.len() > 0
    }

    /// True if the last request of the job was a write; the next one is a read.
    pub fn follows_write(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// The next extent to read.
    pub fn take(&mut self) -> Option<Extent> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.written {
            Written::InOrder(extents) => extents.pop_front(),
            Written::ByAddress(extents) => extents.pop_first().map(|(sector, sectors)| Extent { sector, sectors }),
        }
    }
}

#[cfg(test)]
mod tests;
