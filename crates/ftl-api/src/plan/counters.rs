//! Why flash operations are done, and what they moved, by that.

/// Why an operation is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// A request of the host.
    Host,
    /// Garbage collection, wear levelling, moves from failing blocks.
    Gc,
    /// Merging of scattered subpages.
    Merge,
    /// Read half of a read-modify-write.
    Rmw,
    /// Reading cells that are about to be programmed again.
    Prefetch,
    /// The layer's or the file system's own records.
    Metadata,
}

/// Number of causes.
pub const CAUSES: usize = 6;

/// Names of the causes in results, in the order of [`Cause`].
pub const CAUSE_NAMES: [&str; CAUSES] = ["host", "gc", "merge", "rmw", "prefetch", "metadata"];

/// Reads and programs of pages by cause, and what they moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Page reads by cause.
    pub reads: [u64; CAUSES],
    /// Page programs by cause.
    pub programs: [u64; CAUSES],
    /// Erases.
    pub erases: u64,
    /// Bytes sensed by cause.
    pub sensed: [u64; CAUSES],
    /// Of those, bytes that were wanted.
    pub wanted: [u64; CAUSES],
    /// Bytes over the buses of the channels.
    pub bus_bytes: u64,
    /// Bytes of data programmed (valid subpages, no padding).
    pub data_bytes: u64,
    /// Those of them that second writes of low pages store.
    pub second_bytes: u64,
    /// Bytes programmed as padding.
    pub padding_bytes: u64,
    /// Subpages that the host read without ever having written them.
    pub unwritten_subpages: u64,
}

impl IoCounters {
    /// What operations added since they were `before`; what the host did is left out.
    pub(super) fn since(&self, before: &IoCounters) -> IoCounters {
        let mut added = IoCounters { unwritten_subpages: 0, ..self.clone() };
        added.take_back(&IoCounters { unwritten_subpages: 0, ..before.clone() });
        added
    }

    /// Takes `added` back.
    pub(super) fn take_back(&mut self, added: &IoCounters) {
        let by_cause = [
            (&mut self.reads, &added.reads),
            (&mut self.programs, &added.programs),
            (&mut self.sensed, &added.sensed),
            (&mut self.wanted, &added.wanted),
        ];
        for (counts, added) in by_cause {
            counts.iter_mut().zip(added).for_each(|(count, added)| *count -= added);
        }
        self.erases -= added.erases;
        self.bus_bytes -= added.bus_bytes;
        self.data_bytes -= added.data_bytes;
        self.second_bytes -= added.second_bytes;
        self.padding_bytes -= added.padding_bytes;
        self.unwritten_subpages -= added.unwritten_subpages;
    }
}
