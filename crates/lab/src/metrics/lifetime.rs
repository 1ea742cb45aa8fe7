//! Lifetime of a drive, from the figures of a run: the bytes that a host can write until the mean block reaches its limit of bit
//! errors.
//!
//! The estimate of the LLH paper (Sec. 4): while blocks are young enough for their low pages to be programmed again, a cycle
//! writes as many bytes an erase as the run; after that, as the run without its second writes. [`Wear`] gives the number of
//! cycles, with the share of the run's erased blocks that were reused. Assumed: the run is in the share of life in which blocks
//! are reused, and the share of moved data stays the same after it (a run of the layer without reuse gives the exact share).
//! Without reuse, this is the endurance times the bytes an erase. Blocks that always hold one bit a cell (the fixed share of the fast cache) have
//! an endurance and erases of their own; the life of the drive ends with that of either kind.

use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::wear::{Bias, Wear};

/// The figures of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Erased blocks that were reused: low pages programmed again.
    pub reused_erases: u64,
    /// Second writes, as a share of the data programmed.
    pub second_writes: f64,
}

/// Bytes that the host can write until the mean of `blocks` blocks has had `endurance` erases, where `erases` of them came with `host_bytes`; none
/// where none did.
pub fn bytes_by_erases(host_bytes: u64, erases: u64, endurance: u32, blocks: u32) -> Option<u64> {
    let budget = u128::from(endurance) * u128::from(blocks);
    let bytes = (u128::from(host_bytes) * budget).checked_div(erases.into())?;
    Some(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Bytes that the host can write to `blocks` new blocks of `part`, reused up to the share `safe_life` of their endurance;
/// none where the run erased no block.
pub fn projected_host_bytes(part: &Part, blocks: u32, safe_life: f64, measured: &Measured) -> Option<u64> {
    if measured.erases == 0 {
        return None;
    }
    if measured.reused_erases == 0 {
        return bytes_by_erases(measured.host_bytes, measured.erases, part.endurance, blocks);
    }
    let endurance = Wear::new(part, Bias::Reprogram).endurance(safe_life, reused(measured));
    let an_erase = measured.host_bytes as f64 / measured.erases as f64;
    let cycles = endurance.window + (endurance.cycles - endurance.window) * (1.0 - measured.second_writes);
    Some((an_erase * cycles * f64::from(blocks)) as u64)
}

/// Cycles after which a reused block reaches the limit of bit errors, where that is before the end of `safe_life`; the safe
/// share of its endurance is then less.
pub fn unsafe_after(part: &Part, safe_life: f64, measured: &Measured) -> Option<u64> {
    if measured.reused_erases == 0 {
        return None;
    }
    let endurance = Wear::new(part, Bias::Reprogram).endurance(safe_life, reused(measured));
    endurance.ends_biased.then(|| libm::round(endurance.cycles) as u64)
}

fn reused(measured: &Measured) -> f64 {
    measured.reused_erases as f64 / measured.erases as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::wear::WearTable;

    fn part(reprogram_loss: [f64; 4]) -> Part {
        let shares = vec![0.2, 0.4, 0.6, 1.0];
        let reprogram_loss = reprogram_loss.to_vec();
        let wear = WearTable { fresh_rate: 1e-5, limit_rate: 1e-3, shares, reprogram_loss, ..WearTable::default() };
        Part { endurance: 1000, wear, ..slc() }
    }

    /// A run without reuse: endurance x blocks x bytes an erase.
    #[test]
    fn without_reuse_a_life_is_the_endurance() {
        let measured = Measured { host_bytes: 1 << 40, erases: 512, reused_erases: 0, second_writes: 0.0 };
        let part = part([0.01, 0.052, 0.085, 0.38]);
        assert_eq!(projected_host_bytes(&part, 7, 0.4, &measured), Some(7 * 1000 * (1 << 31)));
        assert_eq!(projected_host_bytes(&part, 7, 0.4, &Measured { erases: 0, ..measured }), None);
        assert_eq!(unsafe_after(&part, 0.4, &measured), None);
    }

    /// Sec. 4: blocks of N pages, all reused, hold 5 N / 4 pages a cycle up to 0.4 T: 1.1 T N, less the 5.2 % of chip A16.
    #[test]
    fn the_rough_estimate_of_section_4() {
        let measured = Measured { host_bytes: 1_250_000, erases: 10, reused_erases: 10, second_writes: 0.2 };
        let usual = 1000.0 * 100_000.0 * 3.0;
        for (loss, gain) in [([1e-9, 2e-9, 3e-9, 0.38], 1.1), ([0.01, 0.052, 0.085, 0.38], 1.1 - 0.052)] {
            let bytes = projected_host_bytes(&part(loss), 3, 0.4, &measured).unwrap() as f64;
            assert!((bytes / usual - gain).abs() < 1e-6, "{}", bytes / usual);
        }
    }

    /// With half of the blocks reused, half of the cycles up to 0.4 T are reuses: the loss is that of 0.2 T.
    #[test]
    fn blocks_that_are_not_reused_do_not_wear_more() {
        let measured = Measured { host_bytes: 1_125_000, erases: 10, reused_erases: 5, second_writes: 1.0 / 9.0 };
        let bytes = projected_host_bytes(&part([0.01, 0.052, 0.085, 0.38]), 1, 0.4, &measured).unwrap() as f64;
        assert!((bytes / 1e8 - (0.4 * 1.125 + 0.6 - 0.01)).abs() < 1e-6, "{bytes}");
    }

    /// Chip B16: reused blocks are above the limit after a hundredth of their life.
    #[test]
    fn a_chip_that_is_not_safe_is_reported() {
        let measured = Measured { host_bytes: 1_250_000, erases: 10, reused_erases: 10, second_writes: 0.2 };
        let b16 = part([0.03, 0.05, 0.07, 0.99]);
        assert_eq!(unsafe_after(&b16, 0.4, &measured), Some(10));
        assert!(projected_host_bytes(&b16, 1, 0.4, &measured).unwrap() < 1_300_000);
        assert_eq!(unsafe_after(&b16, 0.005, &measured), None);
    }
}
