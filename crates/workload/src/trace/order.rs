//! The requests of a trace of any format in order of time, with places and counts of the lines that they come from.

use crate::in_order::{Disorder, Window};
use crate::request::{Arrivals, FileNames, Request, Source};
use crate::volume_names::VolumeName;
use palimpsest_flash::error::Result;

/// A trace whose requests have times of the trace's clock, sorted.
pub(super) struct InOrder {
    inner: Box<dyn Source>,
    window: Window<Read>,
    /// The outcome of reading after the requests that wait.
    end: Option<Result<()>>,
    name: String,
    /// The line of the last request, and the malformed lines up to it.
    line: u64,
    skipped: u64,
}

/// A request, its line, and the malformed lines skipped before.
struct Read {
    request: Request,
    line: u64,
    skipped: u64,
}

impl InOrder {
    /// Sorts `inner`, which must be unread.
    pub fn of(inner: Box<dyn Source>) -> Box<dyn Source> {
        let place = inner.place();
        let name = place.rsplit_once(':').map_or(place.clone(), |(name, _)| name.into());
        let line = inner.line().unwrap_or(0);
        let skipped = 0;
        Box::new(InOrder { inner, window: Window::default(), end: None, name, line, skipped })
    }
}

impl Source for InOrder {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>> {
        loop {
            if let Some((arrival, read)) = self.window.next(self.end.is_some()) {
                self.line = read.line;
                self.skipped = self.skipped.max(read.skipped);
                return Ok(Some(Request { arrival, ..read.request }));
            }
            if let Some(end) = self.end.take() {
                self.line = self.inner.line().unwrap_or(0);
                self.skipped = self.inner.skipped_lines();
                return end.map(|()| None);
            }
            match self.inner.next_request() {
                Ok(Some(request)) => {
                    let line = self.inner.line().unwrap_or(0);
                    let skipped = self.inner.skipped_lines();
                    self.window.add(request.arrival, Read { request, line, skipped });
                }
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.name, self.line.max(1))
    }

    fn line(&self) -> Option<u64> {
        Some(self.line)
    }

    fn arrivals(&self) -> Arrivals {
        self.inner.arrivals()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.inner.expected_requests()
    }

    fn file_names(&self) -> Option<&FileNames> {
        self.inner.file_names()
    }

    fn format(&self) -> Option<&'static str> {
        self.inner.format()
    }

    fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    fn disorder(&self) -> Disorder {
        self.window.disorder()
    }

    fn has_volumes(&self) -> bool {
        self.inner.has_volumes()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.inner.volume_names()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
