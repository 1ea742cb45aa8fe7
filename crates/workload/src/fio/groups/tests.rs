//! Tests of groups of files and of mixes.

use crate::fio::{FioSource, FioSpec};
use crate::request::{Request, RequestKind, Source};
use std::collections::BTreeMap;

const GROUPS: &str = "filegroups=mail/6/16k/lockstep2@4k:index/3/8k/whole:log/4/12k/random4@4k";
const MIX: &str = "mix=25/read/mail/whole/hot2@50:25/read/log/4k:50/write/index/whole";

fn spec(more: &str) -> FioSpec {
    FioSpec::parse(&format!("{GROUPS},{MIX},{more}")).unwrap()
}

fn layout(spec: &FioSpec, seed: u64) -> Vec<Request> {
    let mut source = FioSource::new(spec, 1 << 30, seed).unwrap();
    std::iter::from_fn(|| source.next_of_layout()).collect()
}

fn wrong(text: &str) -> String {
    FioSpec::parse(text).unwrap_err().to_string()
}

#[test]
fn files_take_strict_turns_random_turns_or_one_request() {
    let spec = spec("n=10");
    let writes = layout(&spec, 1);
    let owners: Vec<u32> = writes.iter().map(Request::owner).collect();
    let mail = [1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6, 5, 6];
    assert_eq!(owners[..24], mail, "two files at a time, a page of each in turn");
    assert_eq!(owners[24..27], [7, 8, 9], "whole files");
    assert_eq!(writes[24].extent.sectors, 16);
    let mut log = owners[27..].to_vec();
    assert!(log.windows(2).any(|pair| pair[0] >= pair[1]), "no turns: {log:?}");
    log.sort_unstable();
    assert_eq!(log, [10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13]);
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for write in &writes {
        let end = ends.entry(write.owner()).or_insert(write.extent.sector);
        assert_eq!(*end, write.extent.sector, "a file is written in order");
        *end = write.extent.end();
    }
    let all: u64 = writes.iter().map(|write| u64::from(write.extent.sectors)).sum();
    assert_eq!(all * 512, 6 * 16_384 + 3 * 8192 + 4 * 12_288);
    assert_eq!((layout(&spec, 1), layout(&spec, 2) == writes), (writes, false));
}

#[test]
fn one_key_replaces_all_layouts() {
    let writes = layout(&spec("n=10,filelayout=whole"), 1);
    assert_eq!(writes.iter().map(Request::owner).collect::<Vec<_>>(), (1..=13).collect::<Vec<_>>());
}

fn requests(more: &str, seed: u64) -> Vec<Request> {
    let mut source = FioSource::new(&spec(more), 1 << 30, seed).unwrap();
    std::iter::from_fn(|| source.next_request().unwrap()).collect()
}

#[test]
fn classes_have_their_shares_sizes_and_files() {
    let drawn = requests("n=20000,offset=1m", 1);
    assert_eq!((drawn.len(), requests("n=20000,offset=1m", 1) == drawn), (20_000, true));
    let mut counts = [0u32; 3];
    for request in &drawn {
        let (class, first, end, sectors) = match (request.kind, request.owner()) {
            (RequestKind::Read, 1..=6) => (0, 0, 192, 32),
            (RequestKind::Read, 10..=13) => (1, 240, 336, 8),
            (RequestKind::Write, 7..=9) => (2, 192, 240, 16),
            other => panic!("{other:?}"),
        };
        counts[class] += 1;
        let at = request.extent.sector - 2048;
        assert_eq!(request.extent.sectors, sectors);
        assert!(
            (first..end).contains(&at) && at.is_multiple_of(u64::from(sectors)) && request.extent.end() <= 2048 + end
        );
    }
    for (count, share) in counts.into_iter().zip([0.25, 0.25, 0.5]) {
        assert!((f64::from(count) / 20_000.0 - share).abs() < 0.01, "{counts:?}");
    }
}

#[test]
fn hot_files_stay_for_their_dwell() {
    let longest = |dwell: &str| {
        let reads: Vec<u32> = requests(dwell, 1).iter().map(Request::owner).filter(|&owner| owner <= 6).collect();
        let distinct = |window: &[u32]| window.iter().collect::<std::collections::BTreeSet<_>>().len();
        reads.windows(20).filter(|window| distinct(window) <= 2).count() as f64 / reads.len() as f64
    };
    assert!(longest("n=20000") > 0.5, "{}", longest("n=20000"));
    assert!(longest("n=20000,dwell=1") < 0.01, "{}", longest("n=20000,dwell=1"));
}

#[test]
fn canonical_form_reads_back() {
    let spec = spec("iodepth=4,n=10,dwell=7");
    assert!(spec.to_string().contains("/hot2@7"), "{spec}");
    assert_eq!(FioSpec::parse(&spec.to_string()).unwrap(), spec);
}

#[test]
fn mistakes_name_the_key_and_the_expectation() {
    let cases = [
        (GROUPS.into(), "--workload filegroups: expected mix too"),
        (MIX.into(), "--workload mix: expected filegroups too"),
        ("filelayout=whole".into(), "--workload filelayout: expected filegroups too"),
        ("dwell=3".into(), "--workload dwell: expected filegroups and mix too"),
        (format!("{GROUPS},{MIX},bs=4k"), "--workload bs: filegroups and mix are given"),
        (format!("{GROUPS},{MIX},rate_iops=10"), "expected open_loop beside a rate"),
        (format!("{GROUPS},mix=100/read/post/4k"), "no group is called \"post\"; expected one of mail, index, log"),
        (format!("{GROUPS},mix=100/read/index/16k"), "requests of 16KiB exceed the files of index, which have 8KiB"),
        (format!("{GROUPS},mix=99/read/mail/4k"), "--workload mix: expected PERCENT/read|write"),
        (format!("{GROUPS},mix=100/read/mail/4k/hot0@5"), "--workload mix: expected PERCENT/read|write"),
        (format!("{GROUPS},mix=100/trim/mail/4k"), "--workload mix: expected PERCENT/read|write"),
        ("filegroups=a/1/4k/whole:a/1/4k/whole".into(), "--workload filegroups: expected NAME/FILES/SIZE/LAYOUT"),
        ("filegroups=a/1/4k/lockstep0@4k".into(), "--workload filegroups: expected NAME/FILES/SIZE/LAYOUT"),
        ("filegroups=a/1/100/whole".into(), "--workload filegroups: expected NAME/FILES/SIZE/LAYOUT"),
    ];
    for (text, expected) in cases {
        let found = wrong(&text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    let beyond = FioSource::new(&spec("n=1"), 1 << 16, 1).err().map(|error| error.to_string());
    assert!(beyond.as_deref().is_some_and(|text| text.contains("--workload filegroups: the region of")), "{beyond:?}");
}
