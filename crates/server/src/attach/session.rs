//! The FUSE file system of an attached drive: a folder with one file, [`FILE`].
//!
//! One thread reads the requests that have come, a few at a time, so that the drive's memory is awaited for all of them
//! together, and serves and answers each. Programs that open the file have the kernel's cache, as with a block device;
//! with O_DIRECT, as the loop device does it, every request reaches the drive. For the user alone who attached it: the
//! kernel sees to that. The crate `fuser` mounts it.

use super::disk::{Answer, Disk};
use super::file;
use super::messages::{self, Attributes, Body, Message, Operation};
use crate::drive::EXPECTED;
use crate::transmission::Request;
use fuser::{MountOption, Notifier};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Name of the file.
pub const FILE: &str = "drive";

/// Number of the folder, and of the file.
const FOLDER: u64 = fuser::FUSE_ROOT_ID;
const DRIVE: u64 = 2;

/// How long the kernel may keep what it knows of names and sizes: they stay.
const KEPT: Duration = Duration::from_secs(3600);

/// Requests that the kernel may have in flight, and at which it slows writers.
const MOST_REQUESTS: (u16, u16) = (256, 192);

/// Bytes of a request.
const MOST_BYTES: u32 = 1 << 20;

/// Bytes of messages after which no other is read before these are served: what they bring is still in the caches then.
const TOGETHER: usize = 160 << 10;

/// A mounted file.
pub struct Session<D> {
    mount: fuser::Session<Nothing>,
    kernel: Kernel,
    files: DriveFile<D>,
}

/// What is served here, and not by the crate that mounts it.
struct Nothing;

impl fuser::Filesystem for Nothing {}

/// The mount of `disk` at the folder `at`; [`Session::run`] serves it, until it is unmounted.
///
/// # Errors
/// Those of the operating system.
pub fn mount<D: Disk>(disk: D, at: &Path) -> io::Result<Session<D>> {
    let options = [MountOption::FSName("palimpsest".into()), MountOption::DefaultPermissions, MountOption::NoExec];
    let mount = fuser::Session::new(Nothing, at, &options)?;
    let kernel = File::from(mount.as_fd().try_clone_to_owned()?);
    fcntl(kernel.as_raw_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(Session { mount, kernel: Kernel(Arc::new(kernel)), files: DriveFile::new(disk) })
}

/// The kernel forgets what it keeps of the file.
///
/// # Errors
/// Those of the operating system.
pub fn forget(kernel: &Notifier) -> io::Result<()> {
    match kernel.inval_inode(DRIVE, 0, 0) {
        // It keeps nothing of a file that no program has looked for.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Messages that have come, and where they are in memory.
struct Batch {
    bytes: Vec<u8>,
    messages: Vec<Range<usize>>,
}

impl<D: Disk> Session<D> {
    /// Tells the kernel what it must forget.
    pub fn notifier(&self) -> Notifier {
        self.mount.notifier()
    }

    /// Serves the file until it is unmounted.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn run(&mut self) -> io::Result<()> {
        let bytes = vec![0; TOGETHER + messages::message_of(MOST_BYTES as usize)];
        let mut batch = Batch { bytes, messages: Vec::new() };
        let (mut messages, mut requests) = (Vec::new(), Vec::new());
        while self.kernel.receive(&mut batch)? {
            messages.clear();
            messages.extend(batch.messages.iter().map_while(|range| Message::parse(&batch.bytes, range.clone())));
            requests.clear();
            requests.extend(messages.iter().filter_map(|message| self.files.request(message)));
            if requests.len() > 1 {
                self.files.disk.expect(&requests);
            }
            messages.iter().for_each(|message| self.files.serve(&self.kernel, message, &mut batch.bytes));
            if messages.len() < batch.messages.len() {
                return Err(io::Error::other("the kernel sends what is no message"));
            }
        }
        Ok(())
    }
}

/// The kernel's end of the mount, which any thread may answer.
#[derive(Clone)]
struct Kernel(Arc<File>);

impl Kernel {
    /// Waits for messages, and reads those that have come, up to [`EXPECTED`]; false where the file is unmounted.
    fn receive(&self, batch: &mut Batch) -> io::Result<bool> {
        batch.messages.clear();
        let mut begin = 0;
        while batch.messages.len() < EXPECTED && begin <= TOGETHER {
            match (&*self.0).read(&mut batch.bytes[begin..]) {
                Ok(length) => {
                    batch.messages.push(begin..begin + length);
                    begin = (begin + length).next_multiple_of(64);
                }
                Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::EAGAIN if begin > 0 => break,
                    Errno::EAGAIN => self.wait()?,
                    // What was to be read was given up.
                    Errno::ENOENT | Errno::EINTR => {}
                    // What was read before has no one who waits for it.
                    Errno::ENODEV => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
        Ok(true)
    }

    /// Waits for a message, or the end.
    fn wait(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers message `number`. Who gave it up does not learn of it.
    fn answer(&self, number: u64, done: Result<&[u8], i32>) {
        let header = messages::header(number, done.map(<[u8]>::len));
        let _ = (&*self.0).write_vectored(&[IoSlice::new(&header), IoSlice::new(done.unwrap_or_default())]);
    }
}

/// The file system.
struct DriveFile<D> {
    disk: D,
    bytes: u64,
    folder: Attributes,
    file: Attributes,
}

impl<D: Disk> DriveFile<D> {
    fn new(disk: D) -> Self {
        let (made, bytes) = (SystemTime::now(), disk.bytes());
        let owner = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        let folder =
            Attributes { node: FOLDER, size: 0, mode: libc::S_IFDIR | 0o700, links: 2, owner, block: 4096, made };
        let file = Attributes {
            node: DRIVE,
            size: bytes,
            mode: libc::S_IFREG | 0o600,
            links: 1,
            owner,
            block: disk.block(),
            made,
        };
        DriveFile { disk, bytes, folder, file }
    }

    /// The read or write that a message wants of the drive.
    fn request(&self, message: &Message) -> Option<Request> {
        match message.operation {
            Operation::Read { offset, size, .. } => file::read(self.bytes, offset, size).ok()?,
            Operation::Write { offset, flags, at, length, .. } => {
                file::write(self.bytes, offset, at..at + length, flags).ok()?
            }
            _ => None,
        }
    }

    /// Serves a message, whose data is in `memory`.
    fn serve(&mut self, kernel: &Kernel, message: &Message, memory: &mut Vec<u8>) {
        let number = message.number;
        // Of reads the bytes that are read, of others nothing.
        let later = |kernel: Kernel| -> Answer { Box::new(move |done| kernel.answer(number, done)) };
        match message.operation {
            Operation::Read { file, offset, size } => {
                let request = file::read(self.bytes, offset, size);
                self.ask(file, request.as_ref().map(Option::as_slice), memory, later(kernel.clone()));
            }
            Operation::Write { file, offset, flags, at, length } => {
                let request = file::write(self.bytes, offset, at..at + length, flags);
                let (written, kernel) = (Body::written(length as u32), kernel.clone());
                let answer: Answer = Box::new(move |done| kernel.answer(number, done.map(|_| &*written.0)));
                self.ask(file, request.as_ref().map(Option::as_slice), memory, answer);
            }
            Operation::Sync { file } => self.ask(file, Ok(&[Request::Flush]), memory, later(kernel.clone())),
            Operation::Allocate { file, offset, length, mode } => {
                let requests = file::allocate(self.bytes, offset, length, mode);
                self.ask(file, requests.as_deref(), memory, later(kernel.clone()));
            }
            Operation::Forget => {}
            _ => kernel.answer(number, self.look(message).as_ref().map(|body| &*body.0).map_err(|&error| error)),
        }
    }

    /// Serves the requests of an operation on the drive, or refuses it.
    fn ask(&mut self, file: u64, requests: Result<&[Request], &i32>, memory: &mut Vec<u8>, answer: Answer) {
        match requests {
            Ok(requests) => self.disk.serve(file, requests, memory, answer),
            Err(&error) => answer(Err(error)),
        }
    }

    /// The answer to what asks nothing of the drive.
    fn look(&self, message: &Message) -> Result<Body, i32> {
        let attributes = match message.node {
            FOLDER => Ok(&self.folder),
            DRIVE => Ok(&self.file),
            _ => Err(libc::ENOENT),
        };
        match &message.operation {
            &Operation::Begin { major, readahead, flags } if major >= messages::MAJOR => {
                Ok(Body::begin(readahead, flags, MOST_BYTES, MOST_REQUESTS))
            }
            Operation::Begin { .. } => Err(libc::EPROTO),
            Operation::Find(name) if message.node == FOLDER && name == FILE.as_bytes() => {
                Ok(Body::found(&self.file, KEPT))
            }
            Operation::Find(_) => Err(libc::ENOENT),
            Operation::Attributes => attributes.map(|attributes| Body::attributes(attributes, KEPT)),
            Operation::Change { other: true, .. } => Err(libc::EPERM),
            &Operation::Change { size, .. } => {
                let attributes = attributes?;
                file::resize(self.bytes, size)?;
                Ok(Body::attributes(attributes, KEPT))
            }
            // The file is as a connection to the drive.
            Operation::Open => Ok(Body::open(self.disk.power_cuts())),
            Operation::OpenFolder => Ok(Body::open(0)),
            &Operation::List { offset, size } if message.node == FOLDER => Ok(self.list(offset, size)),
            Operation::List { .. } => Err(libc::ENOTDIR),
            // The loop device takes the block for the grain of its discards.
            Operation::Size => Ok(Body::size(self.bytes / u64::from(self.disk.block()), self.disk.block())),
            Operation::Close => Ok(Body::default()),
            _ => Err(libc::ENOSYS),
        }
    }

    fn list(&self, offset: u64, size: u32) -> Body {
        let entries = [(&self.folder, "."), (&self.folder, ".."), (&self.file, FILE)];
        let mut body = Body::default();
        let _ =
            (1..).zip(entries).skip(offset as usize).all(|(next, (entry, name))| body.list(entry, next, name, size));
        body
    }
}
