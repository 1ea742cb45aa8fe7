//! Greedy: the fewest valid units; among ties, the first block to reach that count. O(1) a choice.

use super::{Candidates, Policy, Victim};
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy = Policy {
    name: "greedy",
    about: "the block with the fewest valid units",
    number: None,
    build: |_| Box::new(Greedy),
};

pub(super) struct Greedy;

palimpsest_flash::state!(Greedy {});

impl Victim for Greedy {
    fn choose(&mut self, Candidates { blocks, plane, .. }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let block = blocks.fewest_valid(plane)?;
        (blocks.valid_count(block) < blocks.units_per_block()).then_some(block)
    }
}

#[cfg(test)]
mod tests;
