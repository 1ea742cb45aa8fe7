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
        drive_writes: load.host_bytes as f64 / capacity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive of 1 TB that endures 3650 TB: one drive write a day lasts ten years, and two a day five.
    #[test]
    fn the_figures_of_a_data_sheet() {
        let day = NANOS_PER_DAY as Nanos;
        let load = Load {
            waf: Some(2.0),
            life_bytes: Some(3650 * 1_000_000_000_000),
            host_bytes: 250_000_000_000,
            time: Some(day / 4),
            capacity: 1_000_000_000_000,
        };
        let found = endurance(&load);
        assert_eq!((found.tbw, found.dwpd, found.years), (Some(3650.0), Some(1.0), Some(10.0)));
        assert_eq!((found.dwpd_5_years, found.drive_writes), (Some(2.0), 0.25));
        let unknown = endurance(&Load { life_bytes: None, time: None, ..load });
        assert_eq!((unknown.tbw, unknown.dwpd, unknown.years), (None, None, None));
        assert_eq!(endurance(&Load { host_bytes: 0, ..load }).years, None);
    }
}
