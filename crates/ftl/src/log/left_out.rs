//! Pages that a power cut left out. If one die of a superblock was behind the others, pages that it had not begun
//! precede pages that the others had programmed.
//!
//! These pages are erased, and are programmed before the next page of the block. With parity, a page may be lost
//! before: the die fails, and the parity of the stripe, whose place the page would take, is programmed.

use palimpsest_flash::nand::Nand;

/// Left-out pages of blocks that are frontiers again after a power cut.
#[derive(Default)]
pub(super) struct LeftOut {
    blocks: Vec<Pages>,
}

/// Pages of a block, last first; never empty.
struct Pages {
    block: u32,
    pages: Vec<u32>,
}

impl LeftOut {
    /// Number of left-out pages of `block`.
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

    /// Drops the pages of `block` that can no longer be programmed. Returns their number.
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

    /// After a power cut: records the left-out pages of the frontier `block`, last first.
    pub fn found(&mut self, block: u32, pages: Vec<u32>) {
        if !pages.is_empty() {
            self.blocks.push(Pages { block, pages });
        }
    }

    /// Forgets `block`, which is no longer a frontier.
    pub fn forget(&mut self, block: u32) {
        self.blocks.retain(|left| left.block != block);
    }

    /// After a power cut: forgets all blocks.
    pub fn forget_all(&mut self) {
        self.blocks.clear();
    }
}
