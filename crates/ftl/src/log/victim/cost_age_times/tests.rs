//! Tests of the module `cost_age_times`.

use super::*;
use crate::log::victim::tests::closed_blocks;

#[test]
fn worn_blocks_are_spared() {
    let choose = |valid: &[u32], erases: &[u32]| {
        let (mut blocks, mut rng) = (closed_blocks(valid), Rng::new(0, 0));
        let erases = |block: u32| erases[block as usize];
        CostAgeTimes.choose(Candidates { blocks: &mut blocks, plane: 0, erases: &erases }, &mut rng)
    };
    // Ages 2 and 1: costs 1/2 and 1, with erases 1/2 x 4 and 1 x 1.
    assert_eq!(choose(&[4, 4], &[0, 0]), Some(0));
    assert_eq!(choose(&[4, 4], &[3, 0]), Some(1));
    assert_eq!(choose(&[8, 8], &[0, 0]), None);
    assert_eq!(choose(&[8, 0], &[0, 9]), Some(1), "an empty block costs nothing");
}
