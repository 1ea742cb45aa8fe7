//! Tests of the module `bpftrace`.

use super::*;
use crate::request::Source;
use crate::trace::{TraceOptions, open_trace};
use std::io::Cursor;

#[test]
fn lines_of_the_one_liner_are_requests() {
    let text = "Attaching 1 probe...\n100 271581184 WS 2048 8\n150 271581184 FF 0 0\n300 271581184 RA 7 1\n\n";
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut source: Box<dyn Source> = open_trace(input, "t", &TraceOptions::default()).unwrap();
    let requests: Vec<_> = std::iter::from_fn(|| source.next_request().unwrap()).collect();
    let found: Vec<_> = requests.iter().map(|each| (each.arrival, each.kind, each.owner())).collect();
    use RequestKind::{Flush, Read, Write};
    assert_eq!(found, [(0, Write, 259 << 20), (50, Flush, 259 << 20), (200, Read, 259 << 20)]);
    for (line, said) in [
        ("100 8 Q 2048 8", "letters of blktrace"),
        ("Lost 33 events", "the kernel lost events here"),
        ("100 8 W 2048", "before column nr_sector"),
        ("100 8 W 2048 8 fio", "expected 5 columns"),
    ] {
        let fault = Bpftrace::default().parse(line.as_bytes()).unwrap_err().what;
        assert!(fault.contains(said), "{line}: {fault}");
    }
}

/// A former bug: a loss before the first request passed as a part of the header.
#[test]
fn a_loss_is_no_header() {
    assert!(
        Bpftrace::default().is_header(b"Attaching 1 probe...") && !Bpftrace::default().is_header(b"Lost 33 events")
    );
}
