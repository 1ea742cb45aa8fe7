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
mod tests {
    use super::*;
    use crate::log::victim::tests::{choose, closed_blocks};

    #[test]
    fn fewest_valid_wins_and_full_blocks_are_left_alone() {
        let mut rng = Rng::new(0, 0);
        assert_eq!(choose(&mut Greedy, &mut closed_blocks(&[5, 3, 8, 3]), &mut rng), Some(1));
        assert_eq!(choose(&mut Greedy, &mut closed_blocks(&[8, 8]), &mut rng), None);
    }
}
