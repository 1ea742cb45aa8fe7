//! Tests of the module `jobs`.

use super::*;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_workload::request::FoundDepth;

fn section(name: &str, copies: u32, depths: &[u32]) -> Section {
    let found = FoundDepth { longest: 9000, window: 5, share: 99_900, depths: depths.to_vec(), met: true };
    Section { name: name.into(), copies, depth: (!depths.is_empty()).then_some(found) }
}

/// Two requests of each of the copies in `jobs`: one each microsecond, with times from 1000 ns on.
fn record(recorder: &mut JobRecorder, jobs: std::ops::Range<u32>) {
    for job in jobs {
        for at in 1..=2 {
            recorder.of(job).submitted(RequestKind::Read, 8);
            recorder.of(job).completed(RequestKind::Read, 1000 + u64::from(job), 1_000 * at + 1000 + u64::from(job));
        }
    }
}

#[test]
fn sections_have_figures_of_all_their_copies() {
    let sections = [section("load", 3, &[]), section("probe", 1, &[])];
    let mut recorder = JobRecorder::new(&sections).unwrap();
    record(&mut recorder, 0..4);
    recorder.of(3).submitted(RequestKind::Flush, 0);
    recorder.of(3).completed(RequestKind::Flush, 5003, 8003);
    let [load, probe] = &recorder.figures(&sections, true)[..] else { panic!("two sections") };
    assert_eq!((load.job.as_str(), load.copies, load.requests.read, load.bytes_read), ("load", 3, 6, 6 * 4096));
    let read = |job: &JobFigures| job.latency_ns.as_ref().unwrap().read.clone().unwrap();
    assert_eq!((read(load).p50, read(load).max, read(probe).p50), (1001, 1002, 1003));
    // Six requests between 1000 and 3002 ns; three between 1000 and 8003 ns.
    assert!((load.throughput.iops.unwrap() - 6e9 / 2002.0).abs() < 1.0);
    assert!((probe.throughput.iops.unwrap() - 3e9 / 7003.0).abs() < 1.0);
    assert!((probe.throughput.bytes_per_s.unwrap() - 8192e9 / 7003.0).abs() < 1.0);
    let all = probe.latency_ns.as_ref().unwrap();
    assert!(all.write.is_none() && all.all.as_ref().unwrap().max == 5003 && probe.latency_target.is_none());
    let counted = &recorder.figures(&sections, false)[0];
    assert!(counted.latency_ns.is_none() && counted.throughput.iops.is_none() && counted.requests.read == 6);
    recorder.restart_all();
    assert_eq!(recorder.figures(&sections, true)[0].requests.read, 0);
}

/// Each copy counts from the end of its search on.
#[test]
fn copies_that_search_begin_anew_one_by_one() {
    let sections = [section("load", 2, &[]), section("probe", 2, &[4, 5])];
    let mut recorder = JobRecorder::new(&sections).unwrap();
    record(&mut recorder, 0..4);
    recorder.restart(2);
    let figures = recorder.figures(&sections, true);
    assert_eq!([figures[0].requests.read, figures[1].requests.read], [4, 2]);
    let found = figures[1].latency_target.as_ref().unwrap();
    assert_eq!((found.target_ns, found.percentile, &found.depths[..], found.met), (9000, 99.9, &[4, 5][..], true));
}

#[test]
fn one_section_without_a_search_has_the_figures_of_the_run() {
    assert!(JobRecorder::new(&[]).is_none() && JobRecorder::new(&[section("a", 5, &[])]).is_none());
    let mut recorder = JobRecorder::new(&[section("a", 1, &[3])]).unwrap();
    // Owners may be files.
    recorder.of(77).submitted(RequestKind::Write, 8);
    assert_eq!(recorder.figures(&[section("a", 1, &[3])], true)[0].bytes_written, 4096);
}
