//! Tests of the module `disksim`.

use super::*;

#[test]
fn milliseconds_become_nanoseconds() {
    let expected = Parsed::of_sectors(5_265_313_000, RequestKind::Write, 6_357_144, 8, 0);
    assert_eq!(DiskSim.parse(b"5265.313 0 6357144 8 0"), expected);
    assert!(DiskSim.parse(b"5265.313 0 6357144 8").unwrap_err().what.contains("flags"));
}
