//! Tests of the module `dchoices`.

use super::*;

#[test]
fn sizes_are_pages() {
    let expected = Parsed::of_sectors(78_643_000, RequestKind::Read, 55_596, 16, 0);
    assert_eq!(Dchoices.parse(b"78.643000\t0\t55596\t2\t1"), expected);
    assert!(Dchoices.parse(b"78.643000 0 55596 2 1").is_err());
    assert!(Dchoices.parse(b"1.0\t0\t0\t18446744073709551615\t1").is_err());
}
