//! Tests of the module `slabs`.

use super::*;
use std::panic::AssertUnwindSafe;

#[test]
fn consecutive_pages_stay_together_and_reuse_freed_memory() {
    let mut slabs = Slabs::new(512);
    let mut filled = Slab::new(8 * 512);
    let mut firsts = Vec::new();
    for byte in 1..=3 {
        filled.fill(byte);
        firsts.push(slabs.exchange(&mut filled).expect("nothing is free"));
        assert_eq!(filled.len(), 8 * 512);
    }
    assert_eq!((slabs.used(), slabs.places), (24, 24));
    assert!((0..8).all(|index| slabs.get(firsts[1] + index) == [2; 512]));
    (0..8).for_each(|index| slabs.give(firsts[1] + index));
    filled.fill(4);
    assert_eq!(slabs.exchange(&mut filled), Some(firsts[1]), "that of the second");
    assert_eq!((&filled[..512], slabs.get(firsts[1]), slabs.places), (&[2; 512][..], &[4; 512][..], 24));
    slabs.give(firsts[0] + 3);
    slabs.give(firsts[0] + 5);
    assert_eq!(slabs.exchange(&mut filled), None, "more than one of 64 is free");
    assert_eq!((slabs.take(), slabs.take()), (firsts[0] + 3, firsts[0] + 5));
    assert_eq!(slabs.exchange(&mut Slab::new(100)), None);
    assert_eq!(slabs.exchange(&mut Slab::new(65 * 512)), None);
}

#[test]
fn a_slab_of_which_a_part_was_taken_again_is_not_whole() {
    let mut slabs = Slabs::new(512);
    let all: Vec<u32> = (0..64).map(|_| slabs.take()).collect();
    assert_eq!(all, (0..64).collect::<Vec<u32>>());
    for _ in 0..2 {
        all.iter().for_each(|&place| slabs.give(place));
        assert_eq!((slabs.take(), slabs.take_whole(64)), (0, None));
        slabs.give(0);
        assert_eq!(slabs.take_whole(64), Some(0));
        assert_eq!(all, (0..64).map(|_| slabs.take()).collect::<Vec<u32>>());
    }
}

#[test]
fn what_is_lent_stays_until_it_is_given_back() {
    let mut slabs = Slabs::new(512);
    let mut filled = Slab::new(8 * 512);
    filled.fill(1);
    let first = slabs.exchange(&mut filled).expect("nothing is free");
    let mut loans = Vec::new();
    slabs.lend(first + 2, 0..512, &mut loans);
    slabs.lend(first + 3, 0..100, &mut loans);
    slabs.lend(first + 5, 4..512, &mut loans);
    assert_eq!(loans.iter().map(|loan| loan.len()).collect::<Vec<_>>(), [612, 508], "two are in a row");
    assert!(slabs.is_lent(first) && std::panic::catch_unwind(AssertUnwindSafe(|| slabs.get_mut(first)[0])).is_err());
    (0..8).for_each(|index| slabs.give(first + index));
    let other = slabs.take();
    assert!(!slabs.is_lent(other) && other / 64 != first / 64, "a place of another slab");
    slabs.get_mut(other).fill(2);
    assert_eq!(slabs.take_whole(8), None, "it is free, but lent");
    assert!(loans.iter().all(|loan| loan.iter().all(|&byte| byte == 1)));
    loans.pop();
    assert_eq!(slabs.take_whole(8), None, "one is left");
    loans.clear();
    assert_eq!((slabs.is_lent(first), slabs.take_whole(8)), (false, Some(first / 64)));
}

#[test]
fn large_slabs_begin_at_pages() {
    for bytes in [512, 4096, LARGE, 2 * LARGE + 512] {
        let mut slab = Slab::new(bytes);
        assert_eq!(slab.len(), bytes);
        assert!(bytes < LARGE || (slab.as_ptr() as usize).is_multiple_of(ALIGNED));
        slab[bytes - 1] = 1;
        let (memory, begin) = slab.lend();
        assert_eq!(memory[begin + bytes - 1], 1);
        slab.take_back(memory);
        assert_eq!(slab[bytes - 1], 1);
    }
}
