//! Tests of the module `past_caches`.

use super::*;

#[test]
fn a_copy_has_the_same_bytes_at_any_place() {
    let from: Vec<u8> = (0..5000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    for begin in [0, 1, 15, 16, 63] {
        for length in [0, 1, 512, 2047, 2048, 2049, 4096, 4900] {
            let mut to = vec![0xee; 5000];
            copy(&mut to[begin..begin + length], &from[3..3 + length]);
            assert_eq!(to[begin..begin + length], from[3..3 + length], "{length} bytes at {begin}");
            assert!(to[..begin].iter().chain(&to[begin + length..]).all(|&byte| byte == 0xee), "and no other");
        }
    }
}
