//! Tests of the module `tencent`.

use super::*;

#[test]
fn one_is_a_write() {
    let parsed = Tencent.parse(b"1538323200,4247200,128,1,1058").unwrap();
    let time = 1_538_323_200_000_000_000;
    assert_eq!(Ok(parsed), Parsed::of_sectors(time, RequestKind::Write, 4_247_200, 128, 1058));
    assert!(Tencent.parse(b"1,2,8,2,0").unwrap_err().what.contains("op"));
    assert!(Tencent.parse(b"1,2,8,1").unwrap_err().what.contains("volume"));
}
