//! Tests of traces as output: requests that are written and read again are the requests within the format's [`Holds`].

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::line_format::{Holds, Names};
use super::output::{Compression, Losses, Recorder, Target, has_name};
use super::*;
use crate::in_order::Disorder;
use crate::request::{Command, Directives, Extent, Lifetime, NO_FILE, Request, RequestKind};

/// A file in memory that outlives the writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const NAMES: [&str; 4] = ["C:\\$Mft", "a file, of \"words\"", "/dev/sda", "x"];

fn written(requests: &[Request], target: Target) -> (Vec<u8>, u64, Losses) {
    let file = Shared::default();
    let mut recorder = Recorder::new(target, Box::new(file.clone()), "out").unwrap();
    for request in requests {
        recorder.add(*request, NAMES.get(request.file as usize).copied()).unwrap();
    }
    let (count, losses) = recorder.finish().unwrap();
    let bytes = file.0.lock().unwrap().clone();
    (bytes, count, losses)
}

/// Requests with the names of their files.
fn read(bytes: &[u8], format: Option<&str>) -> Vec<(Request, Option<String>)> {
    let options = TraceOptions { format: format.map(String::from), file_names: true, ..TraceOptions::default() };
    let mut source = open_trace(Box::new(Cursor::new(bytes.to_vec())), "t", &options).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = source.next_request().unwrap() {
        let name = source.file_names().and_then(|names| names.name(request.file)).map(String::from);
        requests.push((request, name));
    }
    requests
}

/// The requests as a format with `holds` stores them.
fn said(requests: &[Request], holds: Holds) -> Vec<(Request, Option<String>)> {
    let mut first = None;
    let kept = requests.iter().filter(|request| holds.kinds.contains(&request.kind));
    kept.map(|request| {
        let rounded = request.arrival - request.arrival % holds.time_grain;
        let name = NAMES.get(request.file as usize).map(|name| match holds.names {
            Names::WithoutBlanks => name.replace(' ', "_"),
            _ => name.to_string(),
        });
        let mut said = Request { arrival: rounded - *first.get_or_insert(rounded), file: NO_FILE, ..*request };
        said.command.extent.sectors = request.extent.sectors.next_multiple_of(holds.size_grain);
        said.command.directives = Directives {
            owner: if holds.streams { request.owner() } else { 0 },
            fua: request.directives.fua && holds.fua,
            ..Directives::NONE
        };
        (said, name.filter(|_| has_name(holds.names, request.kind)))
    })
    .collect()
}

/// Requests without the streams and names that a format does not have: iolog numbers streams by files and names all.
fn comparable(read: Vec<(Request, Option<String>)>, holds: Holds) -> Vec<(Request, Option<String>)> {
    let plain = |(request, name): (Request, Option<String>)| {
        let command = request.command.of(if holds.streams { request.owner() } else { 0 });
        (Request { command, file: NO_FILE, ..request }, name.filter(|name| !name.starts_with("stream-")))
    };
    read.into_iter().map(plain).collect()
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let kinds = prop::sample::select(Holds::ALL.kinds);
    let one = (0u64..1 << 33, kinds, 0u64..1 << 40, 1u32..2048, 0u32..5, 0u32..6, (any::<bool>(), 0u16..3));
    prop::collection::vec(one, 1..40).prop_map(|steps| {
        let mut now = 0;
        let request =
            |(at, (gap, kind, sector, sectors, stream, file, (fua, placement))): (usize, (u64, _, _, _, _, u32, _))| {
                now += if at == 0 { 0 } else { gap };
                let file = if file < NAMES.len() as u32 { file } else { NO_FILE };
                match kind {
                    RequestKind::Flush => Request { file, ..Request::new(now, Command::FLUSH.of(stream)) },
                    _ => {
                        let is_write = kind == RequestKind::Write;
                        let placement = if is_write { placement } else { 0 };
                        let directives =
                            Directives { owner: stream, fua: fua && is_write, placement, ..Directives::NONE };
                        let command = Command::new(kind, Extent { sector, sectors }).with(directives);
                        Request { file, ..Request::new(now, command) }
                    }
                }
            };
        steps.into_iter().enumerate().map(request).collect()
    })
}

/// Requests of 4 KiB at these times in milliseconds, each on the next page, as lines or rows of `format`.
fn at_times(format: &'static Format, times: &[u64]) -> Vec<u8> {
    let request = |(at, ms): (usize, &u64)| {
        let extent = Extent { sector: 8 * at as u64, sectors: 8 };
        Request::new(ms * 1_000_000, Command::new(RequestKind::Write, extent))
    };
    let requests: Vec<Request> = times.iter().enumerate().map(request).collect();
    written(&requests, Target { format, compression: Compression::Plain }).0
}

/// Arrivals in milliseconds, pages, and disorder of a trace.
fn arrivals(bytes: Vec<u8>, format: &str) -> (Vec<(u64, u64)>, Disorder) {
    let options = TraceOptions { format: Some(format.into()), ..TraceOptions::default() };
    let mut source = open_trace_file(Box::new(Cursor::new(bytes)), "t", &options).unwrap();
    let mut found = Vec::new();
    while let Some(request) = source.next_request().unwrap() {
        found.push((request.arrival / 1_000_000, request.extent.sector / 8));
    }
    (found, source.disorder())
}

#[test]
fn every_written_format_is_sorted_by_time() {
    for format in FORMATS.iter().filter(|format| format.output().is_some()) {
        // The clock of some formats has whole seconds.
        let bytes = at_times(format, &[1000, 6000, 2000, 7000, 0, 7000]);
        let (found, disorder) = arrivals(bytes, format.name);
        let expected = [(0, 4), (1000, 0), (2000, 2), (6000, 1), (7000, 3), (7000, 5)];
        assert_eq!(found, expected, "{}", format.name);
        let largest = 7_000_000_000;
        assert_eq!(disorder, Disorder { sorted: 2, late: 0, largest }, "{}", format.name);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(requests in requests()) {
        for format in FORMATS.iter().filter(|format| format.is_text) {
            let (holds, _) = format.output().unwrap();
            let expected = said(&requests, holds);
            let target = Target { format, compression: Compression::Plain };
            let (bytes, count, losses) = written(&requests, target);
            prop_assert_eq!(count, expected.len() as u64);
            prop_assert_eq!(losses.trims + losses.flushes, (requests.len() - expected.len()) as u64);
            if !expected.is_empty() {
                prop_assert_eq!(&comparable(read(&bytes, Some(format.name)), holds), &expected, "{}", format.name);
                // A trace of flushes only may parse as another format; few lines do not tell d-choices' pages from
                // sectors.
                if expected.iter().any(|(request, _)| request.extent.sectors > 0) && format.name != "dchoices" {
                    prop_assert_eq!(comparable(read(&bytes, None), holds), expected, "{} recognised", format.name);
                }
            }
        }
    }
}

#[test]
fn compressed_output_reads_back() {
    let request = Request::new(5, Command::new(RequestKind::Write, Extent { sector: 8, sectors: 8 }).of(1));
    let requests = vec![request; 1000];
    let mut sizes = Vec::new();
    for ending in ["csv", "csv.gz", "CSV.ZST"] {
        let target = Target::of_name(&format!("x.{ending}"), None).unwrap();
        let (bytes, ..) = written(&requests, target);
        assert_eq!(read(&bytes, None).len(), 1000);
        sizes.push(bytes.len());
    }
    assert!(sizes[1] < sizes[0] / 10 && sizes[2] < sizes[0] / 10, "{sizes:?}");
}

#[test]
fn losses_are_counted() {
    use RequestKind::{Trim, Write};
    let base = Request { file: 1, ..Request::new(0, Command::new(Write, Extent { sector: 1, sectors: 9 }).of(3)) };
    let requests = [
        base,
        Request { command: Command::new(Trim, base.extent).of(3), ..base },
        Request { command: Command::FLUSH.of(3), ..base },
        Request::new(1_500, base.command.of(0)),
    ];
    let losses = |format| written(&requests, Target::of_name(format, None).unwrap()).2;
    assert_eq!(losses("x.csv"), Losses::default());
    let expected = Losses { trims: 1, flushes: 1, streams: 1, names: 1, ..Losses::default() };
    assert_eq!(losses("x.fiu"), expected);
    assert_eq!(losses("x.dchoices.zst"), Losses { sizes: 2, streams: 0, ..expected });
    assert_eq!(losses("x.tencent"), Losses { times: 1, streams: 0, ..expected });
    assert_eq!(losses("x.iolog"), Losses { times: 1, streams: 3, changed_names: 3, ..Losses::default() });
    assert_eq!(losses("x.load").names, 3);
}

#[test]
fn directives_that_a_format_lacks_are_counted() {
    let request = |directives| {
        let command = Command::new(RequestKind::Write, Extent { sector: 8, sectors: 8 });
        Request::new(0, command.with(directives))
    };
    let requests = [
        Directives::NONE,
        Directives { fua: true, ..Directives::NONE },
        Directives { placement: 3, ..Directives::NONE },
        Directives { lifetime: Lifetime::Pages(4), ..Directives::NONE },
    ]
    .map(request);
    for (format, expected) in [("csv", 3), ("parquet", 3), ("blkparse", 2), ("load", 2), ("iolog", 3), ("msr", 3)] {
        let losses = written(&requests, Target::of_name(&format!("x.{format}"), None).unwrap()).2;
        assert_eq!(losses, Losses { directives: expected, ..Losses::default() }, "{format}");
    }
}

#[test]
fn targets_are_named_by_their_ending() {
    let target = |name, format| Target::of_name(name, format).map(|target| (target.format.name, target.compression));
    assert_eq!(target("a/b.msr.gz", None), Ok(("msr", Compression::Gzip)));
    assert_eq!(target("b.trace.zst", Some("ssdsim")), Ok(("mqsim", Compression::Zstd)));
    assert_eq!(target("b.load", None), Ok(("blkreplay", Compression::Plain)));
    for name in ["b", "b.trace", ".gz", "b.txt.gz"] {
        let message = target(name, None).unwrap_err().to_string();
        assert!(message.contains("--format") && message.contains(".csv"), "{message}");
    }
    assert!(target("b.vscsi", None).unwrap_err().to_string().contains("only read; expected --format with one of csv"));
    assert!(target("b.csv", Some("nothing")).unwrap_err().to_string().contains("palimpsest list traces"));
}

#[test]
fn failures_of_writing_are_the_systems() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for ending in ["csv", "csv.gz", "csv.zst"] {
        let target = Target::of_name(&format!("x.{ending}"), None).unwrap();
        let Ok(recorder) = Recorder::new(target, Box::new(Full), "full") else { continue };
        assert!(matches!(recorder.finish(), Err(Error::Io { place, .. }) if place == "full"));
    }
}
