//! Cost-benefit: the largest age x (1 - u) / 2u, u the share of valid units (Rosenblum and Ousterhout 1992, Kawaguchi
//! 1995).
//!
//! Age is counted in blocks closed since, because counted runs have no clock. Reads every closed block of the plane.
//! Ties go to the lower block number.

use super::{Candidates, Policy, Victim};
use palimpsest_flash::rng::Rng;

pub(super) const POLICY: Policy = Policy {
    name: "cost-benefit",
    about: "the largest age x (1 - u) / 2u, u the share of valid units",
    number: None,
    build: |_| Box::new(CostBenefit),
};

pub(super) struct CostBenefit;

palimpsest_flash::state!(CostBenefit {});

impl Victim for CostBenefit {
    fn choose(&mut self, Candidates { blocks, plane, .. }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let (units, now) = (u128::from(blocks.units_per_block()), blocks.closings());
        // age (units - valid) / valid, compared as fractions, because these are exact on every machine.
        let benefit = |block: u32| {
            let valid = u128::from(blocks.valid_count(block));
            let age = u128::from(now - blocks.closed_at(block) + 1);
            (age * (units - valid), valid)
        };
        let mut best: Option<(u32, (u128, u128))> = None;
        for &block in blocks.closed(plane) {
            let (gain, cost) = benefit(block);
            if gain == 0 {
                continue;
            }
            let better = best.is_none_or(|(chosen, (best_gain, best_cost))| {
                let (left, right) = (gain * best_cost, best_gain * cost);
                left > right || (left == right && (gain, chosen) > (best_gain, block))
            });
            if better {
                best = Some((block, (gain, cost)));
            }
        }
        best.map(|(block, _)| block)
    }
}

#[cfg(test)]
mod tests;
