//! Attributes of an inode for POSIX programs, kept in the [words](WORDS) of the file system: mode, owner, times,
//! generation.
//!
//! Times have 34 bits of seconds and 30 of nanoseconds, as in ext4: 1901 to 2446. Ignored: the time of the last read,
//! which stays the time of creation unless set by a program.

use fuser::{FileAttr, FileType, INodeNo};
use palimpsest_lab::host::fs::{Done, FileSystem, WORDS};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Places of the words.
pub const MODE: usize = 0;
pub const OWNER: usize = 1;
pub const GROUP: usize = 2;
pub const DEVICE: usize = 3;
pub const ACCESSED: usize = 4;
pub const MODIFIED: usize = 6;
pub const CHANGED: usize = 8;
/// Differs between successive inodes of one number.
pub const GENERATION: usize = 10;

const NANOS: u32 = (1 << 30) - 1;

/// Two words that hold a time.
pub fn time_words(time: SystemTime) -> [u32; 2] {
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            let whole = before.as_secs() as i64 + i64::from(before.subsec_nanos() > 0);
            (-whole, (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000)
        }
    };
    let seconds = seconds.clamp(i64::from(i32::MIN), i64::from(i32::MAX) + (3 << 32));
    let epoch = (seconds - i64::from(seconds as i32)) >> 32;
    [seconds as u32, nanos & NANOS | (epoch as u32) << 30]
}

/// The time in two words.
pub fn time_of(words: &[u32]) -> SystemTime {
    let seconds = i64::from(words[0] as i32) + (i64::from(words[1] >> 30) << 32);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let begin = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    begin + Duration::from_nanos(u64::from(words[1] & NANOS))
}

/// Changes that set the time at `place`.
pub fn set_time(place: usize, time: SystemTime) -> [(usize, u32); 2] {
    let [seconds, nanos] = time_words(time);
    [(place, seconds), (place + 1, nanos)]
}

/// Changes for modified contents.
pub fn modified() -> [(usize, u32); 4] {
    let [seconds, nanos] = time_words(SystemTime::now());
    [(MODIFIED, seconds), (MODIFIED + 1, nanos), (CHANGED, seconds), (CHANGED + 1, nanos)]
}

/// Changes for a modified inode.
pub fn changed() -> [(usize, u32); 2] {
    set_time(CHANGED, SystemTime::now())
}

/// The words of a new inode.
pub fn words(mode: u32, owner: (u32, u32), device: u32, generation: u32) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    words[..4].copy_from_slice(&[mode, owner.0, owner.1, device]);
    let now = time_words(SystemTime::now());
    for place in [ACCESSED, MODIFIED, CHANGED] {
        words[place..place + 2].copy_from_slice(&now);
    }
    words[GENERATION] = generation;
    words
}

pub fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

/// The attributes of `ino` for the kernel, and the generation.
///
/// # Errors
/// [`Fault::NotFound`](palimpsest_lab::host::fs::Fault::NotFound).
pub fn attributes(filesystem: &FileSystem, ino: u32) -> Done<(FileAttr, u64)> {
    let (words, (_, size)) = (filesystem.words(ino)?, filesystem.stat(ino)?);
    let page = filesystem.shape().page_bytes;
    let attributes = FileAttr {
        ino: INodeNo(ino.into()),
        size,
        blocks: filesystem.pages_of(ino)? * u64::from(page / 512),
        atime: time_of(&words[ACCESSED..]),
        mtime: time_of(&words[MODIFIED..]),
        ctime: time_of(&words[CHANGED..]),
        crtime: UNIX_EPOCH,
        kind: kind(words[MODE]),
        perm: (words[MODE] & 0o7777) as u16,
        nlink: filesystem.links(ino)?,
        uid: words[OWNER],
        gid: words[GROUP],
        rdev: words[DEVICE],
        blksize: page,
        flags: 0,
    };
    Ok((attributes, u64::from(words[GENERATION])))
}

#[cfg(test)]
mod tests;
