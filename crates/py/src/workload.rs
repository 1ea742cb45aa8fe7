//! Workloads by name: a preset, a trace, a job file of fio, or a specification.

use crate::files::Waiting;
use palimpsest_lab::config;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::fio::{self, FioSpec, JobFile, is_job_file};
use palimpsest_lab::host::request::Source;
use palimpsest_lab::host::trace::{self, TraceOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of a read of a file.
const BUFFER_BYTES: usize = 1 << 18;

/// Largest job file.
const JOB_FILE_BYTES: u64 = 1 << 20;

/// How to open a workload.
pub struct Opening<'a> {
    /// Bytes of the drive, on which generated workloads are laid out.
    pub drive_bytes: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// How to read a trace.
    pub trace: &'a TraceOptions,
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
    let generated = |spec: &str| -> Result<Box<dyn Source>> {
        fio::generated(&FioSpec::parse(spec)?, opening.drive_bytes, opening.seed)
    };
    if let Some(spec) = config::workload_spec(text) {
        return generated(&spec);
    }
    if let Some((name, changes)) = text.split_once(',')
        && let Some(spec) = config::workload_spec(name)
    {
        return generated(&FioSpec::changed(&spec, changes)?);
    }
    let path = Path::new(text);
    if text.contains('=') && !path.exists() {
        return generated(text);
    }
    if !path.exists() {
        return Err(unknown(text));
    }
    open_file(text, opening)
}

/// The workload in the file at `path`: a trace or a job file.
pub fn open_file(path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if Path::new(path).is_dir() {
        return Err(Error::input(path, "this is a directory; expected a trace file"));
    }
    let file = Waiting::open(path).map_err(|error| Error::input(path, describe_io(&error)))?;
    let mut file = match file.regular() {
        Ok(file) => BufReader::with_capacity(BUFFER_BYTES, file),
        Err(pipe) => return open_pipe(BufReader::with_capacity(BUFFER_BYTES, pipe), path, opening),
    };
    let is_job_file = opening.trace.format.is_none() && file.fill_buf().is_ok_and(is_job_file);
    if is_job_file {
        let jobs = JobFile::parse(&read_text(file, path)?, path)?;
        return Ok(Box::new(jobs.source(opening.drive_bytes, opening.seed)?));
    }
    trace::open_trace_file(Box::new(file), path, opening.trace)
}

/// As [`open_file`], for a file that can only be read from its start.
fn open_pipe(mut pipe: BufReader<Waiting>, path: &str, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    if opening.trace.format.is_none() && pipe.fill_buf().is_ok_and(is_job_file) {
        let jobs = JobFile::parse(&read_text(pipe, path)?, path)?;
        return Ok(Box::new(jobs.source(opening.drive_bytes, opening.seed)?));
    }
    trace::open_trace(Box::new(pipe), path, opening.trace)
}

fn read_text(file: impl Read, path: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let read = file.take(JOB_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::Io { place: path.into(), what: error.to_string() })?;
    if bytes.len() as u64 > JOB_FILE_BYTES {
        return Err(Error::input(
            path,
            "the file begins like a job file of fio and has more than 1 MiB; expected less",
        ));
    }
    String::from_utf8(bytes).map_err(|_| Error::input(path, "the file is not UTF-8 text; expected a job file of fio"))
}

fn unknown(text: &str) -> Error {
    let presets = config::workload_presets();
    let near = palimpsest_lab::ftl::keys::near(text, presets.iter().map(|preset| preset.name));
    let what = match near.is_empty() {
        false => format!("there is no preset and no file of this name{near}"),
        true => "there is no preset, no file and no specification of this name; expected one that `palimpsest list workloads` \
                 prints, a trace file, or a specification such as rw=randwrite,bs=4k"
            .into(),
    };
    Error::input(format!("--workload {text}"), what)
}
