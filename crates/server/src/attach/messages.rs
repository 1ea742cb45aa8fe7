//! Messages of the kernel's FUSE protocol (`linux/fuse.h`, version 7.31 and later) for a folder with one file: a header
//! and numbers of the machine's byte order. The handshake is fuser's.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Kinds of messages, by the names of `linux/fuse.h`.
mod kind {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
}

/// Bytes of the header of a message, and of a write's up to its data.
const HEADER: usize = 40;
const WRITE: usize = HEADER + 40;

/// Bytes of the header of an answer.
pub const ANSWER: usize = 16;

/// Most bytes of a message with `data` bytes of data.
pub const fn message_of(data: usize) -> usize {
    data + 4096
}

/// An operation of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation {
    /// Looks up a name in a folder.
    Find(Vec<u8>),
    /// Forgets nodes; has no answer.
    Forget,
    /// Returns the attributes of a node.
    Attributes,
    /// Changes the size of a node, or attributes that never change (`other`).
    Change { size: Option<u64>, other: bool },
    /// Opens a file.
    Open,
    /// Opens a folder.
    OpenFolder,
    /// Reads from a file that is open as `file`.
    Read { file: u64, offset: i64, size: u32 },
    /// Writes the `length` bytes at `at` in memory to a file that was opened with `flags`.
    Write { file: u64, offset: i64, flags: i32, at: usize, length: usize },
    /// Makes a file durable.
    Sync { file: u64 },
    /// `fallocate`.
    Allocate { file: u64, offset: i64, length: i64, mode: i32 },
    /// Lists the entries of a folder from `offset` on, in up to `size` bytes.
    List { offset: u64, size: u32 },
    /// `statfs`.
    Size,
    /// Closes a file or folder, or ends the mount: nothing to do.
    Close,
    /// An operation that is not served.
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the message, for the answer.
    pub number: u64,
    pub node: u64,
    pub operation: Operation,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_ne_bytes)
}

impl Message {
    /// The message in this `range` of `memory`; `None` if malformed.
    pub fn parse(memory: &[u8], range: Range<usize>) -> Option<Message> {
        let (begin, bytes) = (range.start, memory.get(range)?);
        let (kind, number, node) = (word(bytes, 4)?, long(bytes, 8)?, long(bytes, 16)?);
        let (word, long) = (|at| word(bytes, HEADER + at), |at| long(bytes, HEADER + at));
        let signed = |at| long(at).map(u64::cast_signed);
        let operation = match kind {
            kind::LOOKUP => Operation::Find(bytes.get(HEADER..)?.split(|&byte| byte == 0).next()?.to_vec()),
            kind::FORGET | kind::BATCH_FORGET => Operation::Forget,
            kind::GETATTR => Operation::Attributes,
            kind::SETATTR => {
                // FATTR_SIZE, and FATTR_MODE, FATTR_UID and FATTR_GID.
                let valid = word(0)?;
                Operation::Change { size: if valid & 8 != 0 { Some(long(16)?) } else { None }, other: valid & 7 != 0 }
            }
            kind::OPEN => Operation::Open,
            kind::READ => Operation::Read { file: long(0)?, offset: signed(8)?, size: word(16)? },
            kind::WRITE => {
                let length = bytes.get(WRITE..)?.get(..word(16)? as usize)?.len();
                let (file, offset, flags) = (long(0)?, signed(8)?, word(32)?.cast_signed());
                Operation::Write { file, offset, flags, at: begin + WRITE, length }
            }
            kind::STATFS => Operation::Size,
            kind::FSYNC => Operation::Sync { file: long(0)? },
            kind::RELEASE | kind::FLUSH | kind::RELEASEDIR | kind::DESTROY => Operation::Close,
            kind::OPENDIR => Operation::OpenFolder,
            kind::READDIR => Operation::List { offset: long(8)?, size: word(16)? },
            kind::FALLOCATE => {
                let (offset, length) = (signed(8)?, signed(16)?);
                Operation::Allocate { file: long(0)?, offset, length, mode: word(24)?.cast_signed() }
            }
            _ => Operation::Unknown,
        };
        Some(Message { number, node, operation })
    }
}

/// The header of the answer to message `number`: with a body of so many bytes, or an error.
pub fn header(number: u64, done: Result<usize, i32>) -> [u8; ANSWER] {
    let mut bytes = [0; ANSWER];
    bytes[..4].copy_from_slice(&((ANSWER + done.unwrap_or(0)) as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&(-done.err().unwrap_or(0)).to_ne_bytes());
    bytes[8..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// The body of an answer.
#[derive(Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    fn words(mut self, words: &[u32]) -> Self {
        words.iter().for_each(|word| self.0.extend(word.to_ne_bytes()));
        self
    }

    fn longs(mut self, longs: &[u64]) -> Self {
        longs.iter().for_each(|long| self.0.extend(long.to_ne_bytes()));
        self
    }

    /// Answers [`Operation::Open`] and [`Operation::OpenFolder`].
    pub fn open(file: u64) -> Self {
        Body::default().longs(&[file, 0])
    }

    pub fn written(bytes: u32) -> Self {
        Body::default().words(&[bytes, 0])
    }

    /// Answers [`Operation::Attributes`] and [`Operation::Change`]; the kernel may keep the attributes for `kept`.
    pub fn attributes(attributes: &Attributes, kept: Duration) -> Self {
        attributes.put(Body::default().longs(&[kept.as_secs(), 0]))
    }

    /// Answers [`Operation::Find`]; the kernel may keep name and attributes for `kept`.
    pub fn found(attributes: &Attributes, kept: Duration) -> Self {
        attributes.put(Body::default().longs(&[attributes.node, 0, kept.as_secs(), kept.as_secs(), 0]))
    }

    /// Answers [`Operation::Size`]: a full file system with one file.
    pub fn size(blocks: u64, block: u32) -> Self {
        Body::default().longs(&[blocks, 0, 0, 1, 0]).words(&[block, 255, block]).words(&[0; 7])
    }

    /// Appends an entry to the answer of [`Operation::List`]; `next` is the offset of the following entry. False if the
    /// answer would exceed `size` bytes.
    pub fn list(&mut self, attributes: &Attributes, next: u64, name: &str, size: u32) -> bool {
        let kind = attributes.mode >> 12;
        let entry = Body::default().longs(&[attributes.node, next]).words(&[name.len() as u32, kind]);
        let bytes = [&entry.0, name.as_bytes()].concat();
        let fits = self.0.len() + bytes.len().next_multiple_of(8) <= size as usize;
        if fits {
            self.0.extend(&bytes);
            self.0.resize(self.0.len().next_multiple_of(8), 0);
        }
        fits
    }
}

/// Constant attributes of a node.
pub struct Attributes {
    pub node: u64,
    pub size: u64,
    /// Kind and permissions.
    pub mode: u32,
    pub links: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// The best size of requests.
    pub block: u32,
    pub made: SystemTime,
}

impl Attributes {
    fn put(&self, body: Body) -> Body {
        let made = self.made.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanos) = (made.as_secs(), made.subsec_nanos());
        let body = body.longs(&[self.node, self.size, self.size / 512, seconds, seconds, seconds]);
        body.words(&[nanos, nanos, nanos, self.mode, self.links, self.owner.0, self.owner.1, 0, self.block, 0])
    }
}

#[cfg(test)]
mod tests;
