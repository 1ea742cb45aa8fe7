//! Energy over time. The energy of an operation is spread evenly over the work of its array, so a suspended operation
//! consumes none. Operations that run together end together.
//!
//! Ignored: energy of controller, memory and bus; that programs draw current in bursts.

use super::Engine;
use super::die::Batch;
use super::pending::Operations;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::OperationKind;

/// Picojoules of `members`.
#[inline]
pub(super) fn energy_of(pending: &Operations, members: &[u32]) -> i64 {
    members.iter().map(|&index| pending[index].energy).sum()
}

impl Engine {
    /// Picojoules of all metered operations up to `time`. No event may be due before `time`.
    pub fn energy_at(&self, time: Nanos) -> i64 {
        let mut energy = self.results.spent;
        for die in &self.hardware.dies {
            for batch in [&die.front, &die.back].into_iter().flatten() {
                let sensed = batch.kind == OperationKind::Read && batch.sensed;
                if !sensed {
                    energy += self.share(batch, batch.array_until.saturating_sub(time.max(batch.array_from)));
                }
            }
            if let Some(batch) = &die.suspended {
                energy += self.share(batch, batch.array_until);
            }
        }
        energy
    }

    /// Energy consumed by `batch` when its array has work left for `left`.
    fn share(&self, batch: &Batch, left: Nanos) -> i64 {
        let arrays = batch.operations().iter().map(|&index| self.pending[index].array);
        let Some(whole) = arrays.max().map(Nanos::from).filter(|&whole| whole > 0) else { return 0 };
        let energy = energy_of(&self.pending, batch.operations());
        let done = whole.saturating_sub(left);
        (i128::from(energy) * i128::from(done) / i128::from(whole)) as i64
    }
}
