//! Pages that a power cut left out: one die of a superblock was behind the others when the power failed, so that pages which it had not begun lie
//! before pages that the others had programmed. They are erased, and are programmed before the next page of the block. Where stripes have parity, one
//! may be lost before: its die fails, and the parity of its stripe, whose place it would take, is programmed.

use palimpsest_flash::nand::Nand;

/// What was left out of blocks that are frontiers again after a power cut.
#[derive(Default)]
pub(super) struct LeftOut {
    blocks: Vec<Pages>,
}

/// Pages of a block, the last first; there are some.
struct Pages {
    block: u32,
    pages: Vec<u32>,
}

impl LeftOut {
    /// Pages of `block`.
    #[inline]
    pub fn count(&self, block: u32) -> u32 {
        if self.blocks.is_empty() { 0 } else { self.find(block).map_or(0, |at| self.blocks[at].pages.len() as u32) }
    }

    /// Takes the first page of `block`.
    #[inline]
    pub fn take(&mut self, block: u32) -> Option<u32> {
        if self.blocks.is_empty() { None } else { self.take_first(block) }
    }

    #[cold]
    fn take_first(&mut self, block: u32) -> Option<u32> {
        let at = self.find(block)?;
        let first = self.blocks[at].pages.pop();
        if self.blocks[at].pages.is_empty() {
            self.blocks.swap_remove(at);
        }
        first
    }

    /// Drops the pages of `block` that cannot be programmed any more. Returns how many.
    #[inline]
    pub fn drop_lost(&mut self, nand: &Nand, block: u32) -> u32 {
        if self.blocks.is_empty() || !nand.has_parity() { 0 } else { self.drop_lost_of(nand, block) }
    }

    #[cold]
    fn drop_lost_of(&mut self, nand: &Nand, block: u32) -> u32 {
        let Some(at) = self.find(block) else { return 0 };
        let (still, pages) = (nand.left_out(block), &mut self.blocks[at].pages);
        let before = pages.len();
        pages.retain(|page| still.contains(page));
        let lost = before - pages.len();
        if pages.is_empty() {
            self.blocks.swap_remove(at);
        }
        lost as u32
    }

    #[cold]
    fn find(&self, block: u32) -> Option<usize> {
        self.blocks.iter().position(|left| left.block == block)
    }

    /// After a power cut: of `block`, which is a frontier, `pages` were left out, the last first.
    pub fn found(&mut self, block: u32, pages: Vec<u32>) {
        if !pages.is_empty() {
            self.blocks.push(Pages { block, pages });
        }
    }

    /// `block` is no frontier any more.
    pub fn forget(&mut self, block: u32) {
        self.blocks.retain(|left| left.block != block);
    }

    /// The power is back: nothing is known yet.
    pub fn forget_all(&mut self) {
        self.blocks.clear();
    }
}
