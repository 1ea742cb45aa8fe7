//! Growth against its closed forms, the hours of JESD218, and the layers of parts of all kinds.

use super::*;
use crate::nand::part::CellKind;
use crate::nand::part::samples::slc;
use crate::rng::Rng;

const HOUR: Nanos = 3_600_000_000_000;
const YEAR: Nanos = 8760 * HOUR;

fn settings() -> CellSettings {
    CellSettings { early_time: HOUR, reference: 40, energy: 1.1, ..CellSettings::default() }
}

/// The rate of data of this age in block 0 of an `slc` part without layers, for 1e-4 of new data.
fn aged(settings: &CellSettings, retention: Nanos, age: Nanos) -> f64 {
    Growth::new(settings, retention, 0, &slc()).rate(1e-4, age, 0, 0, false)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {expected}");
}

#[test]
fn a_rate_without_growth_is_the_rate_of_wear() {
    for age in [0, 1, HOUR, 10 * YEAR] {
        assert_eq!(aged(&settings(), 0, age), 1e-4);
        assert_eq!(aged(&CellSettings { temperature: 40, ..settings() }, 0, age), 1e-4);
    }
}

#[test]
fn early_loss_grows_by_a_share_a_decade() {
    let early = CellSettings { early: 0.5, ..settings() };
    assert_eq!(aged(&early, 0, 0), 1e-4);
    // 1 + 9 h / 1 h = 10, and so on.
    for (hours, decades) in [(9, 1.0), (99, 2.0), (999, 3.0), (9999, 4.0)] {
        assert_near(aged(&early, 0, hours * HOUR), 1e-4 * (1.0 + 0.5 * decades));
        // With the linear loss beside it.
        let linear = hours as f64 / 2000.0;
        assert_near(aged(&early, 2000 * HOUR, hours * HOUR), 1e-4 * (1.0 + linear + 0.5 * decades));
    }
    // More within the first day than within the next fourteen.
    let after = |days: u64| aged(&early, 0, days * 24 * HOUR) - 1e-4;
    assert!(after(1) > after(15) - after(1), "{} in a day, {} in 15 days", after(1), after(15));
}

/// JESD218 exchanges a year at 30 degrees for 500 hours at 52 and for 96 at 66, whole hours that agree to 5 %.
#[test]
fn acceleration_is_the_one_of_jesd218() {
    for (celsius, hours) in [(52, 500.0), (66, 96.0)] {
        let (found, expected) = (acceleration(1.1, 30, celsius), 8760.0 / hours);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} at {celsius} degrees for {expected}");
    }
    // exp(1.1 / 8.617e-5 (1 / 313.15 - 1 / 328.15)) = exp(12765 1.45970e-4).
    assert!((acceleration(1.1, 40, 55) - 6.445).abs() < 1e-3);
    assert_near(acceleration(1.1, 40, 55) * acceleration(1.1, 55, 40), 1.0);
    assert_near(acceleration(1.1, 40, 47) * acceleration(1.1, 47, 55), acceleration(1.1, 40, 55));
}

#[test]
fn warm_data_has_the_rate_of_older_data() {
    let faster = acceleration(1.1, 40, 55);
    for early in [0.0, 0.7] {
        let cool = CellSettings { early, ..settings() };
        let warm = CellSettings { temperature: 55, ..cool.clone() };
        for hours in [1, 24, 1000] {
            let older = (faster * (hours * HOUR) as f64) as Nanos;
            assert_near(aged(&warm, YEAR, hours * HOUR), aged(&cool, YEAR, older));
        }
    }
}

/// Parts with a block of `lines` word lines each: cells, pages a block, pages of a program.
fn parts(lines: u32) -> Vec<Part> {
    let of = |cell: CellKind| Part { cell, pages_per_block: lines * cell.bits(), ..slc() };
    let cells = [CellKind::Slc, CellKind::Mlc, CellKind::Tlc, CellKind::Qlc];
    let shots = cells[2..].iter().map(|&cell| of(cell).shot(cell.bits()).expect("whole word lines"));
    cells.iter().map(|&cell| of(cell)).chain(shots).collect()
}

#[test]
fn pages_have_the_mean_rate_of_their_layers() {
    let shares = vec![0.4, 1.0, 0.7, 0.25];
    let mean = shares.iter().sum::<f64>() / 4.0;
    for part in parts(48) {
        let growth = Growth::new(&CellSettings { layers: shares.clone(), ..settings() }, 0, 0, &part);
        let rates = |single: bool, pages: u32| -> Vec<f64> {
            (0..pages).map(|page| growth.rate(1e-3, 0, 0, page, single)).collect()
        };
        let bits = part.cell.bits();
        for (single, pages) in [(false, part.pages_per_block), (true, part.pages_per_block / bits)] {
            let rates = rates(single, pages);
            assert_near(rates.iter().sum::<f64>() / f64::from(pages), 1e-3 * mean);
            assert_near(rates.iter().copied().fold(0.0, f64::max), 1e-3);
        }
        for page in 0..part.pages_per_block {
            let one = growth.rate(1e-3, 0, 0, page, false);
            let mate = if part.paired() { part.partner(page) } else { page };
            assert_eq!(one, growth.rate(1e-3, 0, 0, mate, false), "a pair is in one layer");
        }
    }
}

/// Rates never fall with age, temperature or reads, and are finite, whatever the settings.
#[test]
fn rates_grow_with_age_temperature_and_reads() {
    let mut rng = Rng::new(11, 0x9201);
    for _ in 0..2000 {
        let part = &parts(1 + rng.below(40) as u32)[rng.below(6) as usize];
        let layers = (0..rng.below(u64::from(part.word_lines()) + 1)).map(|_| 0.01 + 0.99 * rng.unit()).collect();
        let cool = CellSettings {
            early: 100.0 * rng.unit() * rng.unit(),
            early_time: 1 + rng.below(YEAR),
            reference: rng.below(151) as u32,
            energy: 3.0 * rng.unit(),
            temperature: 1 + rng.below(149) as u32,
            layers,
        };
        let warm = CellSettings { temperature: cool.temperature + 1, ..cool.clone() };
        let (retention, disturb) = (rng.below(2) * rng.below(YEAR), rng.below(3000) as u32);
        let (age, reads, page) =
            (rng.below(10 * YEAR), rng.below(1 << 31) as u32, rng.below(part.pages_per_block.into()));
        let of = |settings: &CellSettings, age, reads| {
            Growth::new(settings, retention, disturb, part).rate(
                1e-5,
                age,
                reads,
                page as u32,
                rng.clone().below(2) == 0,
            )
        };
        let rate = of(&cool, age, reads);
        assert!(rate > 0.0 && rate.is_finite(), "{cool:?}");
        let grown = [of(&cool, age + HOUR, reads), of(&cool, age, reads + 1), of(&warm, age, reads)];
        assert!(grown.iter().all(|&grown| grown >= rate), "{grown:?} after {rate}: {cool:?}");
    }
}
