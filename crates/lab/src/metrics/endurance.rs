//! Endurance as data sheets state it: TBW, DWPD, years and WAF, from the figures of a run and the rate of host writes.
//!
//! TBW is [`lifetime`](super::lifetime) in terabytes (10^12 bytes): the host writes of a new drive until the mean block
//! reaches the limit of bit errors, under this workload, with wear level as in the run. Drive writes are multiples of
//! the capacity (JESD218). The rate of an open loop comes from the arrival times, without `host.speedup`; the rate of a
//! closed loop is the throughput of the drive.
//!
//! Ignored: retention, temperature, and writes beside the run.

use super::summary::Endurance;
use palimpsest_flash::units::Nanos;

const NANOS_PER_DAY: f64 = 86_400e9;
const DAYS_PER_YEAR: f64 = 365.0;
const WARRANTY_YEARS: f64 = 5.0;
const TERABYTE: f64 = 1e12;

/// The inputs of endurance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Write amplification; `None` without a write.
    pub waf: Option<f64>,
    /// Bytes that the host can write; `None` if no block was erased.
    pub life_bytes: Option<u64>,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Time of these writes by the workload's clock.
    pub time: Option<Nanos>,
    /// Requests wait for the drive all the time, so that `time` is the drive's.
    pub full: bool,
    /// Bytes of the drive.
    pub capacity: u64,
}

/// The figures of a load.
pub fn endurance(load: &Load) -> Endurance {
    let capacity = load.capacity as f64;
    let per_day = load.time.filter(|&time| time > 0 && load.host_bytes > 0);
    let per_day = per_day.map(|time| load.host_bytes as f64 * NANOS_PER_DAY / time as f64);
    let life = load.life_bytes.map(|bytes| bytes as f64);
    Endurance {
        waf: load.waf,
        tbw: life.map(|bytes| bytes / TERABYTE),
        dwpd: per_day.map(|bytes| bytes / capacity),
        dwpd_5_years: life.map(|bytes| bytes / (capacity * WARRANTY_YEARS * DAYS_PER_YEAR)),
        years: life.zip(per_day).map(|(life, per_day)| life / per_day / DAYS_PER_YEAR),
        host_bytes_per_day: per_day,
        full_load: per_day.map(|_| load.full),
        drive_writes: load.host_bytes as f64 / capacity,
    }
}

#[cfg(test)]
mod tests;
