//! Tests of the description: small workloads by hand, sampling against exact counts, the picture against the requests.

use super::*;
use palimpsest_flash::error::Result;
use palimpsest_flash::rng::Rng;
use palimpsest_workload::request::{Command, Extent};

struct Nothing(Arrivals);

impl Source for Nothing {
    fn next_request(&mut self) -> Result<Option<Request>> {
        Ok(None)
    }
    fn place(&self) -> String {
        String::new()
    }
    fn arrivals(&self) -> Arrivals {
        self.0
    }
}

fn described(requests: &[(Nanos, RequestKind, u64, u32)], arrivals: Arrivals) -> (Description, Map) {
    let mut profile = Profile::new(&Nothing(arrivals));
    for &(arrival, kind, sector, sectors) in requests {
        profile.add(&Request::new(arrival, Command::new(kind, Extent { sector, sectors })));
    }
    (profile.description(), profile.map())
}

#[test]
fn by_hand() {
    use RequestKind::{Flush, Read, Trim, Write};
    let requests = [
        (0, Write, 0, 8),
        (1_000, Write, 8, 8),
        (1_000, Write, 0, 128),
        (3_000_000, Read, 128, 4),
        (3_000_500, Trim, 0, 4096),
        (3_000_500, Flush, 0, 0),
        (9_000_000, Write, 0, 8),
    ];
    let (found, map) = described(&requests, Arrivals::Open);
    assert_eq!((found.requests.all, found.requests.read, found.requests.write), (7, 1, 4));
    assert_eq!((found.bytes.write, found.read_ratio), (152 * 512, Some(0.2)));
    let sizes: Vec<_> = found.sizes.iter().map(|class| (class.upto_bytes, class.read, class.write)).collect();
    assert_eq!(sizes, [(2048, 1, 0), (4096, 0, 3), (65_536, 0, 1)]);
    assert_eq!((found.span_bytes, found.end_bytes, found.duration_ns), (132 * 512, 132 * 512, 9_000_000));
    // The second write follows the first, and the read the third.
    assert_eq!((found.contiguous_ratio.read, found.contiguous_ratio.write), (Some(1.0), Some(0.25)));
    assert_eq!(found.aligned_ratio, Some(0.8));
    let locality = &found.locality;
    assert_eq!((locality.footprint_bytes, locality.write_footprint_bytes), (17 * 4096, 16 * 4096));
    // 19 pages written, 16 of them different; the hot fifth, 4 pages, has 3 + 2 + 1 + 1.
    assert_eq!((locality.writes_per_page, locality.overwrite_ratio), (Some(19.0 / 16.0), Some(3.0 / 19.0)));
    assert_eq!(locality.hot_write_ratio, Some(7.0 / 19.0));
    assert_eq!((locality.write_curve.len(), locality.write_curve[50]), (51, 1.0));
    assert_eq!((found.large_write_ratio, found.large_write_bytes_ratio), (Some(0.25), Some(128.0 / 152.0)));
    let gaps = found.interarrival_ns.unwrap();
    assert_eq!((gaps.mean, gaps.p50, gaps.max), (1_500_000.0, 500, 5_999_500));
    let at_once = found.arrivals_per_ms.unwrap();
    assert_eq!((at_once.max, at_once.p50), (3, 3));
    let total: u64 = map.write.iter().flatten().sum();
    assert_eq!((total, map.is_time), (4, true));
    assert!(map.column_width * map.write[0].len() as u64 > 9_000_000);
}

#[test]
fn closed_loops_have_no_times() {
    let requests: Vec<_> = (0..1000).map(|at| (0, RequestKind::Read, at * 8, 8)).collect();
    let (found, map) = described(&requests, Arrivals::Closed { depth: 4 });
    assert_eq!((found.arrivals, found.depth, found.duration_ns), ("closed", Some(4), 0));
    assert!(found.interarrival_ns.is_none() && found.arrivals_per_ms.is_none());
    assert_eq!(found.sequential_ratio.read, Some(0.999));
    assert!(!map.is_time);
    assert_eq!(map.read.iter().flatten().sum::<u64>(), 1000);
    let (empty, map) = described(&[], Arrivals::Open);
    assert!(empty.read_ratio.is_none() && empty.locality.hot_write_ratio.is_none() && map.read.is_empty());
}

/// A sample of about one page in eight estimates the figures of all pages. The standard error of a footprint of n
/// sampled pages is about sqrt(7 n) / n, and four standard errors are allowed.
#[test]
fn sampled_figures_are_near_exact_ones() {
    let (mut exact, mut sampled) = (PageCounters::up_to(1 << 20, true), PageCounters::up_to(20_000, true));
    let mut rng = Rng::new(1, 1);
    for at in 0..300_000 {
        // Three in four of the writes go to a fifth of the pages.
        let page = if rng.chance(0.75) { rng.below(20_000) } else { 20_000 + rng.below(80_000) };
        for pages in [&mut exact, &mut sampled] {
            pages.add(at * 10_000, page, page + 1, 1);
        }
    }
    let sets = [&mut exact, &mut sampled].map(|pages| pages.working_sets()[2].figures());
    let (exact, sampled) = (exact.locality(), sampled.locality());
    assert_eq!(exact.sampled_share, 1.0);
    assert!(sampled.sampled_share <= 0.25);
    let n = sampled.write_footprint_bytes as f64 * sampled.sampled_share / 4096.0;
    let slack = 4.0 * (7.0 / n).sqrt();
    for (exact, sampled) in [
        (exact.write_footprint_bytes as f64, sampled.write_footprint_bytes as f64),
        (exact.writes_per_page.unwrap(), sampled.writes_per_page.unwrap()),
        (exact.hot_write_ratio.unwrap(), sampled.hot_write_ratio.unwrap()),
    ] {
        assert!((sampled / exact - 1.0).abs() < slack, "{sampled} instead of {exact}, slack {slack}");
    }
    // A window of a second has about 60,000 pages.
    for (exact, sampled) in sets[0].iter().zip(&sets[1]).filter(|(exact, _)| exact.window_ns == Some(1_000_000_000)) {
        assert_eq!((exact.bytes.len(), sampled.bytes.len()), (3, 3));
        assert!((sampled.mean_bytes / exact.mean_bytes - 1.0).abs() < slack, "{sampled:?} instead of {exact:?}");
    }
}
