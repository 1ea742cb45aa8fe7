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

/// At 40 degrees, 9 h are a decade of hours; at 55 degrees data ages exp(1.1 / k (1 / 313.15 - 1 / 328.15)) = 6.445
/// times as fast. The share of retries is the mean over stacked layers of the words that fail at their rates.
#[test]
fn old_data_fails_by_early_loss_temperature_and_layer() {
    let (strength, fresh, layers) = (20, 2e-4, [0.4, 1.0, 0.7]);
    let drive_of = |more: &str| {
        let sets = format!(
            "ftl.name=page ssd.blocks_per_plane=64 part.ber_fresh=0.02% part.word_size=4KiB ecc.strength={strength} \
             ecc.t_retries=[\"1us\"] ecc.retry_rates=[\"0%\"] ecc.data_age=9h part.ber_retention_early=150% {more}"
        );
        drive("tlc-32g", &sets)
    };
    let early = |hours: f64| 1.0 + 1.5 * (1.0 + hours).log10();
    let (listed, warm) = ("part.ber_layers=[\"40%\",\"100%\",\"70%\"]", 9.0 * 6.445);
    for (more, growth, layers) in [
        ("".to_owned(), early(9.0), &[1.0][..]),
        (listed.to_owned(), early(9.0), &layers[..]),
        (format!("{listed} ecc.temperature=55"), early(warm), &layers[..]),
        (format!("{listed} ecc.temperature=55 ecc.t_retention=200h"), early(warm) + warm / 200.0, &layers[..]),
    ] {
        let ssd = drive_of(&more);
        let mut run = Run::new(&ssd, "rw=randread,bs=4k,n=40k");
        (run.precondition, run.fidelity) = ("fill:100%", Fidelity::Count);
        let flash = run.result().flash;
        let reads = flash.by_cause["host"].reads as f64;
        let fails = |layer: &f64| word_fails(4096 * 8, strength, fresh * growth * layer);
        let expected = layers.iter().map(fails).sum::<f64>() / layers.len() as f64;
        let share = flash.read_retries as f64 / reads;
        let away = (share - expected) / (expected * (1.0 - expected) / reads).sqrt();
        println!("{more}: {share:.4}, expected {expected:.4}, {away:+.1} deviations");
        assert!(away.abs() < 4.0, "{more}: {share} for {expected}");
    }
}
