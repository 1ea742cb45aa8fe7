//! Growth of the bit error rate beside wear: age and temperature of the data, reads of the block, stacked layers.
//!
//! The rate of the block's wear is multiplied by three factors:
//! - Retention: 1 + E log10(1 + a / t) + a / T. E is `part.ber_retention_early`, t `part.t_retention_early` and T
//!   `ecc.t_retention`. 3D NAND loses charge fast within hours of a program, and then in proportion to the logarithm of
//!   time (Luo et al., SIGMETRICS 2018). The age a is multiplied by exp(Ea / k (1 / R - 1 / F)) at the temperature F of
//!   the flash, if the three values hold at R (Arrhenius; JESD218 and JEP122 for Ea = 1.1 eV).
//! - Read disturb: 1 + reads of the block since its erase / `ecc.disturb_reads`.
//! - Stacked layer: the share of the layer of cells that holds the word line (Luo et al.: the process varies between
//!   layers). Each layer has equally many word lines, in the order of programs.
//!
//! Ignored: temperatures that change or differ between programs and reads, faster retention in worn blocks, neighbours
//! (retention interference), and differences between chips and between the pages of a word line.

use crate::keys::{Reader, Rule, Value, ValueType};
use crate::nand::part::Part;
use crate::units::Nanos;

/// Readers of the age of data: linear loss.
pub(super) const LATE: Reader = Reader::ANY.needs(&["ecc.t_retention > 0"]);
/// Readers of the age of data: early loss.
pub(super) const EARLY: Reader = Reader::ANY.needs(&["part.ber_retention_early > 0"]);
const CELSIUS: ValueType = ValueType::Count { min: 0, max: 150 };

crate::keys! {
    /// Growth of the rate in early retention, with temperature, and by stacked layers.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct CellSettings;

    /// The keys of the part that only read errors depend on.
    group pub OF_PART {
        /// growth of the rate of wrong bits in each tenfold age of data, as a share of the rate of new data (early
        /// retention loss of 3D NAND: Luo et al., SIGMETRICS 2018); 0%: no early loss
        pub early: f64 = "part.ber_retention_early", Ratio { max: 100.0 }, "0%", needs["ecc.strength > 0"];
        /// age from which the tenfold ages of part.ber_retention_early count; assumed
        pub early_time: Nanos = "part.t_retention_early", Age, "1h", rules[SOME_AGE],
            needs["ecc.strength > 0", "part.ber_retention_early > 0"];
        /// temperature in degrees Celsius at which ecc.t_retention and part.t_retention_early hold
        pub reference: u32 = "part.retention_temperature", CELSIUS, "40",
            needs["ecc.strength > 0", "ecc.temperature > 0"];
        /// activation energy of ageing in eV (Arrhenius; 1.1 in JESD218 and JEP122)
        pub energy: f64 = "part.retention_energy", Factor, "1.1", rules[ENERGY],
            needs["ecc.strength > 0", "ecc.temperature > 0"];
        /// rates of wrong bits of the stacked layers of a block, in the order of programs, as shares of the rate of the
        /// worst one, which part.ber_fresh and part.ber_limit give (Luo et al., SIGMETRICS 2018); none: all are alike
        pub layers: Vec<f64> = "part.ber_layers", Ratios, "[]", rules[WORST_LAYER], needs["ecc.strength > 0"];
    }

    /// The temperature.
    group pub TEMPERATURE {
        /// temperature of flash in degrees Celsius, at which data ages; 0: part.retention_temperature
        pub temperature: u32 = "ecc.temperature", CELSIUS, "0", read_by[LATE, EARLY], needs["ecc.strength > 0"];
    }
}

const SOME_AGE: Rule = Rule { holds: |value| matches!(value, Value::Age(1..)), expected: "expected an age above 0ns" };
const ENERGY: Rule =
    Rule { holds: |value| matches!(value, Value::Factor(energy) if *energy <= 3.0), expected: "expected at most 3 eV" };
const WORST_LAYER: Rule = Rule {
    holds: |value| {
        matches!(value, Value::Ratios(rates) if rates.is_empty()
            || (rates.contains(&1.0) && rates.iter().all(|&rate| rate > 0.0) && rates.iter().any(|&rate| rate < 1.0)))
    },
    expected: "expected shares above 0%, 100% for the worst layer of cells and less for another, or none",
};

/// Boltzmann's constant in eV per kelvin (exact since the SI of 2019).
const BOLTZMANN: f64 = 8.617_333_262e-5;
/// 0 degrees Celsius, in kelvin.
const ZERO_CELSIUS: f64 = 273.15;

/// Growth of the rate in a block of one part at one temperature.
pub(super) struct Growth {
    /// Ageing at the temperature of the flash, divided by ageing at the temperature of the settings.
    acceleration: f64,
    /// Growth a decade, and the time from which the decades count.
    early: (f64, f64),
    /// Age, and reads, that double the rate; 0: they do not count.
    doubled: (Nanos, u32),
    /// Of each page of a block: the share of its stacked layer, if the cells hold all bits, and if they hold one.
    layers: Vec<[f64; 2]>,
}

impl Growth {
    /// Growth in blocks of `part` whose rate has doubled at the age `retention`, and after `disturb` reads.
    pub fn new(settings: &CellSettings, retention: Nanos, disturb: u32, part: &Part) -> Self {
        Growth {
            acceleration: match settings.temperature {
                0 => 1.0,
                celsius => acceleration(settings.energy, settings.reference, celsius),
            },
            early: (settings.early, settings.early_time as f64),
            doubled: (retention, disturb),
            layers: layers(&settings.layers, part),
        }
    }

    /// The rate of data of this age in `page` of a block, if the block's wear alone gives `worn` and the block was read
    /// `reads` times since its erase; `single`: its cells hold one bit.
    #[inline]
    pub fn rate(&self, worn: f64, age: Nanos, reads: u32, page: u32, single: bool) -> f64 {
        let share = |of: f64, double: u64| if double == 0 { 1.0 } else { 1.0 + of / double as f64 };
        let age = age as f64 * self.acceleration;
        let mut retention = share(age, self.doubled.0);
        if self.early.0 > 0.0 {
            retention += self.early.0 * libm::log10(1.0 + age / self.early.1);
        }
        let layer = self.layers.get(page as usize).map_or(1.0, |shares| shares[usize::from(single)]);
        worn * retention * share(reads.into(), self.doubled.1.into()) * layer
    }
}

/// Acceleration of a process with the activation energy `energy`, in eV, at `celsius` against `reference` degrees.
pub(super) fn acceleration(energy: f64, reference: u32, celsius: u32) -> f64 {
    let inverse = |celsius: u32| 1.0 / (f64::from(celsius) + ZERO_CELSIUS);
    libm::exp(energy / BOLTZMANN * (inverse(reference) - inverse(celsius)))
}

/// Per page of a block of `part`: the share of its stacked layer, with all bits and with one bit a cell; empty
/// if all are alike.
fn layers(shares: &[f64], part: &Part) -> Vec<[f64; 2]> {
    if shares.is_empty() {
        return Vec::new();
    }
    let (bits, lines) = (part.stored_bits(), part.word_lines());
    let share = |line: u32| shares[(u64::from(line.min(lines - 1)) * shares.len() as u64 / u64::from(lines)) as usize];
    let is_whole = lines == part.pages_per_block;
    let each = (0..part.pages_per_block).map(|page| match (is_whole, part.paired()) {
        (true, _) => [share(page), share(page * bits)],
        (_, true) => [share(page.min(part.partner(page)).div_ceil(2)), share(page)],
        _ => [share(page / bits), share(page)],
    });
    each.collect()
}

#[cfg(test)]
mod tests;
