//! Requests of the kernel to a mounted volume: each is one operation of the file system, one after the other.
//!
//! An inode that the kernel knows outlives its last name until the kernel forgets it, so files that are open do. After a power cut an open
//! file that is not the same any more gets ESTALE. Extended attributes, room without contents (`fallocate`, but for holes) and locks between
//! machines are refused with EOPNOTSUPP, or left to the kernel.

use super::attributes::{
    ACCESSED, GENERATION, GROUP, MODE, MODIFIED, OWNER, attributes, changed, kind, modified, set_time, words,
};
use crate::attach::file::{KEEP_SIZE, PUNCH_HOLE};
use fuser::{
    FileAttr, FileType, Filesystem, KernelConfig, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, consts,
};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{self, Done, Fault, FileSystem, LONGEST_NAME, ROOT};
use palimpsest_lab::run::served::volume::{Trouble, Volume};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How long the kernel may keep names and attributes: only it changes them, but for power cuts.
const KEPT: Duration = Duration::from_secs(1);

/// Bytes of a request.
const MOST_BYTES: u32 = 1 << 20;

/// A name of a directory, with its number and type.
type Entry = (u64, FileType, Vec<u8>);

type Answer<T> = Result<T, i32>;

/// A mounted volume.
pub struct Files<'s, 'a> {
    volume: &'s Mutex<Volume<'a>>,
    /// How often the kernel has looked up each inode that it knows.
    known: BTreeMap<u32, u64>,
    /// Directories that are open, as they were then.
    open: BTreeMap<u64, Vec<Entry>>,
    next: u64,
    generation: u32,
    power_cuts: u64,
}

fn errno(trouble: &Trouble) -> i32 {
    match trouble {
        Trouble::Refused(fault) => match fault {
            Fault::Full => libc::ENOSPC,
            Fault::NotFound => libc::ENOENT,
            Fault::Exists => libc::EEXIST,
            Fault::NotDirectory => libc::ENOTDIR,
            Fault::IsDirectory => libc::EISDIR,
            Fault::NotEmpty => libc::ENOTEMPTY,
            Fault::TooLarge => libc::EFBIG,
            Fault::Invalid => libc::EINVAL,
            Fault::Halt(_) | Fault::NotFormatted | Fault::Corrupt(_) => libc::EIO,
        },
        Trouble::PowerLost | Trouble::Unreadable | Trouble::Drive => libc::EIO,
    }
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
    pub fn new(volume: &'s Mutex<Volume<'a>>, owner: (u32, u32)) -> Answer<Self> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let generation = since.as_secs() as u32;
        let mut files =
            Files { volume, known: BTreeMap::new(), open: BTreeMap::new(), next: 0, generation, power_cuts: 0 };
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
        if volume.power_cuts() != self.power_cuts {
            self.power_cuts = volume.power_cuts();
            let known: Vec<u32> = self.known.keys().copied().collect();
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

    /// The kernel knows `ino` from now on.
    fn meet(&mut self, ino: u32) -> Answer<(FileAttr, u64)> {
        let met = self.act(|filesystem, _| {
            filesystem.pin(ino);
            attributes(filesystem, ino)
        })?;
        *self.known.entry(ino).or_default() += 1;
        Ok(met)
    }

    fn part(&mut self, ino: u32, times: u64) {
        let Some(known) = self.known.get_mut(&ino) else { return };
        *known = known.saturating_sub(times);
        if *known == 0 {
            self.known.remove(&ino);
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
        generation: u64,
        operation: impl FnOnce(&mut FileSystem, &mut dyn Device, u32) -> Done<T>,
    ) -> Answer<T> {
        let ino = number(ino);
        let done = self.act(|filesystem, device| {
            Self::check(filesystem, ino, generation)?;
            operation(filesystem, device, ino)
        });
        done.map_err(|error| if error == libc::ENOENT { libc::ESTALE } else { error })
    }

    /// Makes a range a hole; the size stays.
    fn punch(filesystem: &mut FileSystem, device: &mut dyn Device, ino: u32, from: u64, end: u64) -> Done<()> {
        let width = u64::from(filesystem.shape().page_bytes);
        let end = end.min(filesystem.stat(ino)?.1);
        let mut at = from;
        while at < end {
            let until = end.min((at / width + 1) * width);
            let page = (at / width) as u32;
            // The rest of the last page of a file is zeroes anyway.
            let is_whole =
                at.is_multiple_of(width) && (until.is_multiple_of(width) || until == filesystem.stat(ino)?.1);
            if is_whole {
                filesystem.punch(device, ino, page)?;
            } else if filesystem.locate(ino, page)?.is_some() {
                filesystem.write(device, ino, at, &vec![0; (until - at) as usize])?;
            }
            at = until;
        }
        filesystem.set_words(device, ino, &modified())
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
        _: &Request<'_>,
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
        let done = self.act(|filesystem, device| {
            let mut changes = Vec::new();
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
            reply.created(&KEPT, &attributes, generation, generation, 0);
        });
    }

    fn open(&mut self, _: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        let found = self.act(|filesystem, _| Ok(filesystem.words(number(ino))?[GENERATION]));
        answer!(reply, found, generation => reply.opened(u64::from(generation), 0));
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
        _write_flags: u32,
        flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let done = self.act_on(ino, fh, |filesystem, device, ino| {
            filesystem.write(device, ino, offset.unsigned_abs(), data)?;
            filesystem.set_words(device, ino, &modified())?;
            if flags & libc::O_DSYNC != 0 { filesystem.sync(device) } else { Ok(()) }
        });
        answer!(reply, done, () => reply.written(data.len() as u32));
    }

    fn flush(&mut self, _: &Request<'_>, _ino: u64, _fh: u64, _lock_owner: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, ino: u64, fh: u64, _datasync: bool, reply: ReplyEmpty) {
        answer!(reply, self.act_on(ino, fh, |filesystem, device, _| filesystem.sync(device)), () => reply.ok());
    }

    fn fsyncdir(&mut self, _: &Request<'_>, _ino: u64, _fh: u64, _datasync: bool, reply: ReplyEmpty) {
        answer!(reply, self.act(|filesystem, device| filesystem.sync(device)), () => reply.ok());
    }

    fn opendir(&mut self, _: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        let listed = self.act(|filesystem, _| {
            let ino = number(ino);
            let above = u64::from(filesystem.parent(ino)?);
            let mut entries = vec![
                (u64::from(ino), FileType::Directory, b".".to_vec()),
                (above, FileType::Directory, b"..".to_vec()),
            ];
            for (name, ino) in filesystem.list(ino)? {
                entries.push((u64::from(ino), kind(filesystem.words(ino)?[MODE]), name.to_vec()));
            }
            Ok(entries)
        });
        answer!(reply, listed, entries => {
            self.next += 1;
            self.open.insert(self.next, entries);
            reply.opened(self.next, 0);
        });
    }

    fn readdir(&mut self, _: &Request<'_>, _ino: u64, fh: u64, offset: i64, mut reply: ReplyDirectory) {
        let Some(entries) = self.open.get(&fh) else { return reply.error(libc::EBADF) };
        for (place, (ino, kind, name)) in entries.iter().enumerate().skip(offset.max(0) as usize) {
            if reply.add(*ino, place as i64 + 1, *kind, std::ffi::OsString::from_vec(name.clone())) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&mut self, _: &Request<'_>, _ino: u64, fh: u64, _flags: i32, reply: ReplyEmpty) {
        self.open.remove(&fh);
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
        if mode != PUNCH_HOLE | KEEP_SIZE {
            return reply.error(libc::EOPNOTSUPP);
        }
        let (from, length) = (offset.unsigned_abs(), length.unsigned_abs());
        let done = self.act_on(ino, fh, |filesystem, device, ino| {
            Self::punch(filesystem, device, ino, from, from.saturating_add(length))
        });
        answer!(reply, done, () => reply.ok());
    }
}
