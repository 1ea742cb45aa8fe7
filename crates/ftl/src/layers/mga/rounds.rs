//! Two rounds on MLC: small writes fill low pages by subpage, then high pages follow (future work in the MGA paper).
//!
//! A low page may be programmed again until the high page is programmed (LLH paper, Sec. 3.2). So a block's low pages
//! are taken first, in ascending order; each takes small writes into free subpages up to NOP. After the last low page
//! the block is partially used. The high pages, which are programmed once, remain for whole pages: large writes, and
//! pages that cleaning packs. A high page ends the free subpages of the low page. Blocks are partially used in the
//! order of their first round.
//!
//! Decided here: a small write that finds neither a low page nor a spare clean block takes a high page, and the free
//! subpages there are lost. Ignored: the number of free subpages when choosing a partially-used block.

use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::part::Part;
use std::collections::VecDeque;

/// Low and high pages of a block, and the remaining pages of partially-used blocks.
pub(super) struct Rounds {
    /// Page numbers of a block in the order of use: low pages, then high ones.
    order: Vec<u32>,
    /// Partially-used blocks of each plane, oldest first, and the number of pages taken.
    partly: Vec<VecDeque<(u32, u32)>>,
    /// Their remaining pages in each plane.
    left: Vec<u32>,
}

palimpsest_flash::state!(Rounds { partly, left } built { order });

impl Rounds {
    /// No block partially used, for `planes` planes of blocks of `part`, whose pages must come in pairs.
    pub fn new(part: &Part, planes: u32) -> Self {
        let pages = || 0..part.pages_per_block;
        let low = pages().filter(|&page| !part.is_high(page));
        Rounds {
            order: low.chain(pages().filter(|&page| part.is_high(page))).collect(),
            partly: vec![VecDeque::new(); planes as usize],
            left: vec![0; planes as usize],
        }
    }

    /// Low pages of a block.
    #[inline]
    pub fn low_pages(&self) -> u32 {
        self.order.len() as u32 / 2
    }

    /// The next page after `taken` pages.
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

    /// Records the end of the first round of `block` of `plane`.
    pub fn begin_second(&mut self, plane: u32, block: u32, taken: u32) {
        self.left[plane as usize] += self.order.len() as u32 - taken;
        self.partly[plane as usize].push_back((block, taken));
    }

    /// Takes a high page of the oldest partially-used block of `plane`: block, page, and true if that page was the
    /// last.
    #[inline]
    pub fn take_high(&mut self, plane: u32) -> Option<(u32, u32, bool)> {
        let (block, taken) = self.partly[plane as usize].front_mut()?;
        let (block, page) = (*block, self.order[*taken as usize]);
        *taken += 1;
        let last = *taken == self.order.len() as u32;
        self.left[plane as usize] -= 1;
        if last {
            self.partly[plane as usize].pop_front();
        }
        Some((block, page, last))
    }

    /// Drops `block` of `plane`, if partially used.
    pub fn drop_block(&mut self, plane: u32, block: u32) {
        let (pages, left) = (self.order.len() as u32, &mut self.left[plane as usize]);
        self.partly[plane as usize].retain(|&(other, taken)| {
            *left -= if other == block { pages - taken } else { 0 };
            other != block
        });
    }

    /// Drops and returns the partially-used blocks of `plane`.
    pub fn lose_plane(&mut self, plane: u32) -> Vec<u32> {
        self.left[plane as usize] = 0;
        self.partly[plane as usize].drain(..).map(|(block, _)| block).collect()
    }

    /// Forgets all partially-used blocks.
    pub fn clear(&mut self) {
        self.partly.iter_mut().for_each(VecDeque::clear);
        self.left.fill(0);
    }

    /// Partially-used blocks of all planes.
    pub fn blocks(&self) -> u32 {
        self.partly.iter().map(|blocks| blocks.len() as u32).sum()
    }

    /// Remaining pages of partially-used blocks of `plane`.
    #[inline]
    pub fn left(&self, plane: u32) -> u32 {
        self.left[plane as usize]
    }

    /// The same of all planes.
    pub fn all_left(&self) -> u32 {
        self.left.iter().sum()
    }
}
