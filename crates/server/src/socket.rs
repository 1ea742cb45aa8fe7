//! Connections of clients, by TCP or by a socket in the file system.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// Writes to a client that is gone return an error and raise no signal; elsewhere Rust's sockets never raise one.
#[cfg(target_os = "linux")]
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: i32 = 0;

/// Least bytes a second that a client takes while the server waits for it, beyond the time limit of a reply.
const LEAST_RATE: u64 = 16 << 10;

/// A connection.
pub struct Socket {
    socket: socket2::Socket,
    pace: Pace,
}

/// The pace at which a client takes replies. Each write has a time limit, and begins it again; a client that takes a
/// few bytes in each would hold the thread without end.
#[derive(Default, Clone, Copy)]
struct Pace {
    /// Time limit of writes.
    limit: Option<Duration>,
    /// Waits so far, without the time that the sent bytes may take.
    behind: Duration,
}

impl Pace {
    /// Counts a write of `sent` bytes that took `waited`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] for a client that is too slow.
    fn note(&mut self, waited: Duration, sent: usize) -> io::Result<usize> {
        let may_take = Duration::from_micros(sent as u64 * 1_000_000 / LEAST_RATE);
        self.behind = (self.behind + waited).saturating_sub(may_take);
        if self.limit.is_some_and(|limit| self.behind > limit) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(sent) }
    }
}

impl Socket {
    /// A connection from an accepted stream.
    pub fn new(stream: impl Into<socket2::Socket>) -> Self {
        Socket { socket: stream.into(), pace: Pace::default() }
    }

    pub(crate) fn another(&self) -> io::Result<Self> {
        Ok(Socket { socket: self.socket.try_clone()?, pace: self.pace })
    }

    /// The address of this end, for TCP.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Sends the bytes that the system takes without a wait; returns their number.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send_with_flags(bytes, libc::MSG_DONTWAIT | NO_SIGNAL)
    }

    /// Ends the `whole` connection, or only the requests: replies still go out then.
    pub(crate) fn hang_up(&self, whole: bool) {
        let _ = self.socket.shutdown(if whole { Shutdown::Both } else { Shutdown::Read });
    }

    /// Later reads fail after `limit`; never without one.
    pub(crate) fn limit_reads(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(limit)
    }

    /// Later writes, also of later handles, fail after `limit`.
    pub(crate) fn limit_writes(&mut self, limit: Duration) -> io::Result<()> {
        self.pace.limit = Some(limit);
        self.socket.set_write_timeout(Some(limit))
    }

    fn paced(&mut self, send: impl FnOnce(&socket2::Socket) -> io::Result<usize>) -> io::Result<usize> {
        let begin = Instant::now();
        let sent = send(&self.socket)?;
        self.pace.note(begin.elapsed(), sent)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.socket.read_vectored(buffers)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.paced(|socket| socket.send_with_flags(bytes, NO_SIGNAL))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.paced(|socket| socket.send_vectored_with_flags(pieces, NO_SIGNAL))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_a_little_at_a_time_is_too_slow() {
        let limit = Duration::from_secs(3);
        let second = Duration::from_secs(1);
        let mut pace = Pace { limit: Some(limit), ..Pace::default() };
        let turns = (0..100).take_while(|_| pace.note(second, 100).is_ok()).count();
        assert_eq!(turns, 3, "the limit, and not the limit for each write");
        let mut pace = Pace { limit: Some(limit), ..Pace::default() };
        assert!((0..100).all(|_| pace.note(second, LEAST_RATE as usize).is_ok()), "slow enough to be served");
        assert!((0..100).all(|_| Pace::default().note(second, 1).is_ok()), "no limit");
    }
}
