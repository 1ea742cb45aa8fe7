//! Tests of the module `fifo`.

use super::*;
use crate::log::victim::tests::{choose, closed_blocks};

#[test]
fn first_closed_wins_even_when_full() {
    let mut rng = Rng::new(0, 0);
    assert_eq!(choose(&mut Fifo, &mut closed_blocks(&[8, 3, 2]), &mut rng), Some(0));
    assert_eq!(choose(&mut Fifo, &mut closed_blocks(&[8, 8]), &mut rng), None);
}
