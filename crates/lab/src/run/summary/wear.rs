//! Wear in the result: erases of blocks, and the host bytes until the end of life. Ignored: the model of wear.

use crate::metrics::lifetime::{Measured, bytes_by_erases, projected_host_bytes};
use crate::metrics::summary::{Lifetime, SingleLife};
use crate::run::Session;
use palimpsest_flash::nand::Nand;
use palimpsest_ftl_api::LayerFigures;

/// Wear of the measured part, with `erases` and `data_bytes` programmed.
pub(super) fn measured(session: &Session<'_>, erases: u64, data_bytes: u64) -> Measured {
    let second_bytes = session.drive.io.counters.second_bytes - session.baseline.io.second_bytes;
    Measured {
        host_bytes: session.tally.host.bytes_written,
        erases: erases.saturating_sub(single_erases(session)),
        reused_erases: session.drive.io.nand.counters().reused_erases - session.baseline.nand.reused_erases,
        second_writes: second_bytes as f64 / data_bytes.max(1) as f64,
    }
}

/// Erases in the measured part of blocks that always hold one bit a cell.
fn single_erases(session: &Session<'_>) -> u64 {
    session.drive.io.nand.counters().single_erases - session.baseline.nand.single_erases
}

/// Number, mean, least and most erases of the blocks that always hold one bit a cell, or of the others.
fn erases(nand: &Nand, single: bool) -> (u32, f64, u32, u32) {
    let each = || (0..nand.geometry().blocks()).filter(|&block| nand.is_always_single(block) == single);
    let (count, sum) = each().fold((0, 0u64), |(count, sum), block| (count + 1, sum + u64::from(nand.erases(block))));
    // All blocks of a superblock are erased together, except on failed dies.
    let members = nand.physical().blocks() / nand.geometry().blocks();
    let is_whole = nand.has_stripes() && count == nand.geometry().blocks();
    let sum = if is_whole { nand.sum_of_erases() } else { sum * u64::from(members) };
    let count = count * members;
    let all = || each().map(|block| nand.erases(block));
    (count, sum as f64 / f64::from(count), all().min().unwrap_or(0), all().max().unwrap_or(0))
}

/// Wear of the fixed share of the fast cache.
fn single_life(session: &Session<'_>, host_bytes: u64) -> Option<SingleLife> {
    let nand = &session.drive.io.nand;
    let endurance = nand.part().endurance_slc;
    let (blocks, mean_erases, min_erases, max_erases) = erases(nand, true);
    (blocks > 0).then(|| SingleLife {
        blocks,
        mean_erases,
        min_erases,
        max_erases,
        worn: mean_erases / f64::from(endurance),
        projected_host_bytes: bytes_by_erases(host_bytes, single_erases(session), endurance, blocks),
    })
}

/// Wear of the drive since it was new, from the `measured` part.
pub(super) fn lifetime(session: &Session<'_>, figures: &LayerFigures, safe_life: f64, measured: &Measured) -> Lifetime {
    let nand = &session.drive.io.nand;
    let (blocks, mean_erases, min_erases, max_erases) = erases(nand, false);
    let slc_fixed = single_life(session, measured.host_bytes);
    let others = projected_host_bytes(nand.part(), blocks, safe_life, measured);
    let fixed = slc_fixed.as_ref().and_then(|life| life.projected_host_bytes);
    Lifetime {
        mean_erases,
        min_erases,
        max_erases,
        reused_erases: measured.reused_erases,
        projected_host_bytes: others.into_iter().chain(fixed).min(),
        retired_blocks: figures.retired_blocks,
        host_bytes: session.tally.precondition_bytes + session.tally.host.bytes_written,
        worn_out: session.worn_out.is_some(),
        slc_fixed,
    }
}
