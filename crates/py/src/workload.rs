//! Opens workloads by name: a preset, a trace, a job file of fio, or a specification.

use crate::ahead::ahead;
use crate::files::{Checked, Waiting};
use crate::formats;
use palimpsest_lab::config;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::fio::{self, FioSpec, JobFile, Surroundings, is_job_file};
use palimpsest_lab::host::lsm::{LsmSource, LsmSpec};
use palimpsest_lab::host::objects::{self, ObjectSource, ObjectSpec, open_objects};
use palimpsest_lab::host::replay::{Playing, Reopen, Repeat, Replay, Volumes};
use palimpsest_lab::host::request::Source;
use palimpsest_lab::host::trace::{self, TraceOptions};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of a read of a file.
const BUFFER_BYTES: usize = 1 << 18;

/// Largest job file.
const JOB_FILE_BYTES: u64 = 1 << 20;

/// What distinguishes the random numbers of a run-in from those of the measurement.
pub const RUN_IN_SEED: u64 = 0x72_75_6e_2d_69_6e;

/// Options of opening a workload.
pub struct Opening<'a> {
    /// Bytes of the drive, for generated workloads.
    pub drive_bytes: u64,
    /// Seed of generated workloads.
    pub seed: u64,
    /// Options of reading a trace.
    pub trace: &'a TraceOptions,
    /// Options of the replay.
    pub playing: &'a Playing,
}

fn reopening(text: &str, opening: &Opening<'_>, open: fn(&str, &Opening<'_>) -> Result<Box<dyn Source>>) -> Reopen {
    let (text, trace, drive_bytes, seed) = (text.to_owned(), opening.trace.clone(), opening.drive_bytes, opening.seed);
    let playing = Playing { namespaces: opening.playing.namespaces.clone(), ..Playing::default() };
    Box::new(move || open(&text, &Opening { drive_bytes, seed, trace: &trace, playing: &playing }))
}

fn played(source: Box<dyn Source>, reopen: Option<Reopen>, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let has_volumes = source.has_volumes();
    Ok(Box::new(Replay::new(source, has_volumes, reopen, opening.playing)?))
}

/// True if the content of a file decides how to read the file.
fn is_recognised(opening: &Opening<'_>) -> bool {
    opening.trace.format.is_none() && opening.trace.columns.is_none()
}

/// A given option that only traces have.
fn of_traces(opening: &Opening<'_>) -> Option<&'static str> {
    let Opening { trace, playing, .. } = opening;
    let has_volumes = !matches!(playing.volumes, Volumes::OfFormat | Volumes::Overlaid);
    let given = [
        (trace.columns.is_some(), "--columns"),
        (trace.format.is_some(), "--from"),
        (trace.skip_bad, "--skip-bad"),
        (has_volumes, "--volumes"),
        (playing.spread, "--arrivals spread"),
        (playing.start > 0.0, "--start"),
    ];
    given.iter().find(|(is_given, _)| *is_given).map(|&(_, option)| option)
}

/// Refuses `volumes` of the user for a workload that is no trace of a drive; only such a trace has volumes.
pub fn expect_volumes(volumes: Option<&str>, source: &dyn Source) -> Result<()> {
    if volumes.is_none() || source.format().is_some() && source.objects().is_none() {
        return Ok(());
    }
    Err(Error::input("--volumes", "the option is for traces of drives, and this workload is none; expected a trace"))
}

/// An object workload, generated or of a trace.
fn open_as_objects(spec: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let spec = ObjectSpec::parse(spec)?;
    let Opening { trace, playing, .. } = opening;
    let refused = [
        (trace.columns.is_some(), "--columns"),
        (!matches!(playing.volumes, Volumes::OfFormat | Volumes::Overlaid), "--volumes"),
        (playing.repeat != Repeat::Once, playing.repeat.option()),
        (playing.start > 0.0, "--start"),
        (playing.piece_bytes > 0, "host.compact"),
        (playing.namespaces.are_apart(), "ssd.namespaces"),
        (spec.trace.is_none() && trace.format.is_some(), "--from"),
        (spec.trace.is_none() && trace.skip_bad, "--skip-bad"),
        (spec.trace.is_none() && playing.spread, "--arrivals spread"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        let what = "this object workload has no use for the option; expected none, or trace=FILE for options of traces";
        return Err(Error::input(*option, what));
    }
    let (drive_bytes, seed, spread) = (opening.drive_bytes, opening.seed, playing.spread);
    let Some(path) = spec.trace.clone() else {
        return Ok(Box::new(ObjectSource::new(spec, None, drive_bytes, seed)?));
    };
    let (format, token_bytes, skip_bad) = (trace.format.clone(), spec.token_bytes, trace.skip_bad);
    let place = if path == "-" { "/dev/stdin".into() } else { path };
    if Path::new(&place).is_dir() {
        return Err(Error::input(place, "this is a directory; expected a trace file"));
    }
    let reopen: objects::Reopen = Box::new(move || {
        let input = Waiting::open(&place).map_err(|error| Error::input(&place, describe_io(&error)))?;
        open_objects(Box::new(input), &place, format.as_deref(), token_bytes, skip_bad)
    });
    let (now, is_file) = (reopen()?, Path::new(spec.trace.as_deref().unwrap_or_default()).is_file());
    let source = ObjectSource::new(spec, Some((now, is_file.then_some(reopen))), drive_bytes, seed)?;
    Ok(Box::new(Replay::new(Box::new(source), false, None, &Playing { spread, ..Playing::default() })?))
}

/// A generated workload, which has no file, volumes or clock.
fn generated(text: &str, spec: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if ObjectSpec::is_meant(spec) {
        return open_as_objects(spec, opening);
    }
    let playing = opening.playing;
    if let Some(option) = of_traces(opening) {
        let what = format!("the option is for traces, and the workload {text} is generated; expected a trace");
        return Err(Error::input(option, what));
    }
    if LsmSpec::is_meant(spec) {
        if playing.namespaces.are_apart() {
            let what = "a store of records is one tenant on one range; expected none";
            return Err(Error::input("ssd.namespaces", what));
        }
        if playing.repeat != Repeat::Once {
            let what = "a store of records continues from its last state; expected a larger n";
            return Err(Error::input(playing.repeat.option(), what));
        }
        return Ok(Box::new(LsmSource::new(LsmSpec::parse(spec)?, opening.drive_bytes, opening.seed)?));
    }
    let source = fio::of_text(spec, opening.playing.namespaces.clone(), opening.seed)?;
    if playing.repeat == Repeat::Once {
        return Ok(source);
    }
    let again =
        |spec: &str, opening: &Opening<'_>| fio::of_text(spec, opening.playing.namespaces.clone(), opening.seed);
    let reopen = reopening(spec, opening, again);
    Ok(Box::new(Replay::new(source, false, Some(reopen), playing)?))
}

/// An error of the operating system on a file, in words.
pub fn describe_io(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file; expected a name that exists or a path to a file".into(),
        std::io::ErrorKind::PermissionDenied => "no permission to read the file; expected a readable file".into(),
        std::io::ErrorKind::IsADirectory => "this is a directory; expected a file".into(),
        _ => error.to_string(),
    }
}

/// The workload of `text`: a preset, a file, or a specification in fio's language.
pub fn open(text: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if let Some(spec) = config::workload_spec(text) {
        return generated(text, &spec, opening);
    }
    if let Some((name, changes)) = text.split_once(',')
        && let Some(spec) = config::workload_spec(name)
    {
        let is_described = ObjectSpec::is_meant(&spec) || LsmSpec::is_meant(&spec);
        let changed =
            if is_described { ObjectSpec::changed(&spec, changes) } else { FioSpec::changed(&spec, changes)? };
        return generated(text, &changed, opening);
    }
    if text == "-" {
        return open_file("/dev/stdin", opening);
    }
    let path = Path::new(text);
    if in_archive(text).is_some() {
        return open_file(text, opening);
    }
    if text.contains('=') && !path.exists() {
        return generated(text, text, opening);
    }
    if !path.exists() {
        return Err(unknown(text));
    }
    open_file(text, opening)
}

/// The load of [`open`] without end, and with random numbers that `other` changes; `None` for traces, objects, stores
/// of records, and jobs that depend on the state of the drive.
pub fn endless(text: &str, opening: &Opening<'_>, other: u64) -> Result<Option<Box<dyn Source>>> {
    let namespaces = opening.playing.namespaces.clone();
    let is_described = |spec: &str| ObjectSpec::is_meant(spec) || LsmSpec::is_meant(spec);
    let changed = || text.split_once(',').and_then(|(name, changes)| Some((config::workload_spec(name)?, changes)));
    let preset = config::workload_spec(text).map(|spec| (spec, "")).or_else(changed);
    let path = Path::new(text);
    let spec = match preset {
        Some((spec, _)) if is_described(&spec) => return Ok(None),
        Some((spec, "")) => spec,
        Some((spec, changes)) => FioSpec::changed(&spec, changes)?,
        None if text.contains('=') && !path.exists() => text.to_owned(),
        None if path.is_file() && is_recognised(opening) => {
            let file = File::open(path).map_err(|error| Error::input(text, describe_io(&error)))?;
            let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
            if !file.fill_buf().is_ok_and(is_job_file) {
                return Ok(None);
            }
            let jobs = JobFile::parse_in(&read_text(file, text)?, text, &surroundings())?.endless(other);
            return Ok(jobs
                .map(|jobs| jobs.source(namespaces, opening.seed ^ other))
                .transpose()?
                .map(|source| Box::new(source) as _));
        }
        None => return Ok(None),
    };
    if is_described(&spec) {
        return Ok(None);
    }
    fio::endless(&spec, namespaces, opening.seed, other)
}

/// What job files may read.
fn surroundings() -> Surroundings<'static> {
    Surroundings { variable: &|name| std::env::var(name).ok(), include: &include }
}

/// The workload in the file at `path`: a trace, one in an archive (`ARCHIVE/NAME`), or a job file.
pub fn open_file(path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if let Some((archive, member)) = in_archive(path) {
        let trace = TraceOptions { member: Some(member.to_owned()), ..opening.trace.clone() };
        let file = File::open(archive).map_err(|error| Error::input(archive, describe_io(&error)))?;
        return open_trace(file, archive, &Opening { trace: &trace, ..*opening });
    }
    if Path::new(path).is_dir() {
        return Err(Error::input(path, "this is a directory; expected a trace file"));
    }
    let file = Waiting::open(path).map_err(|error| Error::input(path, describe_io(&error)))?;
    let mut file = match file.regular() {
        Ok(file) => BufReader::with_capacity(BUFFER_BYTES, file),
        Err(pipe) => return open_pipe(BufReader::with_capacity(BUFFER_BYTES, pipe), path, opening),
    };
    if is_recognised(opening) && file.fill_buf().is_ok_and(is_job_file) {
        return jobs(read_text(file, path)?, path, opening);
    }
    open_trace(file.into_inner(), path, opening)
}

/// The archive and the name of a trace inside, if `path` has both.
fn in_archive(path: &str) -> Option<(&str, &str)> {
    if Path::new(path).exists() { None } else { trace::archive::split(path, |part| Path::new(part).is_file()) }
}

/// A trace with random access; the search of an archive checks signals.
fn open_trace(file: File, path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let file = BufReader::with_capacity(BUFFER_BYTES, Checked::from(file));
    let source = trace::open_trace_file(Box::new(file), path, opening.trace)?;
    played(read_ahead(source, opening), Some(reopening(path, opening, open_again)), opening)
}

/// Opens a trace again, without a replay.
fn open_again(path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let file = File::open(path).map_err(|error| Error::input(path, describe_io(&error)))?;
    let file = BufReader::with_capacity(BUFFER_BYTES, Checked::from(file));
    trace::open_trace_file(Box::new(file), path, opening.trace).map(|source| read_ahead(source, opening))
}

/// The same requests, read by another thread unless the format is in Python.
fn read_ahead(source: Box<dyn Source>, opening: &Opening<'_>) -> Box<dyn Source> {
    if formats::is_python(opening.trace.format.as_deref()) { source } else { ahead(source) }
}

/// As [`open_file`], for a file without random access.
fn open_pipe(mut pipe: BufReader<Waiting>, path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if is_recognised(opening) && pipe.fill_buf().is_ok_and(is_job_file) {
        return jobs(read_text(pipe, path)?, path, opening);
    }
    played(trace::open_trace(Box::new(pipe), path, opening.trace)?, None, opening)
}

/// The jobs of a job file, which have neither volumes nor recorded times.
fn jobs(text: String, path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let repeat = opening.playing.repeat;
    let option = of_traces(opening).or_else(|| (repeat != Repeat::Once).then(|| repeat.option()));
    if let Some(option) = option {
        return Err(Error::input(option, format!("{path} is a job file of fio; expected a trace")));
    }
    let file = JobFile::parse_in(&text, path, &surroundings());
    Ok(Box::new(file?.source(opening.playing.namespaces.clone(), opening.seed)?))
}

/// The text of the file called `name`, or of that name beside the file `by`, which includes it.
fn include(name: &str, by: &str) -> Result<String> {
    let beside = Path::new(by).with_file_name(name);
    let path = if Path::new(name).exists() { Path::new(name) } else { &beside };
    let file = File::open(path).map_err(|error| Error::input(name, describe_io(&error)))?;
    read_text(file, name)
}

fn read_text(file: impl Read, path: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let read = file.take(JOB_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::Io { place: path.into(), what: error.to_string() })?;
    if bytes.len() as u64 > JOB_FILE_BYTES {
        return Err(Error::input(
            path,
            "the file begins like a job file of fio and has more than 1 MiB; expected a smaller file",
        ));
    }
    String::from_utf8(bytes).map_err(|_| Error::input(path, "the file is not UTF-8 text; expected a job file of fio"))
}

fn unknown(text: &str) -> Error {
    let presets = config::workload_presets();
    let near = palimpsest_lab::ftl::keys::near(text, presets.iter().map(|preset| preset.name));
    let what = match near.is_empty() {
        false => format!("there is no preset and no file of this name{near}"),
        true => "there is no preset, no file and no specification of this name; expected one of `palimpsest list \
                 workloads`, a file, or text such as rw=randwrite"
            .into(),
    };
    Error::input(format!("--workload {text}"), what)
}
