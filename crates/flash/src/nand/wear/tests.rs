//! Tests of the module `wear`.

use super::super::part::samples::slc;
use super::*;

/// Chip A16 of the paper, Tables 2 to 4.
fn a16() -> Part {
    let wear = WearTable {
        fresh_rate: 1e-5,
        limit_rate: 1e-3,
        shares: vec![0.2, 0.4, 0.6, 1.0],
        reprogram_loss: vec![0.01, 0.052, 0.085, 0.38],
        voltage_loss: vec![0.02, 0.06, 0.08, 0.32],
    };
    Part { endurance: 3000, wear, ..slc() }
}

fn near(one: f64, two: f64) -> bool {
    (one / two - 1.0).abs() < 1e-9
}

#[test]
fn a_normally_used_block_reaches_the_limit_at_its_endurance() {
    for bias in [Bias::None, Bias::Reprogram, Bias::Voltage] {
        let wear = Wear::new(&a16(), bias);
        assert!(near(wear.bit_error_rate(0.0, 0.0, false), 1e-5));
        assert!(near(wear.bit_error_rate(1500.0, 0.0, false), 1e-4));
        assert!(near(wear.bit_error_rate(3000.0, 0.0, false), 1e-3));
        assert!(near(wear.endurance(0.4, 0.0).cycles, 3000.0));
        assert!(near(wear.rate_after(1500.0, 0.0), 1e-4));
    }
}

/// Every row of Tables 3 and 4 matches its definition: T less the cycles to 1e-3, as a share of T.
#[test]
fn every_row_of_the_tables_comes_back() {
    let part = a16();
    for (bias, losses) in [(Bias::Reprogram, &part.wear.reprogram_loss), (Bias::Voltage, &part.wear.voltage_loss)] {
        let wear = Wear::new(&part, bias);
        for (&share, &loss) in part.wear.shares.iter().zip(losses) {
            let endurance = wear.endurance(share, 1.0);
            assert!(near(endurance.cycles, 3000.0 * (1.0 - loss)), "{bias:?} {share}: {endurance:?}");
            assert_eq!(endurance.ends_biased, share == 1.0);
            let biased = (share * 3000.0).min(endurance.cycles);
            assert!(near(wear.bit_error_rate(endurance.cycles, biased, share == 1.0), 1e-3), "{bias:?} {share}");
        }
    }
}

#[test]
fn losses_lie_between_those_of_the_rows() {
    let wear = Wear::new(&a16(), Bias::Reprogram);
    assert!(near(wear.lasting_loss(0.1), 0.005) && near(wear.lasting_loss(0.3), 0.031));
    assert!(near(wear.lasting_loss(0.7), 0.085 + 0.0165), "on with the slope of the last rows");
    let half = wear.endurance(0.4, 0.5);
    assert!(near(half.cycles, 3000.0 * 0.99) && near(half.window, 1200.0), "{half:?}");
    assert_eq!(Wear::new(&slc(), Bias::Reprogram).lasting_loss(0.5), 0.0, "nothing was measured");
}

/// Chip B16: re-programmed blocks exceed the limit from the first hundredth of their life, and recover without
/// bias.
#[test]
fn a_passing_loss_goes_with_the_bias() {
    let mut part = a16();
    part.endurance = 10_000;
    part.wear.reprogram_loss = vec![0.03, 0.05, 0.07, 0.99];
    let wear = Wear::new(&part, Bias::Reprogram);
    assert!(wear.bit_error_rate(4000.0, 4000.0, true) > 5e-3);
    assert!(wear.bit_error_rate(4000.0, 4000.0, false) < 1e-4);
    assert!(wear.rate_after(4000.0, 4000.0) > 5e-3 && wear.rate_after(4001.0, 4000.0) < 1e-4);
    let endurance = wear.endurance(0.4, 1.0);
    assert!(endurance.ends_biased && near(endurance.cycles, 100.0), "{endurance:?}");
    assert!(near(wear.endurance(0.005, 1.0).cycles, 10_000.0 * (1.0 - 0.00075)));
}
