//! Tests of `messages`.

use super::*;

/// A message with `arguments` and `data`, and its place in memory behind other bytes.
fn message(kind: u32, arguments: &Body, data: &[u8]) -> (Vec<u8>, Range<usize>) {
    let length = HEADER + arguments.0.len() + data.len();
    let header = Body::default().words(&[length as u32, kind]).longs(&[77, 2]).words(&[0; 4]);
    let memory = [&[0xee; 64], &header.0[..], &arguments.0, data].concat();
    (memory, 64..64 + length)
}

fn parsed(kind: u32, arguments: &Body, data: &[u8]) -> Option<Operation> {
    let (memory, range) = message(kind, arguments, data);
    // A truncated message must not parse as another.
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
    assert_eq!(header(7, Err(libc::EIO))[..8], [[16i32.to_ne_bytes()], [(-libc::EIO).to_ne_bytes()]].concat().concat());
    let made = UNIX_EPOCH + Duration::new(5, 6);
    let file = Attributes { node: 2, size: 1024, mode: libc::S_IFREG, links: 1, owner: (3, 4), block: 512, made };
    let sizes = [Body::open(1), Body::written(1), Body::size(1, 4096)].map(|body| body.0.len());
    assert_eq!(sizes, [16, 8, 80]);
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
