//! The block with the fewest valid pages among the candidates for cleaning, found without a scan: a tournament tree, in
//! which a changed block updates the path to the root.

/// No candidate.
const NONE: u64 = u64::MAX;

/// The blocks of a channel.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// Valid pages in the high half, block in the low half. Element 1 is the least of all, element n the lesser of 2n
    /// and 2n + 1; the second half are the blocks.
    least: Vec<u64>,
}

palimpsest_flash::state!(Candidates { least });

impl Candidates {
    pub fn new(blocks: u32) -> Self {
        Candidates { least: vec![NONE; 2 * blocks.next_power_of_two() as usize] }
    }

    /// Sets the `valid` pages of `block`; `None` removes the candidate.
    pub fn set(&mut self, block: u32, valid: Option<u32>) {
        let mut place = self.least.len() / 2 + block as usize;
        self.least[place] = valid.map_or(NONE, |valid| u64::from(valid) << 32 | u64::from(block));
        while place > 1 {
            place /= 2;
            let winner = self.least[2 * place].min(self.least[2 * place + 1]);
            if std::mem::replace(&mut self.least[place], winner) == winner {
                break;
            }
        }
    }

    /// The fewest valid pages, and the first block with as few.
    pub fn fewest(&self) -> Option<(u32, u32)> {
        let least = self.least[1];
        (least != NONE).then_some(((least >> 32) as u32, least as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;

    #[test]
    fn agrees_with_a_scan_of_all_blocks() {
        for blocks in [1, 2, 5, 64, 100] {
            let mut rng = Rng::new(1, u64::from(blocks));
            let (mut candidates, mut all) = (Candidates::new(blocks), vec![None; blocks as usize]);
            for _ in 0..2000 {
                let block = rng.below(u64::from(blocks)) as u32;
                let valid = (rng.below(3) > 0).then(|| rng.below(7) as u32);
                candidates.set(block, valid);
                all[block as usize] = valid;
                let found = (0..blocks).filter_map(|block| Some((all[block as usize]?, block))).min();
                assert_eq!(candidates.fewest(), found);
            }
        }
    }
}
