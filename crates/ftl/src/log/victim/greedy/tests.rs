//! Tests of the module `greedy`.

use super::*;
use crate::log::victim::tests::{choose, closed_blocks};

#[test]
fn fewest_valid_wins_and_full_blocks_are_left_alone() {
    let mut rng = Rng::new(0, 0);
    assert_eq!(choose(&mut Greedy, &mut closed_blocks(&[5, 3, 8, 3]), &mut rng), Some(1));
    assert_eq!(choose(&mut Greedy, &mut closed_blocks(&[8, 8]), &mut rng), None);
}
