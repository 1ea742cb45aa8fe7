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
    /// Reading what a stream of the host comes to next.
    ReadAhead,
    /// Checkpoints of the layer's tables.
    Checkpoint,
    /// Reading what is stored now and then, whether it can still be read.
    Patrol,
    /// Parity across dies.
    Parity,
    /// Reading the other pages of a stripe for one that cannot be read, or for its parity.
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
    /// Causes of reads that serve a reader alone: a power cut drops these, also where hold-up energy ends everything
    /// else.
    pub const DROPPED: [Cause; 3] = [Cause::Host, Cause::ReadAhead, Cause::Patrol];

    /// Whether the host waits for what is done so, or soon will.
    #[inline]
    pub fn is_awaited(self) -> bool {
        matches!(self, Cause::Host | Cause::Rmw | Cause::Prefetch | Cause::ReadAhead | Cause::Rebuild)
    }
}

/// Number of causes.
pub const CAUSES: usize = 11;

/// Names of the causes in results, in the order of [`Cause`].
pub const CAUSE_NAMES: [&str; CAUSES] =
    ["host", "gc", "merge", "rmw", "prefetch", "metadata", "read_ahead", "checkpoint", "patrol", "parity", "rebuild"];

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
    /// Those of them that are checkpoints.
    pub checkpoint_bytes: u64,
    /// Bytes programmed as padding.
    pub padding_bytes: u64,
    /// Subpages that were read from the controller's memory, as their programs had not ended, by cause.
    pub memory_reads: [u64; CAUSES],
    /// Subpages that reads lost for good, by the cause of the read.
    pub lost: [u64; CAUSES],
    /// Subpages that the host read without ever having written them.
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
    /// What operations added since they were `before`; what the host did, and what needed no flash, is left out.
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

    /// No count is above that of `most`: what a power cut took back had been counted here.
    pub fn limit(&mut self, most: &IoCounters) {
        self.each().zip(most.clone().each()).for_each(|(count, most)| *count = (*count).min(*most));
    }

    /// Takes `added` back.
    pub(super) fn take_back(&mut self, added: &IoCounters) {
        self.each().zip(added.clone().each()).for_each(|(count, added)| *count -= *added);
    }
}
