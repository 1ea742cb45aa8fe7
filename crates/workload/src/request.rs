//! What a host asks of the drive, and where requests come from.
//!
//! A request addresses 512-byte sectors at any alignment. Nothing here knows the drive behind it.

pub use crate::file_names::{FileNames, NO_FILE};
use palimpsest_flash::error::Result;
pub use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
pub use palimpsest_flash::units::SECTOR_BYTES;

/// One request of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Arrival since the start of the workload, in nanoseconds; ignored by a closed loop.
    pub arrival: Nanos,
    /// What it does.
    pub kind: RequestKind,
    /// First 512-byte sector (0 for a flush).
    pub sector: u64,
    /// How many sectors (0 for a flush, else > 0).
    pub sectors: u32,
    /// Which file or stream the workload says this belongs to; 0 where it says nothing.
    pub stream: u32,
    /// Which named file it belongs to, a number of the source's [`FileNames`]; [`NO_FILE`] where none is known.
    pub file: u32,
}

impl Request {
    /// What it belongs to, as one number: the file where one is named, else the stream; 0 where the workload says nothing.
    #[inline]
    pub fn owner(&self) -> u32 {
        if self.file == NO_FILE { self.stream } else { self.file + 1 }
    }
}

/// When requests are given to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At their arrival times, however many are then outstanding.
    Open,
    /// As soon as fewer than `depth` are outstanding.
    Closed {
        /// Requests kept outstanding.
        depth: u32,
    },
}

/// What [`Jobs`] have for the drive at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// A request, and the number of the job whose it is. Its arrival is when the job wanted it done.
    Request(Request, u32),
    /// None before this time, unless a request completes.
    At(Nanos),
    /// None before a request completes.
    Completion,
    /// No more.
    Nothing,
}

/// Jobs that share a drive, each with requests of its own outstanding, that begin and end by the simulated clock: what comes
/// next depends on what the drive has done.
pub trait Jobs {
    /// What comes at `now`, in nanoseconds since the first call; times never go back.
    ///
    /// # Errors
    /// As [`Source::next_request`].
    fn due(&mut self, now: Nanos) -> Result<Due>;

    /// A request of `job` has completed.
    fn completed(&mut self, job: u32);
}

/// A stream of requests in order of arrival: a generator or a trace reader.
pub trait Source: Send {
    /// The next request, or `None` after the last.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_flash::error::Error::Input) with file and line where a trace is malformed.
    fn next_request(&mut self) -> Result<Option<Request>>;

    /// The next write of those that make the workload's files before a run; `None` after the last, or where it has none. Kept
    /// apart from the requests.
    fn next_of_layout(&mut self) -> Option<Request> {
        None
    }

    /// The workload as jobs, where the order of its requests depends on the drive. A timed run then asks these; only a counted
    /// run, which has no clock, asks [`next_request`](Self::next_request).
    fn jobs(&mut self) -> Option<&mut dyn Jobs> {
        None
    }

    /// Where the last request came from, for error messages (`FILE:LINE`, or the name of the generator).
    fn place(&self) -> String;

    /// How the workload wants to be driven when the user does not say.
    fn arrivals(&self) -> Arrivals;

    /// How many requests there will be in all, where that is known without reading them.
    fn expected_requests(&self) -> Option<u64> {
        None
    }

    /// The names behind [`Request::file`] of the requests so far, where the workload has names and they were asked for.
    fn file_names(&self) -> Option<&FileNames> {
        None
    }

    /// The trace format it is read as; `None` for generated workloads.
    fn format(&self) -> Option<&'static str> {
        None
    }

    /// Malformed lines skipped so far on the user's wish.
    fn skipped_lines(&self) -> u64 {
        0
    }
}
