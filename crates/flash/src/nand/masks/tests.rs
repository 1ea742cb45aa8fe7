//! Tests of the module `masks`.

use super::*;

#[test]
fn masks_of_all_forms_are_counted() {
    for mask in [0, 1, 0b100, 0b111, 0b101, 0b110, u64::MAX, 1 << 63, u64::MAX << 1, u64::MAX >> 1] {
        assert_eq!(count(mask), mask.count_ones(), "{mask:b}");
    }
}
