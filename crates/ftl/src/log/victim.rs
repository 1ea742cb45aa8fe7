//! Victim policies: which closed block garbage collection cleans. A policy decides; the layer acts.
//!
//! One policy is one file and one line of [`POLICIES`].

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;

use super::blocks::Blocks;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::settings::VictimPolicy;

/// A policy.
pub trait Victim: Send {
    /// The block of `plane` to clean next; `None` where there is no closed block, or cleaning any would gain nothing.
    fn choose(&mut self, blocks: &mut Blocks, plane: u32, rng: &mut Rng) -> Option<u32>;
}

/// Name in the configuration and what the policy does.
pub const POLICIES: &[(&str, &str)] = &[
    ("greedy", greedy::ABOUT),
    ("fifo", fifo::ABOUT),
    ("d-choices", d_choices::ABOUT),
    ("cost-benefit", cost_benefit::ABOUT),
];

/// The policy that the configuration names.
pub fn new(policy: VictimPolicy) -> Box<dyn Victim> {
    match policy {
        VictimPolicy::Greedy => Box::new(greedy::Greedy),
        VictimPolicy::Fifo => Box::new(fifo::Fifo),
        VictimPolicy::DChoices { choices } => Box::new(d_choices::DChoices { choices }),
        VictimPolicy::CostBenefit => Box::new(cost_benefit::CostBenefit),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use palimpsest_flash::geometry::Geometry;

    /// Blocks of one plane, closed in order, block i with `valid[i]` of 8 units valid.
    pub(crate) fn closed_blocks(valid: &[u32]) -> Blocks {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: valid.len() as u32,
            pages_per_block: 8,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let mut blocks = Blocks::new(&geometry, 8, |_| false);
        for (block, &count) in valid.iter().enumerate() {
            blocks.open_this(block as u32);
            for unit in 0..count {
                blocks.validate(block as u32, unit);
            }
            blocks.close(block as u32);
        }
        blocks.check().unwrap();
        blocks
    }

    #[test]
    fn indexes_follow_random_changes() {
        let mut blocks = closed_blocks(&[8; 16]);
        let mut rng = Rng::new(3, 0);
        for _ in 0..2000 {
            let (block, unit) = (rng.below(16) as u32, rng.below(8) as u32);
            if blocks.is_valid(block, unit) {
                blocks.invalidate(block, unit);
            }
            blocks.check().unwrap();
            let victim = blocks.fewest_valid(0).unwrap();
            if blocks.valid_count(victim) == 0 {
                blocks.take_victim(victim);
                blocks.release(victim);
                blocks.open_this(victim);
                (0..8).for_each(|unit| blocks.validate(victim, unit));
                blocks.close(victim);
            }
        }
    }
}
