//! Tests of the module `fiu`.

use super::*;
use crate::request::RequestKind;

#[test]
fn process_names_may_hold_blanks() {
    let expected = Parsed::of_sectors(467_651, RequestKind::Write, 644_661_632, 8, 0);
    for process in ["kjournald", "my own process", "W 6 0"] {
        let line = format!("467651 2522 {process} 644661632 8 W 6 0 98b9cb");
        assert_eq!(Fiu::default().parse(line.as_bytes()), expected, "{line}");
    }
    assert!(Fiu::default().parse(b"467651 2522 kjournald 644661632 8 W 6 0").is_err());
}

#[test]
fn tar_noise_is_only_tolerated_in_a_tar() {
    let mut tar = Fiu { in_tar: true };
    assert!(matches!(tar.parse(b"x ustar\0\0\x00467651 2522 k 8 8 W 6 0 98b9cb"), Ok(Parsed::Record(_))));
    assert_eq!(tar.parse(b"\0\0\0"), Ok(Parsed::Skip));
    assert!(Fiu::default().parse(b"\0\0\x00467651 2522 k 8 8 W 6 0 98b9cb").is_err());
}
