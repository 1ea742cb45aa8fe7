//! Connections of clients, by TCP or by a socket in the file system.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// Writes to a client that is gone return an error and raise no signal; elsewhere Rust's sockets never raise one.
#[cfg(target_os = "linux")]
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: i32 = 0;

/// A connection.
pub struct Socket(socket2::Socket);

impl Socket {
    /// A connection from an accepted stream.
    pub fn new(stream: impl Into<socket2::Socket>) -> Self {
        Socket(stream.into())
    }

    pub(crate) fn another(&self) -> io::Result<Self> {
        self.0.try_clone().map(Socket)
    }

    /// The address of this end, for TCP.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()?.as_socket()
    }

    /// Sends the bytes that the system takes without a wait; returns their number.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_with_flags(bytes, libc::MSG_DONTWAIT | NO_SIGNAL)
    }

    /// Ends the `whole` connection, or only the requests: replies still go out then.
    pub(crate) fn hang_up(&self, whole: bool) {
        let _ = self.0.shutdown(if whole { Shutdown::Both } else { Shutdown::Read });
    }

    /// Later reads fail after `limit`; never without one.
    pub(crate) fn limit_reads(&self, limit: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(limit)
    }

    /// Later writes fail after `limit`.
    pub(crate) fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(limit))
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read_vectored(buffers)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_with_flags(bytes, NO_SIGNAL)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send_vectored_with_flags(pieces, NO_SIGNAL)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
