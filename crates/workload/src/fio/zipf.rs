//! Zipf's distribution over ranks `0..n`, exact for every `n` and exponent: rejection-inversion (Hoermann and
//! Derflinger, "Rejection-Inversion to Generate Variates from Monotone Discrete Distributions", ACM TOMACS 6(3), 1996).
//!
//! Rank `k` has probability `(k+1)^-theta / zeta(n, theta)`. Transcendental functions come from `libm`, because ranks
//! for a seed must be the same on every machine.

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

/// `(e^x - 1) / x`, by the series where the quotient cancels.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

/// `ln(1 + x) / x`, by the series where the quotient cancels.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests;
