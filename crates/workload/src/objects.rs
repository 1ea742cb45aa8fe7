//! Object workloads: gets, puts and deletes of objects, served by a cache on the drive, whose commands are the workload
//! of a run.
//!
//! An [`ObjectRequest`] comes from a trace ([`formats`]) or a [`generator`]. A [`cache`] of a given size serves the
//! request: small objects lie in buckets of a page, which are rewritten in place (CacheLib's BigHash), others in a log
//! of regions, which are written and evicted as wholes (CacheLib's BlockCache). The eviction [`policies`] choose the
//! region. Each part of the cache writes through one placement handle. A get that misses inserts the object, as a
//! look-aside cache does; a get that hits reads the drive. A cache in [`memory`] may come first.
//!
//! Ignored: the time between a miss and the insert, expiry times, headers of objects and buckets, false positives of
//! filters, and the cache's own metadata. The host waits for no read before the write that depends on it.

mod buckets;
mod cache;
pub(crate) mod commands;
mod formats;
mod generator;
mod memory;
mod policies;
mod regions;
mod source;
mod spec;

pub use formats::{FORMATS, Format, open_objects};
pub use policies::{POLICIES, PolicyEntry};
pub use source::{ObjectSource, Reopen};
pub use spec::{KEYS, ObjectSpec};

use crate::in_order::Disorder;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;

/// The effect of a request on the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads the object; inserts it after a miss.
    Get,
    /// Inserts or replaces the object.
    Put,
    /// Removes the object.
    Delete,
}

/// A request for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRequest {
    /// Arrival since the first request, in nanoseconds; 0 without times.
    pub arrival: Nanos,
    /// The object; longer keys are hashed.
    pub key: u64,
    /// Bytes of the object, key and value; 0: unknown, so that a miss inserts nothing.
    pub bytes: u64,
    /// The operation.
    pub operation: Operation,
    /// The class of the object; the log of the cache is chosen by this number.
    pub class: u32,
}

/// Requests for objects, in order of arrival.
pub trait Objects: Send {
    /// The next request, or `None` after the last.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_flash::error::Error::Input) with file and line if a trace is malformed.
    fn next_object(&mut self) -> Result<Option<ObjectRequest>>;

    /// The place of the last request, for error messages.
    fn place(&self) -> String;

    /// The format of a trace; `None` for generated requests.
    fn format(&self) -> Option<&'static Format> {
        None
    }

    /// False if all arrivals are 0; valid after the first request.
    fn has_times(&self) -> bool {
        false
    }

    /// Malformed lines skipped so far, at the user's option.
    fn skipped(&self) -> u64 {
        0
    }

    /// Requests of a trace that are not in order of time, among those returned so far.
    fn disorder(&self) -> Disorder {
        Disorder::default()
    }
}

#[cfg(test)]
mod tests;
