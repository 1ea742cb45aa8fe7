//! Tests of the module `ftrace`.

use super::*;
use crate::request::Source;
use crate::trace::{TraceOptions, open_trace};
use std::io::Cursor;

fn read(text: &str) -> (Vec<Request>, Vec<String>) {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut source: Box<dyn Source> = open_trace(input, "t", &TraceOptions::default()).unwrap();
    let requests = std::iter::from_fn(|| source.next_request().unwrap()).collect();
    (requests, source.notes())
}

const ISSUES: [(&str, &str); 4] = [
    (
        "ftrace",
        "# tracer: nop\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
         \x20   rs:main Q:Reg-12 [003] d..1. 12.000001: block_bio_queue: 259,0 WS 2048 + 8 [rs:main Q:Reg]\n\
         \x20   rs:main Q:Reg-12 [003] d..1. 12.000002: block_rq_issue: 259,0 WS 4096 () 2048 + 8 [rs:main Q:Reg]\n\
         \x20   kworker/3:1-99 [003] d..1. 12.000004: block_rq_issue: 259,0 FF 0 () 18446744073709551615 + 0 [k]\n\
         \x20   fio-13   [001] ..... 12.000005: sched_switch: prev_comm=fio prev_pid=13\n\
         \x20   fio-13   [001] ..... 12.000006: block_rq_issue: 8,16 RA 512 () 7 + 1 none,0,0 [fio]\n",
    ),
    (
        "trace-cmd",
        "cpus=8\n fio-12 [003] 12.000002: block_rq_issue:       259,0 WS 4096 () 2048 + 8 [fio]\n\
         fio-12 [003] 12.000004: block_rq_issue:       259,0 FF 0 () 0 + 0 [fio]\n\
         fio-12 [003] 12.000006: block_rq_issue:       8,16 RM 512 () 7 + 1 [fio]\n",
    ),
    (
        "perf",
        "fio 12 [003] 12.000002: block:block_rq_issue: 259,0 WFS 4096 () 2048 + 8 [fio]\n\
         fio 12 [003] 12.000003: block:block_rq_issue: 259,0 N 36 (12 00 00) 0 + 0 [fio]\n\
         fio 12 [003] 12.000004: block:block_rq_issue: 259,0 FF 0 () 0 + 0 [fio]\n\
         fio 12 [003] 12.000006: block:block_rq_issue: 8,16 R 512 () 7 + 1 [fio]\n",
    ),
    (
        "completions",
        "swapper 0 [006] 12.000002: block:block_rq_complete: 259,0 WS () 2048 + 8 [0]\n\
         swapper 0 [006] 12.000004: block:block_rq_complete: 259,0 FF () 18446744073709551615 + 0 [0]\n\
         swapper 0 [006] 12.000006: block:block_rq_complete: 8,16 RM () 7 + 1 [0]\n",
    ),
];

#[test]
fn four_tools_print_the_same_requests() {
    for (tool, text) in ISSUES {
        let (requests, notes) = read(text);
        let (one, other) = ((259 << 20) as u32, (8 << 20 | 16) as u32);
        let kinds: Vec<_> = requests.iter().map(|each| (each.arrival, each.kind, each.owner())).collect();
        let expected =
            [(0, RequestKind::Write, one), (2_000, RequestKind::Flush, one), (4_000, RequestKind::Read, other)];
        assert_eq!(kinds, expected, "{tool}");
        assert_eq!((requests[0].extent.sector, requests[0].extent.sectors), (2048, 8), "{tool}");
        assert_eq!(requests[0].directives.fua, tool == "perf", "{tool}");
        let played = if tool == "completions" { "block_rq_complete" } else { "block_rq_issue" };
        assert!(notes[0].contains(played), "{tool}: {notes:?}");
    }
}

#[test]
fn wrong_lines_name_the_column() {
    let mut format = Ftrace::default();
    for (line, said) in [
        ("CPU:3 [LOST 120 EVENTS]", "the kernel lost events here"),
        ("fio 12 [003] 12.1: block_rq_issue: 259 W 512 () 7 + 1 [fio]", "the line ends before column minor device"),
        ("fio 12 [003] 12.1: block_rq_issue: 8,0 Q 512 () 7 + 1 [fio]", "expected letters of blktrace"),
        ("fio 12 [003] 12.1: block_rq_issue: 8,0 W 512 () 7", "the line ends before column sector + sectors"),
        ("fio 12 [003] 12.1: block_rq_issue: 8,0 W 512 () x + 1 [fio]", "column sector: expected a whole number"),
        ("no event", "expected `seconds: event:`"),
    ] {
        let fault = format.parse(line.as_bytes()).unwrap_err().what;
        assert!(fault.contains(said), "{line}: {fault}");
    }
}
