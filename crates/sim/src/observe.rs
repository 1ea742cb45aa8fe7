//! What can be watched while a drive works, so that measurements sit above what they measure and cannot change it.

use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;

/// Somebody who watches. Every method does nothing unless it is overridden.
pub trait Observer {
    /// A request of `bytes` bytes has completed at `now`, `latency` after it arrived.
    fn request_completed(&mut self, _kind: RequestKind, _bytes: u64, _latency: Nanos, _now: Nanos) {}

    /// The request that has just completed belongs to `stream`; only where the drive is to tell.
    fn owner_completed(&mut self, _stream: u32, _kind: RequestKind, _latency: Nanos) {}

    /// A collection of garbage has ended, `took` after it began.
    fn collection_ended(&mut self, _took: Nanos) {}
}
