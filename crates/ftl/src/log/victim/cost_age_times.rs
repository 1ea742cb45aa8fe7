//! Cost-age-times: the least u / (1 - u) / age x erases, u the share of valid units (Chiang and Chang 1999, Sec. 3.2).
//!
//! Age is counted in blocks closed since, because counted runs have no clock; erases count from 1, so that new blocks
//! compare by cost and age. Reads every closed block of the plane. Ties go to the lower block number.

use super::{Candidates, Policy, Victim};
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy = Policy {
    name: "cost-age-times",
    about: "the least u / (1 - u) / age x erases, u the share of valid units: wear counts",
    number: None,
    build: |_| Box::new(CostAgeTimes),
};

pub(super) struct CostAgeTimes;

palimpsest_flash::state!(CostAgeTimes {});

impl Victim for CostAgeTimes {
    fn choose(&mut self, Candidates { blocks, plane, erases }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let (units, now) = (u128::from(blocks.units_per_block()), blocks.closings());
        // Numerator and denominator, because fractions of integers are exact on every machine.
        let cost = |block: u32| {
            let valid = u128::from(blocks.valid_count(block));
            let age = u128::from(now - blocks.closed_at(block) + 1);
            (valid * u128::from(erases(block) + 1), (units - valid) * age)
        };
        let gains = blocks.closed(plane).iter().copied().filter(|&block| u128::from(blocks.valid_count(block)) < units);
        gains.min_by(|&one, &other| {
            let ((over, under), (other_over, other_under)) = (cost(one), cost(other));
            (over * other_under).cmp(&(other_over * under)).then(one.cmp(&other))
        })
    }
}

#[cfg(test)]
mod tests;
