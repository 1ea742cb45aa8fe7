//! A digest of cases: equal seeds must draw equal cases on every machine, whatever else runs there. FNV-1a of 64 bits
//! (Fowler, Noll and Vo), because the hash of the standard library may change. Ignored: deliberate collisions.

use crate::trial::{Played, Trial};
use palimpsest_lab::sim::drive::Command;

const PRIME: u64 = 0x0100_0000_01b3;

/// The digest so far.
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a number.
    fn number(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// Adds a text.
    pub fn add_text(&mut self, text: &str) {
        self.number(text.len() as u64);
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// Adds a run that passed: drive, form, requests, and counts of the run.
    pub fn run(&mut self, trial: &Trial, played: &Played) {
        trial.shape.settings.iter().for_each(|setting| self.add_text(setting));
        self.add_text(&format!("{:?} {:?}", trial.payload, trial.form));
        self.number(trial.seed);
        for Command { kind, extent, directives } in &trial.commands {
            self.number(extent.sector << 2 | *kind as u64);
            self.number(
                u64::from(extent.sectors) << 32 | u64::from(directives.placement) << 1 | u64::from(directives.fua),
            );
        }
        let numbers = [played.requests, played.cuts, played.operations.start, played.operations.end];
        numbers.into_iter().for_each(|number| self.number(number));
    }

    /// The digest as 16 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}
