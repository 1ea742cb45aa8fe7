//! Tests of the module `windowed`.

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
