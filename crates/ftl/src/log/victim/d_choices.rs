//! d choices: the fewest valid units among d closed blocks drawn at random with replacement (Van Houdt 2013).

use super::{Number, Policy, Victim};
use crate::log::blocks::Blocks;
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy = Policy {
    name: "d-choices",
    about: "the fewest valid units among d blocks drawn at random (d-choices:D, default 10)",
    number: Some(Number { letter: "K", default: 10 }),
    build: |choices| Box::new(DChoices { choices }),
};

pub(super) struct DChoices {
    pub(super) choices: u32,
}

impl Victim for DChoices {
    fn choose(&mut self, blocks: &mut Blocks, plane: u32, rng: &mut Rng) -> Option<u32> {
        let fewest = blocks.fewest_valid(plane)?;
        if blocks.valid_count(fewest) == blocks.units_per_block() {
            return None;
        }
        let closed = blocks.closed(plane);
        let drawn = (0..self.choices).map(|_| closed[rng.below(closed.len() as u64) as usize]);
        let best = drawn.min_by_key(|&block| blocks.valid_count(block))?;
        // A draw of full blocks only would gain nothing: clean the best block instead.
        Some(if blocks.valid_count(best) < blocks.units_per_block() { best } else { fewest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::victim::tests::closed_blocks;

    #[test]
    fn many_choices_are_greedy_and_one_is_random() {
        let mut blocks = closed_blocks(&[5, 3, 7, 6]);
        let mut rng = Rng::new(0, 0);
        assert_eq!(DChoices { choices: 100 }.choose(&mut blocks, 0, &mut rng), Some(1));
        let mut chosen: Vec<_> = (0..100).map(|_| DChoices { choices: 1 }.choose(&mut blocks, 0, &mut rng)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen, [Some(0), Some(1), Some(2), Some(3)]);
    }
}
