//! How a workload that is read is played on one drive: where its volumes lie, which of them, how often, and at which times.
//!
//! - **Volumes** ([`Volumes`]): those of a trace begin at address 0 each. Apart, each has an address range of its own, in order of
//!   appearance; overlaid, they share addresses; or only some are played, apart. What tells volumes apart is
//!   [`Request::stream`]; by default that is so for formats whose streams are devices.
//! - **Compaction**: only pieces of the address space that the trace reads or writes get addresses, in the order of their own.
//! - **Spreading**: requests with one time, of a coarse clock, are spread evenly over its tick.
//! - **Repetition** ([`Repeat`]): the workload is played again from its start, later by its duration and one mean gap.
//!
//! A trace is read a second time, from its start, where the sizes of volumes or the pieces must be known before: at its second
//! volume, or at its beginning with compaction. A trace of one volume is thus read once, and its addresses are its own.

mod jobs;
mod layout;
mod spread;

pub use layout::{Survey, Volume, Volumes};

use crate::request::{Arrivals, FileNames, Jobs, Request, RequestKind, SECTOR_BYTES, Source};
use layout::Layout;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
use spread::Spread;

/// Opens the workload again, at its start.
pub type Reopen = Box<dyn Fn() -> Result<Box<dyn Source>> + Send>;

/// Fewer requests tell nothing about a clock.
const LEAST_OF_CLOCK: u64 = 1000;
/// So many requests of one time, in the mean, come from a coarse clock.
const COARSE: u64 = 20;

/// How often a workload is played.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Repeat {
    /// Once.
    #[default]
    Once,
    /// This many times.
    Times(u64),
    /// Until this many bytes have been written, in units of the drive's capacity.
    DriveWrites(f64),
    /// Until the drive takes no more.
    Forever,
}

impl Repeat {
    /// The option that asks for it.
    pub fn option(self) -> &'static str {
        if self == Repeat::Forever { "--until worn-out" } else { "--repeat" }
    }

    /// Reads `3` or `2dw`.
    ///
    /// # Errors
    /// [`Error::Input`] with what was expected.
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

/// How a workload is played; the default changes nothing of a trace with one volume.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Playing {
    /// Which volumes, and where.
    pub volumes: Volumes,
    /// Bytes of a piece of compacted addresses, a multiple of a sector; 0: addresses as they are.
    pub piece_bytes: u64,
    /// Whether requests of one time are spread over the tick of the trace's clock.
    pub spread: bool,
    /// How often.
    pub repeat: Repeat,
    /// Bytes of the drive, in which [`Repeat::DriveWrites`] counts.
    pub drive_bytes: u64,
}

/// A workload, played.
pub struct Replay {
    inner: Box<dyn Source>,
    reopen: Option<Reopen>,
    layout: Layout,
    spread: Option<Spread>,
    repeat: Repeat,
    drive_bytes: u64,
    /// Plays so far that are over.
    played: u64,
    /// Whether the last one is, too: a run may ask again.
    is_over: bool,
    /// Added to all arrivals.
    shift: Nanos,
    /// Requests of this play, and the arrival of the last.
    in_play: u64,
    latest: Nanos,
    /// Of what has left: its requests and how many times they have, the latest of them, and bytes of writes.
    requests: u64,
    times: u64,
    left_at: Nanos,
    written: u64,
    /// Whether the host keeps one depth for all jobs, in place of their own.
    has_no_depths: bool,
}

impl Replay {
    /// Plays `inner`, whose streams are volumes by default if `has_volumes`; `reopen` opens it again, where that can be done.
    ///
    /// # Errors
    /// [`Error::Input`] where `playing` needs a second reading and the workload cannot be read twice; errors of that reading.
    pub fn new(inner: Box<dyn Source>, has_volumes: bool, reopen: Option<Reopen>, playing: &Playing) -> Result<Replay> {
        if playing.repeat != Repeat::Once && reopen.is_none() {
            let why = "a pipe is read once; expected a file, to play it again";
            return Err(Error::input(playing.repeat.option(), why));
        }
        let grain = inner.format().and_then(crate::trace::Format::named).map_or(1, crate::trace::Format::time_grain);
        let spread = (playing.spread && inner.arrivals() == Arrivals::Open).then(|| Spread::new(grain));
        let mut layout = Layout::new(&playing.volumes, has_volumes, playing.piece_bytes / SECTOR_BYTES);
        if playing.piece_bytes > 0 {
            layout.plan(reopen.as_ref(), &inner.place())?;
        }
        Ok(Replay {
            inner,
            reopen,
            layout,
            spread,
            repeat: playing.repeat,
            drive_bytes: playing.drive_bytes,
            played: 0,
            is_over: false,
            shift: 0,
            in_play: 0,
            latest: 0,
            requests: 0,
            times: 0,
            left_at: 0,
            written: 0,
            has_no_depths: false,
        })
    }

    /// The next request in the order of the workload, where and when it is.
    fn next_placed(&mut self) -> Result<Option<Request>> {
        loop {
            let Some(mut request) = self.inner.next_request()? else {
                if self.play_again()? {
                    continue;
                }
                return self.layout.expect_requests(&self.inner.place()).map(|()| None);
            };
            let layout = &mut self.layout;
            if layout.turn_to(request.stream, self.reopen.as_ref(), &*self.inner)? && layout.place(&mut request) {
                request.arrival += self.shift;
                self.in_play += 1;
                self.latest = request.arrival;
                return Ok(Some(request));
            }
        }
    }

    /// Begins another play, if one is to follow.
    #[cold]
    fn play_again(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.played += 1;
        let more = match self.repeat {
            Repeat::Once => false,
            Repeat::Times(times) => self.played < times,
            Repeat::DriveWrites(_) | Repeat::Forever => {
                if self.written == 0 {
                    let what = "the workload writes nothing, so it never writes a drive, nor wears one out; expected one that writes";
                    return Err(Error::input(self.repeat.option(), what));
                }
                true
            }
        };
        let (Some(reopen), true, true) = (&self.reopen, more, self.in_play > 0) else {
            self.is_over = true;
            return Ok(false);
        };
        self.inner = reopen()?;
        self.shift = self.latest + (self.latest - self.shift) / (self.in_play.max(2) - 1);
        self.in_play = 0;
        Ok(true)
    }

    /// Whether the drive writes that were asked for are done.
    #[inline]
    fn is_written(&self) -> bool {
        match self.repeat {
            Repeat::DriveWrites(drives) => self.written as f64 >= drives * self.drive_bytes as f64,
            _ => false,
        }
    }

    #[inline]
    fn leaves(&mut self, request: &Request) {
        self.times += u64::from(self.requests == 0 || request.arrival != self.left_at);
        self.left_at = request.arrival;
        self.requests += 1;
        if request.kind == RequestKind::Write {
            self.written += u64::from(request.sectors) * SECTOR_BYTES;
        }
    }
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
        self.leaves(&request);
        Ok(Some(request))
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        self.inner.next_of_layout()
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

    fn can_repeat(&self) -> bool {
        self.reopen.is_some() && self.inner.can_repeat()
    }

    fn expected_requests(&self) -> Option<u64> {
        match self.repeat {
            _ if self.layout.drops_volumes() => None,
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

    fn has_volumes(&self) -> bool {
        self.layout.has_volumes()
    }

    fn volumes(&self) -> &[Volume] {
        self.layout.volumes()
    }

    fn survey(&mut self) -> Result<Option<Survey>> {
        self.layout.survey(self.reopen.as_ref())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        notes.extend(self.layout.notes());
        if self.played > 0 && self.repeat != Repeat::Once {
            notes.push(match self.repeat {
                Repeat::DriveWrites(_) => {
                    let drives = self.written as f64 / self.drive_bytes.max(1) as f64;
                    format!(
                        "the workload was played {} times, and wrote the drive {drives:.2} times (--repeat)",
                        self.played + 1
                    )
                }
                Repeat::Forever => format!("the workload was played {} times (--until)", self.played + 1),
                _ => format!("the workload was played {} times (--repeat)", self.played),
            });
        }
        if self.inner.arrivals() == Arrivals::Open && self.requests >= LEAST_OF_CLOCK {
            notes.extend(self.note_of_clock());
        }
        notes
    }
}

impl Replay {
    fn note_of_clock(&self) -> Option<String> {
        let is_coarse = self.times * COARSE <= self.requests;
        is_coarse.then(|| {
            let times = if self.times == 1 { "one time".into() } else { format!("{} different times", self.times) };
            format!(
                "the {} requests arrive at {times}, those of one time at once: the clock of the trace is coarse (--arrivals \
                 spread spreads them over its tick)",
                self.requests
            )
        })
    }
}

#[cfg(test)]
mod tests;
