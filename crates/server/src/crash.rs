//! A file whose writes are recorded, for what a power cut may leave of them: a disk in memory, by FUSE, and a log of its requests.
//!
//! The log has every request in the order in which it was served, writes with their bytes, and between them what a program had said by then: before
//! a request is served the program's output is read from a pipe, so that what it said before it sent the request comes before it. All is
//! written down before the request is answered. [`Log`] says what is where. For Linux; a program has one disk, and no cache of writes is before it
//! but the kernel's.

use crate::attach::disk::{Answer, Disk};
use crate::attach::session;
use crate::transmission::Request;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How a log begins.
pub const MAGIC: [u8; 8] = *b"PALCRSH1";

/// Kinds of records. Each has 24 bytes: kind, whether it is durable, 6 bytes of zeros, offset, length; then, with a write, a text and a mark,
/// so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes are written.
    Write = 0,
    /// All is made durable.
    Flush = 1,
    /// A range becomes zeros.
    Zero = 2,
    /// The program said something.
    Text = 3,
    /// A phase begins.
    Mark = 4,
}

/// Bytes of output that are read at once.
const PIECE: usize = 1 << 16;

/// The log, and where the program's output comes from.
pub struct Log<W> {
    into: W,
    output: Option<File>,
    /// The first error: nothing is served after it.
    failed: Option<io::Error>,
}

impl<W: Write> Log<W> {
    /// A new log.
    ///
    /// # Errors
    /// Those of the operating system.
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

    /// Writes down what the program has said by now.
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
            Request::Zero { offset, length, durable, .. } | Request::Trim { offset, length, durable } => {
                self.record(Kind::Zero, durable, offset, length.into(), &[])
            }
        }
    }
}

/// A disk in memory whose requests are logged.
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
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn block(&self) -> u32 {
        4096
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
                Request::Flush => {}
            }
        }
        answer(Ok(&[]));
    }
}

/// A file that is recorded, until its folder is unmounted.
pub struct Recording {
    log: Arc<Mutex<Log<BufWriter<File>>>>,
    serves: JoinHandle<io::Result<()>>,
}

impl Recording {
    /// A file of so many `bytes` in `folder`, recorded in the file `log`, beside what comes out of the named pipe `output`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn mount(folder: &Path, bytes: u64, log: &Path, output: &Path) -> io::Result<Recording> {
        let output = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(output)?;
        let log = Arc::new(Mutex::new(Log::new(BufWriter::new(File::create(log)?), Some(output))?));
        let disk = Recorded { bytes: vec![0; bytes as usize], log: Arc::clone(&log) };
        let mut session = session::mount(disk, folder)?;
        let serves = std::thread::Builder::new().name("recorded".into()).spawn(move || session.run())?;
        Ok(Recording { log, serves })
    }

    /// Writes the output of the program so far to the log.
    ///
    /// # Errors
    /// Those of the operating system, here and below; the first error of a recorded request, which the program got
    /// as an error of its disk.
    pub fn listen(&self) -> io::Result<()> {
        let mut log = locked(&self.log);
        match &log.failed {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => log.listen(),
        }
    }

    /// A phase of this name begins.
    ///
    /// # Errors
    /// As [`Self::listen`].
    pub fn mark(&self, name: &str) -> io::Result<()> {
        let mut log = locked(&self.log);
        log.listen()?;
        log.said(Kind::Mark, name.as_bytes())
    }

    /// Ends the log of a file that has been unmounted.
    ///
    /// # Errors
    /// As [`Self::listen`]; the first error while it was recorded.
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
mod tests {
    use super::*;

    fn records(log: &[u8]) -> Vec<(u8, u8, u64, Vec<u8>)> {
        let (mut rest, mut found) = (log.strip_prefix(&MAGIC).unwrap(), Vec::new());
        while let Some((head, after)) = rest.split_at_checked(24) {
            let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
            let own = if head[0] == Kind::Zero as u8 { 0 } else { number(16) as usize };
            found.push((head[0], head[1], number(8), after[..own].to_vec()));
            rest = &after[own..];
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn requests_are_recorded_in_order_and_served() {
        let log = Arc::new(Mutex::new(Log::new(Vec::new(), None).unwrap()));
        let mut disk = Recorded { bytes: vec![0; 16384], log: Arc::clone(&log) };
        let serve = |disk: &mut Recorded<Vec<u8>>, request, data: &[u8], expected: &'static [u8]| {
            disk.serve(0, &[request], &mut data.to_vec(), Box::new(move |done| assert_eq!(done, Ok(expected))));
        };
        serve(&mut disk, Request::Write { offset: 4096, length: 3, at: 1, durable: false }, b"-abc", &[]);
        serve(&mut disk, Request::Flush, &[], &[]);
        serve(&mut disk, Request::Read { offset: 4095, length: 5 }, &[], b"\0abc\0");
        serve(&mut disk, Request::Zero { offset: 4097, length: 1, unmap: true, durable: false }, &[], &[]);
        serve(&mut disk, Request::Write { offset: 9, length: 1, at: 0, durable: true }, b"x", &[]);
        serve(&mut disk, Request::Read { offset: 4096, length: 3 }, &[], b"a\0c");
        locked(&log).said(Kind::Mark, b"end").unwrap();
        let expected: [(u8, u8, u64, &[u8]); 5] =
            [(0, 0, 4096, b"abc"), (1, 0, 0, b""), (2, 0, 4097, b""), (0, 1, 9, b"x"), (4, 0, 0, b"end")];
        let expected = expected.map(|(kind, durable, offset, bytes)| (kind, durable, offset, bytes.to_vec()));
        assert_eq!(records(&locked(&log).into), expected);
    }

    #[test]
    fn what_the_program_said_comes_before_the_next_request() {
        let path = std::env::temp_dir().join(format!("palimpsest-said-{}", std::process::id()));
        std::fs::write(&path, "put 1\n").unwrap();
        let log = Arc::new(Mutex::new(Log::new(Vec::new(), Some(File::open(&path).unwrap())).unwrap()));
        let mut disk = Recorded { bytes: vec![0; 4096], log: Arc::clone(&log) };
        for said in ["", "put 2\n"] {
            File::options().append(true).open(&path).unwrap().write_all(said.as_bytes()).unwrap();
            disk.serve(0, &[Request::Flush], &mut Vec::new(), Box::new(|done| assert!(done.is_ok())));
        }
        std::fs::remove_file(&path).unwrap();
        let text: Vec<(u8, Vec<u8>)> =
            records(&locked(&log).into).into_iter().map(|(kind, _, _, text)| (kind, text)).collect();
        assert_eq!(text, [(3, b"put 1\n".to_vec()), (1, vec![]), (3, b"put 2\n".to_vec()), (1, vec![])]);
    }
}
