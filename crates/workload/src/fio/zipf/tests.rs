//! Tests of Zipf draws against the exact distribution.

use super::*;

/// Chi-square of the first ranks and of the rest against `(k+1)^-theta / zeta(n, theta)`.
#[test]
fn frequencies_match_the_exact_distribution() {
    const CELLS: usize = 50;
    const DRAWS: u64 = 400_000;
    for (n, theta) in [(50u64, 0.5), (1000, 0.95), (1000, 1.0), (100_000, 1.2), (3, 3.0), (1, 0.7)] {
        let weight = |rank: u64| libm::pow((rank + 1) as f64, -theta);
        let zeta: f64 = (0..n).map(weight).sum();
        let zipf = Zipf::new(n, theta);
        let mut rng = Rng::new(11, n);
        let mut counts = vec![0u64; CELLS + 1];
        for _ in 0..DRAWS {
            counts[(zipf.draw(&mut rng) as usize).min(CELLS)] += 1;
        }
        let shares: Vec<f64> = (0..CELLS as u64).map(|k| if k < n { weight(k) / zeta } else { 0.0 }).collect();
        let rest = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        let cells = counts.iter().zip(shares.iter().chain([&rest]));
        let mut chi_square = 0.0;
        let mut freedom = -1.0;
        for (&count, &share) in cells {
            let expected = share * DRAWS as f64;
            if expected > 5.0 {
                chi_square += (count as f64 - expected).powi(2) / expected;
                freedom += 1.0;
            } else {
                assert!(count < 30, "{count} draws where {expected} are expected");
            }
        }
        // Mean plus five standard deviations of the chi-square distribution.
        let bound = freedom + 5.0 * f64::sqrt(2.0 * f64::max(freedom, 1.0));
        assert!(chi_square < bound, "n {n} theta {theta}: {chi_square} > {bound}");
    }
}

#[test]
fn extremes_stay_in_range() {
    let mut rng = Rng::new(1, 1);
    for n in [1, 2, 1 << 32, 1 << 54] {
        for theta in [1e-9, 0.5, 1.0, 1.0 + 1e-12, 5.0, 100.0] {
            let zipf = Zipf::new(n, theta);
            assert!((0..1000).all(|_| zipf.draw(&mut rng) < n), "{n} {theta}");
        }
    }
}
