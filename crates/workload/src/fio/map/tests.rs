//! Tests of the module `map`.

use palimpsest_flash::rng::Rng;

use super::*;

#[test]
fn it_agrees_with_a_list() {
    let mut rng = Rng::new(3, 1);
    for n in [0, 1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 4160, 300_000] {
        let mut map = BlockMap::new(n);
        let mut used = vec![false; n as usize];
        for pass in 0..2 {
            let mut left = n;
            let tries = if n > 5000 { 3000 } else { 4 * n + 2 };
            for _ in 0..tries {
                let (block, most) = (rng.below(n + 3), 1 + rng.below(70));
                assert_eq!(map.used(block), used.get(block as usize) == Some(&true));
                let later = (block + 1..n).chain(0..n).find(|&at| !used[at as usize]);
                assert_eq!(map.next_free(block), later, "{n} {block}");
                let run = (block..n.min(block + most)).take_while(|&at| !used[at as usize]).count() as u64;
                assert_eq!(map.take(block, most), run, "{n} {block} {most}");
                (block..block + run).for_each(|at| used[at as usize] = true);
                left -= run;
            }
            while let Some(block) = map.next_free(n / 2) {
                assert_eq!(map.take(block, 1), 1);
                left -= 1;
            }
            assert_eq!(left, 0, "{n}, pass {pass}");
            map.clear();
            used.fill(false);
        }
    }
}

#[test]
fn memory_is_a_bit_a_block() {
    let words: usize = BlockMap::new(1 << 26).levels.iter().map(Vec::len).sum();
    assert!(words * 8 * 8 <= (1 << 26) / 63 * 64 + 64, "{words}");
}
