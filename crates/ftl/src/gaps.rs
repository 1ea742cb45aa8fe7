//! Pages without data that a block map must program, because later pages depend on them: a high page must follow the
//! low page of its pair, and a stripe has parity once each page is programmed.
//!
//! Ignored: pages that a power cut skipped on parts without pairs. They stay erased, and parity covers the others.

use palimpsest_flash::nand::Nand;

/// False if no page of `block` before page `page` must be padded.
#[inline]
pub fn may_have_gaps(nand: &Nand, block: u32, page: u32) -> bool {
    nand.part().order.pairs() || nand.has_parity() && nand.next_page(block) < page
}

/// The pages of `block` to pad before page `page`, in order: pages of pairs that a power cut left out on one die of a
/// superblock, then the pages from the next one on.
pub fn gaps(nand: &Nand, block: u32, page: u32) -> impl Iterator<Item = u32> + use<> {
    let pairs = nand.part().order.pairs();
    let left_out = if pairs { nand.left_out(block) } else { Vec::new() };
    let next = if pairs || nand.has_parity() { nand.next_page(block) } else { page };
    left_out.into_iter().rev().chain(next..page)
}
