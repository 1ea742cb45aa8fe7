//! The FUSE file system of an attached drive: a folder with one file, [`FILE`], mounted by `fuser`.
//!
//! One thread reads all waiting requests, a few at a time, so that the drive prefetches the memory of all of them
//! together, then serves and answers each. Programs that open the file use the kernel's cache, as with a block device;
//! with O_DIRECT, as from the loop device, every request reaches the drive. The kernel admits only the user who
//! attached the drive.

use super::disk::{Answer, Disk};
use super::file;
use super::messages::{self, Attributes, Body, Message, Operation};
use crate::drive::EXPECTED;
use crate::request::Request;
use fuser::{Config, INodeNo, InitFlags, KernelConfig, MountOption, Notifier};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub const FILE: &str = "drive";

const FOLDER: u64 = INodeNo::ROOT.0;
const DRIVE: u64 = 2;

/// Time that the kernel may keep names and sizes, which never change.
const KEPT: Duration = Duration::from_secs(3600);

/// Requests that the kernel may have in flight, and number at which it slows writers.
const MOST_REQUESTS: (u16, u16) = (256, 192);

/// Bytes of a request.
const MOST_BYTES: u32 = 1 << 20;

/// Bytes of messages served together: their data is still in the caches then.
const TOGETHER: usize = 160 << 10;

/// A mounted file.
pub struct Session<'s> {
    mount: fuser::Session<Handshake>,
    kernel: Kernel,
    files: DriveFile<'s>,
}

/// The first message, the only one that `fuser` answers.
struct Handshake;

impl fuser::Filesystem for Handshake {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(MOST_BYTES);
        let _ = config.set_max_background(MOST_REQUESTS.0);
        let _ = config.set_congestion_threshold(MOST_REQUESTS.1);
        Ok(())
    }
}

/// Mounts `disk` at the folder `at`; [`Session::run`] serves the mount.
pub fn mount<'s>(disk: Box<dyn Disk + 's>, at: &Path) -> io::Result<Session<'s>> {
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("palimpsest".into()), MountOption::DefaultPermissions, MountOption::NoExec];
    let mount = fuser::Session::new(Handshake, at, &config)?;
    let kernel = File::from(mount.as_fd().try_clone_to_owned()?);
    fcntl(&kernel, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(Session { mount, kernel: Kernel(Arc::new(kernel)), files: DriveFile::new(disk) })
}

/// Drops the kernel's cache of the file.
pub fn forget(kernel: &Notifier) -> io::Result<()> {
    kernel.inval_inode(INodeNo(DRIVE), 0, 0)
}

/// Received messages, and their places in memory.
struct Batch {
    bytes: Vec<u8>,
    messages: Vec<Range<usize>>,
}

impl Session<'_> {
    /// Sends notifications to the kernel.
    pub fn notifier(&self) -> Notifier {
        self.mount.notifier()
    }

    /// Serves the file until it is unmounted.
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

/// The kernel's end of the mount; any thread may answer.
#[derive(Clone)]
struct Kernel(Arc<File>);

impl Kernel {
    /// Waits for messages, and reads up to [`EXPECTED`]; false if the file is unmounted.
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
                    // The kernel gave a request up.
                    Errno::ENOENT | Errno::EINTR => {}
                    // Nothing waits for the answers to earlier messages.
                    Errno::ENODEV => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
        Ok(true)
    }

    fn wait(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers message `number`. The kernel may have given the request up.
    fn answer(&self, number: u64, done: Result<&[u8], i32>) {
        let header = messages::header(number, done.map(<[u8]>::len));
        let _ = (&*self.0).write_vectored(&[IoSlice::new(&header), IoSlice::new(done.unwrap_or_default())]);
    }
}

struct DriveFile<'s> {
    disk: Box<dyn Disk + 's>,
    bytes: u64,
    folder: Attributes,
    file: Attributes,
}

impl<'s> DriveFile<'s> {
    fn new(disk: Box<dyn Disk + 's>) -> Self {
        let (made, (bytes, block)) = (SystemTime::now(), disk.size());
        let owner = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        let folder =
            Attributes { node: FOLDER, size: 0, mode: libc::S_IFDIR | 0o700, links: 2, owner, block: 4096, made };
        let file = Attributes { node: DRIVE, size: bytes, mode: libc::S_IFREG | 0o600, links: 1, owner, block, made };
        DriveFile { disk, bytes, folder, file }
    }

    /// The read or write of the drive in a message.
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

    /// Serves the requests of an operation on the drive, or refuses the operation.
    fn ask(&mut self, file: u64, requests: Result<&[Request], &i32>, memory: &mut Vec<u8>, answer: Answer) {
        match requests {
            Ok(requests) => self.disk.serve(file, requests, memory, answer),
            Err(&error) => answer(Err(error)),
        }
    }

    /// Answers an operation that needs no request to the drive.
    fn look(&self, message: &Message) -> Result<Body, i32> {
        let attributes = match message.node {
            FOLDER => Ok(&self.folder),
            DRIVE => Ok(&self.file),
            _ => Err(libc::ENOENT),
        };
        match &message.operation {
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
            // An open file is a connection to the drive.
            Operation::Open => Ok(Body::open(self.disk.power_cuts())),
            Operation::OpenFolder => Ok(Body::open(0)),
            &Operation::List { offset, size } if message.node == FOLDER => Ok(self.list(offset, size)),
            Operation::List { .. } => Err(libc::ENOTDIR),
            // The loop device aligns discards to the block size.
            Operation::Size => Ok(Body::size(self.bytes / u64::from(self.file.block), self.file.block)),
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
