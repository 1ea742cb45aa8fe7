//! Tests of the module `curve`.

use super::*;
use crate::metrics::steady::{Collected, Verdict, judge};
use palimpsest_workload::request::Locality;

#[test]
fn points_are_few_and_even_whatever_is_expected() {
    for (expected, requests) in [(1000, 1000), (100_000, 100_000), (0, 100), (0, 1_000_000), (100, 90_000)] {
        let mut curve = Curve::new(expected);
        for done in 0..=requests {
            if done == requests || done == curve.next() {
                let totals = FlashTotals { host_bytes: 7 + done, data_bytes: 9 + 3 * done, ..FlashTotals::default() };
                curve.add(done, totals);
            }
        }
        let Points { requests: at, host_bytes, data_bytes } = curve.points();
        assert!(at.len() < MOST_POINTS, "{expected}: {}", at.len());
        assert!(at.len() > 1000 || requests < 1000 * curve.interval, "{expected}: {}", at.len());
        assert_eq!((at[0], *at.last().unwrap()), (0, requests));
        assert_eq!(host_bytes, at);
        assert!(data_bytes.iter().zip(&at).all(|(data, at)| *data == 3 * at));
        let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (last, regular) = gaps.split_last().unwrap();
        assert!(regular.iter().all(|&gap| gap == curve.interval) && *last <= curve.interval, "{expected}");
    }
}

/// The points of a run without time are windows that judge write amplification; the last one is shorter, and stays out.
#[test]
fn points_judge_write_amplification() {
    let even: fn(u64) -> u64 = |done| 2 * done;
    let rising: fn(u64) -> u64 = |done| 2 * done + done * done / 100_000;
    for (programmed, verdict) in [(even, Verdict::Yes), (rising, Verdict::No)] {
        let mut curve = Curve::new(0);
        let requests = 100_010;
        for done in 0..=requests {
            if done == requests || done == curve.next() {
                let totals = FlashTotals { host_bytes: done, data_bytes: programmed(done), ..FlashTotals::default() };
                curve.add(done, totals);
            }
        }
        let windows = curve.samples();
        assert_eq!(windows.len() as u64, requests / curve.interval);
        let load = Collected {
            erases: 40,
            blocks: 10,
            programs: programmed(requests),
            copies: programmed(requests) - requests,
            written: requests,
            span: 100,
            locality: Locality::Uniform,
            used_up: None,
            requests,
        };
        let steady = judge(&windows, 0, load);
        assert_eq!((&steady.iops, &steady.mean), (&None, &None));
        assert_eq!(steady.wa.expect("the host wrote").verdict, verdict);
    }
}
