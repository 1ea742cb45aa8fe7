//! The source of requests of line formats, with times of the trace's clock: tolerance of malformed lines, places of
//! errors.

use super::Opened;
use super::fields::{Fault, quoted};
use super::head::Head;
use super::line_format::{LineFormat, Parsed, Seconds};
use super::lines::{MAX_LINE_BYTES, Step};
use super::mapped::Mapped;
use crate::in_order::LONGEST_DISORDER;
use crate::request::{Arrivals, Extent, FileNames, Request, RequestKind, SECTOR_BYTES, Source};
use crate::volume_names::VolumeName;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;

/// Fewer requests do not tell bytes from sectors.
const LEAST_REQUESTS: u64 = 2;
/// Bytes of a message beyond which the description of the format is left out.
const LONGEST: usize = 190;

/// Opens a trace of the format `F`.
pub fn open<F: LineFormat>(opened: Opened) -> Result<Box<dyn Source>> {
    Ok(open_as(opened, F::default()))
}

/// Opens a trace that `format` reads.
pub fn open_as<F: LineFormat>(opened: Opened, format: F) -> Box<dyn Source> {
    let mut source = LineSource::<F> {
        opened,
        format,
        clock: Clock::default(),
        requests: 0,
        skipped: 0,
        finished: false,
        units: None,
    };
    let head = source.opened.lines.read_head();
    source.format.prepare(&head);
    source.units = units::<F>(&head);
    if source.opened.file_names {
        source.format.keep_names();
    }
    Box::new(source)
}

/// A note if the start of a trace, read in the unit that `F` does not have, fits that unit better.
fn units<F: LineFormat>(head: &Head<'_>) -> Option<String> {
    if let Some(columns) = F::IN_BYTES {
        let is_whole =
            |extent: Extent| [extent.sector, extent.sectors.into()].iter().all(|at| at.is_multiple_of(SECTOR_BYTES));
        return fits(F::default(), head, is_whole).then(|| {
            format!(
                "{} counts sectors, and all addresses and sizes near the start are multiples of {SECTOR_BYTES}: bytes, \
                 taken {SECTOR_BYTES} times too large? (--columns {columns})",
                F::NAME
            )
        });
    }
    let columns = F::IN_SECTORS?;
    let sectors = Mapped::parse(columns).expect("the columns of a format are right");
    fits(sectors, head, |extent| u64::from(extent.sectors) < SECTOR_BYTES).then(|| {
        format!(
            "{} counts bytes, and no size near the start reaches {SECTOR_BYTES}: sectors, taken {SECTOR_BYTES} times \
             too small? (--columns {columns})",
            F::NAME
        )
    })
}

/// True if enough requests start a trace that `format` reads, and the extents of all of them fit a unit.
fn fits<F: LineFormat>(mut format: F, head: &Head<'_>, fit: impl Fn(Extent) -> bool) -> bool {
    format.prepare(head);
    let mut requests = 0;
    for (_, line) in head.lines() {
        if let Ok(Parsed::Record(Request { command, .. })) = format.parse(line)
            && command.kind != RequestKind::Flush
        {
            if !fit(command.extent) {
                return false;
            }
            requests += 1;
        }
    }
    requests >= LEAST_REQUESTS
}

struct LineSource<F> {
    opened: Opened,
    format: F,
    clock: Clock,
    requests: u64,
    skipped: u64,
    finished: bool,
    /// A note if the units of the format are implausible.
    units: Option<String>,
}

impl<F: LineFormat> Source for LineSource<F> {
    fn next_request(&mut self) -> Result<Option<Request>> {
        while !self.finished {
            let step = self.opened.lines.advance()?;
            let fault = match step {
                Step::Line { .. } => match self.read_line() {
                    Ok(Some(request)) => return Ok(Some(request)),
                    Ok(None) => continue,
                    Err(fault) => fault,
                },
                Step::TooLong => Fault::new(format!("the line is longer than {MAX_LINE_BYTES} bytes")),
                Step::End => {
                    self.finished = true;
                    continue;
                }
            };
            self.bad_line(&fault, step)?;
        }
        if self.requests == 0 {
            return Err(self.no_requests());
        }
        Ok(None)
    }

    fn place(&self) -> String {
        self.opened.lines.place()
    }

    fn line(&self) -> Option<u64> {
        Some(self.opened.lines.number())
    }

    fn arrivals(&self) -> Arrivals {
        self.format.arrivals()
    }

    fn format(&self) -> Option<&'static str> {
        Some(F::NAME)
    }

    fn has_volumes(&self) -> bool {
        self.format.has_volumes()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.format.volume_names()
    }

    fn file_names(&self) -> Option<&FileNames> {
        self.format.names()
    }

    fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn notes(&self) -> Vec<String> {
        self.format.notes().into_iter().chain(self.units.clone()).collect()
    }
}

impl<F: LineFormat> LineSource<F> {
    /// The request of the present line; `None` for other lines.
    #[inline]
    fn read_line(&mut self) -> std::result::Result<Option<Request>, Fault> {
        let line = self.opened.lines.line();
        if line.is_empty() {
            return Ok(None);
        }
        match self.format.parse(line)? {
            Parsed::Record(record) => {
                let request = self.clock.check(record)?;
                self.requests += 1;
                Ok(Some(request))
            }
            Parsed::Header | Parsed::Skip => Ok(None),
            Parsed::End => {
                self.finished = true;
                Ok(None)
            }
        }
    }

    /// Skips a bad line or fails, by the user's option.
    #[cold]
    fn bad_line(&mut self, fault: &Fault, step: Step) -> Result<()> {
        let line = if step == Step::TooLong { &[][..] } else { self.opened.lines.line() };
        let is_blank = step != Step::TooLong && line.trim_ascii().is_empty();
        if is_blank || (self.requests == 0 && self.format.is_header(line)) {
            return Ok(());
        }
        if self.opened.skip_bad {
            self.skipped += 1;
            return Ok(());
        }
        let cut = match step {
            Step::Line { unterminated: true } => "; the file ends in this line, which may have been cut",
            _ => "",
        };
        let reading = match self.opened.recognised_from {
            Some(line) => format!("recognised as {} by line {line}", F::NAME),
            None => format!("read as {}", F::NAME),
        };
        let is_shown = step == Step::TooLong || fault.what.ends_with(&quoted(line));
        let shown = if is_shown { String::new() } else { format!(" in {}", quoted(line)) };
        let what = format!("{}{shown}{cut}; the file is {reading}", fault.what);
        let about = if what.len() + F::ABOUT.len() < LONGEST { format!(", {}", F::ABOUT) } else { String::new() };
        Err(Error::input(self.place(), what + &about))
    }

    #[cold]
    fn no_requests(&self) -> Error {
        let skipped = match self.skipped {
            0 => String::new(),
            1 => " after skipping 1 malformed line".into(),
            lines => format!(" after skipping {lines} malformed lines"),
        };
        let what = format!("the file holds no request{skipped}; expected {}", F::ABOUT);
        Error::input(self.opened.lines.name(), what)
    }
}

/// The latest time of the records so far.
#[derive(Debug, Default)]
pub struct Clock {
    latest: Nanos,
}

impl Clock {
    /// `record`, unchanged.
    ///
    /// # Errors
    /// The record is earlier than a previous one by more than [`LONGEST_DISORDER`].
    #[inline]
    pub fn check(&mut self, record: Request) -> std::result::Result<Request, Fault> {
        let back = self.latest.saturating_sub(record.arrival);
        if back > LONGEST_DISORDER {
            return Err(goes_back(back));
        }
        self.latest = self.latest.max(record.arrival);
        Ok(record)
    }
}

#[cold]
fn goes_back(back: Nanos) -> Fault {
    let back = Seconds(back);
    let tolerated = LONGEST_DISORDER / 1_000_000_000;
    Fault::new(format!(
        "time goes back by {back} s from the latest request before; expected lines in order of time (to within \
         {tolerated} s), or a file sorted by time"
    ))
}
