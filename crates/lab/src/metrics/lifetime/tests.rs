//! Tests of `lifetime`.

use super::*;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::wear::WearTable;

fn part(reprogram_loss: [f64; 4]) -> Part {
    let shares = vec![0.2, 0.4, 0.6, 1.0];
    let reprogram_loss = reprogram_loss.to_vec();
    let wear = WearTable { fresh_rate: 1e-5, limit_rate: 1e-3, shares, reprogram_loss, ..WearTable::default() };
    Part { endurance: 1000, wear, ..slc() }
}

/// A run without reuse: endurance x blocks x bytes an erase.
#[test]
fn without_reuse_a_life_is_the_endurance() {
    let measured = Measured { host_bytes: 1 << 40, erases: 512, reused_erases: 0, second_writes: 0.0 };
    let part = part([0.01, 0.052, 0.085, 0.38]);
    assert_eq!(projected_host_bytes(&part, 7, 0.4, &measured), Some(7 * 1000 * (1 << 31)));
    assert_eq!(projected_host_bytes(&part, 7, 0.4, &Measured { erases: 0, ..measured }), None);
    assert_eq!(unsafe_after(&part, 0.4, &measured), None);
}

/// Sec. 4: blocks of N pages, all reused, hold 5 N / 4 pages a cycle up to 0.4 T: 1.1 T N, less the 5.2 % of chip A16.
#[test]
fn the_rough_estimate_of_section_4() {
    let measured = Measured { host_bytes: 1_250_000, erases: 10, reused_erases: 10, second_writes: 0.2 };
    let usual = 1000.0 * 100_000.0 * 3.0;
    for (loss, gain) in [([1e-9, 2e-9, 3e-9, 0.38], 1.1), ([0.01, 0.052, 0.085, 0.38], 1.1 - 0.052)] {
        let bytes = projected_host_bytes(&part(loss), 3, 0.4, &measured).unwrap() as f64;
        assert!((bytes / usual - gain).abs() < 1e-6, "{}", bytes / usual);
    }
}

/// With half of the blocks reused, half of the cycles up to 0.4 T are reuses: the loss at 0.2 T applies.
#[test]
fn blocks_that_are_not_reused_do_not_wear_more() {
    let measured = Measured { host_bytes: 1_125_000, erases: 10, reused_erases: 5, second_writes: 1.0 / 9.0 };
    let bytes = projected_host_bytes(&part([0.01, 0.052, 0.085, 0.38]), 1, 0.4, &measured).unwrap() as f64;
    assert!((bytes / 1e8 - (0.4 * 1.125 + 0.6 - 0.01)).abs() < 1e-6, "{bytes}");
}

/// Chip B16: reused blocks exceed the limit after a hundredth of their life.
#[test]
fn a_chip_that_is_not_safe_is_reported() {
    let measured = Measured { host_bytes: 1_250_000, erases: 10, reused_erases: 10, second_writes: 0.2 };
    let b16 = part([0.03, 0.05, 0.07, 0.99]);
    assert_eq!(unsafe_after(&b16, 0.4, &measured), Some(10));
    assert!(projected_host_bytes(&b16, 1, 0.4, &measured).unwrap() < 1_300_000);
    assert_eq!(unsafe_after(&b16, 0.005, &measured), None);
}
