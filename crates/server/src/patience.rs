//! Limits of the server's patience with clients: waiting time, memory for all of them together, and lines of the log.
//!
//! A handshake or a message must be complete in time, and a reply taken. Between messages a client may be idle while no
//! other client needs the place. A message that holds memory must arrive at [`LEAST_RATE`].

use crate::socket::Socket;
use crate::wire::Stream;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes a second that a message must bring beyond the time of every message.
const LEAST_RATE: u64 = 1 << 20;

/// Bytes of large requests and replies of all clients; with the memory of each connection 256 MiB.
pub const BUDGET: u64 = 160 << 20;

/// Most lines in [`LOG_WINDOW`].
const LOG_LINES: u32 = 50;

const LOG_WINDOW: Duration = Duration::from_secs(10);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for all clients together.
pub struct Budget {
    bytes: u64,
    used: Mutex<u64>,
    released: Condvar,
}

impl Budget {
    pub fn new(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget { bytes, used: Mutex::new(0), released: Condvar::new() })
    }

    /// Waits until `bytes` are free, and takes them; takes all memory if `bytes` are more.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Share {
        let bytes = bytes.min(self.bytes);
        let mut used = lock(&self.used);
        while *used + bytes > self.bytes {
            used = self.released.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
        *used += bytes;
        Share { budget: Arc::clone(self), bytes }
    }

    /// Takes `bytes` if they are free.
    pub fn try_take(self: &Arc<Self>, bytes: u64) -> Option<Share> {
        let mut used = lock(&self.used);
        if *used + bytes > self.bytes {
            return None;
        }
        *used += bytes;
        Some(Share { budget: Arc::clone(self), bytes })
    }

    pub fn used(&self) -> u64 {
        *lock(&self.used)
    }
}

/// A part of a budget, given back on drop.
pub struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        *lock(&self.budget.used) -= self.bytes;
        self.budget.released.notify_all();
    }
}

/// Whether an idle client has finished the handshake, and since when; `None` for a busy client.
pub type Idle = Arc<Mutex<Option<(bool, Instant)>>>;

/// A connection with a limited wait for the client.
pub struct Patient {
    socket: Socket,
    timeout: Duration,
    budget: Arc<Budget>,
    share: Option<Share>,
    idle: Idle,
    /// Time limit of the handshake, the current message, or the wait for the next.
    until: Option<Instant>,
    /// Whether no message has begun.
    waits: bool,
    /// Whether the client keeps the place while idle.
    stays: bool,
    /// Whether the socket limits reads now.
    limited: bool,
}

fn explained<T>(timeout: Duration, done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = timeout.as_secs_f64();
            let what = format!("the client took more than {seconds} s for the handshake, a message or a reply");
            io::Error::new(io::ErrorKind::TimedOut, what)
        }
        _ => error,
    })
}

/// A second handle of the connection, for replies.
pub struct Replying {
    pub socket: Socket,
    /// Time limit of a reply.
    pub timeout: Duration,
}

impl Write for Replying {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(bytes);
        explained(self.timeout, written)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.socket.write_vectored(pieces);
        explained(self.timeout, written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Patient {
    /// A new connection with limited writes, in the handshake.
    pub fn new(socket: Socket, timeout: Duration, budget: Arc<Budget>, idle: Idle) -> Self {
        let now = Instant::now();
        *lock(&idle) = Some((false, now));
        let until = Some(now + timeout);
        Patient { socket, timeout, budget, share: None, idle, until, waits: false, stays: false, limited: false }
    }

    /// Calls `read` within the client's time limit.
    fn read_in_time(&mut self, read: impl FnOnce(&mut Socket) -> io::Result<usize>) -> io::Result<usize> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return explained(self.timeout, Err(io::ErrorKind::TimedOut.into()));
        }
        if left.is_some() || self.limited {
            self.socket.limit_reads(left)?;
            self.limited = left.is_some();
        }
        let read = read(&mut self.socket);
        if self.waits && read.is_ok() {
            *lock(&self.idle) = None;
            (self.waits, self.until) = (false, Some(Instant::now() + self.timeout));
        }
        explained(self.timeout, read)
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_in_time(|socket| socket.read(buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_in_time(|socket| socket.read_vectored(buffers))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(bytes);
        explained(self.timeout, written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Stream for Patient {
    fn await_message(&mut self) {
        self.await_until(None);
    }

    fn await_until(&mut self, until: Option<Instant>) {
        self.share = None;
        (self.waits, self.until) = (true, until);
        *lock(&self.idle) = if self.stays { None } else { Some((true, Instant::now())) };
    }

    fn stay(&mut self) {
        self.stays = true;
        *lock(&self.idle) = None;
    }

    fn hold(&mut self, bytes: u64) {
        // A waiting connection must hold nothing, or two could wait for each other.
        self.share = None;
        self.share = (bytes > 0).then(|| self.budget.take(bytes));
        self.waits = false;
        self.until = Some(Instant::now() + self.timeout + Duration::from_secs(bytes / LEAST_RATE));
    }
}

/// Lines about clients, without floods.
#[derive(Default)]
pub struct Log(Mutex<Window>);

#[derive(Default)]
struct Window {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Log {
    /// Says `line`, unless there were too many just before.
    pub fn say(&self, line: &str, say: &dyn Fn(&str)) {
        self.lines(line, Instant::now()).iter().for_each(|line| say(line));
    }

    /// The lines to print for `line` at `now`.
    fn lines(&self, line: &str, now: Instant) -> Vec<String> {
        let mut window = lock(&self.0);
        let mut lines = Vec::new();
        if window.since.is_none_or(|since| now - since >= LOG_WINDOW) {
            if window.left_out > 0 {
                lines.push(format!("{} more lines about clients were left out", window.left_out));
            }
            *window = Window { since: Some(now), ..Window::default() };
        }
        if window.lines < LOG_LINES {
            window.lines += 1;
            lines.push(line.into());
        } else {
            window.left_out += 1;
        }
        lines
    }
}

#[cfg(test)]
mod tests;
