//! Scans of out-of-band areas after a power cut: layers rebuild their tables from these numbers.
//!
//! A scan reads every programmed page, and the first page of an empty block to see that the block is erased. Each read
//! takes the full array time and transfers [`OUT_OF_BAND_BYTES`] per subpage over the bus. The first page of a word
//! line that is programmed in one shot has the numbers of all its pages. Ignored: block summaries, with which drives
//! read fewer pages; [checkpoints](super::checkpoint) model a similar saving.

use super::{Cause, Io, Operation};
use palimpsest_flash::nand::TORN;

/// Bytes of a logical number, its program number, and their protection.
pub const OUT_OF_BAND_BYTES: u32 = 16;

/// The side of an [`Io`] that recovery reads out-of-band areas by.
pub trait RecoveryIo {
    /// Reads the out-of-band areas of `block`. Returns the number of pages read.
    fn scan(&mut self, block: u32) -> u64;

    /// Appends the physical subpage of the newest copy of each logical subpage, or all ones.
    fn save_places(&self, bytes: &mut Vec<u8>);

    /// The physical subpage of the newest copy of each logical subpage, up to the last with a copy; `u32::MAX` for
    /// none.
    fn newest_places(&self) -> Vec<u32>;
}

impl RecoveryIo for Io {
    fn scan(&mut self, block: u32) -> u64 {
        let pages = self.geometry().pages_per_block;
        let first = block * pages;
        let mut scanned = 0;
        for page in 0..pages {
            let programmed = self.nand.programs(first + page) > 0;
            if programmed || (page + 1 == pages && scanned == 0) {
                self.scan_page(block, if programmed { page } else { 0 });
                scanned += 1;
            }
        }
        for parity in self.nand.parity_of(block).filter(|&ppn| self.nand.programs(ppn) > 0).collect::<Vec<u32>>() {
            self.scan_for(Cause::Metadata, parity);
            scanned += 1;
        }
        scanned
    }

    fn save_places(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.newest_places().into_iter().flat_map(u32::to_le_bytes));
    }

    fn newest_places(&self) -> Vec<u32> {
        let (mut places, per_block): (Vec<u32>, u32) = (Vec::new(), self.geometry().subpages_per_block());
        for block in (0..self.geometry().blocks()).filter(|&block| !self.nand.is_torn(block)) {
            for psn in block * per_block..(block + 1) * per_block {
                let logical = self.nand.logical(psn);
                if logical >= TORN {
                    continue;
                }
                let logical = logical as usize;
                places.resize(places.len().max(logical + 1), u32::MAX);
                let newest = places[logical];
                if newest == u32::MAX || self.nand.sequence(newest) < self.nand.sequence(psn) {
                    places[logical] = psn;
                }
            }
        }
        places
    }
}

impl Io {
    /// Reads the out-of-band area of page `ppn` in a block of the controller.
    pub(super) fn scan_own(&mut self, ppn: u32) {
        self.scan_for(Cause::Checkpoint, ppn);
    }

    pub(super) fn scan_page(&mut self, block: u32, page: u32) {
        self.scan_for(Cause::Metadata, block * self.geometry().pages_per_block + page);
    }

    fn scan_for(&mut self, cause: Cause, ppn: u32) {
        self.nand.scan(ppn);
        let (of_layer, (block, page)) = (self.nand.block_of(ppn), self.nand.place(ppn));
        let part = self.nand.part();
        let bytes = part.subpages_per_page() * OUT_OF_BAND_BYTES;
        let array = if self.nand.is_single(of_layer) { part.t_read_slc } else { part.sensing_time(page, 0) };
        let counters = &mut self.counters;
        counters.reads[cause as usize] += 1;
        counters.bus_bytes += u64::from(bytes);
        counters.sensed[cause as usize] += u64::from(part.sensed_bytes());
        counters.wanted[cause as usize] += u64::from(bytes);
        if self.plan.timed {
            let energy = self.taken();
            self.plan.operations.push(Operation {
                cause,
                page: page as u16,
                block,
                bytes,
                array: array as u32,
                energy,
                ..Operation::NOTHING
            });
        }
    }
}
