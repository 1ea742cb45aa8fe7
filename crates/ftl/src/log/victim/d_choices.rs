//! d choices: the fewest valid units among d closed blocks drawn at random with replacement (Van Houdt, "A mean field
//! model for a class of garbage collection algorithms in flash-based solid state drives", SIGMETRICS 2013).
//!
//! The draw decides even if all d blocks are full: such a victim is copied without gain. With d = 1, the victim is as
//! full as the mean block, so write amplification is 1/(1 - rho).

use super::{Candidates, Number, Policy, Victim};
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

palimpsest_flash::state!(DChoices {} built { choices });

impl Victim for DChoices {
    fn choose(&mut self, Candidates { blocks, plane, .. }: Candidates<'_>, rng: &mut Rng) -> Option<u32> {
        // If no block has an invalid unit, cleaning would never end.
        let fewest = blocks.fewest_valid(plane)?;
        if blocks.valid_count(fewest) == blocks.units_per_block() {
            return None;
        }
        let closed = blocks.closed(plane);
        let drawn = (0..self.choices).map(|_| closed[rng.below(closed.len() as u64) as usize]);
        drawn.min_by_key(|&block| blocks.valid_count(block))
    }

    fn may_choose_full(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
