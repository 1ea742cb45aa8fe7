//! Job files of fio as workloads (<https://fio.readthedocs.io>, "Job file format"): `[global]` and one section a job.
//!
//! A job has the keys of a [specification](super::keys()). `reading.rs` reads lines, variables and included files.
//! Keys without effect are accepted and named in a note; refused and unknown keys (`inert.rs`) are one error, which
//! names them all. As in fio the last of several equal keys holds.
//!
//! As in fio a job without `number_ios`, `io_size` and `loops` requests `size` once (with `time_based`, repeatedly
//! until the end of `runtime`), and later `[global]` sections change the defaults of the jobs after them. Jobs of one
//! phase (up to a stonewall) run at the same time, each with its own `iodepth` or rate; the next phase begins when all
//! requests of the phase have completed. `playing.rs` runs the jobs, and `places.rs` gives their files places.

mod order;
mod pace;
mod places;
mod playing;
mod reading;

pub use playing::JobsSource;
pub use reading::Surroundings;

use super::inert::accepted;
use super::keys::{self, Key, MOST_JOBS, acting};
use super::quantity::Units;
use super::rules;
use super::source::FioSource;
use super::spec::{FioSpec, pairs, place};
use crate::namespaces::Namespaces;
use crate::request::RequestKind;
use palimpsest_flash::error::{Error, Result};
use places::Places;
use reading::{KeyLine, Line, Reading};

/// The jobs of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    name: String,
    jobs: Vec<Job>,
    notes: Vec<String>,
}

/// Title, place and keys.
type Section = (String, String, Vec<KeyLine>);

#[derive(Debug, Clone, PartialEq)]
struct Job {
    name: String,
    spec: FioSpec,
    /// Places of the section and of the keys; empty in a specification.
    at: String,
    lines: Vec<(&'static str, String)>,
}

/// True if a file that begins with `head` is a job file: a section is first, except for comments.
pub fn is_job_file(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.find(|line| !matches!(line.first(), None | Some(b'#' | b';'))) else { return false };
    // Keys without a section are a job file, too, which is refused as one.
    let key = line.split(|&byte| byte == b'=').next().filter(|key| key.len() < line.len());
    let is_key = |key: &[u8]| {
        std::str::from_utf8(key).is_ok_and(|key| acting(key.trim_end()).is_some() || accepted(key.trim_end()))
    };
    line[0] == b'[' || key.is_some_and(is_key)
}

impl JobFile {
    /// Reads the job file `text`, called `name` in messages, which includes no file and has no variables.
    ///
    /// # Errors
    /// As [`parse_in`](Self::parse_in).
    pub fn parse(text: &str, name: &str) -> Result<JobFile> {
        JobFile::parse_in(text, name, &Surroundings::NONE)
    }

    /// Reads the job file `text`, called `name` in messages, with the variables and files of `surroundings`.
    ///
    /// # Errors
    /// [`Error::Input`] with the line, the key and the expected values; all refused and unknown keys at once.
    pub fn parse_in(text: &str, name: &str, surroundings: &Surroundings<'_>) -> Result<JobFile> {
        let mut reading = Reading::default();
        let (mut global, mut jobs, mut section) = (Vec::new(), Vec::new(), None::<Section>);
        for Line { text, at } in surroundings.lines(text, name)? {
            if let Some(title) = text.strip_prefix('[') {
                let Some(title) = title.strip_suffix(']').map(str::trim).filter(|title| !title.is_empty()) else {
                    return Err(Error::input(at, "expected a section such as [job1]"));
                };
                end_section(section.take(), &mut global, &mut jobs);
                section = Some((title.to_string(), at, Vec::new()));
                continue;
            }
            let Some((_, _, entries)) = &mut section else {
                return Err(Error::input(at, "expected a section such as [global] or [job1] before the first key"));
            };
            if let Some(mut entry) = reading.entry(&text, at, surroundings) {
                if entry.key.name == "dp_scheme" {
                    entry.value = surroundings.scheme(&entry.value, name, &entry.at)?;
                }
                entries.retain(|other| other.key.name != entry.key.name);
                entries.push(entry);
            }
        }
        end_section(section, &mut global, &mut jobs);
        reading.check()?;
        let jobs =
            jobs.into_iter().map(|(title, at, entries)| reading.job(title, at, entries)).collect::<Result<_>>()?;
        JobFile::of(name, jobs, reading.notes())
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
            jobs.push(Job { name: name.clone(), spec, at: String::new(), lines: Vec::new() });
        }
        if jobs.is_empty() { Ok(None) } else { JobFile::of("--workload", jobs, Vec::new()).map(Some) }
    }

    fn of(name: &str, jobs: Vec<Job>, notes: Vec<String>) -> Result<JobFile> {
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
        for (at, job) in jobs.iter().enumerate() {
            let Some(after) = &job.spec.order.after else { continue };
            let named = |jobs: &[Job]| jobs.iter().filter(|other| other.name == *after).count();
            if (named(&jobs[..at]), named(&jobs)) != (1, 1) {
                let what = format!("expected one earlier job, found {after:?}");
                return Err(placed(job, Error::input(place("wait_for"), what)));
            }
        }
        Ok(JobFile { name: name.to_string(), jobs, notes })
    }

    /// The same load without begin, end and searches, with seeds of its own changed by `other`; `None` if the requests
    /// of some job depend on the state of the drive or of other jobs.
    pub fn endless(&self, other: u64) -> Option<JobFile> {
        let endless = |job: &Job| Some(Job { spec: job.spec.endless(other)?, ..job.clone() });
        let jobs = self.jobs.iter().map(endless).collect::<Option<_>>()?;
        Some(JobFile { name: self.name.clone(), jobs, notes: Vec::new() })
    }

    /// The requests of all jobs on `drive` (bytes, or namespaces); equal seeds give equal requests.
    ///
    /// # Errors
    /// As [`FioSource::new`], with the line of the job; if the files of the jobs exceed the drive.
    pub fn source(&self, drive: impl Into<Namespaces>, seed: u64) -> Result<JobsSource> {
        let mut source = JobsSource::new(&self.name);
        let mut number = 1u64;
        let places = Places::new(self, drive.into())?;
        let sizes = |job: &Job| (job.spec.zones.bytes, job.spec.zoned.capacity);
        let mut zoned = self.jobs.iter().filter(|job| job.spec.zoned.on);
        if let Some(first) = zoned.next()
            && let Some(other) = zoned.find(|job| sizes(job) != sizes(first))
        {
            let what = "jobs share the zones of the drive; expected the zonesize and zonecapacity of the other jobs";
            return Err(placed(other, Error::input(place("zonesize"), what)));
        }
        for (at, job) in self.jobs.iter().enumerate() {
            source.begin_section(&job.name, &job.spec);
            for copy in 0..job.spec.copies {
                let own = places.of(at, copy);
                let requests = FioSource::of_job(&job.spec, own, seed, (number, copy));
                source.push(&job.spec, requests.map_err(|error| placed(job, error))?, copy, seed);
                number += 1;
            }
        }
        source.notes.clone_from(&self.notes);
        source.notes.extend(places.note());
        Ok(source)
    }
}

/// The jobs in sections, and the defaults so far.
fn end_section(section: Option<Section>, global: &mut Vec<KeyLine>, jobs: &mut Vec<Section>) {
    let Some((title, at, own)) = section else { return };
    let replaced = |entry: &&KeyLine| own.iter().any(|new| rules::replaces(new.key.name, entry.key.name));
    let mut entries: Vec<KeyLine> = global.iter().filter(|entry| !replaced(entry)).cloned().collect();
    entries.extend(own);
    match title.starts_with("global") {
        true => *global = entries,
        false => jobs.push((title, at, entries)),
    }
}

impl Reading {
    /// The job of a section.
    fn job(&mut self, name: String, at: String, entries: Vec<KeyLine>) -> Result<Job> {
        let lines = entries.iter().map(|entry| (entry.key.name, entry.at.clone())).collect();
        let spec = FioSpec { requests: None, ..FioSpec::default() };
        let mut job = Job { name, spec, at, lines };
        let mut given: Vec<(&'static Key, String)> = Vec::new();
        let units = entries.iter().find(|entry| entry.key.name == "kb_base");
        let units = units.and_then(|entry| Units::of(&entry.value)).unwrap_or(Units::Swapped);
        for KeyLine { key, value, at, unset } in entries {
            let plain = keys::in_bytes(key, &value, units);
            if (key.set)(&mut job.spec, &plain).is_err() {
                let unset = unset.map_or(String::new(), |name| format!(", because the variable {name} is not set"));
                let what = format!("{}: expected {}, found {value:?}{unset}", key.name, key.expected);
                return Err(Error::input(at, what));
            }
            given.push((key, plain));
        }
        if job.spec.io_size.is_none() {
            let loops = *job.spec.loops.get_or_insert(1);
            // As in fio, `number_ios` applies to each pass, and counts the pairs of a trimwrite.
            let pairs = 1 + u64::from(matches!(job.spec.pattern.kinds, [RequestKind::Trim, _]));
            job.spec.requests = job.spec.requests.map(|requests| requests.saturating_mul(loops).saturating_mul(pairs));
        }
        let depth = job.spec.iodepth;
        rules::reconcile(&mut job.spec, &given).map_err(|error| placed(&job, error))?;
        if job.spec.iodepth < depth {
            self.capped.push(job.name.clone());
        }
        Ok(job)
    }
}

/// Moves an error about a key of a specification to the line of the key.
fn placed(job: &Job, error: Error) -> Error {
    match error {
        Error::Input { place: at, what, .. } if !job.at.is_empty() => {
            let key = at.strip_prefix(place("").as_str()).unwrap_or(&at);
            let line = job.lines.iter().find(|(other, _)| *other == key).map_or(&job.at, |(_, line)| line);
            Error::input(line.clone(), format!("{key}: {what}"))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
