//! Device self-test: reads namespaces in the background.
//!
//! Source: NVM Express Base Specification 2.0, sections 5.8 and 5.16.1.7. An extended test reads all blocks, a short
//! one 64 evenly spread pieces of each namespace. The reads pass the layer and flash, so they take the drive's time,
//! may fail, and count as reads of the drive. A test of the controller alone has nothing to read. Ignored: segments;
//! results of vendors; results last until the end of the process.

use super::admin::{Context, Outcome};
use super::entry::{Command, Structure};
use super::namespaces::Namespace;
use super::status::{self, Status};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one read of a test.
const PIECE: u64 = 1 << 20;

/// Reads of a namespace in a short test.
const SHORT_PIECES: u64 = 64;

/// Results that the log has.
const RESULTS: usize = 20;

const SHORT: u8 = 1;
const EXTENDED: u8 = 2;
const ABORT: u8 = 0xF;

pub const PASSED: u8 = 0;
pub const BY_COMMAND: u8 = 1;
pub const BY_RESET: u8 = 2;
pub const BY_REMOVAL: u8 = 3;
pub const BY_FORMAT: u8 = 4;
const FAILED: u8 = 7;
const BY_UNKNOWN: u8 = 8;
pub const BY_SANITIZE: u8 = 9;
const UNUSED: u8 = 0xF;

/// The outcome of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Good,
    Unreadable,
    /// The power failed, or the drive ends.
    Broken,
}

#[derive(Clone, Copy)]
struct TestResult {
    code: u8,
    result: u8,
    hours: u64,
    namespace: u32,
    /// The first block that could not be read.
    block: Option<u64>,
}

struct Running {
    code: u8,
    /// The number in the command.
    namespace: u32,
    namespaces: Vec<Arc<Namespace>>,
    percent: u8,
    /// Why the test must end, if it must.
    ends: Option<u8>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    results: VecDeque<TestResult>,
}

/// The self-tests of a subsystem: one at a time.
#[derive(Default)]
pub struct Tests(Mutex<State>);

impl Tests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a test runs.
    pub fn is_running(&self) -> bool {
        self.state().running.is_some()
    }

    /// Ends the running test, for a reason of the log's results.
    pub fn abort(&self, why: u8) {
        if let Some(running) = &mut self.state().running {
            running.ends.get_or_insert(why);
        }
    }

    /// Ends a short test because of a reset.
    pub fn reset(&self) {
        if self.state().running.as_ref().is_some_and(|running| running.code == SHORT) {
            self.abort(BY_RESET);
        }
    }

    /// Ends a test of namespace `id`, which is deleted.
    pub fn forget(&self, id: u32) {
        let has = |running: &Running| running.namespaces.iter().any(|one| one.id == id);
        let is_tested = self.state().running.as_ref().is_some_and(has);
        if is_tested {
            self.abort(BY_REMOVAL);
        }
    }

    /// Runs the test that waits, with `read` of a range of the drive; `hours` is the time that the drive is served.
    pub fn run(&self, hours: u64, mut read: impl FnMut(u64, u32) -> Read) {
        let Some((code, number, namespaces)) =
            self.state().running.as_ref().map(|one| (one.code, one.namespace, one.namespaces.clone()))
        else {
            return;
        };
        let pieces: Vec<_> = namespaces.iter().flat_map(|one| pieces(one, code)).collect();
        let (mut result, mut block, mut namespace) = (PASSED, None, number);
        for (at, (one, from, length)) in pieces.iter().enumerate() {
            match self.state().running.as_mut() {
                Some(Running { ends: None, percent, .. }) => *percent = (at * 100 / pieces.len()) as u8,
                Some(Running { ends: Some(why), .. }) => {
                    result = *why;
                    break;
                }
                None => return,
            }
            match read(*from, *length) {
                Read::Good => {}
                Read::Broken => {
                    result = BY_UNKNOWN;
                    break;
                }
                Read::Unreadable => {
                    let step = one.block_bytes;
                    let blocks = (*from..*from + u64::from(*length)).step_by(step as usize);
                    let failed = blocks.into_iter().find(|&from| read(from, step) != Read::Good);
                    block = failed.map(|from| (from - one.base) / u64::from(step));
                    (result, namespace) = (FAILED, one.id);
                    break;
                }
            }
        }
        let mut state = self.state();
        let ends = state.running.take().and_then(|running| running.ends);
        let result = if result == PASSED { ends.unwrap_or(PASSED) } else { result };
        state.results.push_front(TestResult { code, result, hours, namespace, block });
        state.results.truncate(RESULTS);
    }

    /// Log page 06.
    pub fn log(&self) -> Vec<u8> {
        const ENTRY: usize = 28;
        let (mut page, state) = (Structure::new(4 + RESULTS * ENTRY), self.state());
        if let Some(running) = &state.running {
            page.u8(0, running.code).u8(1, running.percent);
        }
        for at in 0..RESULTS {
            page.u8(4 + at * ENTRY, UNUSED);
        }
        for (at, test) in state.results.iter().enumerate() {
            let at = 4 + at * ENTRY;
            // Segment 1 is the scan of the media.
            page.u8(at, test.code << 4 | test.result).u8(at + 1, u8::from(test.result == FAILED));
            page.u64(at + 4, test.hours);
            let mut valid = 1;
            page.u32(at + 12, test.namespace);
            if let Some(block) = test.block {
                valid |= 1 << 1 | 1 << 2 | 1 << 3;
                page.u64(at + 16, block);
                page.u8(at + 24, (status::UNRECOVERED_READ >> 8) as u8 & 7).u8(at + 25, status::UNRECOVERED_READ as u8);
            }
            page.u8(at + 2, valid);
        }
        page.0
    }
}

/// The reads of a test of one namespace.
fn pieces(one: &Arc<Namespace>, code: u8) -> impl Iterator<Item = (Arc<Namespace>, u64, u32)> + use<> {
    let bytes = one.blocks * u64::from(one.block_bytes);
    let all = bytes.div_ceil(PIECE);
    let (count, one) = (if code == SHORT { all.min(SHORT_PIECES) } else { all }, Arc::clone(one));
    (0..count).map(move |at| {
        let from = at * all / count * PIECE;
        (Arc::clone(&one), one.base + from, (bytes - from).min(PIECE) as u32)
    })
}

/// Minutes of an extended test of `bytes` bytes, by 1 GB/s.
pub fn minutes(bytes: u64) -> u16 {
    bytes.div_ceil(60 * 1_000_000_000).min(u16::MAX.into()) as u16
}

/// Begins or aborts a self-test.
///
/// # Errors
/// The status of a wrong field, or a test in progress.
pub fn execute(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (code, number, subsystem) = (command.dword(10) as u8 & 0xF, command.namespace(), context.subsystem);
    match code {
        SHORT | EXTENDED => {}
        ABORT => {
            subsystem.tests.abort(BY_COMMAND);
            return Ok(Outcome::Done(0));
        }
        _ => return Err(status::INVALID_FIELD),
    }
    let named = subsystem.namespaces().named(number, &context.controller.host.name);
    let namespaces = if number == 0 { Vec::new() } else { named? };
    let mut state = subsystem.tests.state();
    if state.running.is_some() {
        return Err(status::SELF_TEST_IN_PROGRESS);
    }
    state.running = Some(Running { code, namespace: number, namespaces, percent: 0, ends: None });
    drop(state);
    subsystem.work.ring();
    Ok(Outcome::Done(0))
}
