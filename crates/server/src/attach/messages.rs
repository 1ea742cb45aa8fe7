//! Messages of the kernel's FUSE protocol, as far as a folder with one file needs them: numbers of the machine's byte
//! order, after a header.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the protocol that is spoken here: every kernel since Linux 5.4 knows it, and later ones speak it.
pub const MAJOR: u32 = 7;
const MINOR: u32 = 31;

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
    pub const INIT: u32 = 26;
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

/// Bytes of a message that has so many bytes of data, at the most.
pub const fn message_of(data: usize) -> usize {
    data + 4096
}

/// Of an open file: reads ahead, writes of more than a page, direct I/O that does not wait, and more pages than 32 in a
/// request.
const WANTED: u32 = 1 | 1 << 5 | 1 << 15 | 1 << 22;

/// What the kernel wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation {
    /// To begin, with this version of the protocol and these flags, and so many bytes of reads ahead.
    Begin { major: u32, readahead: u32, flags: u32 },
    /// The node of a name in a folder.
    Find(Vec<u8>),
    /// Forget a node, or several: there is no answer.
    Forget,
    /// The attributes of a node.
    Attributes,
    /// To change its size, or what stays (`other`).
    Change { size: Option<u64>, other: bool },
    /// To open a file.
    Open,
    /// To open a folder.
    OpenFolder,
    /// To read from a file, which is open as `file`.
    Read { file: u64, offset: i64, size: u32 },
    /// To write `length` bytes, which begin at `at` in the memory of the message, to a file that was opened with
    /// `flags`.
    Write { file: u64, offset: i64, flags: i32, at: usize, length: usize },
    /// To make a file durable.
    Sync { file: u64 },
    /// To change what a file has room for.
    Allocate { file: u64, offset: i64, length: i64, mode: i32 },
    /// The entries of a folder from one on, in so many bytes.
    List { offset: u64, size: u32 },
    /// How large all is.
    Size,
    /// To close a file or a folder, or to end: nothing is to be done.
    Close,
    /// Something else.
    Unknown,
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number, for the answer.
    pub number: u64,
    /// The node that it is about.
    pub node: u64,
    /// What it wants.
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
    /// The message in this `range` of `memory`; `None` if that is none.
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
            kind::INIT => Operation::Begin { major: word(0)?, readahead: word(8)?, flags: word(12)? },
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

/// The header of the answer to message `number`: with so many bytes, or an error.
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

    /// To [`Operation::Begin`]: with requests of up to `bytes`, of which up to `most.0` are in flight, and writers are
    /// slowed from `most.1` on.
    pub fn begin(readahead: u32, flags: u32, bytes: u32, most: (u16, u16)) -> Self {
        let pages = bytes.max(readahead).div_ceil(4096).min(u16::MAX.into());
        let both = |low: u16, high: u16| {
            u32::from_ne_bytes([low.to_ne_bytes(), high.to_ne_bytes()].concat().try_into().expect("two halves"))
        };
        let begin = [MAJOR, MINOR, readahead, flags & WANTED, both(most.0, most.1), bytes, 1, both(pages as u16, 0)];
        Body::default().words(&begin).words(&[0; 8])
    }

    /// To [`Operation::Open`] and [`Operation::OpenFolder`]: it is open as `file`.
    pub fn open(file: u64) -> Self {
        Body::default().longs(&[file, 0])
    }

    /// To [`Operation::Write`].
    pub fn written(bytes: u32) -> Self {
        Body::default().words(&[bytes, 0])
    }

    /// To [`Operation::Attributes`] and [`Operation::Change`]; they may be kept for so long.
    pub fn attributes(attributes: &Attributes, kept: Duration) -> Self {
        attributes.put(Body::default().longs(&[kept.as_secs(), 0]))
    }

    /// To [`Operation::Find`]; name and attributes may be kept for so long.
    pub fn found(attributes: &Attributes, kept: Duration) -> Self {
        attributes.put(Body::default().longs(&[attributes.node, 0, kept.as_secs(), kept.as_secs(), 0]))
    }

    /// To [`Operation::Size`]: so many blocks of so many bytes, none of which is free, and one file.
    pub fn size(blocks: u64, block: u32) -> Self {
        Body::default().longs(&[blocks, 0, 0, 1, 0]).words(&[block, 255, block]).words(&[0; 7])
    }

    /// An entry of [`Operation::List`], after those that there are; `next` is the offset behind it. False where that
    /// has more than `size` bytes.
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

/// Attributes of a node, that stay.
pub struct Attributes {
    /// Its number.
    pub node: u64,
    /// Bytes.
    pub size: u64,
    /// Kind and permissions.
    pub mode: u32,
    /// Names.
    pub links: u32,
    /// The user and the group that it belongs to.
    pub owner: (u32, u32),
    /// The best size of requests.
    pub block: u32,
    /// When it was made.
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
mod tests {
    use super::*;

    /// A message of a kind with these arguments, and its place in memory that has something before it.
    fn message(kind: u32, arguments: &Body, data: &[u8]) -> (Vec<u8>, Range<usize>) {
        let length = HEADER + arguments.0.len() + data.len();
        let header = Body::default().words(&[length as u32, kind]).longs(&[77, 2]).words(&[0; 4]);
        let memory = [&[0xee; 64], &header.0[..], &arguments.0, data].concat();
        (memory, 64..64 + length)
    }

    fn parsed(kind: u32, arguments: &Body, data: &[u8]) -> Option<Operation> {
        let (memory, range) = message(kind, arguments, data);
        // Of a message that is cut short nothing is taken for what it is not.
        for end in range.start..range.end {
            if let Some(Message { operation: Operation::Write { .. } | Operation::Read { .. }, .. }) =
                Message::parse(&memory, range.start..end)
            {
                assert!(kind == kind::READ && end >= range.start + HEADER + 20, "{end}");
            }
        }
        let Message { number, node, operation } = Message::parse(&memory, range)?;
        assert_eq!((number, node), (77, 2));
        Some(operation)
    }

    #[test]
    fn messages_are_read() {
        let arguments = Body::default().longs(&[5, 8192]).words(&[3, 0]).longs(&[9]).words(&[libc::O_DSYNC as u32, 0]);
        let write = Operation::Write { file: 5, offset: 8192, flags: libc::O_DSYNC, at: 64 + 80, length: 3 };
        assert_eq!(parsed(kind::WRITE, &arguments, b"abc"), Some(write));
        assert_eq!(parsed(kind::WRITE, &arguments, b"ab"), None, "less than it says");
        assert_eq!(parsed(kind::READ, &arguments, b""), Some(Operation::Read { file: 5, offset: 8192, size: 3 }));
        assert_eq!(parsed(kind::LOOKUP, &Body::default(), b"drive\0"), Some(Operation::Find(b"drive".to_vec())));
        assert_eq!(parsed(kind::FSYNC, &Body::default().longs(&[5, 0]), b""), Some(Operation::Sync { file: 5 }));
        let change = |valid: u32| parsed(kind::SETATTR, &Body::default().words(&[valid, 0]).longs(&[0, 4096]), b"");
        assert_eq!(change(8), Some(Operation::Change { size: Some(4096), other: false }));
        assert_eq!(change(1 | 1 << 4), Some(Operation::Change { size: None, other: true }));
        let room = Body::default().longs(&[5, u64::MAX, 4096]).words(&[3, 0]);
        let expected = Operation::Allocate { file: 5, offset: -1, length: 4096, mode: 3 };
        assert_eq!(parsed(kind::FALLOCATE, &room, b""), Some(expected));
        assert_eq!(parsed(999, &Body::default(), b""), Some(Operation::Unknown));
    }

    #[test]
    fn answers_have_the_sizes_that_the_kernel_expects() {
        assert_eq!(header(7, Ok(8))[..8], [[24u32.to_ne_bytes()], [0u32.to_ne_bytes()]].concat().concat());
        assert_eq!(
            header(7, Err(libc::EIO))[..8],
            [[16i32.to_ne_bytes()], [(-libc::EIO).to_ne_bytes()]].concat().concat()
        );
        let made = UNIX_EPOCH + Duration::new(5, 6);
        let file = Attributes { node: 2, size: 1024, mode: libc::S_IFREG, links: 1, owner: (3, 4), block: 512, made };
        let begin = Body::begin(4096, u32::MAX, 1 << 20, (256, 192));
        let sizes = [begin, Body::open(1), Body::written(1), Body::size(1, 4096)].map(|body| body.0.len());
        assert_eq!(sizes, [64, 16, 8, 80]);
        let kept = Duration::from_secs(9);
        assert_eq!([Body::attributes(&file, kept).0.len(), Body::found(&file, kept).0.len()], [104, 128]);
    }

    #[test]
    fn entries_are_listed_as_far_as_there_is_room() {
        let made = SystemTime::now();
        let file = Attributes { node: 2, size: 0, mode: libc::S_IFREG, links: 1, owner: (0, 0), block: 512, made };
        let mut body = Body::default();
        assert!(body.list(&file, 1, "drive", 64) && body.list(&file, 2, "a", 64));
        assert!(!body.list(&file, 3, "b", 64));
        assert_eq!((body.0.len(), word(&body.0, 16), word(&body.0, 20)), (64, Some(5), Some(8)));
        assert_eq!(body.0[24..32], *b"drive\0\0\0");
    }
}
