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
mod tests {
    use super::super::new;
    use crate::log::victim::tests::{choose, closed_blocks};
    use palimpsest_flash::rng::Rng;

    #[test]
    fn only_the_window_counts() {
        let valid = [6, 5, 5, 2];
        let choice = |window: &str| choose(&mut *new(window), &mut closed_blocks(&valid), &mut Rng::new(0, 0));
        assert_eq!(["windowed:1", "windowed:2", "windowed:3", "windowed"].map(choice), [0, 1, 1, 3].map(Some));
        assert_eq!(choice("windowed:1"), choice("fifo"));
        assert_eq!(choice("windowed:4"), choice("greedy"));
    }

    #[test]
    fn a_window_of_full_blocks_advances_and_skips_full_planes() {
        let mut rng = Rng::new(0, 0);
        assert_eq!(choose(&mut *new("windowed:2"), &mut closed_blocks(&[8, 8, 1]), &mut rng), Some(0));
        assert_eq!(choose(&mut *new("windowed:2"), &mut closed_blocks(&[8, 8]), &mut rng), None);
    }
}
