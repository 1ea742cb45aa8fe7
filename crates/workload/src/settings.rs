//! Settings of the host, and of the write buffer.

use palimpsest_flash::keys::{Feature, Growth, Reader, is};
use palimpsest_flash::units::{self, Nanos};
use palimpsest_flash::{keys, words};

words! {
    /// When a buffered write is acknowledged.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Acknowledge {
        /// When its data is in the (power-protected) buffer.
        Buffer = "buffer",
        /// When its data is programmed.
        Program = "program",
        /// When its data is in a buffer that loses it with the power, on any layer.
        Volatile = "volatile",
    }
}

/// Open pages of a layer lie in the write buffer.
const OPEN_PAGES: Reader = Reader::with(Feature::OpenPages);
/// Open pages of a layer wait for a timeout: of some layers only where no protected buffer keeps them.
const TIMED_PAGES: Reader = Reader::with(Feature::TimedPages);
const UNPROTECTED_PAGES: Reader = OPEN_PAGES.needs(&["buffer.ack = program|volatile"]);
/// Acknowledged writes wait in the write buffer for their programs.
const ACKNOWLEDGED: Reader = Reader::ANY.needs(&["buffer.ack = buffer|volatile"]);
/// The same, on drives that have a run-in: those without zones.
const AFTER_RUN_IN: Reader = Reader::UNZONED.needs(&["buffer.ack = buffer|volatile"]);

keys! {
    /// Settings of the host and of the drive's write buffer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct HostSettings;

    /// The keys of the host.
    group pub HOST {
        /// arrival times of an open loop are divided by this
        pub speedup: f64 = "host.speedup", Factor, "1";
        /// whether addresses beyond the drive are folded into it instead of refused
        pub fold: bool = "host.fold", Flag, "false";
        /// only pieces of this size that a trace reads or writes get addresses, in their order, such as 1MiB; 0B:
        /// addresses as they are
        pub piece_bytes: u64 = "host.compact", Bytes { min: 0, max: 1 << 40 }, "0B", rules[PIECES];
        /// transfer rate between host and drive
        pub link_rate: units::Rate = "host.link_rate", Rate, "unlimited";
        /// latency of the host link, each way, beside its transfers
        pub t_link: Nanos = "host.t_link", Time, "0ns";
        /// time of the host for each request, beside that of others in flight
        pub t_request: Nanos = "host.t_request", Time, "0ns";
        /// queue depth; 0: that of the workload
        pub iodepth: u32 = "host.iodepth", Count { min: 0, max: 1 << 20 }, "0";
    }

    /// The keys of the write buffer.
    group pub BUFFER {
        /// bytes of the write buffer
        pub buffer_bytes: u64 = "buffer.size", Bytes { min: 512, max: 1 << 40 }, "1MiB",
            read_by[OPEN_PAGES, ACKNOWLEDGED], grows_with[Growth::Capacity];
        /// a write is acknowledged in a buffer that survives a power cut, when programmed, or in a buffer that a power
        /// cut empties
        pub acknowledge: Acknowledge = "buffer.ack", Acknowledge::KIND, "buffer";
        /// a flush waits for programs, or ends at once, since the buffer is protected; a file system always commits
        pub flush_is_free: bool = "buffer.flush", Choice(&["programs", "free"]) => is("free"), "programs",
            read_by[OPEN_PAGES, Reader::BARE], needs["buffer.ack = buffer"];
        /// the measurement after a run-in starts with the buffer as the load leaves it, or with an empty one
        pub starts_empty: bool = "buffer.start", Choice(&["load", "empty"]) => is("empty"), "load",
            read_by[AFTER_RUN_IN];
        /// time to put the first subpage of a write into the write buffer
        pub t_write: Nanos = "buffer.t_write", Time, "0ns", read_by[OPEN_PAGES, ACKNOWLEDGED];
        /// time for each further subpage of the write
        pub t_write_next: Nanos = "buffer.t_write_next", Time, "0ns", read_by[OPEN_PAGES, ACKNOWLEDGED];
        /// a partly filled page is padded and programmed after this long
        pub buffer_timeout: Nanos = "buffer.timeout", Time, "1ms",
            read_by[TIMED_PAGES, UNPROTECTED_PAGES];
    }
}

const PIECES: keys::Rule = keys::Rule {
    holds: |value| matches!(value, keys::Value::Bytes(bytes) if bytes.is_multiple_of(4 << 10)),
    expected: "expected a multiple of 4KiB, such as 1MiB",
};
