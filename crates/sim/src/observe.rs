//! The interface to measurements: a drive calls an observer, which cannot change the drive.
//!
//! Ignored: events that no measurement uses.

use crate::timeline::parts::{Parts, Waits};
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;

/// An observer of a drive. Every method does nothing unless overridden.
pub trait Observer {
    /// A request of `bytes` bytes has completed at `now`, `latency` after the arrival.
    fn request_completed(&mut self, _kind: RequestKind, _bytes: u64, _latency: Nanos, _now: Nanos) {}

    /// The request that has just completed belongs to `stream`; called only if the drive reports owners.
    fn owner_completed(&mut self, _stream: u32, _kind: RequestKind, _latency: Nanos, _now: Nanos) {}

    /// The parts of the latency of `command` that has just completed, and the waits among them by owner; called only if
    /// the slowest requests are recorded.
    fn request_explained(&mut self, _command: &Command, _parts: &Parts, _waits: &Waits) {}

    /// A garbage collection has ended, `took` after the start.
    fn collection_ended(&mut self, _took: Nanos) {}
}
