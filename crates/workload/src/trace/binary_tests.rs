//! Tests of whole small traces of the binary formats: recognition, cut and damaged files, any bytes.

use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::fuzzing::fuzz_trace;
use crate::request::{Request, RequestKind};

/// The traces of [`SAMPLES`](crate::fuzzing::SAMPLES), where the format has writes: a name, bytes, and bytes of a
/// record.
fn samples() -> Vec<(&'static str, Vec<u8>, usize)> {
    let vscsi = |version: u8| {
        [(0x2a, 64, 4096, 7), (0x12, 0, 36, 8), (0x28, 128, 8192, 1_000_007), (0x8a, 8, 4096, 3_000_007)]
            .map(|each| vscsi::tests::record(version, each))
            .concat()
    };
    let blktrace = |version: u32, is_big_endian: bool| {
        let (read, write, issued) = (1 << 16, 1 << 17, 7 | 1 << 22);
        let of = |each: (u64, u64, u32, u64)| blktrace::tests::record_of(version, is_big_endian, each, b"");
        [
            of((5, 64, 4096, 1 | write)),
            of((7, 64, 4096, issued | write)),
            of((1_000_000_007, 128, 8192, issued | read)),
            of((3_000_000_007, 8, 4096, issued | write)),
        ]
        .concat()
    };
    let oracle = [(5, 70, 4096, 2), (6, 71, 8000, -1), (8, 70, 4096, -1)].map(oracle_general::tests::record).concat();
    vec![
        ("vscsi", vscsi(1), 32),
        ("vscsi", vscsi(2), 40),
        ("blktrace", blktrace(7, false), 48),
        ("blktrace", blktrace(7, true), 48),
        ("oraclegeneral", oracle, 24),
        ("blktrace", blktrace(8, false), 64),
        ("blktrace", blktrace(8, true), 64),
    ]
}

fn read(bytes: &[u8], skip_bad: bool) -> Result<(Vec<Request>, &'static str, u64)> {
    let options = TraceOptions { skip_bad, ..TraceOptions::default() };
    let mut source = open_trace(Box::new(Cursor::new(bytes.to_vec())), "t", &options)?;
    let mut requests = Vec::new();
    while let Some(request) = source.next_request()? {
        requests.push(request);
    }
    assert_eq!(source.next_request()?, None);
    Ok((requests, source.format().unwrap(), source.skipped_lines()))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Each record after the first is earlier than the one before; those of blktrace and vscsi are issued.
#[test]
fn binary_formats_are_sorted_by_time() {
    let blktrace = |version, time| {
        let issued_write = 7 | 1 << 22 | 1 << 17;
        blktrace::tests::record_of(version, false, (time, time / 1_000_000_000, 512, issued_write), b"")
    };
    let times = [3, 1, 2, 1].map(|seconds: u64| seconds * 1_000_000_000);
    let vscsi = |version| times.map(|ns| vscsi::tests::record(version, (0x2a, ns / 1_000_000_000, 512, ns / 1000)));
    let oracle = times.map(|ns| oracle_general::tests::record((ns as u32 / 1_000_000_000, ns, 512, -1)));
    for (name, bytes) in [
        ("blktrace", times.map(|time| blktrace(7, time)).concat()),
        ("blktrace", times.map(|time| blktrace(8, time)).concat()),
        ("vscsi", vscsi(1).concat()),
        ("vscsi", vscsi(2).concat()),
        ("oraclegeneral", oracle.concat()),
    ] {
        let options = TraceOptions { format: Some(name.into()), ..TraceOptions::default() };
        let mut source = open_trace(Box::new(Cursor::new(bytes)), "t", &options).unwrap();
        let arrivals: Vec<_> =
            std::iter::from_fn(|| source.next_request().unwrap()).map(|each| each.arrival / 1_000_000_000).collect();
        assert_eq!(arrivals, [0, 0, 1, 2], "{name}");
        let disorder = source.disorder();
        assert_eq!((disorder.sorted, disorder.late, disorder.largest), (3, 0, 2_000_000_000), "{name}");
    }
}

#[test]
fn every_format_is_recognised_and_read() {
    use RequestKind::{Read, Write};
    let known: Vec<&str> = FORMATS.iter().filter(|format| format.create.is_none()).map(|format| format.name).collect();
    assert_eq!(known, ["blktrace", "vscsi", "oraclegeneral"]);
    const SECOND: u64 = 1_000_000_000;
    let blocks = [(0, Write, 64, 8), (SECOND, Read, 128, 16), (3 * SECOND, Write, 8, 8)];
    let objects = [(0, Read, 0, 8), (SECOND, Read, 8, 16), (3 * SECOND, Read, 0, 8)];
    for (name, sample, _) in samples() {
        for bytes in [sample.clone(), gzip(&sample), zstd::stream::encode_all(&sample[..], 1).unwrap()] {
            let (requests, format, _) = read(&bytes, false).unwrap();
            let requests: Vec<_> =
                requests.iter().map(|r| (r.arrival, r.kind, r.extent.sector, r.extent.sectors)).collect();
            assert_eq!(format, name);
            assert_eq!(requests, if name == "oraclegeneral" { objects } else { blocks }, "{name}");
        }
    }
}

#[test]
fn a_cut_file_says_so_at_its_record() {
    for (name, sample, size) in samples() {
        let records = sample.len() / size;
        for cut in 1..size {
            let bytes = &sample[..sample.len() - cut];
            let Err(Error::Input { place, what, .. }) = read(bytes, false) else { panic!("{name}, {cut}") };
            assert_eq!(place, format!("t:{records}"), "{name}: {what}");
            assert!(what.contains(&format!("ends {} bytes into a record of {size}", size - cut)), "{what}");
            assert!(what.contains("may have been cut") && !what.contains('\n'), "{what}");
            let (requests, _, skipped) = read(bytes, true).unwrap();
            assert_eq!((requests.len(), skipped), (2, 1), "{name}");
        }
    }
}

#[test]
fn what_is_wrong_in_a_record_has_a_place() {
    let wrong = |bytes: &[u8]| match read(bytes, false) {
        Err(Error::Input { place, what, .. }) => (place, what),
        other => panic!("{other:?}"),
    };
    let (_, mut blktrace, size) = samples().swap_remove(2);
    blktrace[2 * size + 3] ^= 1;
    let (place, what) = wrong(&blktrace);
    assert_eq!(place, "t:3");
    assert!(what.contains("magic number: expected 0x656174") && what.contains("recognised as blktrace"), "{what}");
    // A record whose length reaches beyond the end of the file.
    let (_, mut lying, _) = samples().swap_remove(2);
    lying[3 * size + 46] = 200;
    assert!(wrong(&lying).1.contains("the file ends in the 200 bytes after a record"));
    let forced = |name: &str, bytes: &[u8]| {
        let options = TraceOptions { format: Some(name.into()), ..TraceOptions::default() };
        let mut source = open_trace(Box::new(Cursor::new(bytes.to_vec())), "t", &options).unwrap();
        source.next_request().unwrap_err().to_string()
    };
    let text = [b' '; 100];
    assert!(forced("blktrace", &text).contains("t:1: record: magic number: expected 0x656174, found 0x202020"));
    assert!(forced("vscsi", &text).contains("t:1: record: version: expected 2, found 32"));
    assert!(forced("oraclegeneral", &[0; 48]).contains("t:1: record: column size"));
    let (_, vscsi, size) = samples().swap_remove(1);
    assert!(forced("vscsi", &vscsi[size..2 * size]).contains("the file holds no request"));
}

#[test]
fn a_number_that_looks_like_a_byte_order_mark_is_none() {
    let records = [(0x00bf_bbef, 1, 512, -1), (0x00bf_bbf0, 2, 512, -1)].map(oracle_general::tests::record).concat();
    let options = TraceOptions { format: Some("oraclegeneral".into()), ..TraceOptions::default() };
    let mut source = open_trace(Box::new(Cursor::new(records)), "t", &options).unwrap();
    assert_eq!(source.next_request().unwrap().unwrap().extent.sectors, 1);
    assert_eq!(source.next_request().unwrap().unwrap().arrival, 1_000_000_000);
}

proptest! {
    #[test]
    fn no_damage_makes_a_reader_panic(
        sample in 0usize..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 0usize..60,
    ) {
        let (_, mut bytes, _) = samples().swap_remove(sample);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        fuzz_trace(&bytes);
    }
}
