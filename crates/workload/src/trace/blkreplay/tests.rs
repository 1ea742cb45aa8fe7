//! Tests of the module `blkreplay`.

use super::*;

#[test]
fn blanks_around_semicolons() {
    let line = b"      0.449518165 ;     37766917 ;   14 ; W ; 0.0 ; 0.0";
    let expected = Parsed::of_sectors(449_518_165, RequestKind::Write, 37_766_917, 14, 0);
    assert_eq!(Blkreplay.parse(line), expected);
    assert!(Blkreplay.parse(b"0.4 ; 3 ; 8 ; RA ; 0.0 ; 0.0").is_ok());
    assert!(Blkreplay.parse(b"0.4 ; 3 ; 8 ; Q ; 0.0 ; 0.0").is_err());
    assert!(Blkreplay.parse(b"0.4 ; 3 ; 8 ; R ; 0.0").unwrap_err().what.contains("replay_duration"));
    assert!(!Blkreplay.is_header(b"0,4 ; 3 ; 8 ; R ; 0.0 ; 0.0") && !Blkreplay.is_header(b"x ; 3 ; 8 ; R ; 0.0 ; 0.0"));
    assert!(Blkreplay.is_header(b"2013, by somebody") && Blkreplay.is_header(b"start ; sector; length ; op"));
    assert!(Blkreplay.parse(b"start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0").is_err());
}
