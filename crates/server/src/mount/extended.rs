//! Extended attributes as on Linux: `user.`, `trusted.` and `security.` are kept, and the kernel checks access. Access
//! control lists (`system.`) are refused with EOPNOTSUPP because only modes control access.

use super::attributes::{MODE, changed};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{Done, Fault, FileSystem};

/// The capabilities of a program file.
const CAPABILITIES: &[u8] = b"security.capability";

pub enum Refused {
    Fault(Fault),
    /// An error number.
    Error(i32),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Refused::Fault(fault)
    }
}

/// The error number for an attribute of an unsupported name space, or without a name.
pub fn unkept(name: &[u8]) -> Option<i32> {
    let space = [&b"user."[..], b"trusted.", b"security."].into_iter().find(|space| name.starts_with(space));
    match space {
        None => Some(libc::EOPNOTSUPP),
        Some(space) if name.len() == space.len() => Some(libc::EINVAL),
        Some(_) => None,
    }
}

/// The value of the attribute `name` of `ino`.
pub fn value(filesystem: &FileSystem, device: &mut dyn Device, ino: u32, name: &[u8]) -> Done<Option<Vec<u8>>> {
    Ok(filesystem.extended(device, ino)?.remove(name))
}

/// The names of all attributes, each followed by a zero.
pub fn names(filesystem: &FileSystem, device: &mut dyn Device, ino: u32) -> Done<Vec<u8>> {
    let all = filesystem.extended(device, ino)?;
    Ok(all.into_keys().flat_map(|name| name.into_iter().chain([0])).collect())
}

/// Sets the attribute `name` of `ino`, with the flags of `setxattr`; removes the attribute without a `value`.
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

/// `mode` without set-user-ID and set-group-ID bits; directories keep theirs, which have another meaning.
pub fn stripped(mode: u32) -> u32 {
    let group = if mode & libc::S_IXGRP != 0 { libc::S_ISGID } else { 0 };
    if mode & libc::S_IFMT == libc::S_IFDIR { mode } else { mode & !(libc::S_ISUID | group) }
}

/// Takes set-ID bits and capabilities from `ino` after a write or a change of owner.
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
