//! Fidelity of the trace readers: the real traces beside the repository against the table in their README.
//!
//! Each file must be recognised as the right format, with the requests, write ratio and mean sizes of the table. A row
//! with other counts has the reason. Rows without a file are skipped, with a line on standard error that names the
//! missing file; cargo does not hide that line.

use std::fs::File;
use std::io::{ErrorKind, Write, stderr};
use std::path::Path;

use palimpsest_lab::host::request::{Request, RequestKind, SECTOR_BYTES, Source};
use palimpsest_lab::host::trace::{TraceOptions, open_trace};
use palimpsest_lab::metrics::profile::Profile;

/// A row of the README's table.
struct Row {
    file: &'static str,
    requests: u64,
    write_ratio: f64,
    read_kib: f64,
    write_kib: f64,
    /// Requests counted beyond the table, and why.
    more: (u64, &'static str),
}

const fn row(file: &'static str, requests: u64, write_ratio: f64, read_kib: f64, write_kib: f64) -> Row {
    Row { file, requests, write_ratio, read_kib, write_kib, more: (0, "") }
}

const fn with(row: Row, more: u64, why: &'static str) -> Row {
    Row { more: (more, why), ..row }
}

const READ_AHEAD: &str = "read-ahead requests (RA), which the table omits, are reads";

const ROWS: [Row; 19] = [
    with(row("blkreplay_linux-webserver-2.load", 268_663, 0.447, 23.5, 9.1), 344, READ_AHEAD),
    with(row("blkreplay_linux-mysql.load", 80_793, 0.911, 11.3, 14.6), 1, READ_AHEAD),
    row("msps_DevToolsRelease.ssdsim", 127_043, 0.110, 55.6, 53.4),
    row("hadoop_eternity10_sdb.D.blkparse", 137_358, 0.006, 290.0, 30.4),
    row("msr_web_3.csv", 31_380, 0.680, 74.9, 20.8),
    row("msr_wdev_1.csv", 1_055, 1.000, 0.0, 5.1),
    row("msr_wdev_3.csv", 682, 0.984, 63.3, 4.4),
    row("msr_prxy_0_first20k.csv", 20_000, 0.983, 17.7, 2.3),
    row("msr_prxy_0_reads_13h.disksim", 29_360, 0.000, 9.7, 0.0),
    row("msr_hm_1000.csv", 1_000, 0.492, 11.7, 7.1),
    row("tencent_cbs_50k.csv", 50_000, 0.510, 25.8, 33.4),
    row("umass_Financial1_first10k.spc", 10_000, 0.592, 6.1, 4.9),
    row("umass_fin1_first50k.dchoices", 50_000, 0.416, 7.5, 6.4),
    row("mqsim_wsrch-small.trace", 24_783, 0.000, 15.1, 8.0),
    row("mqsim_tpcc-small.trace", 6_999, 0.374, 8.1, 8.7),
    with(
        row("fiu_cheetah_10k.blkparse", 9_997, 0.110, 4.0, 4.0),
        1,
        "the first record is on the third line after tar padding, which the table takes for noise",
    ),
    row("fiu_home1_1000.blkparse", 1_000, 1.000, 0.0, 4.0),
    row("fiu_home2_1000.blkparse", 1_000, 0.912, 18.4, 4.0),
    row("disksim_iozone_100k.trace", 100_000, 1.000, 0.0, 359.9),
];

/// The trace called `file`. `eprintln!` would print for failing tests only.
fn sample(file: &str) -> Option<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies two folders deep");
    let path = root.parent().unwrap_or(root).join(format!("shared/traces/{file}.zst"));
    match File::open(&path) {
        Ok(input) => Some(input),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let line = format!("skipped: there is no {}; expected that trace for this test\n", path.display());
            stderr().write_all(line.as_bytes()).expect("standard error takes a line");
            None
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

#[derive(Default)]
struct Totals {
    requests: [u64; 2],
    sectors: [u64; 2],
    latest: u64,
}

impl Totals {
    fn add(&mut self, request: Request) {
        let is_write = usize::from(request.kind == RequestKind::Write);
        assert!(matches!(request.kind, RequestKind::Read | RequestKind::Write));
        assert!(request.arrival >= self.latest && request.extent.sectors > 0);
        self.requests[is_write] += 1;
        self.sectors[is_write] += u64::from(request.extent.sectors);
        self.latest = request.arrival;
    }

    fn mean_kib(&self, is_write: usize) -> f64 {
        (self.sectors[is_write] * SECTOR_BYTES) as f64 / 1024.0 / self.requests[is_write].max(1) as f64
    }
}

fn read(input: File, file: &str) -> (Totals, u64) {
    let mut source: Box<dyn Source> = open_trace(Box::new(input), file, &TraceOptions::default()).unwrap();
    let mut totals = Totals::default();
    while let Some(request) = source.next_request().unwrap() {
        totals.add(request);
    }
    (totals, source.skipped_lines())
}

#[test]
fn real_traces_have_the_requests_that_their_table_states() {
    for row in &ROWS {
        let Some(input) = sample(row.file) else { continue };
        let (totals, skipped) = read(input, row.file);
        let [reads, writes] = totals.requests;
        let (more, why) = row.more;
        assert_eq!((reads + writes, skipped), (row.requests + more, 0), "{} {why}", row.file);
        let ratio = writes as f64 / (reads + writes) as f64;
        // The table has three digits; further requests change the ratio by their share.
        let slack = 0.0005 + more as f64 / row.requests as f64;
        assert!((ratio - row.write_ratio).abs() <= slack, "{}: write ratio {ratio} {why}", row.file);
        for (is_write, mean) in [(0, row.read_kib), (1, row.write_kib)] {
            let found = totals.mean_kib(is_write);
            let slack = 0.051 + mean * more as f64 / row.requests as f64 * 4.0;
            assert!((found - mean).abs() <= slack, "{}: mean size {found} KiB, expected {mean}", row.file);
        }
    }
}

/// Locality in the README's table: GiB touched, GiB written, GiB up to the highest byte, pages written over distinct
/// pages written, hours. Without rows whose counts differ here (see above).
const LOCALITY: [(&str, [f64; 5]); 8] = [
    ("msps_DevToolsRelease.ssdsim", [4.853, 0.702, 153.2, 1.01, 8.333]),
    ("hadoop_eternity10_sdb.D.blkparse", [37.800, 0.021, 397.5, 1.05, 0.047]),
    ("msr_web_3.csv", [0.590, 0.420, 169.6, 1.21, 165.105]),
    ("msr_wdev_3.csv", [0.001, 0.001, 33.9, 10.53, 165.823]),
    ("msr_prxy_0_first20k.csv", [0.011, 0.006, 20.5, 15.05, 0.261]),
    // The table has one second: the file begins at the later of two seconds, and earlier requests arrive together with
    // that one.
    ("tencent_cbs_50k.csv", [1.277, 0.781, 1554.4, 1.06, 0.0]),
    ("umass_Financial1_first10k.spc", [0.027, 0.014, 0.5, 3.43, 0.072]),
    ("disksim_iozone_100k.trace", [1.035, 1.035, 16.1, 33.16, 0.260]),
];

/// The Hadoop trace touches more pages than have counters, so that the footprint is an estimate from one page of eight:
/// the standard error of n pages is then sqrt(7 n), and four of them are allowed.
#[test]
fn real_traces_have_the_locality_that_their_table_states() {
    for (file, expected) in LOCALITY {
        let Some(input) = sample(file) else { continue };
        let mut source = open_trace(Box::new(input), file, &TraceOptions::default()).unwrap();
        let mut profile = Profile::new(source.as_ref());
        while let Some(request) = source.next_request().unwrap() {
            profile.add(&request);
        }
        let found = profile.description();
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        let figures = [
            gib(found.locality.footprint_bytes),
            gib(found.locality.write_footprint_bytes),
            gib(found.end_bytes),
            found.locality.writes_per_page.unwrap_or(0.0),
            found.duration_ns as f64 / 3600e9,
        ];
        println!("{file}: {figures:?}, sampled {}", found.locality.sampled_share);
        let is_exact = found.locality.sampled_share == 1.0;
        for (at, (figure, expected)) in figures.into_iter().zip(expected).enumerate() {
            let digits = [0.001, 0.001, 0.1, 0.01, 0.001][at];
            let pages = figures[at.min(1)] * (1u64 << 30) as f64 / 4096.0;
            let is_estimate = !is_exact && [0, 1, 3].contains(&at);
            let slack = 0.51 * digits + if is_estimate { 4.0 * (7.0 / pages).sqrt() * expected } else { 0.0 };
            assert!((figure - expected).abs() <= slack, "{file}, figure {at}: {figure}, expected {expected}");
        }
    }
}
