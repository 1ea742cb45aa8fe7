//! Plays a workload on one drive: volumes and their addresses, repetition, arrival times.
//!
//! - **Volumes** ([`Volumes`]): each volume of a trace begins at address 0. Volumes apart have address ranges in order
//!   of appearance; overlaid volumes share addresses; or only some are played, apart. [`Request::owner`] is the
//!   volume; by default for formats whose streams are devices.
//! - **Compaction**: only pieces of the address space that the trace reads or writes get addresses, in the trace's
//!   order.
//! - **Spreading**: requests with one time of a coarse clock are spread evenly over the tick.
//! - **Start**: a play begins at a share of the requests of the trace, and the requests before are played last, later
//!   by one mean gap. Runs with other starts are repeats of one load ([`Playing::start`]).
//! - **Repetition** ([`Repeat`]): the workload is played again from the start, later by the duration and one mean gap.
//!
//! A second volume, compaction, or a start causes a second reading of the trace from the start, because addresses
//! depend on the sizes of all volumes and on the pieces. A trace of one volume is read once and keeps the recorded
//! addresses.

mod jobs;
mod layout;
mod spread;

pub use crate::request::{Survey, Volume};
pub use layout::Volumes;

use crate::fio::ZoneHost;
use crate::in_order::Disorder;
use crate::namespaces::Namespaces;
use crate::object_figures::Figures;
use crate::objects;
use crate::request::{Arrivals, FileNames, Jobs, Locality, Request, RequestKind, SECTOR_BYTES, Section, Source};
use crate::volume_names::{VolumeName, VolumeNames};
use layout::Layout;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
use spread::Spread;

/// Opens the workload again at the start.
pub type Reopen = Box<dyn Fn() -> Result<Box<dyn Source>> + Send>;

/// Fewer requests say nothing about a clock.
const LEAST_OF_CLOCK: u64 = 1000;
/// Mean requests of one time that show a coarse clock.
const COARSE: u64 = 20;

/// How often a workload is played.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Repeat {
    /// Once.
    #[default]
    Once,
    /// This many times.
    Times(u64),
    /// Until the workload has written this many times the drive's capacity.
    DriveWrites(f64),
    /// Until the run ends, by wear or by evidence.
    Forever,
}

impl Repeat {
    /// The option that sets this repetition.
    pub fn option(self) -> &'static str {
        if self == Repeat::Forever { "--until" } else { "--repeat" }
    }

    /// Reads `3` or `2dw`.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str) -> Result<Repeat> {
        let wrong = || {
            let what = "expected a number of times such as 3, or drive writes such as 2dw";
            Error::input(format!("--repeat {text}"), what)
        };
        if let Some(drives) = text.trim().strip_suffix("dw") {
            let drives: f64 = drives.trim().parse().map_err(|_| wrong())?;
            return if drives > 0.0 && drives <= 1e6 { Ok(Repeat::DriveWrites(drives)) } else { Err(wrong()) };
        }
        match text.trim().parse() {
            Ok(times @ 1..=1_000_000) => Ok(Repeat::Times(times)),
            _ => Err(wrong()),
        }
    }
}

/// Options of a replay; the default keeps a trace with one volume as recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Playing {
    /// The volumes that are played, and their places.
    pub volumes: Volumes,
    /// Bytes of a piece of compacted addresses, a multiple of a sector; 0: addresses as recorded.
    pub piece_bytes: u64,
    /// Requests of one time are spread over the tick of the trace's clock.
    pub spread: bool,
    /// The share of the requests of the trace that is played last.
    pub start: f64,
    /// Number of plays.
    pub repeat: Repeat,
    /// Bytes of the drive, in which [`Repeat::DriveWrites`] counts.
    pub drive_bytes: u64,
    /// The namespaces of the drive.
    pub namespaces: Namespaces,
}

/// A played workload.
pub struct Replay {
    inner: Box<dyn Source>,
    reopen: Option<Reopen>,
    layout: Layout,
    /// Names of earlier plays.
    names: VolumeNames,
    spread: Option<Spread>,
    repeat: Repeat,
    drive_bytes: u64,
    /// The number of the first request that is played.
    start: u64,
    play: Play,
    returned: Returned,
    /// The host keeps one depth for all jobs instead of their own.
    has_no_depths: bool,
    /// The only tenant that is played.
    only: Option<u32>,
    /// Placement identifiers of the drive.
    identifiers: Vec<u16>,
}

#[derive(Default)]
struct Play {
    /// Plays that have ended.
    ended: u64,
    /// The last play has ended; a run may ask again.
    is_last_over: bool,
    /// The last part of a play is being played: the requests before the start.
    is_last_part: bool,
    /// Requests of the trace that were read in this part.
    read: u64,
    /// Recorded arrival of the first request, and the time that is added to recorded ones.
    first: Option<Nanos>,
    shift: Nanos,
    requests: u64,
    latest: Nanos,
}

/// Totals of the returned requests.
#[derive(Default)]
struct Returned {
    requests: u64,
    /// Different arrival times, and the last of them.
    times: u64,
    latest: Nanos,
    written_bytes: u64,
}

impl Replay {
    /// Plays `inner`, whose streams are volumes by default if `has_volumes`; `reopen`, if possible, opens the workload
    /// again.
    ///
    /// # Errors
    /// [`Error::Input`] if `playing` needs a second reading and the workload cannot be read twice; errors of that
    /// reading.
    pub fn new(inner: Box<dyn Source>, has_volumes: bool, reopen: Option<Reopen>, playing: &Playing) -> Result<Replay> {
        if playing.repeat != Repeat::Once && reopen.is_none() {
            let why = "a pipe is read once; expected a file, to play it again";
            return Err(Error::input(playing.repeat.option(), why));
        }
        if playing.start > 0.0 && reopen.is_none() {
            return Err(Error::input("--start", "a pipe is read once; expected a file, to begin at another request"));
        }
        let of_blocks = |name| crate::trace::Format::named(name).map(crate::trace::Format::time_grain);
        let of_objects = |name| objects::Format::named(name).map(|format| format.time_grain);
        let grain = inner.format().and_then(|name| of_blocks(name).or_else(|| of_objects(name))).unwrap_or(1);
        let spread = (playing.spread && inner.arrivals() == Arrivals::Open).then(|| Spread::new(grain));
        let namespaces = playing.namespaces.clone();
        if namespaces.are_apart() && playing.volumes == Volumes::Overlaid {
            let what = "volumes that share addresses have no namespaces; expected --volumes apart, or \
                        ssd.namespaces = none";
            return Err(Error::input("--volumes overlaid", what));
        }
        let first_reading = playing.piece_bytes > 0 || namespaces.are_apart();
        let mut layout = Layout::new(&playing.volumes, has_volumes, playing.piece_bytes / SECTOR_BYTES, namespaces);
        if first_reading {
            layout.plan(reopen.as_ref(), &inner.place())?;
        }
        let start = match &reopen {
            Some(reopen) if playing.start > 0.0 => (count(&mut *reopen()?)? as f64 * playing.start) as u64,
            _ => 0,
        };
        Ok(Replay {
            inner,
            reopen,
            start,
            layout,
            names: VolumeNames::default(),
            spread,
            repeat: playing.repeat,
            drive_bytes: playing.drive_bytes,
            play: Play::default(),
            returned: Returned::default(),
            has_no_depths: false,
            only: None,
            identifiers: Vec::new(),
        })
    }

    /// The next request in the order of the workload, at its place and time on the drive.
    fn next_placed(&mut self) -> Result<Option<Request>> {
        loop {
            let Some(mut request) = self.next_of_part()? else {
                if self.play_again()? {
                    continue;
                }
                return self.layout.expect_requests(&self.inner.place(), &self.names()).map(|()| None);
            };
            let layout = &mut self.layout;
            let is_played = layout.turn_to(request.owner(), self.reopen.as_ref(), &*self.inner)?;
            let is_early = !self.play.is_last_part && self.play.read <= self.start;
            let is_left_out = is_early || self.only.is_some_and(|only| layout.has_volumes() && request.owner() != only);
            if is_played && layout.place(&mut request) && !is_left_out {
                let first = *self.play.first.get_or_insert(request.arrival);
                request.arrival = (request.arrival - self.begin_of(first)) + self.play.shift;
                self.play.requests += 1;
                self.play.latest = request.arrival;
                return Ok(Some(request));
            }
        }
    }

    /// The next request of the trace in the present part of the play.
    fn next_of_part(&mut self) -> Result<Option<Request>> {
        if self.play.is_last_part && self.play.read == self.start {
            return Ok(None);
        }
        let next = self.inner.next_request()?;
        self.play.read += u64::from(next.is_some());
        Ok(next)
    }

    /// The recorded time at which a part begins whose first request arrives at `first`.
    fn begin_of(&self, first: Nanos) -> Nanos {
        if self.start > 0 && !self.play.is_last_part { first } else { 0 }
    }

    /// The names of the volumes, of earlier plays too.
    fn names(&self) -> VolumeNames {
        let mut names = self.names.clone();
        names.extend(self.inner.volume_names().iter().cloned());
        names
    }

    /// Begins the next play; false after the last.
    #[cold]
    fn play_again(&mut self) -> Result<bool> {
        if self.play.is_last_over {
            return Ok(false);
        }
        let is_part = self.start > 0 && !self.play.is_last_part;
        self.play.ended += u64::from(!is_part);
        let more = match self.repeat {
            _ if is_part => true,
            Repeat::Once => false,
            Repeat::Times(times) => self.play.ended < times,
            Repeat::DriveWrites(_) | Repeat::Forever => {
                if self.returned.written_bytes == 0 {
                    let what = "the workload writes nothing and would never end; expected a workload that writes";
                    return Err(Error::input(self.repeat.option(), what));
                }
                true
            }
        };
        let play = &mut self.play;
        let (Some(reopen), true, true) = (&self.reopen, more, play.requests > 0) else {
            play.is_last_over = true;
            return Ok(false);
        };
        self.names.extend(self.inner.volume_names().iter().cloned());
        self.inner = reopen()?;
        self.only.into_iter().for_each(|only| _ = self.inner.keep_only(only));
        self.inner.name_handles(&self.identifiers);
        play.shift = play.latest + (play.latest - play.shift) / (play.requests.max(2) - 1);
        (play.requests, play.read, play.first) = (0, 0, None);
        play.is_last_part = is_part;
        Ok(true)
    }

    /// True if the workload has written the drive as often as [`Repeat::DriveWrites`] says.
    #[inline]
    fn is_written(&self) -> bool {
        match self.repeat {
            Repeat::DriveWrites(drives) => self.returned.written_bytes as f64 >= drives * self.drive_bytes as f64,
            _ => false,
        }
    }

    #[inline]
    fn count(&mut self, request: &Request) {
        let returned = &mut self.returned;
        returned.times += u64::from(returned.requests == 0 || request.arrival != returned.latest);
        returned.latest = request.arrival;
        returned.requests += 1;
        if request.kind == RequestKind::Write {
            returned.written_bytes += u64::from(request.extent.sectors) * SECTOR_BYTES;
        }
    }
}

/// Requests of a workload.
fn count(source: &mut dyn Source) -> Result<u64> {
    let mut requests = 0;
    while source.next_request()?.is_some() {
        requests += 1;
    }
    Ok(requests)
}

impl Source for Replay {
    fn next_request(&mut self) -> Result<Option<Request>> {
        if self.is_written() {
            return Ok(None);
        }
        let next = match self.spread.take() {
            None => self.next_placed()?,
            Some(mut spread) => {
                let next = spread.next(|| self.next_placed());
                self.spread = Some(spread);
                next?
            }
        };
        let Some(request) = next else { return Ok(None) };
        self.count(&request);
        Ok(Some(request))
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        self.inner.next_of_layout()
    }

    fn handles(&self) -> Vec<(String, u16)> {
        self.inner.handles()
    }

    fn name_handles(&mut self, identifiers: &[u16]) {
        self.inner.name_handles(identifiers);
        self.identifiers = identifiers.to_vec();
    }

    fn zones(&mut self) -> Option<&mut ZoneHost> {
        self.inner.zones()
    }

    fn jobs(&mut self) -> Option<&mut dyn Jobs> {
        if self.inner.jobs().is_some() { Some(self) } else { None }
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    fn arrivals(&self) -> Arrivals {
        self.inner.arrivals()
    }

    fn uses_up_addresses(&self) -> bool {
        self.inner.uses_up_addresses()
    }

    fn locality(&self) -> Locality {
        self.inner.locality()
    }

    fn can_repeat(&self) -> bool {
        self.reopen.is_some() && self.inner.can_repeat()
    }

    fn expected_requests(&self) -> Option<u64> {
        match self.repeat {
            _ if self.layout.drops_volumes() || self.only.is_some() => None,
            Repeat::Once => self.inner.expected_requests(),
            Repeat::Times(times) => self.inner.expected_requests()?.checked_mul(times),
            Repeat::DriveWrites(_) | Repeat::Forever => None,
        }
    }

    fn file_names(&self) -> Option<&FileNames> {
        self.inner.file_names()
    }

    fn format(&self) -> Option<&'static str> {
        self.inner.format()
    }

    fn skipped_lines(&self) -> u64 {
        self.inner.skipped_lines()
    }

    fn disorder(&self) -> Disorder {
        self.inner.disorder()
    }

    fn has_volumes(&self) -> bool {
        self.layout.has_volumes()
    }

    fn volumes(&self) -> Vec<Volume> {
        self.layout.volumes(&self.names())
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.inner.volume_names()
    }

    fn keep_only(&mut self, tenant: u32) -> bool {
        self.only = Some(tenant);
        self.has_volumes() || self.inner.keep_only(tenant)
    }

    fn survey(&mut self) -> Result<Option<Survey>> {
        self.layout.survey(self.reopen.as_ref())
    }

    fn sections(&self) -> Vec<Section> {
        self.inner.sections()
    }

    fn objects(&self) -> Option<Figures> {
        self.inner.objects()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        notes.extend(self.layout.notes());
        if self.start > 0 {
            notes.push(format!("the trace began at its request {}, and the requests before came last", self.start + 1));
        }
        let ended = self.play.ended;
        if ended > 0 && self.repeat != Repeat::Once {
            notes.push(match self.repeat {
                Repeat::DriveWrites(_) => {
                    let drives = self.returned.written_bytes as f64 / self.drive_bytes.max(1) as f64;
                    format!(
                        "the workload was played {} times and wrote the drive {drives:.2} times (--repeat)",
                        ended + 1
                    )
                }
                Repeat::Forever => format!("the workload was played {} times (--until)", ended + 1),
                _ => format!("the workload was played {ended} times (--repeat)"),
            });
        }
        let Returned { requests, times, .. } = self.returned;
        if self.inner.arrivals() == Arrivals::Open && requests >= LEAST_OF_CLOCK && times * COARSE <= requests {
            let times = if times == 1 { "one time".into() } else { format!("{times} different times") };
            notes.push(format!(
                "the clock of the trace is coarse: {requests} requests arrive at {times} (--arrivals spread spreads \
                 them over the tick)"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
