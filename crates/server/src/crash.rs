//! A file whose writes are recorded, so that the states after a power cut can be enumerated: a disk in memory, by FUSE,
//! and a log of requests.
//!
//! The log holds every request in order of service, writes with their bytes. Before each request the program's output
//! is read from a pipe, so that every line printed before the request precedes it in the log. Logging precedes the
//! answer. [`Kind`] is the format. Only for Linux; ignored: more than one disk of a program.

use crate::attach::disk::{Answer, Disk};
use crate::attach::session;
use crate::request::Request;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// First bytes of a log.
pub const MAGIC: [u8; 8] = *b"PALCRSH1";

/// Kinds of records. A record has a head of 24 bytes: kind, durable or not, 6 zero bytes, offset, length. Writes, texts
/// and marks are followed by `length` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Write = 0,
    Flush = 1,
    Zero = 2,
    /// Output of the program.
    Text = 3,
    /// The name of a phase that begins.
    Mark = 4,
}

const PIECE: usize = 1 << 16;

/// The log, and the pipe of the program's output.
pub struct Log<W> {
    into: W,
    output: Option<File>,
    /// The first error, after which every request fails.
    failed: Option<io::Error>,
}

impl<W: Write> Log<W> {
    pub fn new(mut into: W, output: Option<File>) -> io::Result<Self> {
        into.write_all(&MAGIC)?;
        Ok(Log { into, output, failed: None })
    }

    fn record(&mut self, kind: Kind, durable: bool, offset: u64, length: u64, bytes: &[u8]) -> io::Result<()> {
        let mut head = [0; 24];
        (head[0], head[1]) = (kind as u8, u8::from(durable));
        head[8..16].copy_from_slice(&offset.to_le_bytes());
        head[16..].copy_from_slice(&length.to_le_bytes());
        self.into.write_all(&head)?;
        self.into.write_all(bytes)
    }

    fn said(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        self.record(kind, false, 0, bytes.len() as u64, bytes)
    }

    /// Logs the output of the program so far.
    fn listen(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let Some(output) = &mut self.output else { return Ok(()) };
            match output.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => self.said(Kind::Text, &piece[..read])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn request(&mut self, request: Request, data: &[u8]) -> io::Result<()> {
        if self.failed.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.listen()?;
        match request {
            Request::Read { .. } => Ok(()),
            Request::Flush => self.record(Kind::Flush, false, 0, 0, &[]),
            Request::Write { offset, length, at, durable } => {
                self.record(Kind::Write, durable, offset, length.into(), &data[at..at + length as usize])
            }
            Request::Directed { .. } | Request::Manage { .. } => unreachable!("a file has no zones"),
            Request::Zero { offset, length, durable, .. } | Request::Trim { offset, length, durable } => {
                self.record(Kind::Zero, durable, offset, length.into(), &[])
            }
            // A file has no such operations.
            Request::Copy { .. } | Request::Swap { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

struct Recorded<W> {
    bytes: Vec<u8>,
    log: Arc<Mutex<Log<W>>>,
}

fn locked<W>(log: &Mutex<Log<W>>) -> MutexGuard<'_, Log<W>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write + Send> Recorded<W> {
    fn place(&self, offset: u64, length: u32) -> std::ops::Range<usize> {
        let end = self.bytes.len();
        (offset as usize).min(end)..(offset as usize).saturating_add(length as usize).min(end)
    }
}

impl<W: Write + Send> Disk for Recorded<W> {
    fn size(&self) -> (u64, u32) {
        (self.bytes.len() as u64, 4096)
    }

    fn power_cuts(&self) -> u64 {
        0
    }

    fn serve(&mut self, _since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer) {
        for &request in requests {
            let mut log = locked(&self.log);
            if let Err(error) = log.request(request, memory) {
                log.failed.get_or_insert(error);
                return answer(Err(libc::EIO));
            }
            drop(log);
            match request {
                Request::Write { offset, length, at, .. } => {
                    let place = self.place(offset, length);
                    let length = place.len();
                    self.bytes[place].copy_from_slice(&memory[at..at + length]);
                }
                Request::Zero { offset, length, .. } | Request::Trim { offset, length, .. } => {
                    let place = self.place(offset, length);
                    self.bytes[place].fill(0);
                }
                Request::Read { offset, length } => return answer(Ok(&self.bytes[self.place(offset, length)])),
                Request::Copy { .. }
                | Request::Swap { .. }
                | Request::Flush
                | Request::Directed { .. }
                | Request::Manage { .. } => {}
            }
        }
        answer(Ok(&[]));
    }
}

/// A recorded file, until the folder is unmounted.
pub struct Recording {
    log: Arc<Mutex<Log<BufWriter<File>>>>,
    serves: JoinHandle<io::Result<()>>,
}

impl Recording {
    /// A file of `bytes` bytes in `folder`, recorded in the file `log` with the output of the named pipe `output`.
    pub fn mount(folder: &Path, bytes: u64, log: &Path, output: &Path) -> io::Result<Recording> {
        let output = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(output)?;
        let log = Arc::new(Mutex::new(Log::new(BufWriter::new(File::create(log)?), Some(output))?));
        let disk = Recorded { bytes: vec![0; bytes as usize], log: Arc::clone(&log) };
        let mut session = session::mount(Box::new(disk), folder)?;
        let serves = std::thread::Builder::new().name("recorded".into()).spawn(move || session.run())?;
        Ok(Recording { log, serves })
    }

    /// Logs the output of the program so far.
    ///
    /// # Errors
    /// Errors of the system; the first error of a recorded request, which the program got as a disk error.
    pub fn listen(&self) -> io::Result<()> {
        let mut log = locked(&self.log);
        match &log.failed {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => log.listen(),
        }
    }

    /// Logs that the phase `name` begins.
    pub fn mark(&self, name: &str) -> io::Result<()> {
        let mut log = locked(&self.log);
        log.listen()?;
        log.said(Kind::Mark, name.as_bytes())
    }

    /// Ends the log of a file that has been unmounted.
    ///
    /// # Errors
    /// As [`Self::listen`].
    pub fn finish(self) -> io::Result<()> {
        let served = self.serves.join().unwrap_or_else(|_| Err(io::Error::other("the thread that serves it panicked")));
        let mut log = locked(&self.log);
        match log.failed.take() {
            Some(error) => Err(error),
            None => served.and_then(|()| log.into.flush()),
        }
    }
}

#[cfg(test)]
mod tests;
