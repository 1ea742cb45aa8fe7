//! Tests of the module `mqsim`.

use super::*;

#[test]
fn whole_nanoseconds_only() {
    let expected = Parsed::of_sectors(938_513_000, RequestKind::Write, 264_719_034, 16, 4);
    assert_eq!(MqSim.parse(b"938513000 4 264719034 16 0"), expected);
    assert!(MqSim.parse(b"5265.313 0 6357144 8 0").is_err());
    assert!(MqSim.parse(b"1 0 0 8 2").unwrap_err().what.contains("op"));
}
