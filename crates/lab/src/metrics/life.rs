//! The book of a served drive's life over all of its services: SMART, OCP, endurance and FDP logs, the page of live
//! figures, the result and `image info` read this structure alone. Ignored: operations of preconditioning and recovery,
//! which the counters leave out; wear, which blocks themselves record.

use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::image::layout;
use serde::Serialize;

/// Counters since the drive was new. `power_cycles`: services and power cuts; `unsafe_shutdowns`: starts after a kill,
/// and power cuts. Media bytes written are whole pages, erased ones whole blocks; `media_errors`: reads of the host
/// with lost data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Life {
    pub services: u64,
    pub power_cycles: u64,
    pub unsafe_shutdowns: u64,
    pub powered_s: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    pub host_bytes_read: u64,
    pub host_bytes_written: u64,
    pub page_reads: u64,
    pub page_programs: u64,
    pub erases: u64,
    pub media_bytes_read: u64,
    pub media_bytes_written: u64,
    pub media_bytes_erased: u64,
    pub media_errors: u64,
    pub error_log_entries: u64,
}

impl Life {
    /// The book with the stored figures `life` of a drive with pages of `geometry`, and blocks of `physical` (one block
    /// of a superblock).
    pub fn of(life: &layout::Life, geometry: &Geometry, physical: &Geometry) -> Self {
        let counters = &life.counters;
        let page_bytes = u64::from(geometry.page_bytes());
        Life {
            services: life.services,
            power_cycles: life.services,
            unsafe_shutdowns: life.broken_off,
            powered_s: counters.powered_s,
            reads: counters.reads,
            writes: counters.writes,
            trims: counters.trims,
            flushes: counters.flushes,
            host_bytes_read: counters.host_read,
            host_bytes_written: counters.host_written,
            page_reads: counters.page_reads,
            page_programs: counters.page_programs,
            erases: counters.erases,
            media_bytes_read: counters.bytes_sensed,
            media_bytes_written: counters.page_programs * page_bytes,
            media_bytes_erased: counters.erases * u64::from(physical.pages_per_block) * page_bytes,
            media_errors: counters.failed_reads,
            error_log_entries: counters.error_entries,
        }
    }
}
