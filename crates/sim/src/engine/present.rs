//! The operations that have not ended, for pictures of a running drive. Ignored: gates, and times to come.

use super::Engine;
use super::die::Batch;
use super::pending::Pending;
use palimpsest_ftl_api::plan::{Cause, OperationKind};

/// The progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The operation follows another one, which has not ended.
    Waits,
    /// The operation may start, and waits for the die or the bus.
    Queued,
    /// The bus moves the command or the data.
    Moves,
    /// The array senses, programs or erases.
    Works,
    /// The operation has started, and is suspended for another one.
    Suspended,
}

/// An operation that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    /// Number of the operation in the order of planning.
    pub order: u64,
    pub kind: OperationKind,
    pub cause: Cause,
    pub die: u32,
    pub block: u32,
    /// Page in the block.
    pub page: u16,
    pub stage: Stage,
}

impl Engine {
    /// The operations that have not ended, in the order of planning.
    pub fn present(&self) -> Vec<Present> {
        let mut started = Vec::new();
        let mut found = Vec::new();
        for die in &self.hardware.dies {
            for batch in die.front.iter().chain(&die.back) {
                let stage = self.stage_of(batch);
                found.extend(batch.remaining().iter().map(|&index| self.presented(index, stage)));
                started.extend(batch.remaining());
            }
            for batch in die.suspended.iter().chain(&die.behind) {
                found.extend(batch.remaining().iter().map(|&index| self.presented(index, Stage::Suspended)));
                started.extend(batch.remaining());
            }
        }
        for index in self.pending.live().into_iter().filter(|index| !started.contains(index)) {
            let stage = if self.pending[index].waits > 0 { Stage::Waits } else { Stage::Queued };
            found.push(self.presented(index, stage));
        }
        found.sort_unstable_by_key(|operation| operation.order);
        found
    }

    fn stage_of(&self, batch: &Batch) -> Stage {
        match batch.kind {
            OperationKind::Program if batch.unloaded > 0 || self.now < batch.loaded => Stage::Moves,
            OperationKind::Read if batch.sensed => Stage::Moves,
            _ => Stage::Works,
        }
    }

    fn presented(&self, index: u32, stage: Stage) -> Present {
        let Pending { order, kind, cause, block, page, .. } = self.pending[index];
        Present { order, kind, cause, die: self.pending[index].die(), block, page, stage }
    }
}
