//! Settings of the event engine.

use palimpsest_flash::units::{Nanos, Rate};

/// Which of the operations waiting at a die goes next. What must keep its order within a block does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// Order of arrival.
    Fifo,
    /// Reads overtake programs and erases, until one of those has waited for the starvation bound.
    ReadFirst,
    /// Operations of the host overtake those of garbage collection and merges, with the same bound.
    HostFirst,
}

/// Which running operations a read may suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suspend {
    /// None.
    None,
    /// Erases.
    Erase,
    /// Programs and erases.
    ProgramErase,
}

/// What an operation waits for that is planned before it on the same block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockOrder {
    /// What it needs: programs and erases each other, an erase the reads before it. What a program has not stored yet is read from memory.
    Needed,
    /// All of it.
    Planned,
}

/// Operations that become one multi-plane command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiPlane {
    /// None.
    Off,
    /// Those that wait when the die can start one of them.
    Waiting,
    /// Of these the ones that a file system sent together, as one command group.
    Group,
}

/// Settings of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimSettings {
    /// Scheduling policy of a die's queue.
    pub scheduler: Scheduler,
    /// How long an overtaken operation waits at most before nothing overtakes it any more.
    pub starvation_bound: Nanos,
    /// Which operations a read may suspend.
    pub suspend: Suspend,
    /// Whether operations of one kind pipeline through the cache register of a die.
    pub cache_register: bool,
    /// Whether reads do, where operations do: a die without cached random reads is busy until the data of one has left it.
    pub cache_read: bool,
    /// The order of operations on one block.
    pub block_order: BlockOrder,
    /// Operations of one kind on different planes of a die that run together where their addresses allow it.
    pub multi_plane: MultiPlane,
    /// Whether reads of different planes run together whatever their addresses.
    pub independent_reads: bool,
}

/// Times of the controller; all zero where it takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControllerTimes {
    /// Latency of the host link, each way, beside its transfers.
    pub t_link: Nanos,
    /// Time of its processors for each request, one after the other.
    pub t_request: Nanos,
    /// Time of a read before its first flash command, beside other requests.
    pub t_read: Nanos,
    /// Time of any other request before its data is taken, beside other requests.
    pub t_write: Nanos,
    /// Time of a request after flash or buffer, until its answer leaves.
    pub t_end: Nanos,
    /// Time to put the first subpage of a write into the write buffer.
    pub t_buffer: Nanos,
    /// Time for each further one.
    pub t_buffer_next: Nanos,
}

/// How a drive reads ahead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadAhead {
    /// Pages that are read beyond a stream of sequential reads; 0: none.
    pub pages: u32,
    /// Streams that are recognised at a time.
    pub streams: u32,
}

/// Times between the host and the drive.
#[derive(Debug, Clone, Copy)]
pub struct HostTimes {
    /// Transfer rate of the link, each way; unlimited when 0.
    pub link_rate: Rate,
    /// Time of each request, beside that of others, from the end in the drive to the answer: in the host, on the link, in the
    /// controller.
    pub t_request: Nanos,
}
