//! Read errors against the binomial distribution: a read of n code words fails with 1 - (1 - p)^n, for every command.

use crate::bench::{Run, drive};
use palimpsest_lab::run::Fidelity;

/// Probability that more than `strength` of `bits` bits are wrong at the bit error rate `rate`.
fn word_fails(bits: i32, strength: i32, rate: f64) -> f64 {
    let mut term = (1.0 - rate).powi(bits);
    let mut read = term;
    for wrong in 1..=strength {
        term *= f64::from(bits - wrong + 1) / f64::from(wrong) * rate / (1.0 - rate);
        read += term;
    }
    1.0 - read
}

/// A share of N draws is within 4 standard deviations, sqrt(q (1 - q) / N) each, of the probability q with 99.994 %.
#[test]
fn reads_fail_as_often_as_the_words_that_they_need() {
    for (ftl, strength, rate) in [("page-fgm", 8, 2e-4), ("dma-fgm", 8, 2e-4), ("spftl", 8, 2e-4), ("spftl", 20, 8e-4)]
    {
        let sets = format!(
            "ftl.name={ftl} ssd.blocks_per_plane=64 part.ber_fresh={}% ecc.strength={strength} ecc.t_retries=[\"1us\"] \
             ecc.retry_rates=[\"1%\"]",
            rate * 100.0
        );
        let ssd = drive("spread-16g", &sets);
        // The pages of the part have eight words of 2 KiB.
        for words in [1, 2, 4, 8] {
            let mut run = Run::new(&ssd, &format!("rw=randread,bs={}k,size=50%,n=20k", 2 * words));
            (run.precondition, run.fidelity) = ("fill:50%", Fidelity::Count);
            let flash = run.result().flash;
            let reads = flash.by_cause["host"].reads as f64;
            let expected = 1.0 - (1.0 - word_fails(2048 * 8, strength, rate)).powi(words);
            let share = flash.read_retries as f64 / reads;
            let away = (share - expected) / (expected * (1.0 - expected) / reads).sqrt();
            println!(
                "{ftl}, {strength} bits, {words} words: {share:.4}, expected {expected:.4}, {away:+.1} deviations"
            );
            assert!(away.abs() < 4.0, "{ftl}, {strength} bits, {words} words: {share} for {expected}");
        }
    }
}
