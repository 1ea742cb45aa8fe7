//! Job files against fio: the requests that fio 3.33 issued for each file of `tests/fio`, one by one.
//!
//! `tools/fio_logs.py` wrote the logs; a new job file needs fio once. Times are not compared, so concurrent jobs are
//! compared separately.

use std::fs;
use std::path::{Path, PathBuf};

use palimpsest_lab::host::fio::{FioSource, FioSpec, JobFile};
use palimpsest_lab::host::request::{Request, RequestKind, Source};
use palimpsest_lab::units::GIB;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fio")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "fio"));
    files.sort();
    files
}

fn text(request: &Request) -> String {
    let kind = match request.kind {
        RequestKind::Read => 'r',
        RequestKind::Write => 'w',
        RequestKind::Trim => 't',
        RequestKind::Flush => return "s".into(),
    };
    format!("{kind}{}+{}", request.extent.sector, request.extent.sectors)
}

/// FNV-1a of 64 bits.
fn digest(texts: &[String]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |value, byte| (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Our requests of each job, and whether their number was foreseen.
fn issued(path: &Path) -> Vec<Vec<String>> {
    let file = JobFile::parse(&read(path), "job").unwrap();
    let mut source = file.source(GIB, 1).unwrap();
    let expected = source.expected_requests();
    let mut jobs: Vec<Vec<String>> = Vec::new();
    let mut number = 0;
    while let Some(request) = source.next_request().unwrap() {
        let job = request.owner() as usize;
        jobs.resize(jobs.len().max(job + 1), Vec::new());
        jobs[job].push(text(&request));
        number += 1;
    }
    assert!(expected.is_none_or(|expected| expected == number), "{}: {expected:?} {number}", path.display());
    jobs
}

#[test]
fn requests_are_those_of_fio() {
    let files = files();
    assert!(files.len() >= 20, "{} files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let ours = issued(&path);
        let log = read(&path.with_extension("log"));
        let theirs: Vec<&str> = log.split("# job ").skip(1).collect();
        assert_eq!(ours.len(), theirs.len(), "{}: jobs", path.display());
        for (job, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let (head, first) = theirs.split_once('\n').unwrap();
            let first: Vec<&str> = first.split_whitespace().collect();
            let same = first.iter().zip(ours).take_while(|(theirs, ours)| *theirs == ours).count();
            let ours_head = format!("{}: {} requests, digest {:016x}", job + 1, ours.len(), digest(ours));
            println!("{}: {ours_head}", path.file_stem().unwrap().display());
            if head != ours_head {
                let near = |list: &[String]| list.iter().skip(same).take(5).cloned().collect::<Vec<_>>().join(" ");
                let fio = first.iter().skip(same).take(5).copied().collect::<Vec<_>>().join(" ");
                let name = path.file_stem().unwrap().display();
                wrong.push(format!("{name}: fio: {head}; from request {same} ours {} fio {fio}", near(ours)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same in a specification: `randwrite` of fio with as many requests as blocks, continued in the next pass.
#[test]
fn specifications_are_job_files() {
    let blocks = 256;
    let file = issued(&folder().join("randwrite.fio")).remove(0);
    let spec = FioSpec::parse("rw=randwrite,bs=4k,size=1m,n=1000").unwrap();
    let mut source = FioSource::new(&spec, GIB, 1).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = source.next_request().unwrap() {
        requests.push(text(&request));
    }
    assert_eq!((requests.len(), &requests[..blocks]), (1000, &file[..]));
    // Further passes have each block once, in another order.
    for pass in requests.chunks(blocks) {
        let mut sorted: Vec<&String> = pass.iter().collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), pass.len());
    }
    assert_ne!(requests[..blocks], requests[blocks..2 * blocks]);
}
