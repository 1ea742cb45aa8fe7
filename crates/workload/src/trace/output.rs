//! Traces as output: prints requests in any format, and counts the losses of the format.
//!
//! Requests of a kind that the format lacks are skipped; times are rounded down and sizes up to the format's grain;
//! streams and names that the format lacks are dropped. [`Losses`] counts all of these. Otherwise a trace that is
//! written and read again has the same requests.

use std::io::{self, Write};

use serde::Serialize;

use super::line_format::{Holds, LineFormat, Names};
#[cfg(target_arch = "wasm32")]
use super::zstd;
use super::{Format, names_of, outside};
use crate::request::{Directives, Request, RequestKind};
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::error::{Error, Result};

/// Compression of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// None.
    Plain,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// Format and compression of a trace to write.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Format.
    pub format: &'static Format,
    /// Compression.
    pub compression: Compression,
}

/// Numbers of requests that the format of a target changes or drops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Skipped trims.
    pub trims: u64,
    /// Skipped flushes.
    pub flushes: u64,
    /// Arrival times rounded down.
    pub times: u64,
    /// Sizes rounded up.
    pub sizes: u64,
    /// Requests of a stream other than 0 whose stream was dropped.
    pub streams: u64,
    /// Writes whose FUA, placement handle or lifetime was dropped.
    pub directives: u64,
    /// Requests whose file name was dropped.
    pub names: u64,
    /// Requests whose file name was changed.
    pub changed_names: u64,
}

/// The writer of a format.
pub(super) trait Sink: Send {
    /// Writes a request within the format's [`Holds`].
    fn put(&mut self, request: &Request, file: Option<&str>) -> io::Result<()>;
    /// Writes buffered requests.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// A trace being written.
pub struct Recorder {
    holds: Holds,
    sink: Box<dyn Sink>,
    losses: Losses,
    written: u64,
    name: String,
}

impl Target {
    /// The target of a file name: compression by `.gz` and `.zst`, format by the ending before. `format` overrides the
    /// ending.
    ///
    /// # Errors
    /// [`Error::Input`] when no format, or an unknown one, is named.
    pub fn of_name(name: &str, format: Option<&str>) -> Result<Target> {
        let lower = name.to_ascii_lowercase();
        let (stem, compression) = match (lower.strip_suffix(".gz"), lower.strip_suffix(".zst")) {
            (Some(stem), _) => (stem, Compression::Gzip),
            (_, Some(stem)) => (stem, Compression::Zstd),
            _ => (lower.as_str(), Compression::Plain),
        };
        let format = match format {
            Some(format) if outside::named(format).is_some() => return Err(only_read(name, format)),
            Some(format) => super::find_named("--format", format)?,
            None => {
                let ending = stem.rsplit_once('.').map_or("", |(_, ending)| ending);
                Format::of_ending(ending).ok_or_else(|| {
                    let what = format!(
                        "no format has the ending {ending:?}; expected an ending such as .csv, .msr or .parquet, or \
                         --format with a name that `palimpsest list traces` prints"
                    );
                    Error::input(name, what)
                })?
            }
        };
        if format.create.is_none() {
            return Err(only_read(name, format.name));
        }
        if compression != Compression::Plain && !format.is_text {
            let what = format!("{} files are compressed within; expected a name without .gz and .zst", format.name);
            return Err(Error::input(name, what));
        }
        Ok(Target { format, compression })
    }
}

fn only_read(file: &str, format: &str) -> Error {
    let written = names_of(|format| format.create.is_some());
    Error::input(file, format!("{format} traces are only read; expected --format with one of {written}"))
}

impl Recorder {
    /// Writes a trace of the form `target` to `output`, called `name` in messages. The caller opens the file.
    ///
    /// # Errors
    /// [`Error::Io`] when nothing can be written.
    pub fn new(target: Target, output: Box<dyn Write + Send>, name: &str) -> Result<Recorder> {
        let failed = |failure: io::Error| Error::Io { place: name.to_string(), what: failure.to_string() };
        let output = Compressed::new(output, target.compression).map_err(failed)?;
        let (holds, create) = target.format.output().expect("a target has a format that is written");
        let sink = create(output).map_err(failed)?;
        Ok(Recorder { holds, sink, losses: Losses::default(), written: 0, name: name.to_string() })
    }

    /// Writes a request of the file called `file`, reduced to the format's [`Holds`].
    ///
    /// # Errors
    /// [`Error::Io`] when writing fails.
    pub fn add(&mut self, mut request: Request, file: Option<&str>) -> Result<()> {
        let Holds { time_grain, size_grain, kinds, streams, fua, zones, names } = self.holds;
        let (losses, action) = (&mut self.losses, request.directives.zone);
        // Without its action, a command on a zone would be a trim, which drops data.
        if !kinds.contains(&request.kind) || !zones && action.manages() {
            match request.kind {
                RequestKind::Trim => losses.trims += 1,
                _ => losses.flushes += 1,
            }
            return Ok(());
        }
        losses.times += u64::from(!request.arrival.is_multiple_of(time_grain));
        request.arrival -= request.arrival % time_grain;
        losses.sizes += u64::from(!request.extent.sectors.is_multiple_of(size_grain));
        request.command.extent.sectors = request.extent.sectors.next_multiple_of(size_grain);
        if !streams {
            losses.streams += u64::from(request.owner() != 0);
        }
        let directives = request.directives;
        let Directives { owner, queue, .. } = directives;
        let zone = if zones { action } else { ZoneAction::None };
        let kept = Directives { owner, queue, zone, fua: directives.fua && fua, ..Directives::NONE };
        losses.directives += u64::from(kept != directives);
        request.command.directives = kept;
        let changed;
        let file = match (file, names) {
            (None, _) => None,
            (Some(_), names) if !has_name(names, request.kind) => {
                losses.names += 1;
                None
            }
            (Some(file), names) => {
                changed = changed_name(file, names);
                losses.changed_names += u64::from(changed.is_some());
                changed.as_deref().or(Some(file))
            }
        };
        self.written += 1;
        self.sink.put(&request, file).map_err(|failure| self.failed(&failure))
    }

    /// Ends the trace; returns the number of written requests, and the losses.
    ///
    /// # Errors
    /// [`Error::Io`] when writing fails.
    pub fn finish(self) -> Result<(u64, Losses)> {
        let Recorder { sink, losses, written, name, .. } = self;
        sink.close().map_err(|failure| Error::Io { place: name, what: failure.to_string() })?;
        Ok((written, losses))
    }

    #[cold]
    fn failed(&self, failure: &io::Error) -> Error {
        Error::Io { place: self.name.clone(), what: failure.to_string() }
    }
}

/// True if a format with `names` has names for requests of `kind`.
pub(super) fn has_name(names: Names, kind: RequestKind) -> bool {
    match names {
        Names::None => false,
        Names::NotOfFlushes => kind != RequestKind::Flush,
        Names::WithoutBlanks | Names::Any => true,
    }
}

/// The changed name for a format with `names`; `None` if unchanged.
fn changed_name(file: &str, names: Names) -> Option<String> {
    let cannot = |c: char| c.is_control() || (names == Names::WithoutBlanks && c.is_whitespace());
    file.contains(cannot).then(|| file.replace(cannot, "_"))
}

/// The sink of a format of lines.
pub(super) struct LineSink<F> {
    format: F,
    output: Compressed,
    line: String,
}

impl<F: LineFormat> LineSink<F> {
    /// Begins a trace.
    pub(super) fn create(mut output: Compressed) -> io::Result<Box<dyn Sink>> {
        output.write_all(F::HEADER.as_bytes())?;
        Ok(Box::new(LineSink { format: F::default(), output, line: String::new() }))
    }
}

impl<F: LineFormat> Sink for LineSink<F> {
    fn put(&mut self, request: &Request, file: Option<&str>) -> io::Result<()> {
        self.line.clear();
        self.format.print(request, file, &mut self.line).expect("memory takes all");
        self.line.push('\n');
        self.output.write_all(self.line.as_bytes())
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

/// A compressor over the bytes of a trace.
pub(super) enum Compressed {
    /// No compression.
    Plain(io::BufWriter<Box<dyn Write + Send>>),
    /// gzip.
    Gzip(flate2::write::GzEncoder<Box<dyn Write + Send>>),
    /// zstd.
    Zstd(io::BufWriter<zstd::stream::write::Encoder<'static, Box<dyn Write + Send>>>),
}

impl Compressed {
    fn new(output: Box<dyn Write + Send>, compression: Compression) -> io::Result<Compressed> {
        const ZSTD_LEVEL: i32 = 3;
        Ok(match compression {
            Compression::Plain => Compressed::Plain(io::BufWriter::with_capacity(1 << 18, output)),
            Compression::Gzip => {
                Compressed::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Compression::Zstd => {
                Compressed::Zstd(io::BufWriter::new(zstd::stream::write::Encoder::new(output, ZSTD_LEVEL)?))
            }
        })
    }

    /// Writes buffered bytes, and the end of the compressed data.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut output = match self {
            Compressed::Plain(plain) => plain.into_inner().map_err(io::IntoInnerError::into_error)?,
            Compressed::Gzip(gzip) => gzip.finish()?,
            Compressed::Zstd(zstd) => zstd.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
        };
        output.flush()
    }
}

impl Compressed {
    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Compressed::Plain(plain) => plain,
            Compressed::Gzip(gzip) => gzip,
            Compressed::Zstd(zstd) => zstd,
        }
    }
}

impl Write for Compressed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}
