//! Files that may block, such as pipes: Ctrl-C ends the wait for opening and reading.
//!
//! The standard library continues to wait after a signal; here Python's handlers run. [`raised`] keeps an exception of
//! a handler, because exceptions cannot pass through the core.

use pyo3::prelude::*;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Bytes of a page of memory in `/proc`, on most machines.
const PAGE_BYTES: u64 = 4096;

/// Interval of signal checks while a pipe has no writer.
const CHECK_EVERY: Duration = Duration::from_millis(100);

thread_local! {
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Takes the exception that a signal handler raised while this thread waited for a file.
pub fn raised() -> Option<PyErr> {
    RAISED.take()
}

/// Memory that this process can get, if the system reports any (Linux): the least of free memory, and of the rest of
/// the limits of control group and address space (`ulimit -v`).
pub fn available_memory() -> Option<u64> {
    [machine_memory(), group_memory(), address_space()].into_iter().flatten().min()
}

/// Memory that this process has, if the system reports it (Linux); else 0.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}

fn machine_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn group_memory() -> Option<u64> {
    let number = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number("max")?.saturating_sub(number("current")?))
}

fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let used: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(used * PAGE_BYTES))
}

/// Runs the handlers of pending signals; [`raised`] returns the exception of a handler.
///
/// # Errors
/// A handler raised.
pub fn check_signals() -> io::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|error| {
        RAISED.set(Some(error));
        io::Error::other("interrupted")
    })
}

/// A file of any type. A signal ends a read, and all later reads fail, because some readers try again.
pub struct Waiting {
    file: File,
    ended: bool,
}

impl From<File> for Waiting {
    fn from(file: File) -> Self {
        Waiting { file, ended: false }
    }
}

impl Waiting {
    /// Opens the file at `path`; waits for the writer of a pipe.
    pub fn open(path: &str) -> io::Result<Waiting> {
        if !Path::new(path).metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return File::open(path).map(Waiting::from);
        }
        let (sender, receiver) = mpsc::channel();
        let owned = path.to_owned();
        // After an interrupt the thread lives until the process ends.
        thread::spawn(move || sender.send(File::open(owned)));
        loop {
            match receiver.recv_timeout(CHECK_EVERY) {
                Ok(opened) => return opened.map(Waiting::from),
                Err(RecvTimeoutError::Timeout) => check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the file could not be opened")),
            }
        }
    }

    /// The file if regular, with random access.
    pub fn regular(self) -> Result<File, Waiting> {
        if self.file.metadata().is_ok_and(|metadata| metadata.is_file()) { Ok(self.file) } else { Err(self) }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended {
            match self.file.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    check_signals().inspect_err(|_| self.ended = true)?;
                }
                done => return done,
            }
        }
        Err(io::Error::other("interrupted"))
    }
}

/// A regular file. Each large read checks signals, because whole files are read before any report; only on the opening
/// thread, because Python checks none on others.
pub struct Checked {
    file: File,
    opener: ThreadId,
}

impl From<File> for Checked {
    fn from(file: File) -> Self {
        Checked { file, opener: thread::current().id() }
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if thread::current().id() == self.opener {
            check_signals()?;
        }
        self.file.read(buffer)
    }
}

impl Seek for Checked {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
