//! Tests of the module `cost_benefit`.

use super::*;
use crate::log::victim::tests::{choose, closed_blocks};

#[test]
fn age_outweighs_a_few_valid_units() {
    let mut rng = Rng::new(0, 0);
    // Ages 4, 3, 2, 1: benefits 4*4/4, 3*5/3, 2*4/4, 1*5/3.
    assert_eq!(choose(&mut CostBenefit, &mut closed_blocks(&[4, 3, 4, 3]), &mut rng), Some(1));
    assert_eq!(choose(&mut CostBenefit, &mut closed_blocks(&[4, 4, 4, 3]), &mut rng), Some(0));
    assert_eq!(choose(&mut CostBenefit, &mut closed_blocks(&[8, 8]), &mut rng), None);
}
