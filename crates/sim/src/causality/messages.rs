//! Messages on broken laws: the early event, the event that had to come first, and the last events before.
//!
//! Ignored: operations that left the check, of which only the end is known.

use super::{Causality, SHOWN, State, Tracked};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::ledger::{Named, Noted, Source};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, OperationKind};
use std::fmt::Write;

impl Causality {
    /// A message on the first operation of the block of `noted` that must start before it.
    #[cold]
    pub(super) fn out_of_turn(&self, order: u64, noted: &Noted) -> String {
        let reads = noted.named.kind == OperationKind::Read;
        let waits = |earlier: &Tracked| {
            let of = &earlier.noted;
            let counts = match of.named.kind {
                OperationKind::Read => noted.destroys,
                _ => !reads || of.destroys,
            };
            earlier.state == State::Waits && of.named.block == noted.named.block && counts
        };
        let early = self.operations.range(0, order).map(|(_, earlier)| earlier).find(waits);
        let early = early.map_or("an operation that ended".into(), |earlier| tell(&earlier));
        format!("before what was planned before it on its block: {early}")
    }

    /// A message on `source`, which an operation starts before.
    #[cold]
    pub(super) fn unready(&self, source: Source, reads: bool, loaded: Nanos) -> String {
        match source {
            Source::Program(order) => format!("before what it reads is programmed: {}", self.progress(order)),
            Source::Read(order) if reads => {
                format!("before it is known where its data is: {}", self.progress(order))
            }
            Source::Read(order) => format!("before its data is there: {}", self.progress(order)),
            Source::Link(at) => format!("and has its data by {loaded} ns, before the host link brings it at {at} ns"),
        }
    }

    /// The progress of operation `order`, for messages.
    pub(super) fn progress(&self, order: u64) -> String {
        let ended = || "an operation that ended".to_string();
        self.operations.get(order).map_or_else(ended, tell)
    }

    pub(super) fn source(&self, source: Source) -> String {
        match source {
            Source::Read(order) | Source::Program(order) => self.progress(order),
            Source::Link(at) => format!("the host link brings it at {at} ns"),
        }
    }

    /// The newest program of `lsn` that has not been dropped.
    pub(super) fn newest_of(&self, lsn: u32) -> Option<u64> {
        let stores = |(order, one): &(u64, Tracked)| self.stored_of(*order, &one.noted).any(|piece| piece.lsn == lsn);
        self.operations.iter().rev().find(stores).map(|(order, _)| order)
    }

    /// The progress of the newest program of `lsn`, for messages.
    pub(super) fn newest_program(&self, lsn: u32) -> String {
        let progress = self.newest_of(lsn).map_or("no program of it is under way".into(), |order| self.progress(order));
        format!("of logical subpage {lsn}, {progress}")
    }

    #[cold]
    pub(super) fn accuse(&mut self, what: String) {
        if self.violation.is_none() {
            let mut text = format!("the translation layer broke the order of time: {what}");
            let changes = (self.changes.saturating_sub(SHOWN)..self.changes).filter_map(|at| self.recent[at % SHOWN]);
            for (index, (named, state, at)) in changes.enumerate() {
                let separator = if index == 0 { "; before it: " } else { ", " };
                let what = match state {
                    State::Runs => "starts",
                    State::Arrived => "brings its data",
                    _ => "ends",
                };
                let _ = write!(text, "{separator}{} {what} at {at} ns", describe(&named));
            }
            self.violation = Some(text);
        }
    }
}

/// An operation as messages name it.
pub(super) fn describe(named: &Named) -> String {
    let &Named { number, block, page, kind, cause } = named;
    let cause = CAUSE_NAMES[cause as usize];
    match kind {
        OperationKind::Read => format!("read {number} ({cause}) of block {block} page {page}"),
        OperationKind::Program => format!("program {number} ({cause}) of block {block} page {page}"),
        OperationKind::Erase => format!("erase {number} ({cause}) of block {block}"),
    }
}

/// The progress of an operation.
fn tell(&Tracked { noted, state, at }: &Tracked) -> String {
    let state = match state {
        State::Waits => "was planned",
        State::Runs => "started",
        State::Arrived => "brought its data",
        State::Ended => "ended",
    };
    format!("{} {state} at {at} ns", describe(&noted.named))
}
