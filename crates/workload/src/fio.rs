//! Generated workloads, described in the language of fio (<https://fio.readthedocs.io>):
//! `rw=randwrite,bs=4k,size=1GiB,n=1e6,iodepth=32,random_distribution=zipf:0.95`.
//!
//! Commas separate keys. A value may contain commas (`bs=4k,8k,4k`): text after a comma that neither starts with a
//! letter nor contains `=` continues the previous value. [`keys`](keys()) lists the keys. `runtime` and `startdelay`
//! are simulated time (`jobs/playing.rs`). Each `name` begins a job, as on fio's command line. `files.rs` has
//! `nrfiles`, `filesize` and `openfiles`, and `inert.rs` lists fio's keys without effect and those that are refused.
//!
//! As in fio: reads, writes and trims of a sequential mix each keep their own position and share a skewed distribution;
//! `zipf`, `pareto` and `normal` scatter their ranks over the region; `n` counts no flushes; a `trimwrite` writes each
//! block just trimmed.
//!
//! Differences from fio:
//! - `KiB` is 1024 bytes, like `k`, unless `kb_base` is given (fio's default of 1024 swaps the two; job files do too).
//! - `n` continues beyond the end of the region, in further passes (`number_ios` in fio and in job files does not).
//! - Skewed distributions and `norandommap` are drawn with generators of our own; uniform requests with a map are
//!   fio's, one by one.
//! - With `open_loop`, requests arrive at their rate regardless of the number in flight; otherwise a rate is a cap, as
//!   in fio.
//! - Sequential access wraps around at the end of the region until `n` or `io_size` is reached.
//! - Percentages have one decimal and rates have three, as published statistics do.
//! - `sequential_from=64k` makes the large requests of a random pattern sequential, in the end of the region that
//!   `sequential_size` reserves for them (in fio: a second, sequential job).
//! - `filegroups` and `mix` describe files that are written in turns, and classes of requests (`groups.rs`).
//! - The default length is `n=100k` requests, or `runtime`, rather than the size of the region.

mod canonical;
mod distribution;
mod files;
mod groups;
mod inert;
mod jobs;
mod keys;
mod lfsr;
mod map;
mod passes;
mod pattern;
pub(crate) mod quantity;
mod rates;
mod readback;
mod region;
mod rules;
mod scatter;
mod source;
mod spec;
mod tausworthe;
mod values;
pub(crate) mod zipf;
mod zoned;

pub use distribution::{Distribution, Zone};
pub use jobs::{JobFile, JobsSource, Surroundings, is_job_file};
pub use pattern::Pattern;
pub use quantity::Amount;
pub use source::FioSource;
pub use spec::{FioSpec, Generator, Pacing, Rate, SizeShare};
pub use zoned::ZoneHost;

use crate::namespaces::Namespaces;
use crate::request::Source;
use palimpsest_flash::error::Result;

/// The requests of the specification `text`, of one job or of several with names, on `drive` (bytes, or namespaces).
///
/// # Errors
/// As [`FioSpec::parse`], [`JobFile::of_line`] and [`FioSource::new`].
pub fn of_text(text: &str, drive: impl Into<Namespaces>, seed: u64) -> Result<Box<dyn Source>> {
    match JobFile::of_line(text)? {
        Some(jobs) => Ok(Box::new(jobs.source(drive, seed)?)),
        None => generated(&FioSpec::parse(text)?, drive, seed),
    }
}

/// The load of `text` as [`of_text`], without begin, end and searches, and with random numbers that `other` changes.
/// `None` if the requests depend on the state of the drive or of other jobs.
///
/// # Errors
/// As [`of_text`].
pub fn endless(text: &str, drive: impl Into<Namespaces>, seed: u64, other: u64) -> Result<Option<Box<dyn Source>>> {
    let seed = seed ^ other;
    match JobFile::of_line(text)? {
        Some(jobs) => match jobs.endless(other) {
            Some(jobs) => Ok(Some(Box::new(jobs.source(drive, seed)?))),
            None => Ok(None),
        },
        None => FioSpec::parse(text)?.endless(other).map(|spec| generated(&spec, drive, seed)).transpose(),
    }
}

/// The requests of `spec`, the first tenant of `drive` (bytes, or namespaces); equal seeds give equal requests.
///
/// # Errors
/// As [`FioSource::new`].
pub fn generated(spec: &FioSpec, drive: impl Into<Namespaces>, seed: u64) -> Result<Box<dyn Source>> {
    let room = drive.into().of(0);
    if spec.has_job() {
        return Ok(Box::new(JobsSource::of_spec(spec, room, seed)?));
    }
    Ok(Box::new(FioSource::of_job(spec, room, seed, (1, 0))?))
}

/// Every key with the expected values, for listings.
pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    keys::KEYS.iter().map(|key| (key.name, key.expected))
}
