//! Write-once-memory codes for Python: bytes in and out, batches shared among threads.

use crate::{InputError, raise};
use palimpsest_lab::wom::{CODES, Code, CodeEntry, Effort, Failed, Measured, Shape, find, measure};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A code for one shape.
#[pyclass(frozen, module = "palimpsest._core")]
pub struct WomCode {
    entry: &'static CodeEntry,
    shape: Shape,
    first_bytes: usize,
    /// Codes that no thread is using.
    idle: Mutex<Vec<Box<dyn Code>>>,
}

fn entry(name: &str) -> PyResult<&'static CodeEntry> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = CODES.iter().map(|entry| entry.name).collect();
        InputError::new_err(format!("code {name}: there is no such code; expected one of {}", names.join(", ")))
    })
}

fn build(entry: &CodeEntry, shape: Shape) -> PyResult<Box<dyn Code>> {
    (entry.build)(shape).map_err(|unfit| raise(unfit.at(&format!("code {}", entry.name))))
}

/// The fewest bytes of spare with which `name` fails with probability `failure` at most.
#[pyfunction]
pub fn wom_spare_needed(name: &str, message_bytes: usize, cell_bytes: usize, failure: f64) -> PyResult<usize> {
    let entry = entry(name)?;
    let found = (entry.spare_needed)(message_bytes, cell_bytes, failure);
    found.map_err(|unfit| raise(unfit.at(&format!("code {name}"))))
}

impl WomCode {
    fn take(&self) -> Box<dyn Code> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| (self.entry.build)(self.shape).expect("this shape was built before"))
    }

    fn give(&self, code: Box<dyn Code>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(code);
    }

    /// Pages in `bytes` of `each` bytes a page.
    fn pages(bytes: &[u8], each: usize) -> PyResult<usize> {
        if each == 0 || !bytes.len().is_multiple_of(each) {
            return Err(InputError::new_err(format!("{} bytes; expected a multiple of {each}", bytes.len())));
        }
        Ok(bytes.len() / each)
    }

    /// Runs each piece of work on a thread, with a code for each.
    fn share<T: Send, R: Send>(&self, work: Vec<T>, each: impl Fn(&mut dyn Code, T) -> R + Sync) -> Vec<R> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = work
                .into_iter()
                .map(|piece| {
                    scope.spawn(|| {
                        let mut code = self.take();
                        let done = each(code.as_mut(), piece);
                        self.give(code);
                        done
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a code does not panic")).collect()
        })
    }
}

/// `count` in `jobs` ranges of nearly equal length, none empty.
fn ranges(count: usize, jobs: usize) -> Vec<Range<usize>> {
    let each = count.div_ceil(jobs.max(1)).max(1);
    (0..count).step_by(each).map(|begin| begin..(begin + each).min(count)).collect()
}

#[pymethods]
impl WomCode {
    #[new]
    fn new(name: &str, message_bytes: usize, cell_bytes: usize, spare_bytes: usize) -> PyResult<Self> {
        let (entry, shape) = (entry(name)?, Shape { message_bytes, cell_bytes, spare_bytes });
        let code = build(entry, shape)?;
        Ok(WomCode { entry, shape, first_bytes: code.first_bytes(), idle: Mutex::new(vec![code]) })
    }

    /// Bytes that a first write stores.
    fn first_bytes(&self) -> usize {
        self.first_bytes
    }

    /// Pages after a first write of `messages` into erased cells.
    fn write_first<'py>(&self, py: Python<'py>, messages: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let count = Self::pages(messages, self.first_bytes)?;
        let mut pages = vec![0xff; count * self.shape.page_bytes()];
        let mut code = self.take();
        for (page, message) in pages.chunks_mut(self.shape.page_bytes()).zip(messages.chunks(self.first_bytes)) {
            code.write_first(page, message);
        }
        self.give(code);
        Ok(PyBytes::new(py, &pages))
    }

    /// Pages after writing `messages` over `pages`; for each, encodings tried (0: failed) and equations solved.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        pages: &[u8],
        messages: &[u8],
        seed: u64,
        jobs: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<u32>, Vec<u32>)> {
        let (page_bytes, message_bytes) = (self.shape.page_bytes(), self.shape.message_bytes);
        let count = Self::pages(pages, page_bytes)?;
        if messages.len() != count * message_bytes {
            let (found, expected) = (messages.len(), count * message_bytes);
            return Err(InputError::new_err(format!("messages of {found} bytes; expected {expected}, one a page")));
        }
        let mut pages = pages.to_vec();
        let efforts = py.detach(|| {
            let each = count.div_ceil(jobs.max(1)).max(1);
            let pieces: Vec<_> = pages
                .chunks_mut(each * page_bytes)
                .zip(messages.chunks(each * message_bytes))
                .enumerate()
                .map(|(at, (pages, messages))| (at * each, pages, messages))
                .collect();
            self.share(pieces, |code, (first, pages, messages)| -> Vec<Effort> {
                let pairs = pages.chunks_mut(page_bytes).zip(messages.chunks(message_bytes));
                let outcomes = pairs
                    .enumerate()
                    .map(|(at, (page, message))| code.encode(page, message, seed.wrapping_add((first + at) as u64)));
                outcomes.map(|outcome: Result<Effort, Failed>| outcome.unwrap_or_default()).collect()
            })
        });
        let efforts = efforts.concat();
        let attempts = efforts.iter().map(|effort| effort.attempts).collect();
        let equations = efforts.iter().map(|effort| effort.equations).collect();
        Ok((PyBytes::new(py, &pages), attempts, equations))
    }

    /// The messages in `pages`.
    fn decode<'py>(&self, py: Python<'py>, pages: &[u8], jobs: usize) -> PyResult<Bound<'py, PyBytes>> {
        let (page_bytes, message_bytes) = (self.shape.page_bytes(), self.shape.message_bytes);
        let count = Self::pages(pages, page_bytes)?;
        let mut messages = vec![0; count * message_bytes];
        py.detach(|| {
            let each = count.div_ceil(jobs.max(1)).max(1);
            let pieces = pages.chunks(each * page_bytes).zip(messages.chunks_mut(each * message_bytes)).collect();
            self.share(pieces, |code, (pages, messages)| {
                let pairs = pages.chunks(page_bytes).zip(messages.chunks_mut(message_bytes));
                pairs.for_each(|(page, message)| code.decode(page, message));
            })
        });
        Ok(PyBytes::new(py, &messages))
    }

    /// Failed encodings among the trials from `begin` to `end`, encodings tried and equations solved in the others.
    #[expect(clippy::too_many_arguments, reason = "as Python calls it")]
    fn measure(
        &self,
        py: Python<'_>,
        begin: u64,
        end: u64,
        seed: u64,
        dirty: f64,
        scramblings: u32,
        jobs: usize,
    ) -> (u64, u64, u64) {
        let pieces = ranges((end.saturating_sub(begin)) as usize, jobs);
        let trials = |range: Range<usize>| begin + range.start as u64..begin + range.end as u64;
        let all =
            py.detach(|| self.share(pieces, |code, range| measure(code, trials(range), seed, dirty, scramblings)));
        let sum = |of: fn(&Measured) -> u64| all.iter().map(of).sum();
        (sum(|measured| measured.failed), sum(|measured| measured.attempts), sum(|measured| measured.equations))
    }
}
