//! Code words: the highest bit error rate that a word with a given luck tolerates.
//!
//! A word is lost if more bits are wrong than the code corrects: the tail of a binomial distribution. The luck of a
//! word is the share of words that are lost at lower rates. A table stores the logarithm of the tolerated rate and the
//! slope of that logarithm, evenly over the log-odds of luck. Cubic interpolation gives the share of words lost at any
//! rate to within 0.001 %. Ignored: correlated bit errors.

/// Intervals of the table, and the log-odds at its ends: a draw of 53 bits never lies beyond them.
const INTERVALS: usize = 600;
const ENDS: f64 = 37.5;
const INTERVAL: f64 = 2.0 * ENDS / INTERVALS as f64;
/// At this rate, and above, bits carry no information: every word is lost.
const NO_INFORMATION: f64 = 0.5;
/// Newton's method doubles the exact digits in each step; the first entry of the table starts far away.
const MOST_STEPS: usize = 100;

/// Rates that the words of a code tolerate.
pub(super) struct Tolerance {
    /// Logarithm of the rate, and its change over one interval; empty if the code corrects all bits of a word.
    table: Vec<(f64, f64)>,
}

impl Tolerance {
    /// Of words of `bits` bits, of which a code corrects up to `strength`.
    pub fn new(bits: u64, strength: u64) -> Self {
        if strength >= bits {
            return Tolerance { table: Vec::new() };
        }
        let code = Code::new(bits as f64, strength as f64);
        let most = libm::log(NO_INFORMATION);
        let all_lost = code.odds(most).0;
        let mut near = code.below(-ENDS).min(most);
        let table = (0..=INTERVALS).map(|index| {
            let odds = index as f64 * INTERVAL - ENDS;
            if odds >= all_lost {
                return (most, 0.0);
            }
            let (rate, slope) = code.rate(odds, near);
            near = (rate + slope * INTERVAL).min(most);
            (rate, slope * INTERVAL)
        });
        Tolerance { table: table.collect() }
    }

    /// The highest rate at which a word with this luck, from 0 to 1, is read. The rate rises with luck.
    #[inline]
    pub fn of(&self, luck: f64) -> f64 {
        if self.table.is_empty() {
            return f64::INFINITY;
        }
        let at = ((libm::log(luck / (1.0 - luck)) + ENDS) / INTERVAL).clamp(0.0, INTERVALS as f64);
        let index = (at as usize).min(INTERVALS - 1);
        let ((from, rise), (to, next_rise)) = (self.table[index], self.table[index + 1]);
        let (part, difference) = (at - index as f64, to - from);
        // Hermite's cubic: values and slopes at both ends.
        let bend = rise + next_rise - 2.0 * difference;
        let rate = from + part * (rise + part * (difference - rise - bend + part * bend));
        libm::exp(rate).min(NO_INFORMATION)
    }
}

/// A code; all fields are non-negative.
struct Code {
    bits: f64,
    strength: f64,
    /// Logarithm of the number of ways in which `strength` bits are wrong.
    ways: f64,
}

impl Code {
    fn new(bits: f64, strength: f64) -> Self {
        let factorial = |number: f64| libm::lgamma(number + 1.0);
        Code { bits, strength, ways: factorial(bits) - factorial(strength) - factorial(bits - strength) }
    }

    /// Logarithm of a rate at which the log-odds of losing a word are below `odds`, because the expected number of sets
    /// of `strength` + 1 wrong bits exceeds the probability that there is such a set.
    fn below(&self, odds: f64) -> f64 {
        let ways = self.ways + libm::log((self.bits - self.strength) / (self.strength + 1.0));
        (odds - 1.0 - ways) / (self.strength + 1.0)
    }

    /// Logarithm of the rate at which the log-odds of losing a word are `odds`, and the slope; `near` must be close to
    /// it.
    fn rate(&self, odds: f64, near: f64) -> (f64, f64) {
        let (mut rate, mut slope) = (near, 0.0);
        for _ in 0..MOST_STEPS {
            let (found, rise) = self.odds(rate);
            slope = 1.0 / rise;
            let step = (odds - found) * slope;
            rate = (rate + step).min(libm::log(NO_INFORMATION));
            if step.abs() < 1e-14 * rate.abs() {
                break;
            }
        }
        (rate, slope)
    }

    /// The log-odds of losing a word at the rate with the logarithm `rate`, and their slope over that logarithm.
    fn odds(&self, rate: f64) -> (f64, f64) {
        let (bits, strength, wrong) = (self.bits, self.strength, libm::exp(rate));
        let ratio = wrong / (1.0 - wrong);
        // Log-probability of exactly `strength` wrong bits. Both tails are multiples of it; the loop sums the shorter
        // tail.
        let just = self.ways + strength * rate + (bits - strength) * libm::log1p(-wrong);
        let is_likely = strength + 0.5 < bits * wrong;
        let sum = match is_likely {
            true => sum(1.0, |below| (strength - below) / (bits - strength + below + 1.0) / ratio),
            false => sum((bits - strength) / (strength + 1.0) * ratio, |above| {
                (bits - strength - above - 1.0) / (strength + above + 2.0) * ratio
            }),
        };
        let summed = just + libm::log(sum);
        let other = libm::log1p(-libm::exp(summed.min(-1e-9)));
        let slope = libm::exp(just - summed - other) * ratio * (bits - strength);
        (if is_likely { other - summed } else { summed - other }, slope)
    }
}

/// The sum of `first` and falling terms; each term is the previous one times `ratio` of its number.
fn sum(first: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut sum, mut term, mut number) = (first, first, 0.0);
    while term > sum * 1e-17 {
        term *= ratio(number);
        sum += term;
        number += 1.0;
    }
    sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The probability of more than `most` of `bits` wrong bits at `rate`, term by term.
    pub fn tail(bits: u64, most: u64, rate: f64) -> f64 {
        let n = bits as f64;
        let term = |wrong: u64| {
            let k = wrong as f64;
            let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
            libm::exp(ways + k * libm::log(rate) + (n - k) * libm::log1p(-rate))
        };
        let far = most + 2000 + (20.0 * libm::sqrt(n * rate)) as u64;
        if (most as f64) < n * rate {
            1.0 - (0..=most).map(term).sum::<f64>()
        } else {
            (most + 1..=bits.min(far)).map(term).sum()
        }
    }

    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        // Two bits: none wrong (1 - p)^2, both wrong p^2.
        assert!((tail(2, 0, 0.1) - 0.19).abs() < 1e-12);
        assert!((tail(2, 1, 0.1) - 0.01).abs() < 1e-12);
        assert_eq!(tail(2, 2, 0.1), 0.0);
        assert!(tail(16384, 72, 1e-2) > 1.0 - 1e-9, "164 wrong bits are expected");
    }

    fn luck(odds: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-odds))
    }

    #[test]
    fn lost_words_are_the_share_of_the_binomial_tail() {
        assert!((tail(16384 * 8, 36, 2e-4) - 0.0270).abs() < 5e-5);
        for (bytes, strength) in [
            (16_384, 36),
            (16_384, 1),
            (4096, 36),
            (2048, 72),
            (1024, 40),
            (512, 1),
            (512, 8),
            (8192, 500),
            (16_384, 4000),
        ] {
            let tolerance = Tolerance::new(bytes * 8, strength);
            for step in 0..200 {
                let luck = luck(f64::from(step) * 0.27 - 34.0);
                let rate = tolerance.of(luck);
                let error = (tail(bytes * 8, strength, rate) / luck - 1.0).abs();
                assert!(error < 1e-5, "{bytes} B, {strength} bits, rate {rate}: {error} from {luck}");
            }
        }
    }

    #[test]
    fn words_with_more_luck_tolerate_higher_rates() {
        for (bits, strength) in [(131_072, 36), (4096, 1), (16, 7), (16, 15), (8, 8), (65_536, 500)] {
            let tolerance = Tolerance::new(bits, strength);
            let rates = (0..=40_000).map(|step| {
                let odds = f64::from(step) * 2e-3 - 40.0;
                tolerance.of(luck(odds))
            });
            assert!(rates.clone().all(|rate| rate > 0.0), "{bits} bits, {strength}");
            assert!(rates.is_sorted(), "{bits} bits, {strength}");
            assert!(tolerance.of(0.0) <= tolerance.of(1e-16) && tolerance.of(1.0 - 1e-16) >= tolerance.of(0.999));
        }
    }
}
