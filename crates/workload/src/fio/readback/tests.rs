//! Tests of read-backs: counts of fio 3.33 (`--ioengine=psync --bs=4k --verify=crc32c`, `total_ios` of its JSON).

use super::super::JobsSource;
use super::super::spec::FioSpec;
use crate::namespaces::Room;
use crate::request::{RequestKind, Source};

/// Writes and reads of `text`.
fn counts(text: &str) -> (u64, u64) {
    let spec: FioSpec = format!("bs=4k,verify=crc32c,iodepth=1,{text}").parse().expect("a workload");
    let mut source = JobsSource::of_spec(&spec, Room { first: 0, bytes: 1 << 30 }, 1).expect("a source");
    let mut writes = 0;
    let mut reads = 0;
    while let Some(request) = source.next_request().expect("a request") {
        writes += u64::from(request.kind == RequestKind::Write);
        reads += u64::from(request.kind == RequestKind::Read);
    }
    (writes, reads)
}

#[test]
fn reads_count_for_number_ios_and_io_size_as_in_fio() {
    for (text, expected) in [
        ("rw=write,size=4m,loops=1,verify_backlog=8,n=300", (152, 152)),
        ("rw=randwrite,size=4m,loops=1,verify_backlog=8,n=300", (152, 152)),
        ("rw=write,size=4m,loops=1,n=300", (300, 300)),
        ("rw=write,size=4m,loops=1,verify_backlog=8", (1024, 1024)),
        ("rw=write,size=600k,io_size=1200k", (150, 150)),
        ("rw=randwrite,size=600k,io_size=1200k", (150, 150)),
        ("rw=write,size=600k,io_size=1200k,verify_backlog=8", (150, 150)),
        ("rw=write,size=600k,io_size=2000k", (300, 300)),
        ("rw=write,size=600k,io_size=2000k,verify_backlog=7", (300, 300)),
        ("rw=write,size=600k,io_size=2400k,n=300", (150, 150)),
        ("rw=write,size=600k,io_size=2400k,verify_backlog=8,n=400", (202, 202)),
        ("rw=write,size=1200k,io_size=600k", (150, 150)),
        ("rw=write,size=600k,loops=2", (300, 300)),
        ("rw=write,size=600k,loops=2,verify_backlog=8", (300, 300)),
        ("rw=write,size=1024k,loops=1,verify_backlog=30,verify_backlog_batch=3,n=100", (64, 64)),
        ("rw=write,size=1024k,loops=1,verify_backlog=8,verify_backlog_batch=20,n=100", (50, 50)),
        ("rw=randrw,size=1024k,io_size=2400k,verify_backlog=7,verify_backlog_batch=3,n=200", (70, 137)),
        ("rw=randrw,size=1200k,loops=1,rwmixread=10", (266, 300)),
        ("rw=rw,size=1200k,loops=1,rwmixread=70", (88, 300)),
    ] {
        assert_eq!(counts(text), expected, "{text}");
    }
}
