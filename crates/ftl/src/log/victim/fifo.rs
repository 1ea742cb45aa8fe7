//! FIFO: the first closed block, however many units are valid. O(1) a choice.

use super::{Candidates, Policy, Victim};
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy =
    Policy { name: "fifo", about: "the block that was closed first", number: None, build: |_| Box::new(Fifo) };

pub(super) struct Fifo;

palimpsest_flash::state!(Fifo {});

impl Victim for Fifo {
    fn choose(&mut self, Candidates { blocks, plane, .. }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        // If no block has an invalid unit, cleaning would never end.
        let fewest = blocks.fewest_valid(plane)?;
        (blocks.valid_count(fewest) < blocks.units_per_block()).then(|| blocks.oldest(plane)).flatten()
    }

    fn may_choose_full(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
