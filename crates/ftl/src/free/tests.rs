//! Tests of the module `free`.

use super::*;
use palimpsest_flash::rng::Rng;

/// Compares with a list in freeing order that is searched.
#[test]
fn blocks_come_in_the_order_of_a_searched_list() {
    let mut rng = Rng::new(3, 5);
    for level in [false, true] {
        let mut wear = [0; 40];
        let (mut free, mut list) = (FreeBlocks::none_of(100..140), Vec::new());
        for step in 0..20_000 {
            let block = 100 + rng.below(40) as u32;
            match rng.below(6) {
                0..3 if !list.contains(&block) => {
                    free.push(block);
                    list.push(block);
                }
                // A block may wear while free.
                3 => wear[(block - 100) as usize] += rng.below(3) as u32,
                4 => {
                    let position = list.iter().position(|&other| other == block);
                    assert_eq!(free.remove(block), position.is_some(), "step {step}");
                    position.map(|position| list.remove(position));
                }
                _ => {
                    let worn = |block: u32| if level { wear[(block - 100) as usize] } else { 0 };
                    let least = (0..list.len()).min_by_key(|&place| worn(list[place]));
                    assert_eq!(free.most_worn(worn), list.iter().copied().max_by_key(|&block| worn(block)));
                    assert_eq!(free.pop(worn), least.map(|least| list.remove(least)), "step {step}");
                }
            }
            assert_eq!((free.in_order(), free.len()), (list.clone(), list.len()), "step {step}");
        }
    }
}
