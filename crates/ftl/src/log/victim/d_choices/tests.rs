//! Tests of the module `d_choices`.

use super::*;
use crate::log::victim::tests::{choose, closed_blocks};

#[test]
fn many_choices_are_greedy_and_one_is_random() {
    let mut blocks = closed_blocks(&[5, 3, 7, 6]);
    let mut rng = Rng::new(0, 0);
    assert_eq!(choose(&mut DChoices { choices: 100 }, &mut blocks, &mut rng), Some(1));
    let mut chosen: Vec<_> = (0..100).map(|_| choose(&mut DChoices { choices: 1 }, &mut blocks, &mut rng)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [Some(0), Some(1), Some(2), Some(3)]);
}

#[test]
fn full_blocks_are_drawn_like_others_unless_all_are_full() {
    let mut rng = Rng::new(0, 0);
    let mut blocks = closed_blocks(&[8, 8, 8, 1]);
    let full = (0..1000).filter(|_| choose(&mut DChoices { choices: 1 }, &mut blocks, &mut rng) != Some(3)).count();
    assert!((700..800).contains(&full), "{full} of 1000 draws, where 750 are expected");
    assert_eq!(choose(&mut DChoices { choices: 4 }, &mut closed_blocks(&[8, 8]), &mut rng), None);
}
