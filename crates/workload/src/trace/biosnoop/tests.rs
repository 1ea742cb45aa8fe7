//! Tests of the module `biosnoop`.

use super::*;
use crate::request::Source;
use crate::trace::{TraceOptions, open_trace};
use crate::volume_names::hash;
use std::io::Cursor;

fn read(text: &str) -> Vec<Request> {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut source: Box<dyn Source> = open_trace(input, "t", &TraceOptions::default()).unwrap();
    std::iter::from_fn(|| source.next_request().unwrap()).collect()
}

#[test]
fn requests_arrive_before_they_are_printed() {
    let requests = read(
        "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n\
         0.000004    supervise      1950    xvda1   W 13092560   4096      0.74\n\
         0.000178    rs:main Q:Reg  1950    xvda1   W 13092432   4096      0.61\n\
         1.022346    supervise      1950    xvdb    R 13115272   5000      0.98\n\
         9.000000    slow           1       xvdb    R 8          512    8500.00\n",
    );
    let found: Vec<_> = requests.iter().map(|each| (each.arrival, each.extent.sectors, each.owner())).collect();
    let (one, other) = (hash(b"xvda1"), hash(b"xvdb"));
    // The slow request is printed last, and arrived before the third.
    let expected = [(0, 8, one), (304_000, 8, one), (500_736_000, 1, other), (1_022_102_000, 10, other)];
    assert_eq!(found, expected);
}

#[test]
fn libbpf_tools_have_letters_and_a_queue() {
    let requests = read(
        "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)\n\
         0.000000    jbd2/nvme0n1-8 615     nvme0n1 FWFS 2048       4096    0.010   0.100\n\
         0.000200    kworker/0:1H   99      nvme0n1 FF   0          0       0.010   0.100\n\
         0.000300    fio            99      nvme0n1 RA   4096       131072  0.010   0.100\n\
         0.000400    fio            99      nvme0n1 DS   8192       4096    0.010   0.100\n",
    );
    let kinds: Vec<_> = requests.iter().map(|each| (each.kind, each.directives.fua)).collect();
    use RequestKind::{Flush, Read, Trim, Write};
    assert_eq!(kinds, [(Write, true), (Flush, false), (Read, false), (Trim, false)]);
}

#[test]
fn wrong_lines_name_the_column() {
    for (line, said) in [
        ("0.1 bash 4179 nvme0n1 10", "expected the columns DISK T SECTOR"),
        ("Possibly lost 12 samples", "the kernel lost events here"),
        ("0.1 bash x nvme0n1 W 1 512 0.1", "column PID"),
        ("0.1 bash 1 nvme0n1 Q 1 512 0.1", "letters of blktrace"),
        ("t bash 1 nvme0n1 W 1 512 0.1", "column TIME(s)"),
        ("0.1 bash 1 nvme0n1 W 1 0x 0.1", "column BYTES"),
        ("99999999999999999999 bash 1 nvme0n1 W 1 512 0.1", "column TIME(s)"),
    ] {
        let fault = Biosnoop::default().parse(line.as_bytes()).unwrap_err().what;
        assert!(fault.contains(said), "{line}: {fault}");
    }
}
