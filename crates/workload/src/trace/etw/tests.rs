//! Tests of the lines of Microsoft Production Server traces.

use super::*;
use crate::request::{Command, Extent};
use crate::volume_names::hash;

const READ: &str = "              DiskRead,       8612,        xperf.exe (3984),      11844, 0xffffe288b23f1b20, \
    0x018f0b8000, 0x00001000,         283,        2, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \
    \"C:\\a, b\\$Mft\"";

fn only(parsed: Parse<Parsed>) -> Request {
    match parsed {
        Ok(Parsed::Record(record)) => record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_of_the_published_traces() {
    let mut etw = Etw::default();
    let record = only(etw.parse(READ.as_bytes()));
    let extent = Extent { sector: 0x0001_8f0b_8000 / 512, sectors: 8 };
    let command = Command::new(RequestKind::Read, extent).of(hash(b"C:\\a, b\\$Mft"));
    assert_eq!(record, Request::new(BEFORE + 8_612_000 - 283_000, command), "issued 283 us before the event");
    etw.keep_names();
    assert_eq!(only(etw.parse(READ.as_bytes())).file, 0);
    assert_eq!(etw.names().unwrap().name(0), Some("C:\\a, b\\$Mft"));
}

#[test]
fn the_header_says_where_columns_stand() {
    let mut etw = Etw::default();
    let with_processor = "DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,  IrpPtr,   ByteOffset,     \
        IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName";
    for line in ["BeginHeader", "FileIoRead, TimeStamp, whatever", with_processor, "EndHeader"] {
        assert_eq!(etw.parse(line.as_bytes()), Ok(Parsed::Header), "{line}");
    }
    let line = READ.replace("11844,", "11844,   1,");
    assert_eq!(only(etw.parse(line.as_bytes())).extent.sectors, 8);
    etw.in_header = true;
    assert!(etw.parse(b"DiskWrite, TimeStamp, DiskNum, IOSize").unwrap_err().what.contains("ByteOffset"));
}

#[test]
fn other_events_are_passed_over() {
    let parse = |line: &str| Etw::default().parse(line.as_bytes());
    assert_eq!(parse("DiskReadInit,  8612,  xperf.exe (3984), 11844, 0xffffe288b23f1b20"), Ok(Parsed::Skip));
    let flush = "DiskFlush, 7, System ( 4), 64, 0xfffffa8005c6b010, 14153, 3, 0x060000, 14149, Normal";
    assert_eq!(only(parse(flush)), only(Ok(Parsed::flush(BEFORE + 7000 - 14_153_000, 0))));
    for (line, says) in [
        ("DiskRead, 8612, x.exe (1), 1, 0x0, 0x1000", "ends before column DiskNum"),
        ("DiskRead, x, x.exe (1), 1, 0x0, 0x1000, 0x200, 1, 0", "TimeStamp"),
        ("DiskRead, 1, x.exe (1), 1, 0x0, 0x, 0x200, 1, 0", "ByteOffset"),
        ("DiskRead, 1, x.exe (1), 1, 0x0, 0x10000000000000000, 0x200, 1, 0", "ByteOffset"),
        ("stray words", "expected an event"),
    ] {
        let what = parse(line).unwrap_err().what;
        assert!(what.contains(says), "{line}: {what}");
    }
}
