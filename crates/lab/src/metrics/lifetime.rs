//! Lifetime of a drive, from the figures of a run: the bytes that a host can write until the mean block reaches the
//! limit of bit errors.
//!
//! The estimate of the LLH paper (Sec. 4): while low pages may be programmed again, a cycle writes the run's bytes per
//! erase; later, as many without the run's second writes. [`Wear`] gives the number of cycles, from the share of reused
//! blocks among the erased blocks. Assumed: the run is in the share of life with reuse, and the share of moved data
//! stays the same afterwards (a run of the layer without reuse gives the exact share). Without reuse, the estimate is
//! endurance times bytes per erase. Blocks that always hold one bit a cell (the fixed share of the fast cache) have an
//! endurance and erases of their own; the life of the drive ends when either kind of block is worn.

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

/// Bytes that the host can write until the mean of `blocks` blocks has had `endurance` erases, given `erases` erases
/// for `host_bytes`; `None` without erases.
pub fn bytes_by_erases(host_bytes: u64, erases: u64, endurance: u32, blocks: u32) -> Option<u64> {
    let budget = u128::from(endurance) * u128::from(blocks);
    let bytes = (u128::from(host_bytes) * budget).checked_div(erases.into())?;
    Some(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Bytes that the host can write to `blocks` new blocks of `part`, reused up to the share `safe_life` of their
/// endurance; `None` if the run erased no block.
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

/// Cycles after which a reused block reaches the limit of bit errors, if before the end of `safe_life`: then only a
/// smaller share of the endurance would be safe.
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
mod tests;
