//! Tests of the module `spc`.

use super::*;
use crate::request::RequestKind;

#[test]
fn sizes_round_up_and_blanks_are_legal() {
    let parsed = Spc.parse(b"1, 240840 ,3073,w, 0.026214").unwrap();
    assert_eq!(Ok(parsed), Parsed::of_sectors(26_214_000, RequestKind::Write, 240_840, 7, 1));
    assert!(Spc.parse(b"0,1,0,r,0.0").unwrap_err().what.contains("size"));
    assert!(Spc.parse(b"0,1,512,r").unwrap_err().what.contains("timestamp"));
}
