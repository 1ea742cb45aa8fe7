//! Extended attributes as Linux has them: `user.`, `trusted.` and `security.` are kept; the kernel says who may see and change them. Access control
//! lists (`system.`) are refused with EOPNOTSUPP: modes alone say who may do what.

use super::attributes::{MODE, changed};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{Done, Fault, FileSystem};

/// The capabilities of a program file.
const CAPABILITIES: &[u8] = b"security.capability";

/// Why an attribute is not had or set.
pub enum Refused {
    /// The file system refuses it.
    Fault(Fault),
    /// With this error.
    Error(i32),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Refused::Fault(fault)
    }
}

/// The error of an attribute whose name is of no space that is kept, or has nothing behind that.
pub fn unkept(name: &[u8]) -> Option<i32> {
    let space = [&b"user."[..], b"trusted.", b"security."].into_iter().find(|space| name.starts_with(space));
    match space {
        None => Some(libc::EOPNOTSUPP),
        Some(space) if name.len() == space.len() => Some(libc::EINVAL),
        Some(_) => None,
    }
}

/// The value of the attribute `name` of `ino`; `None` where there is none.
///
/// # Errors
/// Those of the file system.
pub fn value(filesystem: &FileSystem, device: &mut dyn Device, ino: u32, name: &[u8]) -> Done<Option<Vec<u8>>> {
    Ok(filesystem.extended(device, ino)?.remove(name))
}

/// The names of all, each with a zero after it.
///
/// # Errors
/// Those of the file system.
pub fn names(filesystem: &FileSystem, device: &mut dyn Device, ino: u32) -> Done<Vec<u8>> {
    let all = filesystem.extended(device, ino)?;
    Ok(all.into_keys().flat_map(|name| name.into_iter().chain([0])).collect())
}

/// Sets the attribute `name` of `ino`, with the flags of `setxattr`; removes it where there is no `value`.
///
/// # Errors
/// [`Refused`].
pub fn set(
    filesystem: &mut FileSystem,
    device: &mut dyn Device,
    ino: u32,
    name: &[u8],
    value: Option<&[u8]>,
    flags: i32,
) -> Result<(), Refused> {
    if let Some(error) = unkept(name) {
        return Err(Refused::Error(error));
    }
    let mut all = filesystem.extended(device, ino)?;
    let is_there = all.contains_key(name);
    if is_there && flags & libc::XATTR_CREATE != 0 {
        return Err(Refused::Error(libc::EEXIST));
    }
    if !is_there && (value.is_none() || flags & libc::XATTR_REPLACE != 0) {
        return Err(Refused::Error(libc::ENODATA));
    }
    match value {
        Some(value) => _ = all.insert(name.into(), value.into()),
        None => _ = all.remove(name),
    }
    filesystem.set_extended(device, ino, &all)?;
    Ok(filesystem.set_words(device, ino, &changed())?)
}

/// The mode without what lets a program run with the rights of its owner or group; of a folder these bits mean something else.
pub fn stripped(mode: u32) -> u32 {
    let group = if mode & libc::S_IXGRP != 0 { libc::S_ISGID } else { 0 };
    if mode & libc::S_IFMT == libc::S_IFDIR { mode } else { mode & !(libc::S_ISUID | group) }
}

/// `ino` was written by a user, or has another owner: programs in it lose the rights that it gave them.
///
/// # Errors
/// Those of the file system.
pub fn strip(filesystem: &mut FileSystem, device: &mut dyn Device, ino: u32) -> Done<()> {
    let mode = filesystem.words(ino)?[MODE];
    if stripped(mode) != mode {
        filesystem.set_words(device, ino, &[(MODE, stripped(mode))])?;
    }
    if filesystem.has_extended(ino)? {
        let mut all = filesystem.extended(device, ino)?;
        if all.remove(CAPABILITIES).is_some() {
            filesystem.set_extended(device, ino, &all)?;
        }
    }
    Ok(())
}
