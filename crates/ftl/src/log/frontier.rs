//! A frontier: an open block and the next page there. Ignored: how the block was chosen.

use super::blocks::NO_BLOCK;

/// An open block, and its next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frontier {
    pub block: u32,
    pub next_page: u32,
}

palimpsest_flash::state!(Frontier { block, next_page });

/// No open block.
pub(super) const CLOSED: Frontier = Frontier { block: NO_BLOCK, next_page: 0 };
