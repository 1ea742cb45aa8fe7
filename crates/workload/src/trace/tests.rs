//! Tests of recognition, errors and order over whole small traces of every format.

use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::fuzzing::{SAMPLES, fuzz_trace};
use crate::request::{Command, Extent, Request, RequestKind};

fn read(bytes: &[u8], options: &TraceOptions) -> Result<(Vec<Request>, u64)> {
    let mut source = open_trace(Box::new(Cursor::new(bytes.to_vec())), "t", options)?;
    let mut requests = Vec::new();
    while let Some(request) = source.next_request()? {
        requests.push(request);
    }
    assert_eq!(source.next_request()?, None);
    Ok((requests, source.skipped_lines()))
}

fn good(bytes: &[u8]) -> Vec<Request> {
    read(bytes, &TraceOptions::default()).unwrap().0
}

/// The requests of a file of the format `name`, which is forced if other formats share the lines.
fn good_of(name: &str, bytes: &[u8]) -> Vec<Request> {
    let format = (name.starts_with('d') || name.ends_with("-program")).then(|| name.to_string());
    read(bytes, &TraceOptions { format, ..TraceOptions::default() }).unwrap().0
}

fn wrong(bytes: &[u8]) -> (String, String) {
    match read(bytes, &TraceOptions::default()) {
        Err(Error::Input { place, what, .. }) => (place, what),
        other => panic!("{other:?}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The three requests of every sample.
fn sample_requests(size_unit: u64) -> Vec<(u64, RequestKind, u64, u32)> {
    let sectors = size_unit.max(1) as u32;
    vec![
        (0, RequestKind::Write, 64, 8 * sectors),
        (1_000_000_000, RequestKind::Read, 128, 16 * sectors),
        (3_000_000_000, RequestKind::Write, 8, 8 * sectors),
    ]
}

#[test]
fn every_format_has_a_sample_that_is_recognised_and_read() {
    let formats = || FORMATS.iter().filter(|format| format.is_text);
    assert_eq!(SAMPLES.len(), formats().count());
    for format in formats() {
        let (_, sample) = SAMPLES.iter().find(|(name, _)| *name == format.name).expect(format.name);
        for compress in [<[u8]>::to_vec, gzip, zstd, xz, bzip2] {
            let bytes = compress(sample.as_bytes());
            let mut lines = LineReader::new(input::decompress(Box::new(Cursor::new(bytes.clone())), "t").unwrap(), "t");
            let (found, _) = recognise(&lines.read_head()).expect(format.name);
            // Only its name chooses a variant of another format.
            assert_eq!(found.name, format.name.trim_end_matches("-program"));
            let read = good_of(format.name, &bytes)
                .into_iter()
                .map(|r| (r.arrival, r.kind, r.extent.sector, r.extent.sectors))
                .collect::<Vec<_>>();
            assert_eq!(read, sample_requests(1), "{}", format.name);
        }
    }
}

#[test]
fn windows_line_ends_blank_lines_and_byte_order_marks_are_legal() {
    for (name, sample) in SAMPLES {
        let windows = format!("\u{feff}{}\r\n  \r\n", sample.trim_end().replace('\n', "\r\n\r\n"));
        assert_eq!(good_of(name, windows.as_bytes()), good_of(name, sample.as_bytes()), "{name}");
    }
}

#[test]
fn a_cut_last_line_is_named() {
    let whole = "1,h,0,Write,0,512,1\n2,h,0,Write,0,512,1\n3,h,0,Wri";
    let (place, what) = wrong(whole.as_bytes());
    assert_eq!(place, "t:3");
    assert!(what.contains("may have been cut") && what.contains("msr by line 1"), "{what}");
    let long = format!("1,h,0,Write,0,512,1\n2,h,0,{},0,512,1\n", "x".repeat(60));
    let (_, what) = wrong(long.as_bytes());
    assert!(what.ends_with("the file is recognised as msr by line 1") && what.len() < 200, "{what}");
}

#[test]
fn cut_and_corrupt_compression_is_named() {
    let lines: String =
        (0..20_000u64).map(|i| format!("{},h,0,Write,{},512,1\n", i, (i * 7919) % 65_536 * 512)).collect();
    for mut bytes in [gzip, zstd, xz, bzip2].map(|compress| compress(lines.as_bytes())) {
        let (place, what) = wrong(&bytes[..bytes.len() / 2]);
        assert!(what.contains("end early"), "{what}");
        // All lines are in one block of xz, which is lost as a whole.
        let line = place.strip_prefix("t:").map(|line| line.parse::<u64>().unwrap());
        assert!(if what.contains("xz") { line.is_none() } else { line.unwrap() > 1 }, "{place}");
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xa5);
        let (_, what) = wrong(&bytes);
        assert!(what.contains("corrupt") || what.contains("column") || what.contains("time goes back"), "{what}");
    }
    let (_, what) = wrong(&zstd(lines.as_bytes())[..10]);
    assert!(what.contains("zstd data end early"), "{what}");
}

#[test]
fn parts_that_were_compressed_apart_are_read_as_one() {
    let (first, second) = ("1,h,0,Write,0,512,1\n", "2,h,0,Write,0,512,1\n");
    for compress in [gzip, zstd, xz, bzip2] {
        let joined = [compress(first.as_bytes()), compress(second.as_bytes())].concat();
        assert_eq!(good(&joined).len(), 2);
    }
}

/// The header asks for a dictionary of 1.5 GiB.
#[test]
fn a_dictionary_of_xz_that_is_too_large_is_refused() {
    let mut bytes = xz(b"1,h,0,Write,0,512,1\n");
    // The block header: size, flags; number, length of properties and dictionary of the filter LZMA2.
    assert_eq!(bytes[12..17], [2, 0, 0x21, 1, bytes[16]]);
    bytes[16] = 37;
    let checksum = crc32(&bytes[12..20]);
    bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
    let (_, what) = wrong(&bytes);
    assert!(what.contains("dictionary of more than 256 MiB"), "{what}");
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn disorder_is_sorted_up_to_a_minute() {
    let arrivals = |text: &str| good(text.as_bytes()).iter().map(|r| r.arrival).collect::<Vec<_>>();
    assert_eq!(
        arrivals("10,1,8,1,0\n9,1,8,1,0\n11,1,8,1,0\n10,1,8,1,0\n"),
        [0, 1_000_000_000, 1_000_000_000, 2_000_000_000]
    );
    let (place, what) = wrong(b"100,1,8,1,0\n39.5,1,8,1,0\n");
    assert_eq!(place, "t:2");
    assert!(what.contains("back by 60.500000000 s"), "{what}");
}

#[test]
fn bad_lines_stop_or_are_counted() {
    let bad_lines: [&[u8]; 8] = [
        b"2,h,0,Write,-5,512,1",
        b"2,h,0,Write,0,0,1",
        b"2,h,0,Write,9223372036854775807,512,1",
        b"2,h,0,Write,0,99999999999999999999999,1",
        b"2,h,0,Write,0,2147483648,1",
        b"2,h,0,\xff\xfe,0,512,1",
        b"0,303567,3584,w,0.000000",
        b"stray words",
    ];
    for bad in bad_lines {
        let text = [b"1,h,0,Write,0,512,1\n", bad, b"\n3,h,0,Read,0,512,1\n4,h,0,Read,0,512,1\n"].concat();
        let (place, what) = wrong(&text);
        assert_eq!(place, "t:2", "{what}");
        assert!(what.contains("expected"), "{what}");
        assert!(!what.contains('\n') && what.is_ascii(), "{what}");
        let skip = TraceOptions { skip_bad: true, ..TraceOptions::default() };
        let (requests, skipped) = read(&text, &skip).unwrap();
        assert_eq!((requests.len(), skipped), (3, 1));
    }
}

#[test]
fn long_lines_are_bad_lines() {
    let text = format!("1,h,0,Write,0,512,1\n2,{},0,Write,0,512,1\n", "h".repeat(70_000));
    let (place, what) = wrong(text.as_bytes());
    assert_eq!(place, "t:2");
    assert!(what.contains("longer than 65536 bytes"), "{what}");
}

#[test]
fn what_is_no_trace_is_named() {
    assert!(wrong(b"").1.contains("the file is empty"));
    assert!(wrong(b"\n\n").1.contains("no line near the start"));
    assert!(wrong(b"\0\x01\x02binary").1.contains("binary file of unknown format"));
    assert!(wrong(b"7z\xbc\xaf\x27\x1c").1.contains("7-Zip"));
    assert!(wrong(b"some prose\nand more\n").1.contains("palimpsest list traces"));
    // The message quotes the line and the fault by the nearest format.
    for (line, format, said) in [
        ("128166372003061629,hm,1,Read,383496192", "msr", "the line ends before column size"),
        ("128166372003061629,hm,1,Erase,383496192,4096,5", "msr", "Erase"),
        ("  8,0    1        1     0.5   99  D   R 8 * 8 [x]", "blkparse", "*"),
    ] {
        let (place, what) = wrong(format!("# of a tool\n{line}\n").as_bytes());
        assert_eq!(place, "t:2", "{what}");
        assert!(what.contains(&format!("\"{}", &line[..20])), "{what}");
        assert!(what.contains(&format!("as {format}, the nearest, ")) && what.contains(said), "{what}");
        assert!(what.len() < 250, "{what}");
    }
    assert!(wrong(b"about 5 words\n").1.contains("--columns"));
    // A line that is far from all formats is described, and no format is named.
    for (text, said) in [
        ("0,WRITE,0,4096\n", "4 columns between commas (number, text, number, number)"),
        ("a\tb\t5\n", "3 columns between tabs (text, text, number)"),
        ("12\n", "there is one column"),
    ] {
        let what = wrong(text.as_bytes()).1;
        assert!(what.contains(said) && !what.contains("nearest"), "{what}");
    }
    let msr = "128166372003061629;hm;1;Read;383496192;32768;413\n";
    let what = wrong(msr.as_bytes()).1;
    assert!(what.contains("with commas instead of semicolons the line is a request in the format msr"), "{what}");
    for (text, said) in [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "a pointer of Git LFS"),
        ("\n<!DOCTYPE HTML>\n<html>1,2</html>\n", "a page of HTML"),
        ("/annex/objects/SHA256E-s5--1.csv\n", "a pointer of git-annex"),
    ] {
        for format in [None, Some("msr".to_string())] {
            let options = TraceOptions { format, ..TraceOptions::default() };
            let error = read(text.as_bytes(), &options).unwrap_err().to_string();
            assert!(error.starts_with(&format!("t: this is {said}")), "{error}");
        }
    }
    let (place, what) = wrong(b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n");
    assert_eq!(place, "t");
    assert!(what.contains("no request"), "{what}");
}

#[test]
fn bytes_as_sectors_and_sectors_as_bytes_are_noted() {
    let notes = |text: &str| {
        open_trace(Box::new(Cursor::new(text.as_bytes().to_vec())), "t", &TraceOptions::default()).unwrap().notes()
    };
    for text in [
        "0.5 0 8192 4096 1\n0.7 0 16384 4096 0\n",
        "5 0 8192 4096 1\n7 0 16384 4096 0\n",
        "1,8192,4096,1,5\n1,0,512,0,5\n",
        "0.5 ; 8192 ; 4096 ; R ; 0.0 ; 0.0\n0.7 ; 512 ; 512 ; W ; 0.0 ; 0.0\n",
        "5 9 k 8192 4096 W 6 0 ab\n6 9 k 512 512 R 6 0 ab\n",
        "9,R,16,8,5\n9,W,8,255,6\n",
        "128166372003061629,hm,1,Read,16,8,413\n128166372003061630,hm,1,Write,8,8,413\n",
    ] {
        let said = notes(text);
        let is_larger = !text.contains(",R");
        let times =
            if is_larger { "512 times too large? (--columns time=1" } else { "512 times too small? (--columns time=" };
        assert!(said.len() == 1 && said[0].contains(times), "{said:?}");
        // The columns of the note read the same lines, in bytes.
        let columns = said[0].split("--columns ").nth(1).and_then(|text| text.strip_suffix(')')).map(String::from);
        let options = TraceOptions { columns, ..TraceOptions::default() };
        let (requests, _) = read(text.as_bytes(), &options).unwrap();
        assert_eq!((requests[0].extent.sector, requests[0].extent.sectors), (16, 8), "{text}");
    }
    assert_eq!(notes("0.5 0 8192 4096 1\n0.7 0 16384 8 0\n"), [""; 0]);
    assert_eq!(notes("9,R,16,8,5\n9,W,8,512,6\n"), [""; 0]);
}

#[test]
fn headers_are_no_excuse_for_bad_records() {
    let blkreplay = b"Some words; more\n-0.5 ; 64 ; 8 ; W ; 0.0 ; 0.0\n1 ; 64 ; 8 ; W ; 0.0 ; 0.0\n";
    let (place, what) = wrong(blkreplay);
    assert_eq!(place, "t:2");
    assert!(what.contains("found \"-0.5\"") && what.contains("blkreplay by line 3"), "{what}");
    assert_eq!(wrong(b"1,h,0,Wrote,0,512,1\n2,h,0,Write,0,512,1\n").0, "t:1");
}

#[test]
fn trims_may_be_larger_than_other_requests() {
    let two_gib = |kind: &str| format!(" 8,0 1 1 0.5 7  D {kind} 0 + 4194304 [x]\n 8,0 1 1 0.5 7  D R 0 + 8 [x]\n");
    assert_eq!(good(two_gib("D").as_bytes())[0].extent.sectors, 4_194_304);
    assert!(wrong(two_gib("W").as_bytes()).1.contains("size: expected 1 to 2097152 sectors"));
}

#[test]
fn a_format_can_be_forced() {
    let integers = b"1 0 8 8 1\n2 0 8 8 1\n";
    let forced = |name: &str| {
        read(integers, &TraceOptions { format: Some(name.to_string()), ..TraceOptions::default() })
            .map(|read| read.0[1].arrival)
    };
    assert_eq!(good(integers)[1].arrival, 1);
    assert_eq!(forced("ssdsim"), Ok(1));
    assert_eq!(forced("disksim"), Ok(1_000_000));
    assert!(
        matches!(forced("spc"), Err(Error::Input { place, what, .. }) if place == "t:1" && what.contains("read as spc"))
    );
    assert!(matches!(forced("nothing"), Err(Error::Input { what, .. }) if what.contains("palimpsest list traces")));
}

/// Twenty requests of 4 KiB, each after the other, with tabs: in sectors as DiskSim has them, and in pages of the
/// d-choices simulator.
#[test]
fn requests_that_follow_each_other_decide_the_unit_of_sizes() {
    let lines = |size: u64| (0..20).map(|at| format!("{at}.5\t0\t{}\t{size}\t1\n", at * 8)).collect::<String>();
    let read = |text: &str| {
        let mut source =
            open_trace(Box::new(Cursor::new(text.as_bytes().to_vec())), "t", &TraceOptions::default()).unwrap();
        let first = source.next_request().unwrap().unwrap();
        (source.format(), first.extent.sectors)
    };
    assert_eq!(read(&lines(8)), (Some("disksim"), 8));
    assert_eq!(read(&lines(1)), (Some("dchoices"), 8));
}

#[test]
fn a_file_with_two_readings_is_refused_with_both() {
    let (place, what) = wrong(b"0.5\t0\t64\t8\t0\n1.5\t0\t128\t16\t1\n");
    assert_eq!(place, "t");
    assert!(what.contains("disksim (the first request has 4096 bytes)"), "{what}");
    assert!(what.contains("dchoices (the first request has 32768 bytes)"), "{what}");
    assert!(what.contains("expected --from"), "{what}");
}

struct Failing(std::io::ErrorKind);

impl std::io::Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(self.0.into())
    }
}

#[test]
fn failures_of_the_system_are_not_the_users() {
    let open = |kind| open_trace(Box::new(Failing(kind)), "t", &TraceOptions::default()).err();
    assert!(matches!(open(std::io::ErrorKind::PermissionDenied), Some(Error::Io { .. })));
    assert!(
        matches!(open(std::io::ErrorKind::IsADirectory), Some(Error::Input { what, .. }) if what.contains("directory"))
    );
}

/// How a format writes a request (time in ms, sector, sectors of 4 KiB multiples, read).
type WriteLine = fn(u64, u64, u64, bool) -> String;

const WRITERS: [(&str, WriteLine); 7] = [
    ("msr", |ms, sector, sectors, read| {
        let kind = if read { "Read" } else { "Write" };
        format!("{},h,0,{kind},{},{},9", 128_166_385_295_514_663 + ms * 10_000, sector * 512, sectors * 512)
    }),
    ("spc", |ms, sector, sectors, read| {
        format!("0,{sector},{},{},{}.{:03}", sectors * 512, if read { 'r' } else { 'W' }, ms / 1000, ms % 1000)
    }),
    ("fiu", |ms, sector, sectors, read| {
        format!("{} 7 a b {sector} {sectors} {} 8 0 ab", ms * 1_000_000, if read { 'R' } else { 'W' })
    }),
    ("blkparse", |ms, sector, sectors, read| {
        let kind = if read { 'R' } else { 'W' };
        format!(" 8,0 1 1 {}.{:03} 7  D {kind} {sector} + {sectors} [x]", ms / 1000, ms % 1000)
    }),
    ("mqsim", |ms, sector, sectors, read| format!("{} 0 {sector} {sectors} {}", ms * 1_000_000, u8::from(read))),
    ("disksim", |ms, sector, sectors, read| format!("{ms}.0 0 {sector} {sectors} {}", u8::from(read))),
    ("dchoices", |ms, sector, sectors, read| format!("{ms}.0\t0\t{sector}\t{}\t{}", sectors / 8, u8::from(read))),
];

proptest! {
    #[test]
    fn generated_traces_round_trip(
        steps in prop::collection::vec((0u64..10_000, 0u64..1 << 40, 1u64..64, any::<bool>()), 1..50)
    ) {
        let mut expected = Vec::new();
        let (mut now, first) = (0, steps[0].0);
        for &(step, sector, pages, read) in &steps {
            now += step;
            let kind = if read { RequestKind::Read } else { RequestKind::Write };
            let sectors = 8 * pages as u32;
            let arrival = (now - first) * 1_000_000;
            expected.push(Request::new(arrival, Command::new(kind, Extent { sector, sectors })));
        }
        for (name, write) in WRITERS {
            let mut now = 0;
            let mut text = String::new();
            for &(step, sector, pages, read) in &steps {
                now += step;
                text += &write(now, sector, pages * 8, read);
                text.push('\n');
            }
            // Requests that do not follow each other do not tell DiskSim's sectors from pages.
            let read: Vec<Request> = good_of(name, text.as_bytes());
            let stream = if name == "blkparse" { 8 << 20 } else { 0 };
            let of = |r: &Request| Request { command: r.command.of(stream), ..*r };
            let expected: Vec<Request> = expected.iter().map(of).collect();
            prop_assert_eq!(&read, &expected, "{}", name);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_trace(&bytes);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[0-9a-zRW,;. \t\n-]{0,200}") {
        fuzz_trace(text.as_bytes());
    }
}

/// `cargo test --release -p palimpsest-workload --lib trace -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measured_speed_of_reading() {
    const LINES: u64 = 2_000_000;
    for (name, write) in WRITERS {
        let mut text = String::new();
        for at in 0..LINES {
            text += &write(at, (at * 7919) % (1 << 30) * 8, 8 * (1 + at % 16), at % 3 == 0);
            text.push('\n');
        }
        for (how, bytes) in [("plain", text.clone().into_bytes()), ("zstd", zstd(text.as_bytes()))] {
            let options = TraceOptions { format: Some(name.to_string()), ..TraceOptions::default() };
            let mut source = open_trace(Box::new(Cursor::new(bytes)), "t", &options).unwrap();
            let (start, mut count) = (std::time::Instant::now(), 0u64);
            while source.next_request().unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, LINES);
            let seconds = start.elapsed().as_secs_f64();
            let megabytes = text.len() as f64 / 1e6;
            println!(
                "{:6.1} million lines/s {:5.0} MB/s: {name} {how}",
                count as f64 / seconds / 1e6,
                megabytes / seconds
            );
        }
    }
}
