//! Two rounds on MLC: small writes fill low pages by subpage, high pages follow (what the MGA paper leaves to future
//! work).
//!
//! A low page may be programmed again until its high page is programmed (LLH paper, Sec. 3.2). So a block's low pages
//! are taken first, in ascending order; each takes small writes into its free subpages up to NOP. When all are taken
//! the block is partially used, and its high pages, which are programmed once, are left for whole pages: large writes,
//! and what cleaning packs. A high page ends what is still free in its low page. Blocks are partially used in the order
//! of their first round.
//!
//! Decided here: a small write that finds neither a low page nor a clean block to spare takes a high page, and what it
//! leaves free there is lost. Ignored: which partially-used block holds the most that is still free.

use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::part::Part;
use std::collections::VecDeque;

/// Low and high pages of a block, and what is left of partially-used blocks.
pub(super) struct Rounds {
    /// Page numbers of a block in the order in which they are taken: low pages, then high ones.
    order: Vec<u32>,
    /// Partially-used blocks of each plane, the oldest first, and how many of their pages were taken.
    partly: Vec<VecDeque<(u32, u32)>>,
}

palimpsest_flash::state!(Rounds { partly } built { order });

impl Rounds {
    /// For `planes` planes of blocks of `part`, whose pages come in pairs.
    pub fn new(part: &Part, planes: u32) -> Self {
        let pages = || 0..part.pages_per_block;
        let low = pages().filter(|&page| !part.is_high(page));
        Rounds {
            order: low.chain(pages().filter(|&page| part.is_high(page))).collect(),
            partly: vec![VecDeque::new(); planes as usize],
        }
    }

    /// Low pages of a block.
    #[inline]
    pub fn low_pages(&self) -> u32 {
        self.order.len() as u32 / 2
    }

    /// The page that is taken when `taken` have been.
    #[inline]
    pub fn page(&self, taken: u32) -> u32 {
        self.order[taken as usize]
    }

    /// Allocated pages of `block` on flash: up to the last programmed one.
    pub fn taken(&self, nand: &Nand, block: u32) -> u32 {
        let first = block * self.order.len() as u32;
        let last = self.order.iter().rposition(|&page| nand.programs(first + page) > 0);
        last.map_or(0, |last| last as u32 + 1)
    }

    /// The first round of `block` of `plane` is over.
    pub fn begin_second(&mut self, plane: u32, block: u32, taken: u32) {
        self.partly[plane as usize].push_back((block, taken));
    }

    /// Takes a high page of the oldest partially-used block of `plane`: block, page, and whether that was its last.
    #[inline]
    pub fn take_high(&mut self, plane: u32) -> Option<(u32, u32, bool)> {
        let (block, taken) = self.partly[plane as usize].front_mut()?;
        let (block, page) = (*block, self.order[*taken as usize]);
        *taken += 1;
        let last = *taken == self.order.len() as u32;
        if last {
            self.partly[plane as usize].pop_front();
        }
        Some((block, page, last))
    }

    /// `block` takes nothing any more. Returns its plane and how many pages it had left, if it was partially used.
    pub fn drop_block(&mut self, block: u32) -> Option<(usize, u32)> {
        let pages = self.order.len() as u32;
        let place = |blocks: &VecDeque<(u32, u32)>| blocks.iter().position(|&(other, _)| other == block);
        let (plane, index) =
            self.partly.iter().enumerate().find_map(|(plane, blocks)| Some((plane, place(blocks)?)))?;
        let (_, taken) = self.partly[plane].remove(index)?;
        Some((plane, pages - taken))
    }

    /// No block is partially used.
    pub fn clear(&mut self) {
        self.partly.iter_mut().for_each(VecDeque::clear);
    }

    /// Partially-used blocks of `plane`, and their pages that are left.
    pub fn left(&self, plane: usize) -> (u32, u32) {
        let pages = self.order.len() as u32;
        let blocks = &self.partly[plane];
        (blocks.len() as u32, blocks.iter().map(|(_, taken)| pages - taken).sum())
    }
}
