//! Job files of fio as workloads (<https://fio.readthedocs.io>, "Job file format"): `[global]` and one section a job.
//!
//! A job has the keys of a [specification](super::keys()), and these: `stonewall` or `wait_for_previous` (the job
//! begins after the previous jobs), `direct=1` and `buffered=0` (there is no page cache), `ioengine` (`iodepth` must be
//! 1 unless the engine queues), `filename` and `directory` (the drive: must be the same in every job),
//! `group_reporting` (copies are always reported together), `thread`, `invalidate` and `description`. Any other key is
//! an error.
//!
//! As in fio a job without `number_ios`, `io_size` and `loops` requests `size` once (with `time_based`, repeatedly
//! until the end of `runtime`), and later `[global]` sections change the defaults of the jobs after them. Jobs of one
//! phase (up to a stonewall) run at the same time, each with its own `iodepth` or rate; the next phase begins when all
//! requests of the phase have completed. `playing.rs` runs the jobs.

mod pace;
mod playing;

pub use playing::JobsSource;

use super::keys::{self, Key, MOST_JOBS};
use super::quantity::Units;
use super::source::FioSource;
use super::spec::{FioSpec, pairs, place};
use crate::request::RequestKind;
use palimpsest_flash::error::{Error, Result};

/// Engines that keep several requests outstanding.
const QUEUEING_ENGINES: &[&str] =
    &["libaio", "io_uring", "io_uring_cmd", "posixaio", "solarisaio", "windowsaio", "spdk", "spdk_bdev", "xnvme"];
/// Engines that wait for each request.
const WAITING_ENGINES: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "sg"];

/// Keys of a job that a specification does not have, with the expected values.
const JOB_KEYS: &[(&str, &str)] = &[
    ("stonewall", "nothing, or 1"),
    ("wait_for_previous", "nothing, or 1"),
    ("direct", "1, since there is no page cache here"),
    ("buffered", "0, since there is no page cache here"),
    ("ioengine", "libaio, io_uring, posixaio, sync, psync or another that submits block requests"),
    ("filename", "a name for the drive"),
    ("directory", "a folder; with the filename, a name for the drive"),
    ("group_reporting", "nothing, or 1: copies are reported together"),
    ("thread", "nothing, or 1, since there are no processes here"),
    ("invalidate", "nothing, 0 or 1, since there is no page cache here"),
    ("description", "any text"),
];

/// The jobs of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    name: String,
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, PartialEq)]
struct Job {
    name: String,
    spec: FioSpec,
    starts_phase: bool,
    /// Line of the section, 0 in a specification, and lines of the keys.
    line: usize,
    lines: Vec<(&'static str, usize)>,
}

#[derive(Clone)]
struct KeyLine {
    key: Meaning,
    value: String,
    line: usize,
}

#[derive(Clone, Copy)]
enum Meaning {
    Spec(&'static Key),
    Job(&'static str, &'static str),
}

impl Meaning {
    fn name(self) -> &'static str {
        match self {
            Meaning::Spec(key) => key.name,
            Meaning::Job(name, _) => name,
        }
    }
}

/// True if a file that begins with `head` is a job file: a section is first, except for comments.
pub fn is_job_file(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !matches!(line.first(), None | Some(b'#' | b';'))).is_some_and(|line| line[0] == b'[')
}

impl JobFile {
    /// Reads the job file `text`, called `name` in messages.
    ///
    /// # Errors
    /// [`Error::Input`] with the line, the key and the expected values.
    pub fn parse(text: &str, name: &str) -> Result<JobFile> {
        let mut reader = Reader { name, global: Vec::new(), jobs: Vec::new(), filename: None };
        let mut section: Option<Section> = None;
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let (line, number) = (line.trim(), at + 1);
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(title) = line.strip_prefix('[') {
                let Some(title) = title.strip_suffix(']').map(str::trim).filter(|title| !title.is_empty()) else {
                    return Err(reader.wrong(number, "expected a section such as [job1]"));
                };
                if let Some(section) = section.take() {
                    reader.finish(section)?;
                }
                section = Some(Section { title: title.to_string(), line: number, entries: Vec::new() });
                continue;
            }
            let Some(section) = &mut section else {
                return Err(reader.wrong(number, "expected a section such as [global] or [job1] before the first key"));
            };
            let entry = reader.entry(line, number)?;
            if let Some(other) = section.entries.iter().find(|other| other.key.name() == entry.key.name()) {
                let what = format!(
                    "{}: the key is given twice, first in line {}; expected one value",
                    entry.key.name(),
                    other.line
                );
                return Err(reader.wrong(number, what));
            }
            section.entries.push(entry);
        }
        if let Some(section) = section {
            reader.finish(section)?;
        }
        JobFile::of(name, reader.jobs)
    }

    /// Reads jobs in one line, as on fio's command line: each `name` begins a job, and keys before the first `name`
    /// apply to all jobs. Keys, units and lengths have the meaning of a [specification](FioSpec::parse). `None` without
    /// `name`.
    ///
    /// # Errors
    /// [`Error::Input`] with the key and the expected values.
    pub fn of_line(text: &str) -> Result<Option<JobFile>> {
        let mut sections = vec![(String::new(), Vec::new())];
        for (key, value) in pairs(text)? {
            match key {
                "name" if value.is_empty() => return Err(Error::input(place("name"), "expected the name of a job")),
                "name" => sections.push((value, Vec::new())),
                _ => sections.last_mut().expect("the first has the common keys").1.push(format!("{key}={value}")),
            }
        }
        let texts: Vec<(String, String)> = sections.into_iter().map(|(name, keys)| (name, keys.join(","))).collect();
        let [(_, common), own @ ..] = texts.as_slice() else { return Ok(None) };
        let mut jobs = Vec::new();
        for (name, keys) in own {
            let text = match (common.as_str(), keys.as_str()) {
                (one, "") | ("", one) => one.to_string(),
                (common, keys) => FioSpec::changed(common, keys)?,
            };
            let spec = if text.is_empty() { FioSpec::default() } else { FioSpec::parse(&text)? };
            jobs.push(Job { name: name.clone(), spec, starts_phase: false, line: 0, lines: Vec::new() });
        }
        if jobs.is_empty() { Ok(None) } else { JobFile::of("--workload", jobs).map(Some) }
    }

    fn of(name: &str, jobs: Vec<Job>) -> Result<JobFile> {
        if jobs.is_empty() {
            return Err(Error::input(
                name,
                "the file has no job; expected a section other than [global], such as [job1]",
            ));
        }
        let copies: u64 = jobs.iter().map(|job| job.spec.copies).sum();
        if copies > MOST_JOBS {
            return Err(Error::input(name, format!("{copies} jobs; expected at most {MOST_JOBS}, copies counted")));
        }
        Ok(JobFile { name: name.to_string(), jobs })
    }

    /// The requests of all jobs on a drive of `drive_bytes`; equal seeds give equal requests.
    ///
    /// # Errors
    /// As [`FioSource::new`], with the line of the job.
    pub fn source(&self, drive_bytes: u64, seed: u64) -> Result<JobsSource> {
        let mut source = JobsSource::new(&self.name);
        let mut number = 1u64;
        for job in &self.jobs {
            source.begin_section(&job.name, &job.spec);
            for copy in 0..job.spec.copies {
                let requests = FioSource::of_job(&job.spec, drive_bytes, seed, number);
                let at_line =
                    |error| if job.line == 0 { error } else { placed(&self.name, &job.lines, job.line, error) };
                source.push(&job.spec, requests.map_err(at_line)?, job.starts_phase && copy == 0);
                number += 1;
            }
        }
        Ok(source)
    }
}

/// Moves an error about a key of a specification to the line of the key.
fn placed(name: &str, lines: &[(&'static str, usize)], section: usize, error: Error) -> Error {
    match error {
        Error::Input { place: at, what } => {
            let key = at.strip_prefix(place("").as_str()).unwrap_or(&at).to_string();
            let line = lines.iter().find(|(other, _)| *other == key).map_or(section, |(_, line)| *line);
            Error::input(format!("{name}:{line}"), format!("{key}: {what}"))
        }
        other => other,
    }
}

struct Section {
    title: String,
    line: usize,
    entries: Vec<KeyLine>,
}

struct Reader<'a> {
    name: &'a str,
    global: Vec<KeyLine>,
    jobs: Vec<Job>,
    filename: Option<String>,
}

impl Reader<'_> {
    fn wrong(&self, line: usize, what: impl Into<String>) -> Error {
        Error::input(format!("{}:{line}", self.name), what)
    }

    fn entry(&self, text: &str, line: usize) -> Result<KeyLine> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        if value.contains('$') {
            return Err(self.wrong(line, format!("{name}: expected a value without variables, found {value:?}")));
        }
        let key = match JOB_KEYS.iter().find(|(key, _)| *key == name) {
            Some(&(key, expected)) => Meaning::Job(key, expected),
            None => match keys::find(name) {
                Ok(key) => Meaning::Spec(key),
                Err(Error::Input { .. }) if name == "ramp_time" => {
                    let what = "ramp_time: unknown key; expected --warmup of the command, which counts requests";
                    return Err(self.wrong(line, what));
                }
                Err(Error::Input { what, .. }) => {
                    let own: Vec<&str> = JOB_KEYS.iter().map(|(key, _)| *key).collect();
                    let what = format!("{name}: {what} or {}; leave out keys without a meaning here", own.join(", "));
                    return Err(self.wrong(line, what));
                }
                Err(other) => return Err(other),
            },
        };
        Ok(KeyLine { key, value: value.to_string(), line })
    }

    /// Ends a section: stores the defaults, or adds a job.
    fn finish(&mut self, section: Section) -> Result<()> {
        let Section { title, line, entries } = section;
        let entries = overlaid(&self.global, entries);
        if title == "global" {
            self.global = entries;
            return Ok(());
        }
        let find = |name| entries.iter().find(|entry| entry.key.name() == name);
        if let (Some(directory), None) = (find("directory"), find("filename")) {
            let what =
                "directory: jobs without filename have a file each; expected filename too, the same in every job";
            return Err(self.wrong(directory.line, what));
        }
        let lines = entries.iter().map(|entry| (entry.key.name(), entry.line)).collect();
        let mut job = Job {
            name: title,
            spec: FioSpec { requests: None, ..FioSpec::default() },
            starts_phase: false,
            line,
            lines,
        };
        let mut given: Vec<(&'static Key, String)> = Vec::new();
        let mut waits = None;
        let units = find("kb_base").and_then(|entry| Units::of(&entry.value)).unwrap_or(Units::Swapped);
        for entry in entries {
            let set = match entry.key {
                Meaning::Spec(key) => {
                    let value = keys::in_bytes(key, &entry.value, units);
                    given.push((key, value.clone()));
                    (key.set)(&mut job.spec, &value).map_err(|()| key.expected)
                }
                Meaning::Job(name, expected) => self.set(&mut job, name, &entry, &mut waits).ok_or(expected),
            };
            if let Err(expected) = set {
                let what = format!("{}: expected {expected}, found {:?}", entry.key.name(), entry.value);
                return Err(self.wrong(entry.line, what));
            }
        }
        if let Some(line) = waits.filter(|_| job.spec.iodepth > 1) {
            let what = "ioengine: the engine waits for each request; expected iodepth=1, or an engine that queues \
                        such as libaio";
            return Err(self.wrong(line, what));
        }
        if job.spec.io_size.is_none() {
            let loops = *job.spec.loops.get_or_insert(1);
            // As in fio, `number_ios` applies to each pass, and counts the pairs of a trimwrite.
            let pairs = 1 + u64::from(matches!(job.spec.pattern.kinds, [RequestKind::Trim, _]));
            job.spec.requests = job.spec.requests.map(|requests| requests.saturating_mul(loops).saturating_mul(pairs));
        }
        keys::reconcile(&mut job.spec, &given).map_err(|error| placed(self.name, &job.lines, line, error))?;
        self.jobs.push(job);
        Ok(())
    }

    /// Sets a key that only jobs have; `None` for an unexpected value.
    fn set(&mut self, job: &mut Job, name: &str, entry: &KeyLine, waits: &mut Option<usize>) -> Option<()> {
        let value = entry.value.as_str();
        match name {
            "stonewall" | "wait_for_previous" => {
                job.starts_phase = matches!(value, "" | "1").then_some(true)?;
            }
            "direct" | "group_reporting" | "thread" => return matches!(value, "" | "1").then_some(()),
            "invalidate" => return matches!(value, "" | "0" | "1").then_some(()),
            "buffered" => return (value == "0").then_some(()),
            "ioengine" if WAITING_ENGINES.contains(&value) => *waits = Some(entry.line),
            "ioengine" => return QUEUEING_ENGINES.contains(&value).then_some(()),
            "directory" => return (!value.is_empty()).then_some(()),
            "filename" => {
                let other = self.filename.get_or_insert_with(|| value.to_string());
                return (!value.is_empty() && other == value).then_some(());
            }
            _ => {}
        }
        Some(())
    }
}

/// The defaults with the keys of a section, which replace them.
fn overlaid(global: &[KeyLine], own: Vec<KeyLine>) -> Vec<KeyLine> {
    let replaced = |entry: &&KeyLine| own.iter().any(|new| keys::replaces(new.key.name(), entry.key.name()));
    let mut entries: Vec<KeyLine> = global.iter().filter(|entry| !replaced(entry)).cloned().collect();
    entries.extend(own);
    entries
}

#[cfg(test)]
mod tests;
