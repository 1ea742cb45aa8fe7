//! Tests of the module `scatter`.

use super::*;

#[test]
fn every_place_is_taken_once() {
    for n in (1..70).chain([1000, 4096, 4097, 65_536]) {
        for key in 0..3 {
            let scatter = Scatter::new(n, key);
            let mut taken = vec![false; n as usize];
            for rank in 0..n {
                assert!(!std::mem::replace(&mut taken[scatter.place(rank) as usize], true), "{n} {key} {rank}");
            }
        }
    }
    assert!(Scatter::new(u64::MAX, 1).place(5) < u64::MAX);
}

#[test]
fn neighbours_part_and_keys_matter() {
    let n = 1 << 20;
    let scatter = Scatter::new(n, 3);
    let near = (0..1000).filter(|&rank| scatter.place(rank).abs_diff(scatter.place(rank + 1)) < n / 1000);
    assert!(near.count() < 20);
    assert_ne!(scatter.place(0), Scatter::new(n, 4).place(0));
}
