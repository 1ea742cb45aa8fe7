//! Operations of the kernel on a mounted volume, one after the other.
//!
//! An inode that the kernel knows outlives the last name until the kernel forgets the inode, so open files do. After a
//! power cut an open file that is not the same any more gets ESTALE, and the next `fsync` of each file that was open
//! then gets EIO, because writes may be lost.

use super::attributes::{GENERATION, GROUP, MODE, attributes, changed, kind, modified, words};
use super::extended::{self, Refused};
use super::handles::{Entry, Handles};
use super::known::Known;
use fuser::{FileAttr, FileType};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{self, Done, Fault, FileSystem, LONGEST_NAME, ROOT};
use palimpsest_lab::run::served::volume::{Trouble, Volume};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The result of an operation, or an error number.
pub type Answer<T> = Result<T, i32>;

/// A mounted volume.
pub struct Files<'s, 'a> {
    volume: &'s Mutex<Volume<'a>>,
    known: &'s Known,
    /// Gets a message when the kernel's cache is stale.
    lost: Sender<()>,
    pub(super) open: Handles,
    generation: u32,
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
            Fault::Unsupported => libc::EOPNOTSUPP,
            Fault::Halt(_) | Fault::NotFormatted | Fault::Unreadable | Fault::Corrupt(_) => libc::EIO,
        },
        Trouble::PowerLost | Trouble::Unreadable | Trouble::Drive => libc::EIO,
    }
}

impl<'s, 'a> Files<'s, 'a> {
    /// The files of `volume`; the root of an empty one belongs to `owner`.
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

    pub(super) fn act<T>(&mut self, operation: impl FnOnce(&mut FileSystem, &mut dyn Device) -> Done<T>) -> Answer<T> {
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let done = volume.with(operation).map_err(|trouble| errno(&trouble));
        if self.open.note(volume.losses()) {
            // At the end nothing receives the message.
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

    /// Makes all changes durable; EIO if changes were lost since `handle` last got an error.
    pub(super) fn make_durable(&mut self, handle: u64) -> Answer<()> {
        let done = self.act(|filesystem, device| filesystem.sync(device));
        if self.open.has_lost(handle) { Err(libc::EIO) } else { done }
    }

    /// Counts a lookup of `ino` by the kernel.
    pub(super) fn meet(&mut self, ino: u32) -> Answer<(FileAttr, u64)> {
        let met = self.act(|filesystem, _| {
            filesystem.pin(ino);
            attributes(filesystem, ino)
        })?;
        self.known.meet(ino);
        Ok(met)
    }

    /// Counts forgotten lookups of `ino`; frees a nameless inode after the last one.
    pub(super) fn part(&mut self, ino: u32, times: u64) {
        if self.known.forget(ino, times) {
            // The next mount frees an inode that cannot be freed now.
            let _ = self.act(|filesystem, device| filesystem.unpin(device, ino));
        }
    }

    pub(super) fn name(name: &OsStr) -> Answer<&[u8]> {
        if name.len() > LONGEST_NAME { Err(libc::ENAMETOOLONG) } else { Ok(name.as_bytes()) }
    }

    /// Makes an inode with the target of a symbolic link as `contents`.
    pub(super) fn make(
        &mut self,
        (owner, own_group): (u32, u32),
        parent: u32,
        name: &OsStr,
        mode: u32,
        device_number: u32,
        contents: &[u8],
    ) -> Answer<(FileAttr, u64)> {
        let name = Self::name(name)?;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let made = self.act(|filesystem, device| {
            let above = filesystem.words(parent)?;
            let inherits = above[MODE] & libc::S_ISGID != 0;
            let group = if inherits { above[GROUP] } else { own_group };
            let is_directory = mode & libc::S_IFMT == libc::S_IFDIR;
            let mode = if inherits && is_directory { mode | libc::S_ISGID } else { mode };
            let file_type = if is_directory { fs::FileType::Directory } else { fs::FileType::File };
            let words = words(mode, (owner, group), device_number, generation);
            let ino = filesystem.create_with(device, parent, name, file_type, &words)?;
            if !contents.is_empty()
                && let Err(fault) = filesystem.write(device, ino, 0, contents)
            {
                // A symbolic link without a target is none.
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

    pub(super) fn remove(&mut self, parent: u32, name: &OsStr, directory: bool) -> Answer<()> {
        let name = Self::name(name)?;
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

    /// Renames a file or directory; `replaces` allows an existing target.
    pub(super) fn rename(
        &mut self,
        (parent, name): (u32, &OsStr),
        (new_parent, new_name): (u32, &OsStr),
        replaces: bool,
    ) -> Answer<()> {
        let (name, new_name) = (Self::name(name)?, Self::name(new_name)?);
        self.act(|filesystem, device| {
            let ino = filesystem.lookup(parent, name)?;
            if !replaces && filesystem.lookup(new_parent, new_name).is_ok() {
                return Err(Fault::Exists);
            }
            filesystem.rename(device, parent, name, new_parent, new_name)?;
            filesystem.set_words(device, ino, &changed())?;
            filesystem.set_words(device, parent, &modified())?;
            filesystem.set_words(device, new_parent, &modified())
        })
    }

    pub(super) fn link(&mut self, ino: u32, parent: u32, name: &OsStr) -> Answer<(FileAttr, u64)> {
        let name = Self::name(name)?;
        self.act(|filesystem, device| {
            filesystem.link(device, parent, name, ino)?;
            filesystem.set_words(device, ino, &changed())?;
            filesystem.set_words(device, parent, &modified())
        })?;
        self.meet(ino)
    }

    /// An operation on an open file; ESTALE if a power cut gave the number to another file.
    pub(super) fn act_on<T>(
        &mut self,
        ino: u32,
        handle: u64,
        operation: impl FnOnce(&mut FileSystem, &mut dyn Device, u32) -> Done<T>,
    ) -> Answer<T> {
        let generation = self.open.generation(handle).ok_or(libc::EBADF)?;
        let done = self.act(|filesystem, device| match filesystem.words(ino) {
            Ok(words) if u64::from(words[GENERATION]) == generation => operation(filesystem, device, ino),
            _ => Err(Fault::NotFound),
        });
        done.map_err(|error| if error == libc::ENOENT { libc::ESTALE } else { error })
    }

    pub(super) fn entries(&mut self, ino: u32) -> Answer<Vec<Entry>> {
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

    /// Sets or removes an extended attribute, with the flags of `setxattr`.
    pub(super) fn set_extended(&mut self, ino: u32, name: &OsStr, value: Option<&[u8]>, flags: i32) -> Answer<()> {
        let (mut error, name) = (Ok(()), name.as_bytes());
        self.act(|filesystem, device| match extended::set(filesystem, device, ino, name, value, flags) {
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
