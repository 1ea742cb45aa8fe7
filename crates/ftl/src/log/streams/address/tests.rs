//! Tests of the module `address`.

use super::*;

#[test]
fn half_of_the_accesses_go_below_the_boundary() {
    assert_eq!(half_of_zipf(1000, 0.0), 500);
    // 1 + 1/2 = 1.5 of 1 + 1/2 + 1/3 + 1/4 = 2.08: one unit has 48 %, two have 72 %.
    assert_eq!(half_of_zipf(4, 1.0), 2);
    let (head, total) = (half_of_zipf(100_000, 0.95), 100_000);
    let sum = |count: u32| (1..=count).map(|n| f64::from(n).powf(-0.95)).sum::<f64>();
    assert!((sum(head) / sum(total) - 0.5).abs() < 1e-3);
}

#[test]
fn the_boundary_is_the_first_cold_sector() {
    let mut address = Address::new(HotBelow::Bytes(4096), 100, 8);
    assert_eq!(address.stream_of(Extent { sector: 7, sectors: 8 }, Directives::NONE), HOT);
    assert_eq!(address.stream_of(Extent { sector: 8, sectors: 1 }, Directives::NONE), COLD);
}
