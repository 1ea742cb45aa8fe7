//! Sanitize: block erase and crypto erase of the whole drive, in the background.
//!
//! Source: NVM Express Base Specification 2.0, sections 5.24, 5.16.1.38 and 8.21. Both operations unmap all data; the
//! drive's own time of that is the time of the operation, and no block is erased for it. A power cut, or a drive that
//! takes no writes, fails the operation. Ignored: overwrite, sanitize without deallocation, estimated times.

use super::admin::{Context, Outcome};
use super::controller::Event;
use super::entry::{Command, Structure};
use super::status::{self, Status};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Crypto erase and block erase; data is always deallocated.
pub const CAPABILITIES: u32 = 1 | 1 << 1 | 1 << 29 | 1 << 30;

const EXIT_FAILURE: u32 = 1;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;

/// Steps of an operation, for its progress.
const STEPS: u64 = 64;

const IDLE: u8 = 0;
const IN_PROGRESS: u8 = 1;
const FAILED: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Never = 0,
    Succeeded = 1,
    InProgress = 2,
    Failed = 3,
}

#[derive(Default)]
struct State {
    last: Last,
    /// Dword 10 of the last command.
    command: u32,
    /// Steps done of the operation in progress.
    steps: u64,
}

/// The sanitize operations of a subsystem.
#[derive(Default)]
pub struct Sanitize {
    state: Mutex<State>,
    /// Which commands are refused.
    mode: AtomicU8,
    /// Whether data was written since the last operation.
    written: AtomicBool,
}

impl Sanitize {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that data is written.
    pub fn note_write(&self) {
        if !self.written.load(Ordering::Relaxed) {
            self.written.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses commands that need the data, during an operation and after a failed one.
    ///
    /// # Errors
    /// The status of a refused command.
    pub fn check(&self) -> Result<(), Status> {
        match self.mode.load(Ordering::Acquire) {
            IDLE => Ok(()),
            IN_PROGRESS => Err(status::SANITIZE_IN_PROGRESS),
            _ => Err(status::SANITIZE_FAILED),
        }
    }

    /// Whether an operation waits for its steps.
    pub fn is_in_progress(&self) -> bool {
        self.mode.load(Ordering::Acquire) == IN_PROGRESS
    }

    /// Unmaps the drive of `bytes` bytes in steps of whole `unit`s, each by `unmap`; returns the event at the end.
    pub fn run(&self, bytes: u64, unit: u64, mut unmap: impl FnMut(u64, u64) -> bool) -> Event {
        let step = bytes.div_ceil(STEPS).next_multiple_of(unit.max(1));
        let mut from = 0;
        let mut succeeds = true;
        while from < bytes && succeeds {
            let length = step.min(bytes - from);
            succeeds = unmap(from, length);
            from += length;
            self.state().steps += 1;
        }
        let mut state = self.state();
        state.last = if succeeds { Last::Succeeded } else { Last::Failed };
        self.written.store(false, Ordering::Relaxed);
        self.mode.store(if succeeds { IDLE } else { FAILED }, Ordering::Release);
        Event::SANITIZED
    }

    /// Log page 81.
    pub fn log(&self) -> Vec<u8> {
        let (mut page, state) = (Structure::new(512), self.state());
        let progress = match state.last {
            Last::InProgress => (state.steps * 65536 / STEPS).min(65534) as u16,
            _ => u16::MAX,
        };
        let erased = state.last == Last::Succeeded && !self.written.load(Ordering::Relaxed);
        page.u16(0, progress).u16(2, state.last as u16 | u16::from(erased) << 8).u32(4, state.command);
        // No time is estimated.
        for at in (8..32).step_by(4) {
            page.u32(at, u32::MAX);
        }
        page.0
    }
}

/// Begins a sanitize operation, or leaves the failure mode.
///
/// # Errors
/// The status of a wrong field, or an operation in progress.
pub fn execute(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (what, subsystem) = (command.dword(10), context.subsystem);
    let (action, unrestricted, keeps) = (what & 7, what & 1 << 3 != 0, what & 1 << 9 != 0);
    let sanitize = &subsystem.sanitize;
    let mut state = sanitize.state();
    let mode = sanitize.mode.load(Ordering::Acquire);
    if mode == IN_PROGRESS {
        return Err(status::SANITIZE_IN_PROGRESS);
    }
    let was_unrestricted = state.command & 1 << 3 != 0;
    match action {
        EXIT_FAILURE if mode == FAILED && !was_unrestricted => return Err(status::SANITIZE_FAILED),
        EXIT_FAILURE => {
            sanitize.mode.store(IDLE, Ordering::Release);
            return Ok(Outcome::Done(0));
        }
        BLOCK_ERASE | CRYPTO_ERASE if !keeps => {}
        _ => return Err(status::INVALID_FIELD),
    }
    if mode == FAILED && unrestricted && !was_unrestricted {
        return Err(status::SANITIZE_FAILED);
    }
    for id in subsystem.namespaces().ids(None) {
        subsystem.reservations.check(id, &context.controller.host.id, false)?;
    }
    subsystem.check_writable()?;
    *state = State { last: Last::InProgress, command: what, steps: 0 };
    sanitize.mode.store(IN_PROGRESS, Ordering::Release);
    drop(state);
    subsystem.tests.abort(super::selftest::BY_SANITIZE);
    subsystem.work.ring();
    Ok(Outcome::Done(0))
}
