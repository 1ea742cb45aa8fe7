//! Tests of the module `pace`: searches against closed forms.

use super::*;

/// Drives whose response times depend on the depth alone: the search must find the highest that meets the target.
fn found(limit: u32, target: Target, latency: impl Fn(u32, u64) -> Nanos) -> (Vec<u32>, Search) {
    let (mut search, mut now, mut served) = (Search::new(target, limit, 7), 7, 0);
    let mut tried = Vec::new();
    for _ in 0..400_000 {
        let depth = search.depth_at(now, 0);
        if search.ended {
            break;
        }
        if tried.last() != Some(&depth) {
            tried.push(depth);
        }
        let time = latency(depth, served);
        now += time / u64::from(depth);
        served += 1;
        search.completed(time);
    }
    (tried, search)
}

fn target(time: Nanos, share: u64) -> Target {
    Target { time, window: 1_000_000, share, continues: false }
}

#[test]
fn every_depth_is_found() {
    for share in [ALL, 99_000, 50_000] {
        for limit in 1..70 {
            for highest in 1..=limit {
                let slower = |depth: u32, _| u64::from(depth) * 1000;
                let (tried, search) = found(limit, target(u64::from(highest) * 1000, share), slower);
                assert!(search.ended && search.met && search.depth == highest, "{highest} of {limit}: {tried:?}");
                // Doubled until one misses, then bisected.
                assert!(tried.len() <= 2 * limit.ilog2() as usize + 3, "{tried:?}");
            }
        }
    }
}

#[test]
fn depths_are_tried_in_the_order_of_fio() {
    let slower = |depth: u32, _| u64::from(depth) * 1000;
    assert_eq!(found(64, target(23_000, ALL), slower).0, [1, 2, 4, 8, 16, 32, 24, 20, 22, 23]);
    assert_eq!(found(128, target(7_000, ALL), slower).0, [1, 2, 4, 8, 6, 7]);
    assert_eq!(found(1, target(7_000, ALL), slower).0, [1]);
}

#[test]
fn a_share_of_the_requests_may_be_slow() {
    // Every tenth request is slow from a depth of 9 on, every fifth from 17 on.
    let tail = |depth: u32, at: u64| match depth {
        17.. if at.is_multiple_of(5) => 9000,
        9.. if at.is_multiple_of(10) => 9000,
        _ => 1000,
    };
    for (share, depth) in [(ALL, 8), (95_000, 8), (89_000, 16), (85_000, 16), (79_000, 64)] {
        let (tried, search) = found(64, target(1000, share), tail);
        assert_eq!((search.depth, search.met, search.ended), (depth, true, true), "{share}: {tried:?}");
    }
}

#[test]
fn a_drive_that_is_too_slow_ends_the_job_or_goes_on() {
    let (tried, search) = found(64, target(1000, ALL), |_, _| 1001);
    assert_eq!((tried.as_slice(), search.met, search.ended), (&[1][..], false, true));
    assert!(search.failure().unwrap().contains("one request in flight misses"));
    // With a share the window goes on, as in fio, until enough requests were fast.
    let (tried, search) = found(64, target(1000, 50_000), |_, at| if at < 2000 { 1001 } else { 999 });
    assert_eq!((tried.last(), search.met, search.ended), (Some(&64), true, true));
    let (_, search) = found(64, target(1000, 50_000), |_, _| 1001);
    assert_eq!((search.depth, search.met, search.ended), (1, false, false));
}

#[test]
fn a_job_that_continues_tries_the_next_depth() {
    let continues = Target { continues: true, ..target(5_000, ALL) };
    let (tried, search) = found(64, continues, |depth, _| u64::from(depth) * 1000);
    assert_eq!(tried[..12], [1, 2, 4, 8, 6, 5, 6, 5, 6, 5, 6, 5]);
    assert!(!search.ended && search.failure().is_none());
    // A drive that becomes faster is followed.
    let faster = |depth: u32, at: u64| u64::from(depth) * if at < 40_000 { 1000 } else { 500 };
    assert_eq!(found(64, continues, faster).0.iter().max(), Some(&11));
}

#[test]
fn requests_in_flight_at_a_miss_count_once() {
    let mut search = Search::new(target(1000, ALL), 16, 0);
    let mut now = 0;
    while search.depth_at(now, 0) < 8 {
        search.completed(1000);
        now += 1_000_000;
    }
    (0..8).for_each(|_| search.completed(5000));
    assert_eq!((search.depth_at(now, 7), search.depth_at(now + 9, 0)), (0, 6));
    assert!(!search.ended && !search.take_restarted());
}

#[test]
fn figures_begin_anew_with_the_last_window() {
    let mut search = Search::new(target(1000, 90_000), 1, 0);
    search.completed(10);
    assert_eq!((search.depth_at(1_000_000, 1), search.take_restarted()), (0, false));
    assert_eq!((search.depth_at(1_000_010, 0), search.take_restarted(), search.take_restarted()), (1, true, false));
    search.completed(10);
    assert_eq!((search.depth_at(2_000_009, 1), search.depth_at(2_000_010, 1)), (1, 0));
    assert!(search.ended && search.met);
}

#[test]
fn a_window_without_completions_misses() {
    let mut search = Search::new(target(1000, 0), 8, 0);
    search.completed(10);
    assert_eq!((search.depth_at(1_000_000, 0), search.depth_at(2_000_000, 1), search.depth), (2, 0, 1));
}

#[test]
fn least_rates_are_kept_from_two_seconds_on() {
    const MILLISECOND: Nanos = 1_000_000;
    let floor = |rate| spec::Floor { rates: [Some(rate), None, None], cycle: 100 * MILLISECOND };
    // The end of a job that reads a block each millisecond, and half as many from 3 s on.
    let end = |rate| {
        let mut floor = Floor::new(floor(rate), 0);
        let ends = (0..5000).find(|at| {
            if at < &3000 || at % 2 == 0 {
                floor.completed(RequestKind::Read, 4096);
            }
            floor.is_missed(at * MILLISECOND)
        });
        (ends, floor.missed)
    };
    let (ends, why) = end(Rate::Requests(999_000));
    assert_eq!(
        (ends, why.as_deref()),
        (Some(3100), Some("its reads were 500 requests a second, and at least 999 must be"))
    );
    assert_eq!(end(Rate::Requests(500_000)).0, None);
    assert_eq!(end(Rate::Bytes(4096 * 999)).0, Some(3100));
    assert_eq!(end(Rate::Requests(1_001_000)).0, Some(2100));
    // Directions without requests are not checked.
    assert!(!Floor::new(floor(Rate::Requests(1000)), 0).is_missed(9000 * MILLISECOND));
}
