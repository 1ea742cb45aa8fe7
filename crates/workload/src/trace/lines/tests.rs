//! Tests of the module `lines`.

use super::*;

fn reader(bytes: &[u8]) -> LineReader {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    LineReader::new(Decompressed { reader, compression: "plain" }, "t")
}

#[test]
fn newline_is_found_at_every_offset() {
    for length in 0..40 {
        for at in 0..length {
            let mut bytes = vec![b'\x0b'; length];
            bytes[at] = b'\n';
            assert_eq!(find_newline(&bytes), Some(at));
        }
        assert_eq!(find_newline(&vec![0x8a; length]), None);
    }
}

#[test]
fn long_lines_are_passed_over_and_numbered() {
    let mut bytes = b"a\n".to_vec();
    bytes.resize(bytes.len() + 3 * BUFFER_BYTES, b'x');
    bytes.extend(b"\nb\r\n\nc");
    let mut lines = reader(&bytes);
    let whole = Step::Line { unterminated: false };
    assert_eq!(lines.advance(), Ok(whole));
    assert_eq!(lines.line(), b"a");
    assert_eq!(lines.advance(), Ok(Step::TooLong));
    assert_eq!(lines.place(), "t:2");
    assert_eq!(lines.advance(), Ok(whole));
    assert_eq!((lines.line(), lines.number), (&b"b"[..], 3));
    assert_eq!(lines.advance(), Ok(whole));
    assert_eq!(lines.line(), b"");
    assert_eq!(lines.advance(), Ok(Step::Line { unterminated: true }));
    assert_eq!((lines.line(), lines.number), (&b"c"[..], 5));
    assert_eq!(lines.advance(), Ok(Step::End));
    assert_eq!(lines.advance(), Ok(Step::End));
}
