//! The health of the drive in the SMART log: spare blocks, temperature, warnings.
//!
//! Source: NVM Express Base Specification 2.0, section 5.16.1.3. Spare blocks are the blocks beyond those that the
//! logical capacity fills; a block that failed uses one. The temperature is that of flash in the model, which does not
//! change. Ignored: warnings of degraded reliability, of a failed backup, and of persistent memory.

use super::features::Features;
use crate::page::Shown;

/// Spare below this percentage is a warning.
pub const SPARE_THRESHOLD: u8 = 10;

/// Zero degrees Celsius in whole kelvins.
const FREEZING: u16 = 273;

const SPARE_LOW: u8 = 1;
const TEMPERATURE: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;

/// The health of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Percentage of the spare blocks that have not failed.
    pub spare: u8,
    /// Temperature in kelvins.
    pub kelvins: u16,
    is_read_only: bool,
}

impl Health {
    /// The present health of a drive.
    pub fn of(shown: &dyn Shown, is_read_only: bool) -> Self {
        let mut health = Health { spare: 100, kelvins: FREEZING, is_read_only };
        shown.look(&mut |served| {
            let (spare, failed) = served.spare_blocks();
            health.spare = (spare.saturating_sub(failed) * 100).checked_div(spare).unwrap_or(100) as u8;
            health.kelvins = FREEZING + served.celsius() as u16;
        });
        health
    }

    pub fn is_spare_low(&self) -> bool {
        self.spare < SPARE_THRESHOLD
    }

    /// Whether the temperature has reached a threshold of a host.
    pub fn is_temperature_reached(&self, features: &Features) -> bool {
        let (over, under) = features.temperatures();
        self.kelvins >= over || self.kelvins <= under
    }

    /// The critical warnings.
    pub fn warnings(&self, features: &Features) -> u8 {
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        flag(self.is_spare_low(), SPARE_LOW)
            | flag(self.is_temperature_reached(features), TEMPERATURE)
            | flag(self.is_read_only, READ_ONLY)
    }
}
