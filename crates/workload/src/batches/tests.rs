//! Tests of the module `batches`.

use super::*;
use crate::trace::{TraceOptions, open_trace};
use palimpsest_flash::rng::Rng;
use std::io::Cursor;

/// All that a source reports after each request, to the end and once more.
fn said(mut source: Box<dyn Source>) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let next = source.next_request();
        let figures = (source.place(), source.line(), source.skipped_lines(), source.notes(), source.format());
        let ended = !matches!(next, Ok(Some(_)));
        said.push(format!("{next:?} {figures:?} {:?} {}", source.arrivals(), source.has_volumes()));
        // Batches know the names of later volumes too.
        let names = source.volume_names();
        said.push(format!("{:?}", &names[..names.len().min(1)]));
        if ended {
            // After an error no request is expected.
            said.extend(next.is_ok().then(|| format!("{:?}", source.next_request())));
            return said;
        }
    }
}

fn in_batches(source: Box<dyn Source>) -> Box<dyn Source> {
    Batched::of(source, |mut source| {
        let mut ended = false;
        Box::new(move || {
            assert!(!ended, "nothing is read behind the end");
            let batch = Batch::read(source.as_mut());
            ended = batch.is_last();
            Ok(batch)
        })
    })
}

#[test]
fn batches_say_what_the_source_says() {
    let mut rng = Rng::new(3, 0);
    for (lines, bad) in [(1, 0), (1023, 0), (1024, 0), (1025, 3), (5000, 40), (5000, 0), (2048, 1)] {
        for skip_bad in [false, true] {
            let mut text: Vec<String> = (0..lines).map(|at| format!("{at},r,{},4096", rng.below(999) * 512)).collect();
            for _ in 0..bad {
                let at = rng.below(lines) as usize;
                text[at] = "wrong".into();
            }
            let text = text.join("\n");
            let options = TraceOptions { skip_bad, format: Some("csv".into()), ..TraceOptions::default() };
            let open = || open_trace(Box::new(Cursor::new(text.clone().into_bytes())), "t", &options).unwrap();
            let (expected, found) = (said(open()), said(in_batches(open())));
            assert_eq!(expected, found);
        }
    }
}

#[test]
fn a_trace_without_requests_fails_alike() {
    let options = TraceOptions { skip_bad: true, format: Some("csv".into()), ..TraceOptions::default() };
    let open = || open_trace(Box::new(Cursor::new(b"wrong\nwrong\n".to_vec())), "t", &options).unwrap();
    assert_eq!(said(open()), said(in_batches(open())));
}
