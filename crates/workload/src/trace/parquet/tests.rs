//! Tests of Parquet: round trips over several groups of rows; faults name the row; damage is no panic.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use super::*;
use crate::fuzzing::fuzz_parquet;
use crate::request::{Command, Extent, RequestKind};
use crate::trace::open_trace_file;
use crate::trace::output::{Losses, Recorder, Target};
use palimpsest_flash::rng::Rng;

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

fn written(requests: impl Iterator<Item = (Request, Option<&'static str>)>) -> Vec<u8> {
    let file = Shared::default();
    let target = Target::of_name("x.parquet", None).unwrap();
    let mut recorder = Recorder::new(target, Box::new(file.clone()), "out").unwrap();
    requests.for_each(|(request, name)| recorder.add(request, name).unwrap());
    assert_eq!(recorder.finish().unwrap().1, Losses::default());
    file.0.lock().unwrap().clone()
}

fn opened(bytes: &[u8], skip_bad: bool) -> Result<Box<dyn Source>> {
    let options = TraceOptions { skip_bad, file_names: true, ..TraceOptions::default() };
    open_trace_file(Box::new(Cursor::new(bytes.to_vec())), "t.parquet", &options)
}

fn request(at: u64) -> (Request, Option<&'static str>) {
    let kinds = Holds::ALL.kinds;
    let kind = kinds[at as usize % kinds.len()];
    let (sector, sectors) = if kind == RequestKind::Flush { (0, 0) } else { (at * 8, 1 + at as u32 % 64) };
    let name = [None, Some("a \"b\", c"), Some("d")][at as usize % 3];
    (Request::new(at * 7, Command::new(kind, Extent { sector, sectors }).of((at % 5) as u32)), name)
}

#[test]
fn what_is_written_is_read_again() {
    const REQUESTS: u64 = 300_000;
    let bytes = written((0..REQUESTS).map(request));
    let mut source = opened(&bytes, false).unwrap();
    assert_eq!((source.expected_requests(), source.format()), (Some(REQUESTS), Some("parquet")));
    for at in 0..REQUESTS {
        let found = source.next_request().unwrap().unwrap();
        let name = source.file_names().unwrap().name(found.file);
        assert_eq!((Request { file: NO_FILE, ..found }, name), request(at));
    }
    assert_eq!(source.next_request(), Ok(None));
}

#[test]
fn faults_name_the_row() {
    let (good, name) = request(1);
    let back = Request { arrival: 0, ..good };
    let rows = [good, Request { arrival: 65_000_000_000, ..good }, back, Request { arrival: 66_000_000_000, ..good }];
    let bytes = written(rows.into_iter().map(|request| (request, name)));
    let mut source = opened(&bytes, false).unwrap();
    let error = std::iter::from_fn(|| source.next_request().transpose()).find_map(|read| read.err()).unwrap();
    assert!(error.to_string().starts_with("t.parquet:3: time goes back"), "{error}");
    let mut source = opened(&bytes, true).unwrap();
    while source.next_request().unwrap().is_some() {}
    assert_eq!(source.skipped_lines(), 1);
}

#[test]
fn what_is_no_parquet_trace_is_named() {
    let wrong = |bytes: &[u8]| opened(bytes, false).err().unwrap().to_string();
    assert!(wrong(b"PAR1").contains("damaged"));
    assert!(wrong(b"PAR1 and then something else").contains("damaged"));
    assert!(written(std::iter::empty()).starts_with(MAGIC));
    let mut empty = opened(&written(std::iter::empty()), false).unwrap();
    assert!(empty.next_request().unwrap_err().to_string().contains("no request"));
    let through_pipe = super::super::open_trace(
        Box::new(Cursor::new(written(std::iter::once(request(0))))),
        "t",
        &TraceOptions::default(),
    );
    assert!(through_pipe.err().unwrap().to_string().contains("needs random access"));
}

#[test]
fn damage_is_no_panic() {
    let bytes = written((0..500).map(request));
    let mut rng = Rng::new(1, 1);
    for _ in 0..2000 {
        let mut damaged = bytes.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(damaged.len() as u64) as usize;
            damaged[at] = rng.next_u64() as u8;
        }
        if rng.chance(0.2) {
            damaged.truncate(rng.below(damaged.len() as u64) as usize);
        }
        fuzz_parquet(&damaged);
    }
}
