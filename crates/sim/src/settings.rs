//! Settings of the event engine, the controller and read-ahead.
//!
//! Ignored here: timings of flash, which are data of the part.

use super::queues::QueueSettings;
use palimpsest_flash::keys::readers::Reader;
use palimpsest_flash::units::{Nanos, Rate};
use palimpsest_flash::{keys, words};
use palimpsest_ftl_api::keys::is;

words! {
    /// The policy by which a die selects the next waiting operation. Order required within a block is kept under every
    /// policy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Scheduler {
        /// Order of arrival.
        Fifo = "fifo",
        /// Reads overtake programs and erases, until one has waited for the starvation bound.
        ReadFirst = "read-first",
        /// Operations for the host overtake those for garbage collection and merges, with the same bound.
        HostFirst = "host-first",
    }
}

words! {
    /// Running operations that a read may suspend.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Suspend {
        /// None.
        None = "none",
        /// Erases.
        Erase = "erase",
        /// Programs and erases.
        ProgramErase = "program-erase",
    }
}

words! {
    /// Order of operations planned on one block.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BlockOrder {
        /// Programs and erases wait for each other, and an erase for reads planned before. Reads take data that is not
        /// programmed yet from memory.
        Needed = "needed",
        /// Each operation waits for those before it.
        Planned = "planned",
    }
}

words! {
    /// Operations that become one multi-plane command.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MultiPlane {
        /// None.
        Off = "off",
        /// Operations that wait when the die can start one.
        Waiting = "waiting",
        /// As `waiting`, only for operations that a file system sent together as one command group.
        Group = "group",
    }
}

keys! {
    /// Settings of the engine.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SimSettings;

    /// The keys of the engine.
    group pub ENGINE {
        /// which waiting operation a die starts next
        pub scheduler: Scheduler = "sim.scheduler", Scheduler::KIND, "fifo";
        /// longest time for which others overtake or suspend an operation
        pub starvation_bound: Nanos = "sim.starvation_bound", Time, "10ms",
            read_by[Reader::ANY.needs(&["sim.scheduler = read-first|host-first"]),
                Reader::ANY.needs(&["sim.suspend = erase|program-erase"])];
        /// running operations that a read may suspend
        pub suspend: Suspend = "sim.suspend", Suspend::KIND, "none";
        /// most suspensions of one program or erase; 0: any number
        pub suspend_limit: u32 = "sim.suspend_limit", Count { min: 0, max: 65_535 }, "0",
            needs["sim.suspend = erase|program-erase"];
        /// time between the moments at which a program can be suspended, counted back from its end; a read waits for
        /// the next; 0ns: at any time
        pub suspend_pulse: Nanos = "sim.suspend_pulse", Time, "0ns", needs["sim.suspend = program-erase"];
        /// whether operations of one kind are pipelined through a die's cache register
        pub cache_register: bool = "sim.cache_register", Flag, "false";
        /// whether these include reads; else only programs are, and a die is busy until the data of a read has left it
        pub cache_read: bool = "sim.cache_read", Flag, "true", needs["sim.cache_register = true"];
        /// operations of one kind on different planes of a die that run together: none, all that wait, or those of one
        /// command group of a file system
        pub multi_plane: MultiPlane = "sim.multi_plane", MultiPlane::KIND, "waiting";
        /// reads on different planes of a die that sim.multi_plane lets run together: those of one page address, or any
        pub independent_reads: bool = "sim.plane_reads", Choice(&["aligned", "independent"])
            => is("independent"), "aligned", needs["sim.multi_plane = waiting|group"];
        /// operations of one block start in the order that flash needs, and reads find what is not programmed yet in
        /// memory; or all as planned
        pub block_order: BlockOrder = "sim.block_order", BlockOrder::KIND, "needed";
    }

    with settings {
        /// True if programs of collection steps go before others, because the steps are bursts.
        pub steps_first: bool = settings.get::<u32>("ftl.gc_burst") > 0;
    }
}

keys! {
    /// Times of the controller; all 0 if requests take no time there.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct ControllerTimes;

    /// The keys of the controller's times.
    group pub CONTROLLER {
        /// requests a second that the processors take, one after the other; 0: any number
        pub t_request: Nanos = "controller.iops", Count { min: 0, max: 1_000_000_000 }
            => |iops: u64| 1_000_000_000u64.checked_div(iops).unwrap_or(0), "0";
        /// writes a second that the processors of writes take, one after the other, after those of all requests; 0: any
        /// number
        pub t_write_request: Nanos = "controller.write_iops", Count { min: 0, max: 1_000_000_000 }
            => |iops: u64| 1_000_000_000u64.checked_div(iops).unwrap_or(0), "0";
        /// time of a read before its first flash command, beside that of others
        pub t_read: Nanos = "controller.t_read", Time, "0ns";
        /// time of any other request before its data is taken, beside that of others
        pub t_write: Nanos = "controller.t_write", Time, "0ns";
        /// time of a request after flash or buffer, beside that of others
        pub t_end: Nanos = "controller.t_end", Time, "0ns";
    }

    with settings {
        /// Latency of the host link, each way, beside its transfers.
        pub t_link: Nanos = settings.get("host.t_link");
        /// Time to put the first subpage of a write into the write buffer.
        pub t_buffer: Nanos = settings.get("buffer.t_write");
        /// Time to put each further subpage into the write buffer.
        pub t_buffer_next: Nanos = settings.get("buffer.t_write_next");
        /// Submission queues, and the limit of commands.
        pub queues: QueueSettings = QueueSettings::new(settings);
    }
}

keys! {
    /// Settings of read-ahead.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct ReadAhead;

    /// The keys of read-ahead.
    group pub READ_AHEAD {
        /// pages that are read beyond a stream of sequential reads before the host asks; 0: none
        pub pages: u32 = "controller.read_ahead", Count { min: 0, max: 1 << 16 }, "0";
        /// streams of sequential reads that read-ahead tells apart
        pub streams: u32 = "controller.read_streams", Count { min: 1, max: 256 }, "8",
            needs["controller.read_ahead > 0"];
    }
}

/// Times between the host and the drive.
#[derive(Debug, Clone, Copy)]
pub struct HostTimes {
    /// Transfer rate of the link, each way; 0: unlimited.
    pub link_rate: Rate,
    /// Delay of each request from its end in the drive to the answer at the host: host, link and controller. Delays of
    /// requests overlap.
    pub t_request: Nanos,
}
