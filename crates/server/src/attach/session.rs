//! The FUSE file system of an attached drive: a folder with one file, [`FILE`].
//!
//! One thread reads a request from the kernel, serves it and answers it. Programs that open the file have the kernel's cache, as with a
//! block device; with O_DIRECT, as the loop device does it, every request reaches the drive. For the user alone who attached it.

use super::disk::{Answer, Disk};
use super::file;
use crate::transmission;
use fuser::{
    FileAttr, FileType, Filesystem, KernelConfig, MountOption, Notifier, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow, consts,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
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

/// The mount of `disk` at the folder `at`; [`Session::run`] serves it, until it is unmounted.
///
/// # Errors
/// Those of the operating system.
pub fn mount<D: Disk>(disk: D, at: &Path) -> io::Result<Session<DriveFile<D>>> {
    let options = [MountOption::FSName("palimpsest".into()), MountOption::DefaultPermissions, MountOption::NoExec];
    Session::new(DriveFile::new(disk), at, &options)
}

/// The kernel forgets what it keeps of the file.
///
/// # Errors
/// Those of the operating system.
pub fn forget(kernel: &Notifier) -> io::Result<()> {
    match kernel.inval_inode(DRIVE, 0, 0) {
        // It keeps nothing of a file that nobody has looked for.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// The file system.
pub struct DriveFile<D> {
    disk: D,
    bytes: u64,
    folder: FileAttr,
    file: FileAttr,
}

impl<D: Disk> DriveFile<D> {
    fn new(disk: D) -> Self {
        let (now, bytes) = (SystemTime::now(), disk.bytes());
        let attributes = |ino, kind, perm, size, blksize| FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: nix::unistd::getuid().as_raw(),
            gid: nix::unistd::getgid().as_raw(),
            rdev: 0,
            blksize,
            flags: 0,
        };
        let folder = attributes(FOLDER, FileType::Directory, 0o700, 0, 4096);
        let file = attributes(DRIVE, FileType::RegularFile, 0o600, bytes, disk.block());
        DriveFile { disk, bytes, folder, file }
    }

    fn attributes(&self, ino: u64) -> Option<&FileAttr> {
        match ino {
            FOLDER => Some(&self.folder),
            DRIVE => Some(&self.file),
            _ => None,
        }
    }

    /// Serves the requests of an operation, or refuses it.
    fn serve(
        &mut self,
        since: u64,
        requests: Result<impl AsRef<[transmission::Request]>, i32>,
        data: &[u8],
        answer: Answer,
    ) {
        match requests {
            Ok(requests) => self.disk.serve(since, requests.as_ref(), data, answer),
            Err(error) => answer(Err(error)),
        }
    }
}

/// One request, or none.
struct AtMostOne(Option<transmission::Request>);

impl AsRef<[transmission::Request]> for AtMostOne {
    fn as_ref(&self) -> &[transmission::Request] {
        self.0.as_slice()
    }
}

fn empty(reply: ReplyEmpty) -> Answer {
    Box::new(|done| match done {
        Ok(_) => reply.ok(),
        Err(error) => reply.error(error),
    })
}

impl<D: Disk> Filesystem for DriveFile<D> {
    fn init(&mut self, _: &Request<'_>, config: &mut KernelConfig) -> Result<(), i32> {
        // What an old kernel does not know, or allows less of, it does without.
        let _ = config.add_capabilities(consts::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(MOST_BYTES);
        let _ = config.set_max_background(MOST_REQUESTS.0);
        let _ = config.set_congestion_threshold(MOST_REQUESTS.1);
        Ok(())
    }

    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        if parent == FOLDER && name == FILE {
            reply.entry(&KEPT, &self.file, 0);
        } else {
            reply.error(libc::ENOENT);
        }
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&KEPT, attributes),
            None => reply.error(libc::ENOENT),
        }
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<u64>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<u32>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(ino) else { return reply.error(libc::ENOENT) };
        if mode.or(uid).or(gid).is_some() {
            return reply.error(libc::EPERM);
        }
        match file::resize(self.bytes, size) {
            Ok(()) => reply.attr(&KEPT, attributes),
            Err(error) => reply.error(error),
        }
    }

    fn open(&mut self, _: &Request<'_>, _ino: u64, _flags: i32, reply: ReplyOpen) {
        reply.opened(self.disk.power_cuts(), 0);
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        _ino: u64,
        fh: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        let requests = file::read(self.bytes, offset, size).map(AtMostOne);
        let answer = |done: Result<&[u8], i32>| match done {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(error),
        };
        self.serve(fh, requests, &[], Box::new(answer));
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        _ino: u64,
        fh: u64,
        offset: i64,
        data: &[u8],
        _write_flags: u32,
        flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let requests = file::write(self.bytes, offset, data.len(), flags).map(AtMostOne);
        let length = data.len() as u32;
        let answer = move |done: Result<&[u8], i32>| match done {
            Ok(_) => reply.written(length),
            Err(error) => reply.error(error),
        };
        self.serve(fh, requests, data, Box::new(answer));
    }

    fn flush(&mut self, _: &Request<'_>, _ino: u64, _fh: u64, _lock_owner: u64, reply: ReplyEmpty) {
        // A file is closed: that makes nothing durable.
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, _ino: u64, fh: u64, _datasync: bool, reply: ReplyEmpty) {
        self.serve(fh, Ok([transmission::Request::Flush]), &[], empty(reply));
    }

    fn fallocate(
        &mut self,
        _: &Request<'_>,
        _ino: u64,
        fh: u64,
        offset: i64,
        length: i64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.serve(fh, file::allocate(self.bytes, offset, length, mode), &[], empty(reply));
    }

    fn readdir(&mut self, _: &Request<'_>, ino: u64, _fh: u64, offset: i64, mut reply: ReplyDirectory) {
        if ino != FOLDER {
            return reply.error(libc::ENOTDIR);
        }
        let entries = [
            (FOLDER, FileType::Directory, "."),
            (FOLDER, FileType::Directory, ".."),
            (DRIVE, FileType::RegularFile, FILE),
        ];
        for (place, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset.max(0) as usize) {
            if reply.add(ino, place as i64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&mut self, _: &Request<'_>, _ino: u64, reply: ReplyStatfs) {
        // The loop device takes this for the grain of its discards.
        let block = self.disk.block();
        reply.statfs(self.bytes / u64::from(block), 0, 0, 1, 0, block, 255, block);
    }
}
