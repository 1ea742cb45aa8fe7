//! Requests of a host, and their sources.
//!
//! A request addresses 512-byte sectors at any alignment, whatever the drive. This file and `fio` use each other: a
//! source may have zones, whose record is that of fio's jobs.

pub use crate::file_names::{FileNames, NO_FILE};
use crate::fio::ZoneHost;
use crate::in_order::Disorder;
use crate::object_figures::Figures;
use crate::volume_names::VolumeName;
pub use palimpsest_flash::command::{Command, Directives, Lifetime};
use palimpsest_flash::error::Result;
pub use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::Nanos;
pub use palimpsest_flash::units::SECTOR_BYTES;
use std::ops::Deref;
use std::sync::Arc;

/// One request of the host: a command and the time of its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Arrival since the start of the workload, in nanoseconds; ignored by a closed loop. In a record of a trace, by
    /// the trace's clock.
    pub arrival: Nanos,
    /// The command. Until [`Request::name`], its owner is the device, volume or stream of the workload, 0 without one.
    pub command: Command,
    /// File by the source's [`FileNames`]; [`NO_FILE`] without a name.
    pub file: u32,
}

impl Deref for Request {
    type Target = Command;

    #[inline]
    fn deref(&self) -> &Command {
        &self.command
    }
}

impl Request {
    /// A request without a file.
    #[inline]
    pub const fn new(arrival: Nanos, command: Command) -> Request {
        Request { arrival, command, file: NO_FILE }
    }

    /// The owner of the command.
    #[inline]
    pub fn owner(&self) -> u32 {
        self.command.directives.owner
    }

    /// Makes the file of the request its owner, if the file has a name.
    #[inline]
    pub fn name(&mut self) {
        if self.file != NO_FILE {
            self.command.directives.owner = self.file + 1;
        }
    }

    /// Offset and size in bytes.
    pub fn in_bytes(&self) -> (u64, u64) {
        let Extent { sector, sectors } = self.command.extent;
        (sector * SECTOR_BYTES, u64::from(sectors) * SECTOR_BYTES)
    }
}

/// When requests are submitted to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At their arrival times, whatever the number outstanding.
    Open,
    /// As soon as fewer than `depth` are outstanding.
    Closed {
        /// Requests kept outstanding.
        depth: u32,
    },
}

/// Next step of [`Jobs`] at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// A request. The arrival is the time at which the request was due, the queue is the number of the job.
    Request(Request),
    /// None before this time, unless a request completes.
    At(Nanos),
    /// None before a request completes.
    Completion,
    /// No more requests.
    Nothing,
}

/// Jobs that share a drive, each with a separate number of outstanding requests, and with begin and end by the
/// simulated clock: the next request depends on the completions of the drive.
pub trait Jobs {
    /// The request due at `now`, in nanoseconds since the first call, or when to call again; `now` must never decrease.
    ///
    /// # Errors
    /// As [`Source::next_request`].
    fn due(&mut self, now: Nanos) -> Result<Due>;

    /// Lifts the depths of the jobs if the host has one depth for all; false, and without effect, if no job has a rate
    /// to keep.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_flash::error::Error::Input) if a job searches its depth.
    fn lift_depths(&mut self) -> Result<bool>;

    /// Notes that `command`, of the job that is its queue, has completed, `latency` after its arrival.
    fn completed(&mut self, command: &Command, latency: Nanos);

    /// True at `now`, in nanoseconds since the first call, while a job that runs has no figures yet.
    fn is_ramping(&mut self, now: Nanos) -> bool;

    /// A job whose figures begin anew, because its ramp or its search for a depth ended; the caller must ask after each
    /// [`due`](Self::due), until there is none.
    fn take_restarted(&mut self) -> Option<u32>;
}

/// Jobs with equal settings: a section of a job file. The owners of their requests are numbers from 0 on, in order of
/// the sections and their copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name of the section.
    pub name: String,
    /// Copies that run at the same time.
    pub copies: u32,
    /// Outcome of the search for a depth, if the section has one.
    pub depth: Option<FoundDepth>,
}

/// Outcome of searches for the highest depth that meets a target of response times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDepth {
    /// The longest response time of a fast request, and the time for which a depth was tried.
    pub longest: Nanos,
    pub window: Nanos,
    /// The share of the requests that must be fast, in thousandths of a percent.
    pub share: u64,
    /// The last depth of each copy.
    pub depths: Vec<u32>,
    /// Each of these depths met the target.
    pub met: bool,
}

/// A volume on the drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Number in the trace, or of the name.
    pub id: u32,
    /// Name, or else the number.
    pub name: Arc<str>,
    /// First sector on the drive.
    pub sector: u64,
    /// Sectors up to the end; 0 if unknown.
    pub sectors: u64,
}

/// The demand of a whole trace on a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survey {
    /// Number of volumes that lie apart.
    pub volumes: usize,
    /// Bytes of the drive up to the end of the last volume.
    pub end_bytes: u64,
    /// Bytes of the pieces of 1 MiB that the trace reads or writes.
    pub footprint_bytes: u64,
}

/// The addresses of a workload's requests in the long run, in the order of how slowly they shape a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Locality {
    /// Random, all equally likely.
    Uniform,
    /// One after the other, in passes.
    Sequential,
    /// Some are more likely than others, or nothing is known.
    Favoured,
}

/// A stream of requests in order of arrival: a generator or a trace reader.
pub trait Source: Send {
    /// The next request, or `None` after the last.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_flash::error::Error::Input) with file and line if a trace is malformed.
    fn next_request(&mut self) -> Result<Option<Request>>;

    /// The next of the writes that create the workload's files before a run, which are not requests of the run; `None`
    /// after the last, or without files.
    fn next_of_layout(&mut self) -> Option<Request> {
        None
    }

    /// The parts of the workload that write through placement handles of their own, and these handles; empty for jobs
    /// and traces, whose handles the drive may lack.
    fn handles(&self) -> Vec<(String, u16)> {
        Vec::new()
    }

    /// Sets the placement identifiers of the drive for a workload that names all (fio's `fdp` without `plids`).
    fn name_handles(&mut self, _identifiers: &[u16]) {}

    /// The zones that the workload writes in order (fio's `zonemode=zbd`), which the caller must set to those of the
    /// drive before the first request.
    fn zones(&mut self) -> Option<&mut ZoneHost> {
        None
    }

    /// The workload as jobs if the order of requests depends on the drive. A timed run then calls these; only a counted
    /// run, which has no clock, calls [`next_request`](Self::next_request).
    fn jobs(&mut self) -> Option<&mut dyn Jobs> {
        None
    }

    /// The place of the last request, for error messages (`FILE:LINE`, or the name of the generator).
    fn place(&self) -> String;

    /// The line or record of the last request, for a file that is read once from the start; `None` for other sources.
    /// [`place`](Self::place) is then the name of the file, a colon and this number (1 before the first).
    fn line(&self) -> Option<u64> {
        None
    }

    /// The loop of the workload unless the user sets one.
    fn arrivals(&self) -> Arrivals;

    /// The number of all requests, if known without reading them.
    fn expected_requests(&self) -> Option<u64> {
        None
    }

    /// Whether sizes and places of requests change during a pass over the addresses, because random requests go to the
    /// addresses that the pass has left.
    fn uses_up_addresses(&self) -> bool {
        false
    }

    /// The addresses in the long run.
    fn locality(&self) -> Locality {
        Locality::Favoured
    }

    /// Whether `--repeat` can play the workload again.
    fn can_repeat(&self) -> bool {
        true
    }

    /// The names for [`Request::file`] of the requests so far, if the workload has names and they were requested.
    fn file_names(&self) -> Option<&FileNames> {
        None
    }

    /// The format of a trace; `None` for generated workloads.
    fn format(&self) -> Option<&'static str> {
        None
    }

    /// Malformed lines skipped so far, at the user's option.
    fn skipped_lines(&self) -> u64 {
        0
    }

    /// Records of a trace that are not in order of time, among those returned so far.
    fn disorder(&self) -> Disorder {
        Disorder::default()
    }

    /// Whether the streams of requests are [`volumes`](Self::volumes).
    fn has_volumes(&self) -> bool {
        false
    }

    /// Volumes in order of appearance: those so far, at least.
    fn volumes(&self) -> Vec<Volume> {
        Vec::new()
    }

    /// The streams so far that have names, in order of appearance.
    fn volume_names(&self) -> &[VolumeName] {
        &[]
    }

    /// The needs of the whole workload, from a separate reading; `None` if the workload cannot be read again.
    ///
    /// # Errors
    /// Errors of reading, except malformed lines.
    fn survey(&mut self) -> Result<Option<Survey>> {
        Ok(None)
    }

    /// Leaves out the requests of all tenants but one: the section at `tenant`, counted from 0, or the volume with this
    /// number. Returns false, without effect, if the workload has neither sections nor volumes.
    fn keep_only(&mut self, _tenant: u32) -> bool {
        false
    }

    /// The sections of the workload, with their outcomes so far; empty if it has none.
    fn sections(&self) -> Vec<Section> {
        Vec::new()
    }

    /// Figures of the cache of an object workload.
    fn objects(&self) -> Option<Figures> {
        None
    }

    /// Notes for the user on how the workload was played.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
