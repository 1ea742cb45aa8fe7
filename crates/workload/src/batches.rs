//! A trace in batches of requests, so that one thread reads and parses the next batch while another serves the last.
//!
//! The reading thread calls [`Batch::read`], the serving thread [`Batched`]. [`Batched`] returns the requests, errors,
//! places and counts of skipped lines of the source, each after the same request. The caller transfers batches between
//! the threads. Not for sources whose requests depend on completions ([`Source::jobs`]), or that name files
//! ([`Source::file_names`]).

use crate::in_order::Disorder;
use crate::request::{Arrivals, Request, Source};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::error::Result;

/// Requests of a batch: some 50 KB.
const REQUESTS: usize = 1024;

/// Consecutive requests of a source.
#[derive(Default)]
pub struct Batch {
    /// Requests with their lines.
    requests: Vec<(Request, u64)>,
    /// Malformed lines skipped so far, from the request of this number on.
    skipped: Vec<(usize, u64)>,
    /// Names of volumes that these requests are the first of.
    names: Vec<VolumeName>,
    /// Records out of order up to the last of these requests.
    disorder: Disorder,
    /// The line and the reason of the source's end behind these requests.
    end: Option<(u64, Result<()>)>,
}

impl Batch {
    /// Reads the next requests of `source`.
    pub fn read(source: &mut dyn Source) -> Batch {
        let mut batch = Batch { requests: Vec::with_capacity(REQUESTS), ..Batch::default() };
        let (mut skipped, named) = (0, source.volume_names().len());
        while batch.requests.len() < REQUESTS && batch.end.is_none() {
            let next = source.next_request();
            let line = source.line().unwrap_or(0);
            if source.skipped_lines() > skipped {
                skipped = source.skipped_lines();
                batch.skipped.push((batch.requests.len(), skipped));
            }
            match next {
                Ok(Some(request)) => batch.requests.push((request, line)),
                Ok(None) => batch.end = Some((line, Ok(()))),
                Err(error) => batch.end = Some((line, Err(error))),
            }
        }
        batch.disorder = source.disorder();
        batch.names = source.volume_names()[named..].to_vec();
        batch
    }

    /// Whether no batch follows.
    pub fn is_last(&self) -> bool {
        self.end.is_some()
    }
}

/// The next batch, in the order of reading.
///
/// # Errors
/// Errors of the transfer that end the run.
pub type NextBatch = Box<dyn FnMut() -> Result<Batch> + Send>;

/// A source whose requests come in batches.
pub struct Batched {
    next: NextBatch,
    batch: Batch,
    /// Requests of the batch already returned, and entries of skipped lines already counted.
    given: usize,
    passed: usize,
    line: u64,
    skipped: u64,
    name: String,
    arrivals: Arrivals,
    expected_requests: Option<u64>,
    format: Option<&'static str>,
    has_volumes: bool,
    names: VolumeNames,
    notes: Vec<String>,
}

impl Batched {
    /// Returns the requests of `source`, which must be unread, in batches from `carry(source)`. A source without lines,
    /// or with file names, is returned unchanged.
    pub fn of(source: Box<dyn Source>, carry: impl FnOnce(Box<dyn Source>) -> NextBatch) -> Box<dyn Source> {
        let (Some(line), None) = (source.line(), source.file_names()) else { return source };
        let place = source.place();
        Box::new(Batched {
            batch: Batch::default(),
            given: 0,
            passed: 0,
            line,
            skipped: source.skipped_lines(),
            name: place.rsplit_once(':').map_or(place.clone(), |(name, _)| name.into()),
            arrivals: source.arrivals(),
            expected_requests: source.expected_requests(),
            format: source.format(),
            has_volumes: source.has_volumes(),
            names: VolumeNames::default(),
            notes: source.notes(),
            next: carry(source),
        })
    }

    /// Continues with the next batch, or ends.
    #[cold]
    fn pass_batch(&mut self) -> Result<Option<Request>> {
        loop {
            self.pass_skipped();
            if let Some((line, end)) = &mut self.batch.end {
                self.line = *line;
                return std::mem::replace(end, Ok(())).map(|()| None);
            }
            self.batch = (self.next)()?;
            (self.given, self.passed) = (0, 0);
            self.names.extend(self.batch.names.drain(..));
            if !self.batch.requests.is_empty() {
                return self.next_request();
            }
        }
    }

    /// Counts the lines that were skipped before the next request.
    #[inline]
    fn pass_skipped(&mut self) {
        while let Some(&(at, skipped)) = self.batch.skipped.get(self.passed)
            && at <= self.given
        {
            (self.passed, self.skipped) = (self.passed + 1, skipped);
        }
    }
}

impl Source for Batched {
    fn next_request(&mut self) -> Result<Option<Request>> {
        let Some(&(request, line)) = self.batch.requests.get(self.given) else { return self.pass_batch() };
        self.pass_skipped();
        self.line = line;
        self.given += 1;
        Ok(Some(request))
    }

    fn place(&self) -> String {
        format!("{}:{}", self.name, self.line.max(1))
    }

    fn line(&self) -> Option<u64> {
        Some(self.line)
    }

    fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    fn expected_requests(&self) -> Option<u64> {
        self.expected_requests
    }

    fn format(&self) -> Option<&'static str> {
        self.format
    }

    fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn disorder(&self) -> Disorder {
        self.batch.disorder
    }

    fn has_volumes(&self) -> bool {
        self.has_volumes
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.names.all()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests;
