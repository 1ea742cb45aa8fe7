//! Requests of the kernel to a mounted volume: each is one operation of the file system, one after the other.
//!
//! An inode that the kernel knows outlives its last name until the kernel forgets it, so files that are open do. After a power cut an open
//! file that is not the same any more gets ESTALE, and the next `fsync` of each file that was open then EIO: what was written to it may be lost.
//! Locks between machines are left to the kernel.

use super::attributes::{
    ACCESSED, GENERATION, GROUP, MODE, MODIFIED, OWNER, attributes, changed, kind, modified, set_time, words,
};
use super::errors::errno;
use super::extended::{self, Refused};
use super::handles::{Entry, Handles};
use super::known::Known;
use super::ranges;
use fuser::{
    FileAttr, FileType, Filesystem, KernelConfig, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, consts,
};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{self, Done, Fault, FileSystem, LONGEST_NAME, ROOT};
use palimpsest_lab::run::served::volume::Volume;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How long the kernel may keep names and attributes: only it changes them, but for power cuts.
const KEPT: Duration = Duration::from_secs(1);

/// Bytes of a request.
const MOST_BYTES: u32 = 1 << 20;

/// The file system takes set-user-ID bits and capabilities from what is written (`FUSE_HANDLE_KILLPRIV_V2`), so that the kernel does not ask for
/// them before each write; and the flag of a write that does.
const TAKES_RIGHTS: u64 = 1 << 28;
const WRITE_TAKES_RIGHTS: u32 = 1 << 2;

type Answer<T> = Result<T, i32>;

/// A mounted volume.
pub struct Files<'s, 'a> {
    volume: &'s Mutex<Volume<'a>>,
    known: &'s Known,
    /// Is notified when what the kernel keeps of it is stale.
    lost: Sender<()>,
    open: Handles,
    generation: u32,
}

fn number(ino: u64) -> u32 {
    u32::try_from(ino).unwrap_or(u32::MAX)
}

/// Sends what an operation gave, or why it failed.
macro_rules! answer {
    ($reply:ident, $done:expr, $given:pat => $send:expr) => {
        match $done {
            Ok($given) => $send,
            Err(error) => $reply.error(error),
        }
    };
}

impl<'s, 'a> Files<'s, 'a> {
    /// The files of `volume`; the root of an empty one belongs to this `owner`.
    ///
    /// # Errors
    /// The number of an error, as of a drive that fails.
    pub fn new(volume: &'s Mutex<Volume<'a>>, known: &'s Known, lost: Sender<()>, owner: (u32, u32)) -> Answer<Self> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let generation = since.as_secs() as u32;
        let mut files = Files { volume, known, lost, open: Handles::default(), generation };
        files.act(|filesystem, device| {
            if filesystem.words(ROOT)?[MODE] != 0 {
                return Ok(());
            }
            let root = words(libc::S_IFDIR | 0o755, owner, 0, 0);
            let changes: Vec<(usize, u32)> = root.into_iter().enumerate().collect();
            filesystem.set_words(device, ROOT, &changes)?;
            filesystem.sync(device)
        })?;
        Ok(files)
    }

    fn act<T>(&mut self, operation: impl FnOnce(&mut FileSystem, &mut dyn Device) -> Done<T>) -> Answer<T> {
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let done = volume.with(operation).map_err(|trouble| errno(&trouble));
        if self.open.note(volume.losses()) {
            // Where nothing receives it, it is the end.
            let _ = self.lost.send(());
            let known = self.known.inodes();
            let _ = volume.with(|filesystem, _| {
                for ino in known {
                    if filesystem.stat(ino).is_ok() {
                        filesystem.pin(ino);
                    }
                }
                Ok(())
            });
        }
        done
    }

    /// Makes all durable for who has `handle` open.
    fn make_durable(&mut self, handle: u64) -> Answer<()> {
        let done = self.act(|filesystem, device| filesystem.sync(device));
        if self.open.has_lost(handle) { Err(libc::EIO) } else { done }
    }

    /// The kernel knows `ino` from now on.
    fn meet(&mut self, ino: u32) -> Answer<(FileAttr, u64)> {
        let met = self.act(|filesystem, _| {
            filesystem.pin(ino);
            attributes(filesystem, ino)
        })?;
        self.known.meet(ino);
        Ok(met)
    }

    fn part(&mut self, ino: u32, times: u64) {
        if self.known.forget(ino, times) {
            // What cannot be freed now is freed by the next mount.
            let _ = self.act(|filesystem, device| filesystem.unpin(device, ino));
        }
    }

    fn name(name: &OsStr) -> Answer<&[u8]> {
        if name.len() > LONGEST_NAME { Err(libc::ENAMETOOLONG) } else { Ok(name.as_bytes()) }
    }

    /// Makes an inode; `contents` are those of a symbolic link.
    fn make(
        &mut self,
        request: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        device_number: u32,
        contents: &[u8],
    ) -> Answer<(FileAttr, u64)> {
        let (name, parent) = (Self::name(name)?, number(parent));
        self.generation = self.generation.wrapping_add(1);
        let (generation, owner) = (self.generation, request.uid());
        let made = self.act(|filesystem, device| {
            let above = filesystem.words(parent)?;
            let inherits = above[MODE] & libc::S_ISGID != 0;
            let group = if inherits { above[GROUP] } else { request.gid() };
            let is_directory = mode & libc::S_IFMT == libc::S_IFDIR;
            let mode = if inherits && is_directory { mode | libc::S_ISGID } else { mode };
            let file_type = if is_directory { fs::FileType::Directory } else { fs::FileType::File };
            let words = words(mode, (owner, group), device_number, generation);
            let ino = filesystem.create_with(device, parent, name, file_type, &words)?;
            if !contents.is_empty()
                && let Err(fault) = filesystem.write(device, ino, 0, contents)
            {
                // Without its contents it is none.
                if !matches!(fault, Fault::Halt(_)) {
                    filesystem.unlink(device, parent, name)?;
                }
                return Err(fault);
            }
            filesystem.set_words(device, parent, &modified())?;
            Ok(ino)
        })?;
        self.meet(made)
    }

    /// Removes a name.
    fn remove(&mut self, parent: u64, name: &OsStr, directory: bool) -> Answer<()> {
        let (name, parent) = (Self::name(name)?, number(parent));
        self.act(|filesystem, device| {
            let ino = filesystem.lookup(parent, name)?;
            match directory {
                true => filesystem.remove_directory(device, parent, name)?,
                false => filesystem.unlink(device, parent, name)?,
            }
            if filesystem.stat(ino).is_ok() {
                filesystem.set_words(device, ino, &changed())?;
            }
            filesystem.set_words(device, parent, &modified())
        })
    }

    /// Whether the file is the one that was opened: a power cut may give its number to another.
    fn check(filesystem: &FileSystem, ino: u32, generation: u64) -> Done<()> {
        let same = filesystem.words(ino).is_ok_and(|words| u64::from(words[GENERATION]) == generation);
        if same { Ok(()) } else { Err(Fault::NotFound) }
    }

    /// An operation on an open file.
    fn act_on<T>(
        &mut self,
        ino: u64,
        handle: u64,
        operation: impl FnOnce(&mut FileSystem, &mut dyn Device, u32) -> Done<T>,
    ) -> Answer<T> {
        let ino = number(ino);
        let generation = self.open.generation(handle).ok_or(libc::EBADF)?;
        let done = self.act(|filesystem, device| {
            Self::check(filesystem, ino, generation)?;
            operation(filesystem, device, ino)
        });
        done.map_err(|error| if error == libc::ENOENT { libc::ESTALE } else { error })
    }

    /// All that is in a directory.
    fn entries(&mut self, ino: u32) -> Answer<Vec<Entry>> {
        self.act(|filesystem, _| {
            let above = u64::from(filesystem.parent(ino)?);
            let mut entries = vec![
                (u64::from(ino), FileType::Directory, b".".to_vec()),
                (above, FileType::Directory, b"..".to_vec()),
            ];
            for (name, ino) in filesystem.list(ino)? {
                entries.push((u64::from(ino), kind(filesystem.words(ino)?[MODE]), name.to_vec()));
            }
            Ok(entries)
        })
    }

    /// Does what may be refused with an error of its own.
    fn act_or_refuse(
        &mut self,
        operation: impl FnOnce(&mut FileSystem, &mut dyn Device) -> Result<(), Refused>,
    ) -> Answer<()> {
        let mut error = Ok(());
        self.act(|filesystem, device| match operation(filesystem, device) {
            Err(Refused::Fault(fault)) => Err(fault),
            Err(Refused::Error(refused)) => {
                error = Err(refused);
                Ok(())
            }
            Ok(()) => Ok(()),
        })?;
        error
    }
}

/// Sends an attribute, or names of them, to who has room for `size` bytes, or its length.
fn send(reply: ReplyXattr, size: u32, bytes: &[u8]) {
    match size as usize {
        0 => reply.size(bytes.len() as u32),
        size if size < bytes.len() => reply.error(libc::ERANGE),
        _ => reply.data(bytes),
    }
}

fn instant(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

impl Filesystem for Files<'_, '_> {
    fn init(&mut self, _: &Request<'_>, config: &mut KernelConfig) -> Result<(), i32> {
        let _ = config.add_capabilities(consts::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(TAKES_RIGHTS);
        let _ = config.set_max_write(MOST_BYTES);
        Ok(())
    }

    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let found = Self::name(name).and_then(|name| self.act(|filesystem, _| filesystem.lookup(number(parent), name)));
        answer!(reply, found.and_then(|ino| self.meet(ino)), (attributes, generation) => {
            reply.entry(&KEPT, &attributes, generation);
        });
    }

    fn forget(&mut self, _: &Request<'_>, ino: u64, times: u64) {
        self.part(number(ino), times);
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        answer!(reply, self.act(|filesystem, _| attributes(filesystem, number(ino))), (attributes, _) => {
            reply.attr(&KEPT, &attributes);
        });
    }

    fn setattr(
        &mut self,
        request: &Request<'_>,
        ino: u64,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _fh: Option<u64>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<u32>,
        reply: ReplyAttr,
    ) {
        let ino = number(ino);
        // Who may do anything keeps the rights of what he cuts.
        let takes_rights = uid.or(gid).is_some() || (size.is_some() && request.uid() != 0);
        let done = self.act(|filesystem, device| {
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
            changes.extend(ctime.into_iter().flat_map(|time| set_time(super::attributes::CHANGED, time)));
            filesystem.set_words(device, ino, &changes)?;
            attributes(filesystem, ino)
        });
        answer!(reply, done, (attributes, _) => reply.attr(&KEPT, &attributes));
    }

    fn readlink(&mut self, _: &Request<'_>, ino: u64, reply: ReplyData) {
        let read = self.act(|filesystem, device| {
            let size = filesystem.stat(number(ino))?.1;
            filesystem.read(device, number(ino), 0, size)
        });
        answer!(reply, read, target => reply.data(&target));
    }

    fn mknod(
        &mut self,
        request: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        answer!(reply, self.make(request, parent, name, mode, rdev, &[]), (attributes, generation) => {
            reply.entry(&KEPT, &attributes, generation);
        });
    }

    fn mkdir(&mut self, request: &Request<'_>, parent: u64, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let mode = mode & 0o7777 | libc::S_IFDIR;
        answer!(reply, self.make(request, parent, name, mode, 0, &[]), (attributes, generation) => {
            reply.entry(&KEPT, &attributes, generation);
        });
    }

    fn symlink(&mut self, request: &Request<'_>, parent: u64, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (mode, target) = (libc::S_IFLNK | 0o777, target.as_os_str().as_bytes());
        answer!(reply, self.make(request, parent, name, mode, 0, target), (attributes, generation) => {
            reply.entry(&KEPT, &attributes, generation);
        });
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name, false), () => reply.ok());
    }

    fn rmdir(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name, true), () => reply.ok());
    }

    fn rename(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let (parent, new_parent) = (number(parent), number(new_parent));
        let done = Self::name(name).and_then(|name| Ok((name, Self::name(new_name)?))).and_then(|(name, new_name)| {
            if flags & !libc::RENAME_NOREPLACE != 0 {
                return Err(libc::EINVAL);
            }
            self.act(|filesystem, device| {
                let ino = filesystem.lookup(parent, name)?;
                if flags != 0 && filesystem.lookup(new_parent, new_name).is_ok() {
                    return Err(Fault::Exists);
                }
                filesystem.rename(device, parent, name, new_parent, new_name)?;
                filesystem.set_words(device, ino, &changed())?;
                filesystem.set_words(device, parent, &modified())?;
                filesystem.set_words(device, new_parent, &modified())
            })
        });
        answer!(reply, done, () => reply.ok());
    }

    fn link(&mut self, _: &Request<'_>, ino: u64, new_parent: u64, new_name: &OsStr, reply: ReplyEntry) {
        let (ino, new_parent) = (number(ino), number(new_parent));
        let done = Self::name(new_name).and_then(|new_name| {
            self.act(|filesystem, device| {
                filesystem.link(device, new_parent, new_name, ino)?;
                filesystem.set_words(device, ino, &changed())?;
                filesystem.set_words(device, new_parent, &modified())
            })
        });
        answer!(reply, done.and_then(|()| self.meet(ino)), (attributes, generation) => {
            reply.entry(&KEPT, &attributes, generation);
        });
    }

    fn create(
        &mut self,
        request: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mode = mode & 0o7777 | libc::S_IFREG;
        answer!(reply, self.make(request, parent, name, mode, 0, &[]), (attributes, generation) => {
            let handle = self.open.enter(generation);
            reply.created(&KEPT, &attributes, generation, handle, 0);
        });
    }

    fn open(&mut self, _: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        let found = self.act(|filesystem, _| Ok(filesystem.words(number(ino))?[GENERATION]));
        answer!(reply, found, generation => reply.opened(self.open.enter(u64::from(generation)), 0));
    }

    fn release(
        &mut self,
        _: &Request<'_>,
        _ino: u64,
        fh: u64,
        _flags: i32,
        _lock_owner: Option<u64>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.open.leave(fh);
        reply.ok();
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        fh: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        let read = self.act_on(ino, fh, |filesystem, device, ino| {
            filesystem.read(device, ino, offset.unsigned_abs(), u64::from(size))
        });
        answer!(reply, read, bytes => reply.data(&bytes));
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        fh: u64,
        offset: i64,
        data: &[u8],
        write_flags: u32,
        flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let done = self.act_on(ino, fh, |filesystem, device, ino| {
            filesystem.write(device, ino, offset.unsigned_abs(), data)?;
            if write_flags & WRITE_TAKES_RIGHTS != 0 {
                extended::strip(filesystem, device, ino)?;
            }
            filesystem.set_words(device, ino, &modified())?;
            if flags & libc::O_DSYNC != 0 { filesystem.sync(device) } else { Ok(()) }
        });
        answer!(reply, done, () => reply.written(data.len() as u32));
    }

    fn flush(&mut self, _: &Request<'_>, _ino: u64, _fh: u64, _lock_owner: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, ino: u64, fh: u64, _datasync: bool, reply: ReplyEmpty) {
        let same = self.act_on(ino, fh, |_, _, _| Ok(()));
        answer!(reply, same.and_then(|()| self.make_durable(fh)), () => reply.ok());
    }

    fn fsyncdir(&mut self, _: &Request<'_>, _ino: u64, fh: u64, _datasync: bool, reply: ReplyEmpty) {
        answer!(reply, self.make_durable(fh), () => reply.ok());
    }

    fn opendir(&mut self, _: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        // What is in it is looked up when it is read from its beginning.
        let found = self.act(|filesystem, _| filesystem.list(number(ino)).map(|_| ()));
        answer!(reply, found, () => reply.opened(self.open.enter(0), 0));
    }

    fn readdir(&mut self, _: &Request<'_>, ino: u64, fh: u64, offset: i64, mut reply: ReplyDirectory) {
        if offset == 0 {
            match self.entries(number(ino)) {
                Ok(entries) => self.open.set_entries(fh, entries),
                Err(error) => return reply.error(error),
            }
        }
        let Some(entries) = self.open.entries(fh) else { return reply.error(libc::EBADF) };
        for (place, (ino, kind, name)) in entries.iter().enumerate().skip(offset.max(0) as usize) {
            if reply.add(*ino, place as i64 + 1, *kind, std::ffi::OsString::from_vec(name.clone())) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&mut self, _: &Request<'_>, _ino: u64, fh: u64, _flags: i32, reply: ReplyEmpty) {
        self.open.leave(fh);
        reply.ok();
    }

    fn statfs(&mut self, _: &Request<'_>, _ino: u64, reply: ReplyStatfs) {
        let found = self.act(|filesystem, _| Ok((filesystem.shape(), filesystem.room(), filesystem.inodes())));
        answer!(reply, found, (shape, room, inodes) => {
            let (all, page) = (FileSystem::capacity(shape).max(0) as u64, shape.page_bytes);
            reply.statfs(all, room, room, inodes + room, room, page, LONGEST_NAME as u32, page);
        });
    }

    fn fallocate(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        fh: u64,
        offset: i64,
        length: i64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (from, end) = (offset.unsigned_abs(), offset.unsigned_abs().saturating_add(length.unsigned_abs()));
        let done =
            self.act_on(ino, fh, |filesystem, device, ino| ranges::allocate(filesystem, device, ino, from..end, mode));
        answer!(reply, done, () => reply.ok());
    }

    fn lseek(&mut self, _: &Request<'_>, ino: u64, fh: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        let from = u64::try_from(offset).unwrap_or(u64::MAX);
        let found = self.act_on(ino, fh, |filesystem, _, ino| ranges::seek(filesystem, ino, from, whence));
        answer!(reply, found.and_then(|at| at.ok_or(libc::ENXIO)), at => reply.offset(at as i64));
    }

    fn setxattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (ino, name) = (number(ino), name.as_bytes());
        let done =
            self.act_or_refuse(|filesystem, device| extended::set(filesystem, device, ino, name, Some(value), flags));
        answer!(reply, done, () => reply.ok());
    }

    fn getxattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.as_bytes();
        let found = self.act(|filesystem, device| extended::value(filesystem, device, number(ino), name));
        let refused = extended::unkept(name).unwrap_or(libc::ENODATA);
        answer!(reply, found.and_then(|value| value.ok_or(refused)), value => send(reply, size, &value));
    }

    fn listxattr(&mut self, _: &Request<'_>, ino: u64, size: u32, reply: ReplyXattr) {
        let found = self.act(|filesystem, device| extended::names(filesystem, device, number(ino)));
        answer!(reply, found, names => send(reply, size, &names));
    }

    fn removexattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, reply: ReplyEmpty) {
        let (ino, name) = (number(ino), name.as_bytes());
        let done = self.act_or_refuse(|filesystem, device| extended::set(filesystem, device, ino, name, None, 0));
        answer!(reply, done, () => reply.ok());
    }
}
