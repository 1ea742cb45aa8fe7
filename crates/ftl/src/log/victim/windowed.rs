//! Windowed greedy: the fewest valid units among the W first closed blocks of the plane (Hu, Eleftheriou, Haas, Iliadis
//! and Pletka, SYSTOR 2009). W = 1 is FIFO; a W of all closed blocks is greedy, with ties to the older block.

use super::{Candidates, Number, Policy, Victim};
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy = Policy {
    name: "windowed",
    about: "the fewest valid units among the W blocks that were closed first (windowed:W, default 32)",
    number: Some(Number { letter: "W", default: 32 }),
    build: |window| Box::new(Windowed { window }),
};

struct Windowed {
    window: u32,
}

palimpsest_flash::state!(Windowed {} built { window });

impl Victim for Windowed {
    fn choose(&mut self, Candidates { blocks, plane, .. }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        // If no block has an invalid unit, cleaning would never end.
        let fewest = blocks.fewest_valid(plane)?;
        if blocks.valid_count(fewest) == blocks.units_per_block() {
            return None;
        }
        blocks.closed_in_order(plane).take(self.window as usize).min_by_key(|&block| blocks.valid_count(block))
    }

    fn may_choose_full(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
