//! Quantities with their units: time in nanoseconds, bytes, energy in picojoules.
//!
//! All are integers, so that sums do not depend on their order, and results are byte-identical on every machine.
//! [`parse`] defines the text of a quantity (`"35us"`, `"16KiB"`). Ignored: fractions of a base unit.

pub mod parse;

/// Simulated time or a span of it, in nanoseconds.
pub type Nanos = u64;

/// Energy in picojoules.
pub type Picojoules = u64;

/// Bytes of a sector, the unit in which hosts address the drive.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes in a KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

/// A transfer rate in bytes a second; 0 means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// Time of `bytes` at this rate, rounded to the nearest nanosecond (0 when unlimited).
    #[inline]
    pub fn time_for(self, bytes: u64) -> Nanos {
        if self.0 == 0 {
            return 0;
        }
        let nanos = (u128::from(bytes) * 1_000_000_000 + u128::from(self.0 / 2)) / u128::from(self.0);
        nanos as Nanos
    }
}
