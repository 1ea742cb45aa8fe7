//! Figures of the cache of an object workload, as a section of the result. Counts are those of the measured part, up to
//! the last request that the run read: at most 16 requests further than the drive's.

use serde::Serialize;

/// Figures of a part of the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClassFigures {
    /// `small`, `large`, or `log0`, `log1`, ... of several logs.
    pub class: String,
    /// Placement handle.
    pub handle: u16,
    /// Bytes on the drive.
    pub capacity_bytes: u64,
    /// Gets that found their object here, and those of them that found it in an open region.
    pub hits: u64,
    pub memory_hits: u64,
    /// Inserted objects, and their bytes.
    pub inserts: u64,
    pub inserted_bytes: u64,
    /// Objects that are larger than a region.
    pub refused: u64,
    /// Objects that left for others.
    pub evicted: u64,
    /// Bytes of objects that the policy wrote again.
    pub rewritten_bytes: u64,
    /// Bytes written to the drive, and trimmed.
    pub written_bytes: u64,
    pub trimmed_bytes: u64,
}

impl ClassFigures {
    /// Figures of a new part.
    pub fn new(class: &str, handle: u16, capacity_bytes: u64) -> Self {
        ClassFigures { class: class.into(), handle, capacity_bytes, ..Default::default() }
    }

    /// Counts an insert.
    pub fn inserted(&mut self, bytes: u64) {
        self.inserts += 1;
        self.inserted_bytes += bytes;
    }

    /// The figures of the same part, with counts of 0.
    pub fn restarted(&self) -> Self {
        ClassFigures::new(&self.class, self.handle, self.capacity_bytes)
    }
}

/// Figures of the cache in memory before the drive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryFigures {
    /// Bytes of objects that fit.
    pub capacity_bytes: u64,
    /// Gets that found their object here.
    pub hits: u64,
    /// Inserted objects, those read from the drive included.
    pub inserts: u64,
    /// Objects that left for others, and those of them that the drive had already.
    pub evicted: u64,
    pub evicted_clean: u64,
}

/// Figures of a cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests, and gets that hit.
    pub gets: u64,
    pub hits: u64,
    pub puts: u64,
    pub deletes: u64,
    /// Hits in gets; null without gets.
    pub hit_ratio: Option<f64>,
    /// Bytes of objects that gets found, and that gets asked for (of absent objects: the bytes inserted).
    pub hit_bytes: u64,
    pub requested_bytes: u64,
    /// Requests arrive at the times of a trace, or at a rate, not as fast as the drive serves them.
    pub open_loop: bool,
    /// Misses and puts that admission refused.
    pub not_admitted: u64,
    /// Bytes written to the drive for each byte of an inserted object; null without inserts.
    pub application_write_amplification: Option<f64>,
    /// The cache in memory, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFigures>,
    /// The parts of the cache.
    pub classes: Vec<ClassFigures>,
}
