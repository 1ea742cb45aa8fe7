//! Tests of the module `geometry`.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn division_is_exact(dividend: u32, value in 1u32..) {
        prop_assert_eq!(Divisor::new(value).split(dividend), (dividend / value, dividend % value));
    }

    #[test]
    fn division_of_wide_numbers_is_exact(dividend: u64, value in 1u32..) {
        for dividend in [dividend, dividend >> 32, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
            prop_assert_eq!(Divisor::new(value).divide_wide(dividend), dividend / u64::from(value));
        }
    }

    #[test]
    fn division_by_small_numbers_is_exact(dividend: u32, value in 1u32..2000) {
        for dividend in [dividend, u32::MAX, u32::MAX - dividend % value, dividend / value * value] {
            prop_assert_eq!(Divisor::new(value).split(dividend), (dividend / value, dividend % value));
        }
    }
}
