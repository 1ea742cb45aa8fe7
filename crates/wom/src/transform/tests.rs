//! Tests of the module `transform`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn it_is_the_sum_over_supersets_and_its_own_inverse() {
    let mut rng = Rng::new(5, 5);
    for size in [1, 2, 8] {
        let u: Vec<u64> = (0..size).map(|_| rng.next_u64()).collect();
        let mut x = u.clone();
        transform(&mut x);
        let bit = |words: &[u64], at: usize| words[at / 64] >> (at % 64) & 1;
        // Row i of G has a one in column j exactly if j is a submask of i.
        for j in 0..64 * size {
            let sum = (0..64 * size).filter(|i| i & j == j).fold(0, |sum, i| sum ^ bit(&u, i));
            assert_eq!(bit(&x, j), sum);
        }
        transform(&mut x);
        assert_eq!(x, u);
    }
}
