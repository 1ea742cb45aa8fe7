//! Tests of small archives made by hand, and of damaged archives; `tests/python/test_trace.py` has archives by
//! `zipfile` and `tarfile`.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::fuzzing::fuzz_archive;
use crate::trace::tests::{bzip2, xz};
use crate::trace::{TraceOptions, open_trace_file};

const TRACE: &str = "1,h,0,Write,0,512,1\n2,h,0,Read,512,512,1\n";

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let mut sum = flate2::Crc::new();
        sum.update(content);
        let mut common = Vec::new();
        common.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        common.extend(sum.sum().to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((bytes.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(*content);
    }
    let at = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([files.len() as u8, 0, files.len() as u8, 0]);
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        let mut block = [0u8; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[148..156].fill(b' ');
        block[156] = if name.ends_with('/') { b'5' } else { b'0' };
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend(block);
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn read(bytes: &[u8], member: Option<&str>) -> Result<(usize, String)> {
    let options = TraceOptions { member: member.map(String::from), ..TraceOptions::default() };
    let mut source = open_trace_file(Box::new(Cursor::new(bytes.to_vec())), "a", &options)?;
    let mut count = 0;
    while source.next_request()?.is_some() {
        count += 1;
    }
    Ok((count, source.place()))
}

fn wrong(bytes: &[u8], member: Option<&str>) -> String {
    read(bytes, member).unwrap_err().to_string()
}

fn both(files: &[(&str, &[u8])]) -> Vec<Vec<u8>> {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let plain = tar(files);
    vec![zip(files), gzip(&plain), zstd::stream::encode_all(&plain[..], 1).unwrap(), xz(&plain), bzip2(&plain), plain]
}

#[test]
fn the_only_trace_of_an_archive_is_read() {
    let compressed = zstd::stream::encode_all(TRACE.as_bytes(), 1).unwrap();
    for content in [TRACE.as_bytes(), &compressed[..]] {
        let files: [(&str, &[u8]); 4] =
            [("d/", b""), ("__MACOSX/._x", b"junk"), ("d/.hidden", b"junk"), ("d/x.csv", content)];
        for archive in both(&files) {
            assert_eq!(read(&archive, None), Ok((2, "a/d/x.csv:2".into())));
            assert_eq!(read(&archive, Some("d/x.csv")), Ok((2, "a/d/x.csv:2".into())));
        }
    }
}

#[test]
fn several_traces_are_listed_and_one_is_chosen() {
    let files: [(&str, &[u8]); 2] = [("x.csv", b"1,h,0,Write,0,512,1\n"), ("y.csv", TRACE.as_bytes())];
    for archive in both(&files) {
        let said = wrong(&archive, None);
        assert!(
            said.contains(
                "the archive has 2 files: x.csv, y.csv; expected the name of one after its own, such as a/x.csv"
            ),
            "{said}"
        );
        assert_eq!(read(&archive, Some("y.csv")).unwrap().0, 2);
        assert!(wrong(&archive, Some("z")).contains("there is no file z in the archive; expected one of x.csv, y.csv"));
    }
    for archive in both(&[("d/", b"")]) {
        assert!(wrong(&archive, None).contains("there is no file in the archive"));
    }
    assert!(wrong(TRACE.as_bytes(), Some("x")).contains("neither a zip nor a tar archive"));
}

#[test]
fn damage_is_one_line() {
    let archive = zip(&[("x.csv", TRACE.as_bytes())]);
    let mut changed = archive.clone();
    changed[30 + 5 + 4] ^= 1;
    assert!(wrong(&changed, None).contains("checksum of a file in it is wrong"));
    assert!(wrong(&archive[..archive.len() - 30], None).contains("was it cut while downloading?"));
    let mut encrypted = archive.clone();
    let entry = archive.len() - 22 - 51;
    encrypted[entry + 8] |= 1;
    assert!(wrong(&encrypted, None).contains("x.csv is encrypted"));
    let mut method = archive;
    method[entry + 10] = 12;
    assert!(wrong(&method, None).contains("x.csv is neither stored nor deflated"));
    let archive = tar(&[("x.csv", TRACE.as_bytes())]);
    assert!(wrong(&archive[..520], None).contains("end early"));
    let mut changed = tar(&[("x.csv", TRACE.as_bytes()), ("y.csv", TRACE.as_bytes())]);
    changed[1024 + 3] = b'z';
    assert!(wrong(&changed, None).contains("head of a file in it is wrong"));
}

/// A file behind an entry of `kind` with the content `about`.
fn described_tar(kind: u8, about: &[u8]) -> Vec<u8> {
    let mut bytes = tar(&[("about", about), ("short", TRACE.as_bytes())]);
    bytes[156] = kind;
    bytes[148..156].fill(b' ');
    let sum: u32 = bytes[..512].iter().map(|byte| u32::from(*byte)).sum();
    bytes[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    bytes
}

#[test]
fn long_names_and_sizes() {
    let long = "d/".repeat(60) + "x.csv";
    assert_eq!(read(&described_tar(b'L', long.as_bytes()), None), Ok((2, format!("a/{long}:2"))));
    let pax = b"30 mtime=1321711775.123456789\n18 path=d/new.csv\n11 size=20\n";
    assert_eq!(read(&described_tar(b'x', pax), None), Ok((1, "a/d/new.csv:1".into())));
    for kind in [b'L', b'x'] {
        let said = wrong(&described_tar(kind, &vec![b'x'; 1 << 20]), None);
        assert!(said.contains("the names of a file in it have more than 262144 bytes"), "{said}");
    }
}

#[test]
fn a_path_has_an_archive_and_a_name() {
    let is_file = |path: &str| path == "d/a.zip";
    assert_eq!(split("d/a.zip/x/y.csv", is_file), Some(("d/a.zip", "x/y.csv")));
    assert_eq!((split("d/a.zip", is_file), split("d/a.zip/", is_file), split("/d", is_file)), (None, None, None));
}

proptest! {
    #[test]
    fn no_damage_makes_a_reader_panic(
        which in 0usize..4,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in 0usize..600,
    ) {
        let mut bytes = both(&[("d/", b""), ("x.csv", TRACE.as_bytes())]).swap_remove(which);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(if cut < 300 { 0 } else { cut }));
        fuzz_archive(&bytes);
    }
}
