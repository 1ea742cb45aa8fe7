//! Requests of the kernel as `fuser` reads them, sent in order to the thread that owns the [`Files`].
//!
//! `fuser` requires a file system without borrows, and calls it on another thread; a served drive borrows the
//! configuration. So each request becomes a [`Job`] with copies of the bytes and with the reply. A job that is dropped
//! answers EIO.
//!
//! Ignored: locks, which the kernel keeps itself as no other machine mounts the file system.

use super::attributes::{
    ACCESSED, CHANGED, GENERATION, GROUP, MODE, MODIFIED, OWNER, attributes, changed, modified, set_time,
};
use super::files::{Answer, Files};
use super::{extended, ranges};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use palimpsest_lab::host::fs::{FileSystem, LONGEST_NAME};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may keep names and attributes: only the kernel changes them, but for power cuts.
const KEPT: Duration = Duration::from_secs(1);

/// Bytes of a request.
const MOST_BYTES: u32 = 1 << 20;

/// A request with the reply.
pub type Job = Box<dyn FnOnce(&mut Files<'_, '_>) + Send>;

/// The file system that `fuser` calls.
pub struct Requests(pub Sender<Job>);

impl Requests {
    fn send(&self, job: impl FnOnce(&mut Files<'_, '_>) + Send + 'static) {
        let _ = self.0.send(Box::new(job));
    }
}

fn number(ino: INodeNo) -> u32 {
    u32::try_from(ino.0).unwrap_or(u32::MAX)
}

/// Sends the result of an operation, or the error.
macro_rules! answer {
    ($reply:ident, $done:expr, $given:pat => $send:expr) => {
        match $done {
            Ok($given) => $send,
            Err(error) => $reply.error(Errno::from_i32(error)),
        }
    };
}

fn done(reply: ReplyEmpty, done: Answer<()>) {
    answer!(reply, done, () => reply.ok());
}

fn entry(reply: ReplyEntry, found: Answer<(FileAttr, u64)>) {
    answer!(reply, found, (attributes, generation) => reply.entry(&KEPT, &attributes, Generation(generation)));
}

fn attr(reply: ReplyAttr, found: Answer<(FileAttr, u64)>) {
    answer!(reply, found, (attributes, _) => reply.attr(&KEPT, &attributes));
}

/// Sends an extended attribute, or all names, to a program with room for `size` bytes; the length if `size` is 0.
fn xattr(reply: ReplyXattr, size: u32, found: Answer<Vec<u8>>) {
    answer!(reply, found, bytes => match size as usize {
        0 => reply.size(bytes.len() as u32),
        size if size < bytes.len() => reply.error(Errno::ERANGE),
        _ => reply.data(&bytes),
    });
}

fn instant(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => exact(time),
        TimeOrNow::Now => SystemTime::now(),
    }
}

/// The kernel's time behind `time`: before 1970 fuser 0.18 subtracts nanoseconds (`time.rs`) that the kernel adds.
fn exact(time: SystemTime) -> SystemTime {
    let Err(before) = time.duration_since(UNIX_EPOCH) else { return time };
    let (seconds, nanos) = (before.duration().as_secs(), before.duration().subsec_nanos());
    UNIX_EPOCH - Duration::from_secs(seconds) + Duration::from_nanos(nanos.into())
}

impl Filesystem for Requests {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The file system takes set-user-ID bits and capabilities from written files, so that the kernel does not ask
        // before each write.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
        let _ = config.set_max_write(MOST_BYTES);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.send(move |files| {
            let found = Files::name(&name);
            let found = found.and_then(|name| files.act(|filesystem, _| filesystem.lookup(number(parent), name)));
            entry(reply, found.and_then(|ino| files.meet(ino)));
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, times: u64) {
        self.send(move |files| files.part(number(ino), times));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.send(move |files| attr(reply, files.act(|filesystem, _| attributes(filesystem, number(ino)))));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let ino = number(ino);
        // Root may truncate a file without taking its rights.
        let takes_rights = uid.or(gid).is_some() || (size.is_some() && request.uid() != 0);
        let change = move |files: &mut Files<'_, '_>| {
            files.act(|filesystem, device| {
                let mut changes = Vec::new();
                if takes_rights {
                    extended::strip(filesystem, device, ino)?;
                }
                if let Some(size) = size {
                    filesystem.truncate(device, ino, size)?;
                    changes.extend(modified());
                }
                if let Some(mode) = mode {
                    let kept = filesystem.words(ino)?[MODE] & libc::S_IFMT;
                    changes.push((MODE, kept | mode & 0o7777));
                }
                changes.extend(uid.map(|uid| (OWNER, uid)));
                changes.extend(gid.map(|gid| (GROUP, gid)));
                changes.extend(changed());
                changes.extend(atime.into_iter().flat_map(|time| set_time(ACCESSED, instant(time))));
                changes.extend(mtime.into_iter().flat_map(|time| set_time(MODIFIED, instant(time))));
                changes.extend(ctime.into_iter().flat_map(|time| set_time(CHANGED, exact(time))));
                filesystem.set_words(device, ino, &changes)?;
                attributes(filesystem, ino)
            })
        };
        self.send(move |files| attr(reply, change(files)));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.send(move |files| {
            let read = files.act(|filesystem, device| {
                let size = filesystem.stat(number(ino))?.1;
                filesystem.read(device, number(ino), 0, size)
            });
            answer!(reply, read, target => reply.data(&target));
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (name, owner) = (name.to_owned(), (request.uid(), request.gid()));
        self.send(move |files| entry(reply, files.make(owner, number(parent), &name, mode, rdev, &[])));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.mknod(request, parent, name, mode & 0o7777 | libc::S_IFDIR, umask, 0, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (name, owner, target) = (name.to_owned(), (request.uid(), request.gid()), target.as_os_str().to_owned());
        let mode = libc::S_IFLNK | 0o777;
        self.send(move |files| entry(reply, files.make(owner, number(parent), &name, mode, 0, target.as_bytes())));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.send(move |files| done(reply, files.remove(number(parent), &name, false)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.send(move |files| done(reply, files.remove(number(parent), &name, true)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let (name, new_name, replaces) = (name.to_owned(), new_name.to_owned(), flags.is_empty());
        self.send(move |files| {
            done(reply, files.rename((number(parent), &name), (number(new_parent), &new_name), replaces));
        });
    }

    fn link(&self, _: &Request, ino: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        let (ino, new_parent, new_name) = (number(ino), number(new_parent), new_name.to_owned());
        self.send(move |files| entry(reply, files.link(ino, new_parent, &new_name)));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, owner) = (name.to_owned(), (request.uid(), request.gid()));
        let mode = mode & 0o7777 | libc::S_IFREG;
        self.send(move |files| {
            answer!(reply, files.make(owner, number(parent), &name, mode, 0, &[]), (attributes, generation) => {
                let handle = FileHandle(files.open.enter(generation));
                reply.created(&KEPT, &attributes, Generation(generation), handle, FopenFlags::empty());
            });
        });
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.send(move |files| {
            let found = files.act(|filesystem, _| Ok(filesystem.words(number(ino))?[GENERATION]));
            answer!(reply, found, generation => {
                reply.opened(FileHandle(files.open.enter(u64::from(generation))), FopenFlags::empty());
            });
        });
    }

    fn release(
        &self,
        request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        flags: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.releasedir(request, ino, fh, flags, reply);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.send(move |files| {
            let read = files.act_on(number(ino), fh.0, |filesystem, device, ino| {
                filesystem.read(device, ino, offset, u64::from(size))
            });
            answer!(reply, read, bytes => reply.data(&bytes));
        });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.send(move |files| {
            let done = files.act_on(number(ino), fh.0, |filesystem, device, ino| {
                filesystem.write(device, ino, offset, &data)?;
                if write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                    extended::strip(filesystem, device, ino)?;
                }
                filesystem.set_words(device, ino, &modified())?;
                if flags.0 & libc::O_DSYNC != 0 { filesystem.sync(device) } else { Ok(()) }
            });
            answer!(reply, done, () => reply.written(data.len() as u32));
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.send(move |files| {
            let same = files.act_on(number(ino), fh.0, |_, _, _| Ok(()));
            done(reply, same.and_then(|()| files.make_durable(fh.0)));
        });
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.send(move |files| done(reply, files.make_durable(fh.0)));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.send(move |files| {
            let found = files.act(|filesystem, _| filesystem.list(number(ino)).map(|_| ()));
            answer!(reply, found, () => reply.opened(FileHandle(files.open.enter(0)), FopenFlags::empty()));
        });
    }

    fn readdir(&self, _: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.send(move |files| {
            if offset == 0 {
                match files.entries(number(ino)) {
                    Ok(entries) => files.open.set_entries(fh.0, entries),
                    Err(error) => return reply.error(Errno::from_i32(error)),
                }
            }
            let Some(entries) = files.open.entries(fh.0) else { return reply.error(Errno::EBADF) };
            for (next, (ino, kind, name)) in (1..).zip(entries).skip(offset as usize) {
                if reply.add(INodeNo(*ino), next, *kind, OsString::from_vec(name.clone())) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.send(move |files| {
            files.open.leave(fh.0);
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.send(move |files| {
            let found = files.act(|filesystem, _| Ok((filesystem.shape(), filesystem.room(), filesystem.inodes())));
            answer!(reply, found, (shape, room, inodes) => {
                let (all, page) = (FileSystem::capacity(shape).max(0) as u64, shape.page_bytes);
                reply.statfs(all, room, room, inodes + room, room, page, LONGEST_NAME as u32, page);
            });
        });
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let range = offset..offset.saturating_add(length);
        self.send(move |files| {
            let allocated = files.act_on(number(ino), fh.0, |filesystem, device, ino| {
                ranges::allocate(filesystem, device, ino, range, mode)
            });
            done(reply, allocated);
        });
    }

    fn lseek(&self, _: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let from = u64::try_from(offset).unwrap_or(u64::MAX);
        self.send(move |files| {
            let found =
                files.act_on(number(ino), fh.0, |filesystem, _, ino| ranges::seek(filesystem, ino, from, whence));
            answer!(reply, found.and_then(|at| at.ok_or(libc::ENXIO)), at => reply.offset(at as i64));
        });
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.send(move |files| done(reply, files.set_extended(number(ino), &name, Some(&value), flags)));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.send(move |files| {
            let name = name.as_bytes();
            let found = files.act(|filesystem, device| extended::value(filesystem, device, number(ino), name));
            let refused = extended::unkept(name).unwrap_or(libc::ENODATA);
            xattr(reply, size, found.and_then(|value| value.ok_or(refused)));
        });
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.send(move |files| {
            xattr(reply, size, files.act(|filesystem, device| extended::names(filesystem, device, number(ino))));
        });
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.send(move |files| done(reply, files.set_extended(number(ino), &name, None, 0)));
    }
}
