//! Tests of the module `fields`.

use super::*;

#[test]
fn numbers_and_their_faults() {
    assert_eq!(number(b"0", "n"), Ok(0));
    assert_eq!(number(b" 42 ", "n"), Ok(42));
    assert_eq!(number(b"18446744073709551615", "n"), Ok(u64::MAX));
    let what = |field: &[u8]| number(field, "n").unwrap_err().what;
    assert!(what(b"18446744073709551616").contains("below 2^64"));
    assert!(what(b"-1").contains("not negative"));
    assert!(what(b"").contains("empty"));
    assert!(what(b"1.5").contains("whole number"));
    assert!(what(b"\xff\xfe").contains("\\xff"));
}

#[test]
fn decimals_are_exact() {
    assert_eq!(decimal(b"1362509.099609", "t", 6), Ok(1_362_509_099_609));
    assert_eq!(decimal(b"0.000033469", "t", 9), Ok(33_469));
    assert_eq!(decimal(b"7", "t", 9), Ok(7_000_000_000));
    assert_eq!(decimal(b"1.", "t", 3), Ok(1000));
    assert_eq!(decimal(b"0.0019999", "t", 3), Ok(1));
    for wrong in [&b".5"[..], b"1.2.3", b"-0.5", b"1e9", b".", b"", b"99999999999999.0"] {
        assert!(decimal(wrong, "t", 9).is_err(), "{wrong:?}");
    }
}

#[test]
fn columns_by_bytes_and_by_blanks() {
    let mut fields = Fields::separated(b"a,,b", b',');
    let mut next = || fields.text("c").map(<[u8]>::to_vec);
    assert_eq!((next(), next(), next()), (Ok(b"a".to_vec()), Ok(vec![]), Ok(b"b".to_vec())));
    assert!(next().is_err());
    let mut fields = Fields::blank(b"  1\t 2  ");
    assert_eq!((fields.number("a"), fields.number("b")), (Ok(1), Ok(2)));
    assert_eq!(fields.end("2 columns"), Ok(()));
    assert!(fields.text("c").is_err());
}
