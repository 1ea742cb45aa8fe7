//! Zipf's distribution over ranks `0..n`, exact for every `n` and exponent: rejection-inversion (Hoermann and
//! Derflinger, "Rejection-Inversion to Generate Variates from Monotone Discrete Distributions", ACM TOMACS 6(3), 1996).
//!
//! Rank `k` has probability `(k+1)^-theta / zeta(n, theta)`. Every transcendental function comes from `libm`, in
//! software, so that the ranks for a seed are the same on every machine.

use palimpsest_flash::rng::Rng;

/// A sampler of ranks.
#[derive(Debug, Clone)]
pub struct Zipf {
    ranks: f64,
    theta: f64,
    /// The integral of the hat at the left end, at 1.5 less the mass of the first rank.
    integral_first: f64,
    /// The integral of the hat at n + 1/2.
    integral_last: f64,
    /// Within this distance of a rank, acceptance is certain.
    certain: f64,
}

impl Zipf {
    /// Ranks `0..n` (`n` > 0) with exponent `theta` > 0.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0 && theta > 0.0);
        let mut zipf = Zipf { ranks: n as f64, theta, integral_first: 0.0, integral_last: 0.0, certain: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.ranks + 0.5);
        zipf.certain = 2.0 - zipf.inverse_integral(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    /// The next rank.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse_integral(area);
            let rank = libm::floor(x + 0.5).clamp(1.0, self.ranks);
            if rank - x <= self.certain || area >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// `x^-theta`.
    fn hat(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of the hat from 1 to `x`: `(x^(1-theta) - 1) / (1-theta)`, `ln x` where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        expm1_over((1.0 - self.theta) * log_x) * log_x
    }

    fn inverse_integral(&self, area: f64) -> f64 {
        // Rounding may move the product below the pole of ln(1 + t).
        let t = (area * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_over(t) * area)
    }
}

/// `(e^x - 1) / x`, by its series where the quotient cancels.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

/// `ln(1 + x) / x`, by its series where the quotient cancels.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
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
}
