//! Tests of the verdicts on series whose truth is known: independent, correlated, drifting, with a run-in.

use super::*;
use palimpsest_flash::rng::Rng;

const WINDOW: Nanos = 1_000_000;
const COLLECTED: Collected = Collected {
    erases: 0,
    blocks: 100,
    programs: 1000,
    copies: 500,
    written: 1000,
    span: 100,
    locality: Locality::Uniform,
    used_up: None,
    requests: 100,
};

/// A series of windows whose requests a second are `rate(window)`, on a drive whose blocks were each erased `passes`
/// times.
fn judged(windows: usize, passes: u64, rate: impl FnMut(usize) -> f64) -> Steady {
    judged_of(windows, passes, Locality::Uniform, rate)
}

/// [`judged`], of a load that may favour addresses.
fn judged_of(windows: usize, passes: u64, locality: Locality, mut rate: impl FnMut(usize) -> f64) -> Steady {
    let counts: Vec<u64> = (0..windows).map(|at| rate(at).round().max(1.0) as u64).collect();
    let tails: Vec<Tail> = counts
        .iter()
        .map(|&count| {
            let mut tail = Tail::default();
            (0..count).for_each(|_| tail.record(1_000_000_000 / count));
            tail
        })
        .collect();
    let none = Tail::default();
    let sample = |(&requests, tail): (&u64, _)| Sample {
        requests,
        kinds: [Latencies { count: 0, sum: 0, tail: &none }, Latencies { count: requests, sum: 1_000_000_000, tail }],
        host_bytes: requests * 4096,
        data_bytes: requests * 8192,
    };
    let samples: Vec<Sample<'_>> = counts.iter().zip(&tails).map(sample).collect();
    let requests = counts.iter().sum();
    judge(&samples, WINDOW, Collected { erases: 100 * passes, locality, requests, ..COLLECTED })
}

/// A draw near a normal distribution of deviation 1.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// A process with this correlation of neighbours, about 1000 with deviation 100.
fn correlated(seed: u64, correlation: f64) -> impl FnMut(usize) -> f64 {
    let mut rng = Rng::new(seed, 7);
    let mut last = normal(&mut rng);
    move |_| {
        last = correlation * last + (1.0 - correlation * correlation).sqrt() * normal(&mut rng);
        1000.0 + 100.0 * last
    }
}

fn iops(steady: &Steady) -> &Finding {
    steady.iops.as_ref().expect("the run has time")
}

fn reason(finding: &Finding) -> &str {
    finding.reason.as_deref().unwrap_or_default()
}

/// Of series that call themselves steady, 90 to 99 % have the true value in their interval.
#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    for correlation in [0.0, 0.5, 0.9] {
        let (mut steady, mut right) = (0, 0);
        for seed in 0..400 {
            let found = judged(512, 4, correlated(seed, correlation)).iops.unwrap();
            let Some([low, high]) = found.interval.filter(|_| found.verdict == Verdict::Yes) else { continue };
            steady += 1;
            right += u32::from((low..=high).contains(&1e6));
        }
        println!("correlation {correlation}: {right} of {steady} intervals of 400 series");
        assert!(steady > 310, "{correlation}: {steady}");
        assert!((0.90..=0.99).contains(&(f64::from(right) / f64::from(steady))), "{correlation}: {right} of {steady}");
    }
}

/// The interval of a load that favours addresses holds a figure that changes with the logarithm of time ten times as
/// long.
#[test]
fn slow_changes_are_in_the_interval() {
    let (mut steady, mut right) = (0, 0);
    for seed in 0..100 {
        let mut noise = correlated(seed, 0.3);
        let mut rate = |at: usize| noise(at) / 2.0 + 500.0 * (1.0 - 0.02 * ((at + 20) as f64).ln());
        let found = judged_of(512, 60, Locality::Favoured, &mut rate).iops.unwrap();
        let long = (0..5120).map(rate).sum::<f64>() / 5120.0 * 1000.0;
        let Some([low, high]) = found.interval.filter(|_| found.verdict == Verdict::Yes) else { continue };
        steady += 1;
        right += u32::from((low..=high).contains(&long));
    }
    println!("slow changes: {right} of {steady} intervals");
    assert!(steady > 70 && right * 100 >= steady * 90, "{right} of {steady}");
}

#[test]
fn a_trend_is_not_steady() {
    for change in [-0.5, -0.2, 0.2, 0.5] {
        let mut noise = correlated(3, 0.0);
        let found = judged(512, 4, |at| noise(at) * (1.0 + change * at as f64 / 512.0)).iops.unwrap();
        assert_ne!(found.verdict, Verdict::Yes, "{change}: {found:?}");
    }
}

/// A drive whose write buffer fills for a part of the run.
#[test]
fn a_run_in_is_found_and_named() {
    let mut noise = correlated(5, 0.3);
    let mut filling =
        |share: f64| judged(500, 4, |at| noise(at) * if (at as f64) < 500.0 * share { 40.0 } else { 1.0 });
    let steady = filling(0.1);
    assert_eq!(steady.run_in.map(|run_in| run_in.ns / WINDOW), Some(50));
    assert_eq!(iops(&steady).verdict, Verdict::No);
    assert!(reason(iops(&steady)).contains("run-in"), "{steady:?}");
    assert!(steady.needs_requests.is_some());
    let never_over = filling(0.7);
    assert_eq!(iops(&never_over).verdict, Verdict::No);
    assert!(reason(iops(&never_over)).contains("half"), "{never_over:?}");
    // The measured times depend on the rate, but write amplification does not.
    let wa = never_over.wa.as_ref().expect("the host wrote");
    assert!(wa.verdict == Verdict::Unknown && reason(wa).starts_with("throughput still changes"), "{wa:?}");
    let nothing_else = filling(1.0);
    assert_eq!(iops(&nothing_else).verdict, Verdict::Yes, "only the passes can tell");
}

#[test]
fn too_little_is_unknown() {
    let short = judged(20, 4, correlated(1, 0.0));
    assert_eq!((iops(&short).verdict, iops(&short).interval), (Verdict::Unknown, None));
    let few_erases = judged(512, 0, correlated(1, 0.0));
    assert_eq!(iops(&few_erases).verdict, Verdict::Unknown);
    assert!(
        reason(iops(&few_erases)).contains("0 erases are 0.00 of each of 100 blocks; expected 3"),
        "{few_erases:?}"
    );
    assert!(iops(&few_erases).interval.is_some(), "the interval of what was seen");
    let none = Tail::default();
    let nothing = Latencies { count: 0, sum: 0, tail: &none };
    let samples = [Sample { requests: 1, kinds: [nothing; 2], host_bytes: 1, data_bytes: 1 }; 100];
    let fresh = Collected { erases: 400, written: 1 << 20, span: 4 << 20, ..COLLECTED };
    let found = judge(&samples, WINDOW, fresh);
    assert!(reason(iops(&found)).contains("1.00 MiB since the precondition, in a range of 4.00 MiB"), "{found:?}");
    assert_eq!(found.needs_requests, Some(1500));
    let skewed = judge(&samples, WINDOW, Collected { locality: Locality::Favoured, ..fresh });
    assert!(reason(iops(&skewed)).contains("expected 60, because the writes favour some addresses"), "{skewed:?}");
    let ordered = Collected { locality: Locality::Sequential, ..fresh };
    assert!(reason(iops(&judge(&samples, WINDOW, ordered))).contains("expected 60, because sequential writes"));
    let replaced = judge(&samples, WINDOW, Collected { copies: 0, ..ordered });
    assert!(!reason(iops(&replaced)).contains("erases"), "{replaced:?}");
    let even = judged(512, 3, correlated(1, 0.0));
    assert_eq!((iops(&even).verdict, even.needs_requests), (Verdict::Yes, None), "{even:?}");
    let slowest = judged(60, 4, |_| 100.0).p99.expect("there are writes");
    assert_eq!(slowest.verdict, Verdict::Yes, "{slowest:?}");
    let few = judged(60, 4, |_| 2.0).p99.expect("there are writes");
    assert!(few.verdict == Verdict::Unknown && reason(&few).contains("too few"), "{few:?}");
}

#[test]
fn read_only_runs_need_no_collection() {
    let mut tail = Tail::default();
    tail.record(100);
    let none = Tail::default();
    let reads = Latencies { count: 1, sum: 100, tail: &tail };
    let sample = Sample {
        requests: 1,
        kinds: [reads, Latencies { count: 0, sum: 0, tail: &none }],
        host_bytes: 0,
        data_bytes: 0,
    };
    let steady = judge(&[sample; 100], WINDOW, Collected { written: 0, span: 0, ..COLLECTED });
    assert_eq!((iops(&steady).verdict, steady.wa), (Verdict::Yes, None));
}

/// By hand: 3 batches of 40, then 17 of 10 with a little noise.
#[test]
fn the_run_in_of_mser_5() {
    let value = |at: usize| if at < 15 { 40.0 } else { 10.0 + (at % 2) as f64 };
    assert_eq!(mser5(&(0..100).map(value).collect::<Vec<f64>>()), Some(15));
    assert_eq!(mser5(&[7.0; 50]), Some(0));
    assert_eq!(mser5(&[]), None);
}

/// A median of 0 in most of the run, and of 100 us in the rest, is no known 0.
#[test]
fn a_median_of_zero_in_a_part_is_unknown() {
    let (mut zero, mut slow) = (Tail::default(), Tail::default());
    (0..100).for_each(|_| zero.record(0));
    (0..100).for_each(|_| slow.record(100_000));
    let none = Tail::default();
    let sample = |at: usize| {
        let (tail, sum) = if at % 5 == 4 { (&slow, 10_000_000) } else { (&zero, 0) };
        let kinds = [Latencies { count: 100, sum, tail }, Latencies { count: 0, sum: 0, tail: &none }];
        Sample { requests: 100, kinds, host_bytes: 0, data_bytes: 0 }
    };
    let collected = Collected { requests: 50_000, ..COLLECTED };
    let mixed: Vec<Sample<'_>> = (0..500).map(|at| sample(if at < 400 { 0 } else { 4 })).collect();
    assert_ne!(judge(&mixed, WINDOW, collected).p50.expect("there are reads").verdict, Verdict::Yes);
    let still: Vec<Sample<'_>> = (0..500).map(|_| sample(0)).collect();
    assert_eq!(judge(&still, WINDOW, collected).p50.expect("there are reads").verdict, Verdict::Yes);
}
