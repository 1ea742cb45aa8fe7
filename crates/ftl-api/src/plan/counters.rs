//! Causes of flash operations, and counters by cause.

/// The reason for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// A request of the host.
    Host,
    /// Garbage collection, wear levelling, moves from failing blocks.
    Gc,
    /// Merging of scattered subpages.
    Merge,
    /// Read of a read-modify-write.
    Rmw,
    /// Read of cells that are about to be programmed again.
    Prefetch,
    /// Records of the layer or the file system.
    Metadata,
    /// Read of data that a sequential reader will request next.
    ReadAhead,
    /// Checkpoints of the layer's tables.
    Checkpoint,
    /// Patrol read: checks from time to time that stored data is still readable.
    Patrol,
    /// Parity across dies.
    Parity,
    /// Read of the other pages of a stripe, to rebuild a page or to compute parity.
    Rebuild,
}

palimpsest_flash::state_of_words!(Cause {
    Host,
    Gc,
    Merge,
    Rmw,
    Prefetch,
    Metadata,
    ReadAhead,
    Checkpoint,
    Patrol,
    Parity,
    Rebuild
});

impl Cause {
    /// All causes, by number.
    pub const ALL: [Cause; CAUSES] = [
        Cause::Host,
        Cause::Gc,
        Cause::Merge,
        Cause::Rmw,
        Cause::Prefetch,
        Cause::Metadata,
        Cause::ReadAhead,
        Cause::Checkpoint,
        Cause::Patrol,
        Cause::Parity,
        Cause::Rebuild,
    ];

    /// Causes of reads that serve only a reader. A power cut drops these, even if hold-up energy completes all other
    /// operations.
    pub const DROPPED: [Cause; 3] = [Cause::Host, Cause::ReadAhead, Cause::Patrol];

    /// True if the host waits, or soon will wait, for operations of this cause.
    #[inline]
    pub fn is_awaited(self) -> bool {
        matches!(self, Cause::Host | Cause::Rmw | Cause::Prefetch | Cause::ReadAhead | Cause::Rebuild)
    }

    /// True if the drive keeps its data in order by operations of this cause, beside requests of the host.
    #[inline]
    pub fn is_upkeep(self) -> bool {
        matches!(self, Cause::Gc | Cause::Patrol)
    }
}

/// Number of causes.
pub const CAUSES: usize = 11;

/// Names of the causes in results, in the order of [`Cause`].
pub const CAUSE_NAMES: [&str; CAUSES] =
    ["host", "gc", "merge", "rmw", "prefetch", "metadata", "read_ahead", "checkpoint", "patrol", "parity", "rebuild"];

/// Reads and programs of pages, and bytes moved, by cause.
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
    /// Bytes wanted among the bytes sensed, by cause.
    pub wanted: [u64; CAUSES],
    /// Bytes over the channel buses.
    pub bus_bytes: u64,
    /// Bytes of data programmed (valid subpages, no padding).
    pub data_bytes: u64,
    /// Data bytes that second writes of low pages stored.
    pub second_bytes: u64,
    /// Data bytes of checkpoints.
    pub checkpoint_bytes: u64,
    /// Bytes programmed as padding.
    pub padding_bytes: u64,
    /// Subpages read from the controller's memory because their programs had not ended, by cause.
    pub memory_reads: [u64; CAUSES],
    /// Subpages lost by uncorrectable reads, by cause of the read.
    pub lost: [u64; CAUSES],
    /// Subpages that the host read but never wrote.
    pub unwritten_subpages: u64,
    /// Blocks that were relocated because reads of them needed many retries.
    pub refreshed_blocks: u64,
}

palimpsest_flash::state!(IoCounters {
    reads,
    programs,
    erases,
    sensed,
    wanted,
    bus_bytes,
    data_bytes,
    second_bytes,
    checkpoint_bytes,
    padding_bytes,
    memory_reads,
    lost,
    unwritten_subpages,
    refreshed_blocks
});

impl IoCounters {
    /// Counts added by operations since `before`. Counts of host requests and memory reads are left out.
    pub(super) fn since(&self, before: &IoCounters) -> IoCounters {
        let mut added = IoCounters { unwritten_subpages: 0, memory_reads: [0; CAUSES], ..self.clone() };
        added.take_back(&IoCounters { unwritten_subpages: 0, memory_reads: [0; CAUSES], ..before.clone() });
        added
    }

    fn each(&mut self) -> impl Iterator<Item = &mut u64> {
        let IoCounters { reads, programs, erases, sensed, wanted, bus_bytes, .. } = self;
        let by_cause = [reads, programs, sensed, wanted].into_iter().flatten();
        let data = [&mut self.data_bytes, &mut self.second_bytes, &mut self.checkpoint_bytes];
        let data = data.into_iter().chain([&mut self.padding_bytes, &mut self.unwritten_subpages]);
        by_cause.chain([erases, bus_bytes]).chain(data)
    }

    /// Subtracts `added`.
    pub(super) fn take_back(&mut self, added: &IoCounters) {
        self.each().zip(added.clone().each()).for_each(|(count, added)| *count -= *added);
    }
}
