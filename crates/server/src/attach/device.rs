//! Block devices of the kernel over a file, by the program `losetup`, and the mounts of their file systems.
//!
//! A loop device is found by its file, not by a written record, so that the device of a killed server is found, too.

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Block size of devices whose size is a multiple.
const BLOCK: u64 = 4096;

/// Makes a loop device over `file` of `bytes` bytes, which bypasses the kernel's cache of the file.
///
/// # Errors
/// The message of `losetup`, or `losetup` is missing.
pub fn set(file: &Path, bytes: u64) -> io::Result<PathBuf> {
    let block = if bytes.is_multiple_of(BLOCK) { BLOCK } else { 512 };
    let mut command = Command::new("losetup");
    command.args(["--find", "--show", "--direct-io=on", "--sector-size", &block.to_string()]).arg(file);
    let said = run(&mut command)?;
    Ok(PathBuf::from(said.trim()))
}

/// Removes the device, at once or when the last user closes the device.
///
/// # Errors
/// As [`set`].
pub fn unset(device: &Path) -> io::Result<()> {
    run(Command::new("losetup").arg("--detach").arg(device)).map(drop)
}

/// Drops the kernel's cache of the device, except mapped and dirty pages.
pub fn forget(device: &Path) {
    let _ = run(Command::new("blockdev").arg("--flushbufs").arg(device));
}

fn run(command: &mut Command) -> io::Result<String> {
    let output = command.output().map_err(|error| io::Error::new(error.kind(), format!("losetup: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or("losetup failed");
    Err(io::Error::other(line.to_owned()))
}

/// The loop devices over `file`.
pub fn of_file(file: &Path) -> Vec<PathBuf> {
    let Ok(blocks) = fs::read_dir("/sys/block") else { return Vec::new() };
    let over = |name: &Path| {
        let backing = fs::read(Path::new("/sys/block").join(name).join("loop/backing_file")).ok()?;
        let backing = backing.trim_ascii_end();
        let backing = backing.strip_suffix(b" (deleted)").unwrap_or(backing);
        (backing == file.as_os_str().as_bytes()).then(|| Path::new("/dev").join(name))
    };
    let mut found: Vec<PathBuf> = blocks.flatten().filter_map(|block| over(Path::new(&block.file_name()))).collect();
    found.sort();
    found
}

/// Mount points of the file systems of `device`, the last first.
pub fn mounts_of(device: &Path) -> Vec<PathBuf> {
    let Some(name) = device.file_name() else { return Vec::new() };
    let number = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).unwrap_or_default();
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    mounted_from(&mounts, number.trim())
}

/// Whether something is mounted at `folder`.
pub fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    mounts.split(|&byte| byte == b'\n').any(|line| mount_point(line).is_some_and(|(_, at)| at == folder))
}

/// Device number and mount point of a line of `/proc/self/mountinfo`.
fn mount_point(line: &[u8]) -> Option<(&[u8], PathBuf)> {
    let mut fields = line.split(|&byte| byte == b' ').skip(2);
    let (number, _root, place) = (fields.next()?, fields.next()?, fields.next()?);
    Some((number, PathBuf::from(std::ffi::OsString::from_vec(unescaped(place)))))
}

fn mounted_from(mounts: &[u8], number: &str) -> Vec<PathBuf> {
    let lines = mounts.split(|&byte| byte == b'\n').rev();
    let of_it = lines.filter_map(mount_point).filter(|(of, _)| !number.is_empty() && *of == number.as_bytes());
    of_it.map(|(_, place)| place).collect()
}

/// A path with blanks, which the kernel writes as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut rest = field;
    let mut path = Vec::with_capacity(field.len());
    while let [first, after @ ..] = rest {
        rest = after;
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &after[3..];
            }
            None => path.push(*first),
        }
    }
    path
}

/// How a mount ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmounted {
    /// At once, with everything written.
    Now,
    /// A program still uses the mount, and gets errors.
    InUse,
}

/// Unmounts `place`, or hides it from other programs while one uses it. `ends` says that its server ends: programs get
/// errors then.
pub fn unmount(place: &Path, ends: bool) -> io::Result<Unmounted> {
    let force = if ends { MntFlags::MNT_FORCE } else { MntFlags::empty() };
    match umount2(place, MntFlags::empty()) {
        Ok(()) => Ok(Unmounted::Now),
        Err(Errno::EBUSY) => {
            umount2(place, force | MntFlags::MNT_DETACH)?;
            Ok(Unmounted::InUse)
        }
        Err(Errno::EPERM) => fusermount(place),
        Err(error) => Err(error.into()),
    }
}

/// As [`unmount`]; `say` gets a line if a program uses the mount, named `shown`, or if the unmount fails.
pub fn end_mount(place: &Path, shown: &Path, ends: bool, say: &dyn Fn(&str)) -> Option<Unmounted> {
    let unmounted = unmount(place, ends);
    match &unmounted {
        Ok(Unmounted::Now) => {}
        Ok(Unmounted::InUse) => {
            say(&format!("{}: in use by a program, which gets errors from now on", shown.display()))
        }
        Err(error) => say(&format!("{} cannot be unmounted: {error}", place.display())),
    }
    unmounted.ok()
}

/// Unmounts as a user who is not root.
fn fusermount(place: &Path) -> io::Result<Unmounted> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = mounts.split(|&byte| byte == b'\n').filter_map(mount_point);
    let number =
        lines.filter(|(_, at)| at == place).map(|(number, _)| String::from_utf8_lossy(number).into_owned()).next_back();
    let unmounts = |how: &[&str]| {
        let output = Command::new("fusermount3").args(how).arg("--").arg(place).output();
        output.is_ok_and(|output| output.status.success())
    };
    if unmounts(&["-u", "-q"]) {
        return Ok(Unmounted::Now);
    }
    if !unmounts(&["-u", "-q", "-z"]) {
        return Err(io::Error::other("fusermount3 could not unmount it"));
    }
    if let Some((_, connection)) = number.as_deref().and_then(|number| number.split_once(':')) {
        // Without this control file the mount ends when the last program closes the files.
        let _ = fs::write(format!("/sys/fs/fuse/connections/{connection}/abort"), "1");
    }
    Ok(Unmounted::InUse)
}

#[cfg(test)]
mod tests;
