//! Tests of the logs of fio.

use super::*;
use crate::volume_names::hash;

fn read(lines: &[&str]) -> Vec<(Nanos, RequestKind, u64, u32, u32)> {
    read_by(Iolog::<false>::default(), lines)
}

fn read_by(mut log: impl LineFormat, lines: &[&str]) -> Vec<(Nanos, RequestKind, u64, u32, u32)> {
    let mut records = Vec::new();
    for line in lines {
        if let Parsed::Record(r) = log.parse(line.as_bytes()).unwrap() {
            assert_eq!(Some(r.owner()), log.names().unwrap().name(r.file).map(|name| hash(name.as_bytes())));
            records.push((r.arrival, r.kind, r.extent.sector, r.extent.sectors, r.file));
        }
    }
    records
}

#[test]
fn version_three_has_microseconds() {
    let lines = ["fio version 3 iolog", "2 nvme add", "872 nvme open", "878 nvme write 512 16384", "891 b sync 0 0"];
    assert_eq!(read(&lines), [(878_000, RequestKind::Write, 1, 32, 0), (891_000, RequestKind::Flush, 0, 0, 1)]);
}

#[test]
fn version_two_waits() {
    let lines =
        ["fio version 2 iolog", "a add", "a read 0 512", "a wait 250 0", "b trim 512 512", "a wait 250", "a close"];
    assert_eq!(read(&lines), [(0, RequestKind::Read, 0, 1, 0), (250_000, RequestKind::Trim, 1, 1, 1)]);
    let arrivals = |text: &'static str| {
        let mut log = Iolog::<false>::default();
        log.prepare(&Head { bytes: text.as_bytes(), whole: true });
        log.arrivals()
    };
    assert_eq!(arrivals("fio version 2 iolog\na read 0 512\n"), Arrivals::Closed { depth: 1 });
    assert_eq!(arrivals("fio version 2 iolog\na read 0 512\na wait 9 0\n"), Arrivals::Open);
    assert_eq!(arrivals("fio version 3 iolog\n0 a read 0 512\n"), Arrivals::Open);
}

/// Hand-made from read_iolog_get of fio 3.39: a wait ends so many milliseconds after the start, or at once if past.
#[test]
fn waits_are_those_of_the_program_or_the_manual() {
    let lines = ["fio version 2 iolog", "a wait 250 0", "a read 0 512", "a wait 100 0", "a read 0 512", "a wait 300 0"];
    let lines = [&lines[..], &["a read 0 512"]].concat();
    let times = |records: Vec<(Nanos, RequestKind, u64, u32, u32)>| records.iter().map(|r| r.0).collect::<Vec<_>>();
    assert_eq!(times(read(&lines)), [250_000, 350_000, 650_000]);
    assert_eq!(times(read_by(Iolog::<true>::default(), &lines)), [250_000_000, 250_000_000, 300_000_000]);
    let third = ["fio version 3 iolog", "5 a read 0 512", "9 a read 0 512"];
    assert_eq!(times(read(&third)), times(read_by(Iolog::<true>::default(), &third)));
    let head = Head { bytes: b"fio version 2 iolog\na read 0 512\na wait 9 0\n", whole: true };
    let (mut manual, mut program) = (Iolog::<false>::default(), Iolog::<true>::default());
    manual.prepare(&head);
    program.prepare(&head);
    assert!(manual.notes()[0].contains("--from iolog-program"));
    assert!(program.notes()[0].contains("milliseconds from the start"));
    assert!(!Iolog::<true>::could_be(b"fio version 2 iolog"));
}

#[test]
fn mistakes_are_named() {
    let what = |lines: [&str; 2]| {
        let mut log = Iolog::<false>::default();
        lines.map(|line| log.parse(line.as_bytes())).into_iter().find_map(|read| read.err()).unwrap().what
    };
    assert!(what(["fio version 4 iolog", ""]).contains("fio version 3 iolog"));
    assert!(what(["fio version 3 iolog", "5 a wait 7 0"]).contains("action"));
    assert!(what(["fio version 3 iolog", "x a read 0 512"]).contains("time"));
    assert!(what(["fio version 2 iolog", "a read 0"]).contains("bytes"));
    assert!(what(["fio version 3 iolog", "18446744073709551615 a read 0 512"]).contains("2^64 ns"));
}
