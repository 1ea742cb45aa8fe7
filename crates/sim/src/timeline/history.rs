//! The recent past: operations that have ended, and the work of each die, back to the submission of the oldest request
//! in flight.
//!
//! Ignored: older times, and operations beyond [`MOST_OPERATIONS`](super::MOST_OPERATIONS), the oldest first.

use super::{MOST_OPERATIONS, TimedOperation, at};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, OperationKind};
use std::collections::{BTreeMap, VecDeque};

/// A number that no operation has.
pub(super) const UNKNOWN: i64 = i64::MIN;

/// The work of a die.
#[derive(Debug, Clone, Copy)]
pub enum Holder {
    /// Before the recording.
    Unknown,
    Idle,
    /// The die suspends a program or erase.
    Suspends,
    /// A batch, by the number of its first operation.
    Works {
        leader: i64,
        kind: OperationKind,
        cause: Cause,
        request: u64,
        owner: u32,
    },
}

/// The recent past.
#[derive(Default)]
pub(super) struct History {
    ended: BTreeMap<i64, TimedOperation>,
    /// Operations in the order of their ends.
    order: VecDeque<(Nanos, i64)>,
    /// The work of each die, and since when.
    dies: Vec<VecDeque<(Nanos, Holder)>>,
}

impl History {
    /// Adds an operation that has ended; no request in flight waited for anything before `oldest`.
    pub(super) fn add(&mut self, operation: TimedOperation, oldest: Nanos) {
        self.order.push_back((operation.finished, operation.number));
        self.ended.insert(operation.number, operation);
        while let Some(&(finished, number)) = self.order.front()
            && (finished < oldest || self.order.len() > MOST_OPERATIONS)
        {
            self.order.pop_front();
            self.ended.remove(&number);
        }
    }

    /// Records that `holder` has `die` from `now` on.
    pub(super) fn hold(&mut self, die: u32, now: Nanos, holder: Holder, oldest: Nanos) {
        let log: &mut VecDeque<_> = at(&mut self.dies, die);
        log.push_back((now, holder));
        while log.get(1).is_some_and(|&(since, _)| since <= oldest) || log.len() > MOST_OPERATIONS {
            log.pop_front();
        }
    }

    /// Operation `number`, if it has ended lately.
    pub(super) fn get(&self, number: i64) -> Option<&TimedOperation> {
        self.ended.get(&number)
    }

    /// Operations that have ended lately.
    pub(super) fn ended(&self) -> impl Iterator<Item = &TimedOperation> {
        self.ended.values()
    }

    /// The work of `die`, and since when.
    pub(super) fn holders(&self, die: u32) -> &VecDeque<(Nanos, Holder)> {
        static NOTHING: VecDeque<(Nanos, Holder)> = VecDeque::new();
        self.dies.get(die as usize).unwrap_or(&NOTHING)
    }
}
