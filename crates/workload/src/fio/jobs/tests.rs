//! Tests of job files: meaning, phases, and errors that name file, line and key.

use super::*;
use std::collections::BTreeMap;

use crate::fuzzing::{JOB_FILES, fuzz_job_file};
use crate::request::{Arrivals, Command, Due, Jobs, Request, RequestKind, Source};
use palimpsest_flash::units::{GIB, Nanos};

fn requests(text: &str) -> Vec<Request> {
    let mut source = JobFile::parse(text, "j.fio").unwrap().source(GIB, 1).unwrap();
    let expected = source.expected_requests();
    let mut requests = Vec::new();
    while let Some(request) = source.next_request().unwrap() {
        requests.push(request);
    }
    assert!(expected.is_none_or(|expected| expected == requests.len() as u64));
    requests
}

fn wrong(text: &str) -> String {
    let read = JobFile::parse(text, "j.fio").and_then(|file| file.source(GIB, 1).map(drop));
    read.unwrap_err().to_string()
}

#[test]
fn one_job_is_its_specification() {
    let text =
        "; a comment\n[global]\nioengine=libaio\ndirect=1\nbs=8k\n\n[job]\nrw=randwrite\nsize=1m\niodepth=4\nbs=4k\n";
    let file = JobFile::parse(text, "j.fio").unwrap();
    assert_eq!(file.source(GIB, 1).unwrap().arrivals(), Arrivals::Closed { depth: 4 });
    let spec = FioSpec::parse("rw=randwrite,size=1m,iodepth=4,bs=4k,loops=1").unwrap();
    let mut source = FioSource::new(&spec, GIB, 1).unwrap();
    let alone: Vec<Request> = std::iter::from_fn(|| source.next_request().unwrap()).collect();
    assert_eq!((requests(text), alone.len()), (alone, 256));
}

/// Open loops, and without a clock jobs with a rate.
#[test]
fn requests_with_times_merge_by_them() {
    let text = "[a]\nrate_iops=1000\nnumber_ios=3\nrw=read\n[b]\nrate_iops=2000\nnumber_ios=4\nrw=write\n";
    let open = text.replace("rate_iops", "open_loop\nrate_iops");
    for text in [text, &open] {
        let order: Vec<(Nanos, u32)> = requests(text).iter().map(|r| (r.arrival / 1000, r.owner())).collect();
        assert_eq!(order, [(0, 0), (0, 1), (500, 1), (1000, 0), (1000, 1), (1500, 1), (2000, 0)]);
    }
}

#[test]
fn rates_are_caps_of_a_closed_loop() {
    // Drives of 0.3 ms: one request at a time falls behind its rate, and catches up; two do not.
    let at = |text: &str, service| -> Vec<Nanos> {
        played(&format!("[a]\nrw=write\n{text}"), service).iter().map(|seen| seen.0 / 1000).collect()
    };
    assert_eq!(at("rate_iops=1000\nn=4\n", 300_000), [0, 1000, 2000, 3000]);
    assert_eq!(at("rate_iops=4000\nn=4\n", 300_000), [0, 300, 600, 900]);
    assert_eq!(at("rate_iops=4000\nn=4\niodepth=2\n", 300_000), [0, 250, 500, 750]);
    assert_eq!(at("rate_iops=10000\nn=5\niodepth=2\n", 300_000), [0, 100, 300, 400, 600]);
    // `rate` counts bytes; in an open loop nothing waits.
    assert_eq!(at("rate=4000k\nkb_base=1000\nbs=4ki\nn=4\n", 300_000), [0, 1024, 2048, 3072]);
    assert_eq!(at("rate_iops=10000\nopen_loop\nn=4\n[b]\nstartdelay=1\nn=1\n", 300_000), [0, 100, 200, 300, 1_000_000]);
}

/// As in fio: the requests in flight complete before a pause begins.
#[test]
fn jobs_pause_after_their_requests() {
    let at = |text: &str| -> Vec<Nanos> {
        let text = format!("[a]\nrw=write\nthinktime=1000\n{text}");
        played(&text, 300_000).iter().map(|seen| seen.0 / 1000).collect()
    };
    assert_eq!(at("n=3\n"), [0, 1300, 2600]);
    assert_eq!(at("n=4\niodepth=2\n"), [0, 0, 1300, 1300]);
    assert_eq!(at("n=3\niodepth=2\nthinktime_blocks_type=issue\n"), [0, 1300, 2600]);
    assert_eq!(at("n=5\nthinktime_blocks=3\n"), [0, 300, 600, 1900, 2200]);
    assert_eq!(at("n=9\nruntime=2ms\ntime_based\n"), [0, 1300]);
    // No pause follows a flush.
    assert_eq!(at("n=2\nfsync=1\n"), [0, 1300, 1600]);
    // A rate goes on in a pause.
    assert_eq!(at("n=4\nrate_iops=2000\nthinktime_blocks=2\n"), [0, 500, 1800, 2100]);
}

/// As in fio: each direction of a mix has its own rate, and is requested where only it is due.
#[test]
fn reads_and_writes_have_rates_of_their_own() {
    let shares = |rates: &str, service| {
        let text = format!("[a]\nrw=randrw\nrwmixread=30\nbs=4k\niodepth=4\n{rates}runtime=1\ntime_based\n");
        let mut source = JobFile::parse(&text, "j.fio").unwrap().source(GIB, 1).unwrap();
        let mut kinds = [0u32; 2];
        drive(source.jobs().unwrap(), service, |_, request| {
            kinds[usize::from(request.kind == RequestKind::Write)] += 1
        });
        kinds
    };
    assert_eq!(shares("rate_iops=1000,500\n", 100_000), [1000, 500]);
    assert_eq!(shares("rate_iops=2000\n", 100_000), [2000, 2000]);
    assert_eq!(shares("rate=4m,2m\n", 100_000), [1024, 512]);
    // A drive that is too slow for either serves the mix: 4 requests of 2 ms are 2000 a second.
    let [reads, writes] = shares("rate_iops=2000\n", 2_000_000);
    assert!(reads + writes == 2000 && reads.abs_diff(600) < 60, "{reads} {writes}");
    // One without a rate takes what is left.
    let [reads, writes] = shares("rate_iops=,500\n", 100_000);
    assert!(writes == 500 && reads > 35_000, "{reads} {writes}");
}

#[test]
fn copies_take_turns_and_phases_follow() {
    let text = "[a]\nnumjobs=2\nrw=read\nn=2\n[b]\nstonewall\niodepth=4\nrw=write\nn=1\n";
    let order: Vec<_> = requests(text).iter().map(|r| (r.kind, r.owner(), r.extent.sector)).collect();
    let read = RequestKind::Read;
    assert_eq!(order, [(read, 0, 0), (read, 1, 0), (read, 0, 8), (read, 1, 8), (RequestKind::Write, 2, 0)]);
    // Jobs of one phase take turns of their depths.
    let streams: Vec<u32> = requests("[a]\nn=3\n[b]\niodepth=2\nn=5\n").iter().map(|r| r.owner()).collect();
    assert_eq!(streams, [0, 1, 1, 0, 1, 1, 0, 1]);
    let random = requests("[a]\nnumjobs=2\nrw=randread\nn=50\nrandseed=7\n");
    let of = |stream| random.iter().filter(|r| r.owner() == stream).map(|r| r.extent.sector).collect::<Vec<_>>();
    assert_ne!(of(0), of(1));
}

/// `numjobs` of a specification is that of the job in a file: as on fio's command line.
#[test]
fn copies_of_a_specification_are_those_of_a_job() {
    let spec = FioSpec::parse("rw=randread,bs=8k,size=1m,n=40,iodepth=2,numjobs=3").unwrap();
    let mut source = crate::fio::generated(&spec, GIB, 1).unwrap();
    assert_eq!(source.arrivals(), Arrivals::Closed { depth: 6 });
    let copies: Vec<Request> = std::iter::from_fn(|| source.next_request().unwrap()).collect();
    assert_eq!(copies, requests("[a]\nrw=randread\nbs=8k\nsize=1m\nn=40\niodepth=2\nnumjobs=3\n"));
    assert_eq!(copies.len(), 3 * 40);
    let mut one = crate::fio::generated(&FioSpec { copies: 1, ..spec }, GIB, 1).unwrap();
    assert_eq!(one.next_request().unwrap().map(|request| request.owner()), Some(0));
}

/// Runs jobs on a drive that takes `service` nanoseconds for each request, which `see` gets with the time of its issue.
fn drive(jobs: &mut dyn Jobs, service: Nanos, see: impl FnMut(Nanos, &Request)) {
    drive_until(jobs, |now| now + service, see);
}

/// As [`drive`]; `end` returns the time at which a request completes that is issued at a time.
fn drive_until(jobs: &mut dyn Jobs, mut end: impl FnMut(Nanos) -> Nanos, mut see: impl FnMut(Nanos, &Request)) {
    let (mut now, mut issued) = (0, 0usize);
    let mut ends: BTreeMap<(Nanos, usize), (Nanos, Command)> = BTreeMap::new();
    loop {
        let next = match jobs.due(now).unwrap() {
            Due::Request(request) => {
                assert!(request.arrival <= now, "{request:?} at {now}");
                ends.insert((end(now), issued), (now, request.command));
                issued += 1;
                see(now, &request);
                continue;
            }
            Due::At(time) => {
                assert!(time > now, "{time} is not after {now}");
                Some(time)
            }
            Due::Completion => None,
            Due::Nothing => {
                assert!(ends.is_empty(), "the jobs are over with {ends:?} outstanding");
                return;
            }
        };
        match ends.first_key_value() {
            Some((&(end, number), &(begin, command))) if next.is_none_or(|time| end <= time) => {
                now = end;
                ends.remove(&(end, number));
                jobs.completed(&command, end - begin);
            }
            _ => now = next.expect("nothing is outstanding"),
        }
    }
}

/// Time and job of every request, on a drive that takes `service` nanoseconds for each.
fn played(text: &str, service: Nanos) -> Vec<(Nanos, u32)> {
    let mut source = JobFile::parse(text, "j.fio").unwrap().source(GIB, 1).unwrap();
    let mut seen = Vec::new();
    let jobs = source.jobs().expect("these jobs need a clock");
    drive(jobs, service, |now, request| seen.push((now, request.owner())));
    seen
}

/// Plays jobs on a drive that serves `dies` requests at a time in order, each in 100 us.
fn searched(text: &str, dies: usize) -> JobsSource {
    let mut source = JobFile::parse(text, "j.fio").unwrap().source(GIB, 1).unwrap();
    let mut free = vec![0; dies];
    let end = |now: Nanos| {
        let die = free.iter_mut().min().unwrap();
        *die = now.max(*die) + 100_000;
        *die
    };
    drive_until(source.jobs().unwrap(), end, |_, _| {});
    source
}

/// A queue of `dies` servers with equal times: the depth `k * dies` has a longest response time of `k` times.
#[test]
fn the_depth_of_a_target_is_the_closed_form() {
    for (dies, times) in [(1, 1), (4, 1), (4, 3), (7, 2), (8, 4), (32, 2)] {
        let text = format!(
            "[a]\nrw=randread\nsize=1g\niodepth=64\ntime_based\nruntime=9\nlatency_target={}\n\
             latency_window=20ms\n[b]\nstonewall\nn=3\n",
            100 * times
        );
        let source = searched(&text, dies);
        let [a, b] = &source.sections()[..] else { panic!("two sections") };
        let found = a.depth.as_ref().unwrap();
        assert_eq!((found.met, &found.depths[..]), (true, &[dies as u32 * times][..]), "{dies} {times}");
        assert_eq!((b.depth.as_ref(), a.name.as_str(), b.name.as_str()), (None, "a", "b"));
        assert_eq!(source.notes(), [""; 0]);
    }
}

#[test]
fn a_search_without_a_depth_says_why() {
    let search = "[a]\nrw=randread\niodepth=8\nlatency_window=5ms\nnumjobs=2\n";
    let notes = |text: &str| searched(&format!("{search}{text}"), 16).notes();
    assert!(notes("latency_target=99\n")[1].contains("a found no depth: one request in flight misses"));
    assert!(notes("latency_target=100\nn=100\n")[0].contains("ended while 2 in flight were tried"));
    assert_eq!(notes("latency_target=100\nn=100\nlatency_run\n"), [""; 0]);
    // The first job has 16 of 17 places, 9412 of 10,000 requests a second.
    let slow = searched("[a]\niodepth=16\nsize=1g\nrate_iops_min=9500\n[b]\nn=3000\nrate_iops_min=9\n", 1).notes();
    assert!(slow.len() == 1 && slow[0].contains("a ended early: its reads were 94"), "{slow:?}");
    assert!(slow[0].ends_with("requests a second, and at least 9500 must be"));
}

#[test]
fn jobs_in_one_line_are_those_of_a_file() {
    let line = "bs=8k,iodepth=4,time_based,runtime=10ms,name=load,numjobs=2,rw=randwrite,rate_iops=1000,name=probe,\
                bs=4k,rw=randread,iodepth=1";
    let file = "[global]\nbs=8k\niodepth=4\ntime_based\nruntime=10ms\n[load]\nnumjobs=2\nrw=randwrite\n\
                rate_iops=1000\n[probe]\nbs=4k\nrw=randread\niodepth=1\n";
    let seen = |mut source: JobsSource| {
        let mut seen = Vec::new();
        drive(source.jobs().unwrap(), 100_000, |now, request| seen.push((now, *request)));
        (seen, source.sections())
    };
    let jobs = |line: &str| JobFile::of_line(line).unwrap().unwrap();
    let (requests, sections) = seen(jobs(line).source(GIB, 1).unwrap());
    assert_eq!(
        (&requests, &sections),
        (&seen(JobFile::parse(file, "j.fio").unwrap().source(GIB, 1).unwrap()).0, &sections)
    );
    assert_eq!(
        sections.iter().map(|one| (one.name.as_str(), one.copies)).collect::<Vec<_>>(),
        [("load", 2), ("probe", 1)]
    );
    assert_eq!(requests.len(), 2 * 10 + 100);
    assert_eq!(JobFile::of_line("rw=read,bs=4k"), Ok(None));
    assert_eq!(jobs("name=a").jobs[0].spec, FioSpec::default());
    for (line, says) in [
        ("name=,rw=read", "--workload name: expected the name of a job"),
        ("bs=4k,name=a,rw=sideways", "--workload rw: expected one of read"),
        ("name=a,name=b,iodpeth=3", "did you mean iodepth?"),
        ("name=a,numjobs=1024,name=b,n=1", "expected at most 1024"),
    ] {
        let message = JobFile::of_line(line).unwrap_err().to_string();
        assert!(message.contains(says), "{line}: {message}");
    }
    let message = jobs("n=1,name=a,size=2g").source(GIB, 1).unwrap_err().to_string();
    assert!(message.contains("--workload size: the region of 2GiB"), "{message}");
}

#[test]
fn closed_jobs_keep_their_own_depth() {
    // One request outstanding of the first, two of the second; the first continues alone.
    let seen = played("[a]\nn=4\n[b]\niodepth=2\nn=4\n", 100);
    assert_eq!(seen, [(0, 0), (0, 1), (0, 1), (100, 0), (100, 1), (100, 1), (200, 0), (300, 0)]);
}

#[test]
fn runtime_and_startdelay_are_simulated_time() {
    let seen = played("[a]\nruntime=1ms\ntime_based\nsize=4k\n[b]\nstartdelay=500us\nn=2\n", 300_000);
    assert_eq!(seen, [(0, 0), (300_000, 0), (500_000, 1), (600_000, 0), (800_000, 1), (900_000, 0)]);
    // Without time_based the size ends a job that is done before.
    assert_eq!(played("[a]\nruntime=1ms\nsize=8k\n", 300_000), [(0, 0), (300_000, 0)]);
    // An open loop ends by its arrivals.
    let seen = played("[a]\nrate_iops=1000\nopen_loop\nruntime=3ms\ntime_based\n[b]\nn=1\n", 100);
    assert_eq!(seen, [(0, 0), (0, 1), (1_000_000, 0), (2_000_000, 0)]);
}

#[test]
fn phases_wait_for_completions_and_may_differ() {
    let seen = played(
        "[a]\niodepth=2\nn=3\n[b]\nstonewall\nrate_iops=1e6\nopen_loop\nn=2\n[c]\nstonewall\niodepth=3\nn=3\n",
        100,
    );
    assert_eq!(seen, [(0, 0), (0, 0), (100, 0), (200, 1), (1200, 1), (1300, 2), (1300, 2), (1300, 2)]);
}

#[test]
fn what_needs_no_clock_has_none() {
    let open = "[a]\nn=1\nrate_iops=5\nopen_loop\n[b]\nn=2\nrate_iops=7\nopen_loop=1\nruntime=3\n";
    for text in ["[a]\nn=1\niodepth=7\n", open] {
        assert!(JobFile::parse(text, "j.fio").unwrap().source(GIB, 1).unwrap().jobs().is_none(), "{text}");
    }
    let mut source = JobFile::parse("[a]\nruntime=3\n", "j.fio").unwrap().source(GIB, 1).unwrap();
    let message = source.next_request().unwrap_err().to_string();
    assert!(message.contains("j.fio: the number of requests in a runtime is known in timed runs"), "{message}");
    for text in ["[a]\nlatency_target=1\nlatency_window=5\n", "[a]\nrate=5m\nrate_min=1m\nn=1\n"] {
        let mut source = JobFile::parse(text, "j.fio").unwrap().source(GIB, 1).unwrap();
        let message = source.next_request().unwrap_err().to_string();
        assert!(message.contains("j.fio: latency_target and the least rates need simulated time"), "{message}");
    }
    let open = requests("[a]\nrate_iops=1000\nruntime=3ms\nn=100\n[b]\nrate_iops=1000\nn=1\n");
    assert_eq!(
        open.iter().map(|r| (r.arrival, r.owner())).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (1_000_000, 0), (2_000_000, 0)]
    );
    // Beside a closed job it ends by its arrivals, too.
    let beside = requests("[a]\nrate_iops=1000\nruntime=3ms\ntime_based\n[b]\nn=5\n");
    assert_eq!(beside.iter().map(|r| r.owner()).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 1, 1]);
}

#[test]
fn what_changes_no_request_may_stand_there() {
    let plain = "[a]\nrw=randread\nn=50\nrate_iops=5\n";
    let more = "[global]\ngroup_reporting\nthread=1\ninvalidate=1\ndirectory=/mnt\nfilename=file\n";
    assert_eq!(requests(&format!("{more}{plain}")), requests(plain));
}

#[test]
fn later_global_sections_change_later_jobs() {
    let text = "[global]\nbssplit=4k/50:8k/50\nn=1\nrate_iops=5\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=32k\n";
    let sizes: Vec<u32> = requests(text).iter().map(|r| r.extent.sectors).collect();
    assert!(sizes[0] <= 16);
    assert_eq!(sizes[1..], [32, 64]);
}

#[test]
fn mistakes_name_line_and_key() {
    for (text, line, says) in [
        ("[a]\nrw=read\nruntime=soon\n", 3, "runtime: expected simulated time in seconds"),
        ("[a]\nrw=read\ntime_based\n", 3, "time_based: expected runtime too"),
        ("[a]\nlatency_target=5ms\n", 2, "latency_target: expected latency_window too"),
        ("[a]\nlatency_target=5\nlatency_window=1s\nrate_iops=5\nopen_loop\n", 2, "latency_target: an open loop has"),
        ("[a]\nlatency_run\n", 2, "latency_run: expected latency_target too"),
        ("[a]\nlatency_target=5\nlatency_window=0\n", 3, "latency_window: expected a time such as"),
        ("[a]\nlatency_percentile=100.1\n", 2, "latency_percentile: expected a percentage from 0 to 100"),
        ("[a]\nrate_cycle=100\n", 2, "rate_cycle: the least rate is averaged over this time; expected rate_min"),
        ("[a]\nrate_min=1m\nrate_iops_min=5\n", 2, "rate_min: rate_iops_min is given too"),
        ("[a]\nrate_iops=,5\nrate_iops_min=9\n", 3, "rate_iops_min: the cap is lower"),
        ("[a]\niodpeth=3\n", 2, "did you mean iodepth?"),
        ("[a]\nramp_time=soon\n", 2, "ramp_time: expected simulated time in seconds"),
        ("[a]\ngroup_reportin=0\n", 2, "group_reportin (line 2"),
        ("[a]\nioengine=rbd\n", 2, "needs a server instead of a drive: ioengine=rbd (line 2)"),
        ("[a]\nioengine=libaoi\n", 2, "ioengine: expected libaio"),
        ("[a]\nsize=${SIZE}\n", 2, "because the variable SIZE is not set"),
        ("[a]\nzonemode=strided\n", 2, "zonemode: expected zonesize too"),
        ("[a]\nrw=randread\nzonesize=1m\n", 3, "zonesize: only sequential requests"),
        ("[a]\nplid_select=random\n", 2, "plid_select: expected fdp=1, or plids"),
        ("[a]\nplid_select=scheme\n", 2, "plid_select: expected dp_scheme too"),
        ("[a]\nrw=read:4\n", 2, "rw: expected one of read"),
        ("[a]\nverify=crc32c\nrate_iops=5\nopen_loop\nrw=write\n", 2, "verify: reads wait for the writes"),
        ("[a]\nbsrange=16k-4k\n", 2, "bsrange: expected one to three ranges"),
        ("[global]\n\n[a]\nrw=sideways\n", 4, "rw: expected one of read"),
        ("[a]\nnumjobs=0\n", 2, "numjobs: expected a whole number"),
        ("[a]\nrw=read\nsize=2g\n", 3, "size: the region of 2GiB"),
        ("[a]\nrwmixread=30\nrwmixwrite=30\n", 3, "rwmixwrite: expected rwmixread + rwmixwrite = 100"),
        ("[a]\nio_size=1m\nloops=2\n", 3, "loops: io_size is given too"),
        ("rw=read\n", 1, "expected a section"),
        ("[a\n", 1, "expected a section"),
    ] {
        let message = wrong(text);
        assert!(message.starts_with(&format!("j.fio:{line}: ")) && message.contains(says), "{text:?}: {message}");
        assert!(!message.contains('\n'));
    }
    assert!(wrong("[global]\nbs=4k\n").contains("j.fio: the file has no job"));
    assert!(wrong("[a]\nnumjobs=1024\nrate_iops=1\n[b]\nrate_iops=1\n").contains("expected at most 1024"));
}

/// Variables, included files, comments behind values, keys given twice, and expressions.
#[test]
fn the_syntax_is_that_of_fio() {
    let variable = |name: &str| (name == "BS").then(|| "8k".to_string());
    let include = |name: &str, by: &str| match (name, by) {
        ("common.inc", "j.fio") => Ok("rw=write ; as before\nbs=4k\n".to_string()),
        _ => Ok("[x]\n".to_string()),
    };
    let surroundings = Surroundings { variable: &variable, include: &include };
    let read = |text: &str| JobFile::parse_in(text, "j.fio", &surroundings);
    let text = "[global]\ninclude common.inc\n[a] # one\nbs=${BS}\t; two\nsize = (4 * 8k)# three\nstonewall\ndirect\n";
    let plain = "[a]\nrw=read\nrw=write\nbs=8k\nsize=32k\ndirect=1\n";
    let mut source = read(text).unwrap().source(GIB, 1).unwrap();
    let found: Vec<Request> = std::iter::from_fn(|| source.next_request().unwrap()).collect();
    assert_eq!((found.len(), &found), (4, &requests(plain)));
    let wrong = |text: &str| read(text).unwrap_err().to_string();
    let message = wrong("[a]\nbs=${SIZE}\n");
    assert!(message.starts_with("j.fio:2: bs: ") && message.ends_with("the variable SIZE is not set"), "{message}");
    assert!(wrong("[a]\ninclude other\n").starts_with("other:1: an included file has keys alone"));
    assert!(super::JobFile::parse("[a]\ninclude x\n", "j.fio").unwrap_err().to_string().contains("j.fio:2: include x"));
    let endless = Surroundings { variable: &variable, include: &|_, _| Ok("include a\n".into()) };
    let message = JobFile::parse_in("[a]\ninclude a\n", "j.fio", &endless).unwrap_err().to_string();
    assert!(message.contains("at most 8 files"), "{message}");
}

#[test]
fn keys_without_effect_are_named_and_others_refused() {
    let file = JobFile::parse("[a]\ndirect=0\nthread\nprio=3\nprio=4\nnum_range=1\nn=1\n", "j.fio").unwrap();
    let notes = file.source(GIB, 1).unwrap().notes();
    assert_eq!(notes, ["no effect in a simulation: direct, thread, prio, num_range"]);
    let text = "[global]\nioengine=http\nhttps=on\niodpeth=4\n[a]\nhttps=off\nignore_zone_limits=1\nverify_only\n";
    let message = JobFile::parse(text, "j.fio").unwrap_err().to_string();
    let expected = "j.fio:2: needs a server instead of a drive: ioengine=http (line 2) and 1 more; unknown key: \
                    iodpeth (line 4; did you mean iodepth?); and 2 more keys; expected a key of `palimpsest help \
                    workloads`";
    assert_eq!(message, expected);
    let file = JobFile::parse("[a]\niodepth=8\nioengine=psync\nn=3\n", "j.fio").unwrap();
    let source = file.source(GIB, 1).unwrap();
    assert_eq!(source.arrivals(), Arrivals::Closed { depth: 1 });
    assert_eq!(source.notes(), ["iodepth is 1 for a, because the ioengine waits for each request"]);
}

fn sectors(text: &str) -> Vec<u64> {
    requests(text).iter().map(|request| request.extent.sector).collect()
}

#[test]
fn files_of_jobs_have_places() {
    // One file: copies are apart by the increment. Files of copies are apart by whole MiB.
    let one = "[a]\nfilename=/dev/x\nnumjobs=3\noffset=4k\noffset_increment=1m\nsize=4k\nn=1\n";
    assert_eq!(sectors(one), [8, 8 + 2048, 8 + 4096]);
    assert_eq!(sectors("[a]\nnumjobs=2\noffset=25%\noffset_increment=50%\nn=1\n"), [1 << 19, 3 << 19]);
    assert_eq!(sectors("[a]\nsize=8k\nnumjobs=2\nn=1\n[b]\nsize=1m\nn=1\n"), [0; 3], "the drive");
    let of_copies = "[global]\ndirectory=d\n[a]\nsize=8k\nnumjobs=2\nn=1\n[b]\nsize=1m\nn=1\n";
    assert_eq!(sectors(of_copies), [0, 2048, 4096]);
    assert_eq!(sectors("[a]\nfilename=x\nsize=8k\nn=1\n[b]\nfilename=y\nn=1\n[c]\nfilename=x\nn=1\n"), [0, 1 << 20, 0]);
    let list = "[a]\nfilename=x\\:1:y\nsize=64k\nn=16\n[b]\nfilename=z\nsize=1m\nn=1\n";
    assert_eq!(sectors(list)[..9], [0, 2048, 8, 16, 24, 32, 40, 48, 56]);
    let notes = JobFile::parse(list, "j.fio").unwrap().source(GIB, 1).unwrap().notes();
    assert_eq!(notes, ["the 2 files of the jobs have ranges of their own"]);
    // The whole drive, as without a file.
    assert_eq!(sectors("[a]\nsize=50%\nn=1\n[b]\nn=1\n[c]\nfill_device=1\nsize=4k\nn=1\n"), [0, 0, 0]);
    let large = wrong("[a]\ndirectory=d\nsize=800m\nnumjobs=2\n");
    assert_eq!(large, "j.fio: the 2 files of the jobs take 1600MiB; expected at most the drive's 1GiB");
    assert!(
        wrong("[a]\nfilename=x:y\nn=1\n[b]\nfilename=y\nn=1\n").starts_with("j.fio:5: filename: y is in another list")
    );
}

/// As in fio: the address after a request is moved, and beyond an end of the region the other end is next.
#[test]
fn addresses_of_sequential_patterns_are_moved() {
    assert_eq!(sectors("[a]\nrw=read:-8k\nsize=16k\n"), [0, 16, 8, 0]);
    assert_eq!(sectors("[a]\nrw=write:4k\nsize=16k\n"), [0, 16, 0, 16]);
    assert_eq!(sectors("[a]\nzonesize=8k\nzoneskip=8k\nsize=32k\n"), [0, 8, 32, 40, 0, 8, 32, 40]);
    assert_eq!(sectors("[a]\nzonemode=strided\nzonesize=8k\nzonerange=4k\nsize=16k\n"), [0, 0, 8, 8]);
    for map in ["", "norandommap\n"] {
        let of = |keys: &str| sectors(&format!("[a]\nrw=randread:4\nsize=1g\nnumber_ios=12\n{map}{keys}"));
        let found = of("");
        assert_eq!(found[..3], [0, 8, 16]);
        assert!(found[3..].chunks(4).all(|run| run.windows(2).all(|pair| pair[1] == pair[0] + 8)), "{found:?}");
        assert_ne!(found[7], found[3] + 32);
        let found = of("rw_sequencer=identical\n");
        assert!(
            found[..3] == [0; 3] && found[3..].chunks(4).all(|run| run.iter().all(|&at| at == run[0])),
            "{found:?}"
        );
    }
    let sequence = "[a]\nrw=randread\nsize=48k\nio_size=24k\nrandom_distribution=sequence:2,0,1\n";
    assert_eq!(sectors(sequence), [16, 0, 8, 16, 0, 8]);
    assert_eq!(sectors(&format!("{sequence}random_sequence_stride=1\n")), [16, 0, 8, 40, 24, 32]);
}

/// Each multiple of the least size is as frequent, in fio's order and with our generator.
#[test]
fn sizes_of_a_range_are_uniform() {
    let (fio, own) = ("write", "randwrite\nnorandommap");
    // fio draws a size up to the most and the least together, so that the most has all that is beyond.
    for (keys, step, each) in [(fio, 8, 1500), (own, 8, 1500), (fio, 1, 187), (own, 1, 240)] {
        let unaligned = if step == 1 { "bs_unaligned\n" } else { "" };
        let text = format!("[a]\nbsrange=4k-16k\nn=6000\nio_size=1g\n{unaligned}rw={keys}\n");
        let mut counts = BTreeMap::new();
        requests(&text).iter().for_each(|request| *counts.entry(request.extent.sectors).or_insert(0u32) += 1);
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (8..=32).step_by(step).collect::<Vec<_>>(), "{keys}");
        let mut all_but_last = counts.iter().filter(|(sectors, _)| **sectors < 32);
        assert!(all_but_last.all(|(_, count)| count.abs_diff(each) < 5 * each.isqrt()), "{keys} {counts:?}");
    }
    assert_eq!(requests("[a]\nbsrange=4k-4k,8k-16k\nn=9\nrw=read\n").len(), 9);
}

fn kinds(text: &str) -> String {
    let letter = |request: &Request| match request.kind {
        RequestKind::Read => 'r',
        RequestKind::Write => 'w',
        RequestKind::Trim => 't',
        RequestKind::Flush => 'f',
    };
    requests(text).iter().map(letter).collect()
}

#[test]
fn writes_are_read_back() {
    let write = "[a]\nrw=write\nsize=16k\nverify=crc32c\n";
    assert_eq!((kinds(write), sectors(write)), ("wwwwrrrr".into(), vec![0, 8, 16, 24, 0, 8, 16, 24]));
    for (keys, expected) in [
        ("verify_backlog=2\n", "wwrrwwrr"),
        ("verify_backlog=3\n", "wwwrrrwr"),
        ("verify_backlog=2\nverify_backlog_batch=1\n", "wwrwrwrr"),
        ("loops=2\n", "wwwwrrrrwwwwrrrr"),
        ("do_verify=0\n", "wwww"),
        ("verify=0\n", "wwww"),
        ("end_fsync=1\n", "wwwwrrrrf"),
        ("rw=read\n", "rrrr"),
    ] {
        assert_eq!(kinds(&format!("{write}{keys}")), expected, "{keys}");
    }
    // Writes that may overlap are read by address, once.
    let random = "[a]\nrw=randwrite\nnorandommap\nsize=256k\nnumber_ios=60\nverify=md5\n";
    let (written, read) = (sectors(random)[..60].to_vec(), sectors(random)[60..].to_vec());
    let distinct: Vec<u64> = std::collections::BTreeSet::from_iter(written).into_iter().collect();
    assert_eq!((read, kinds(random).contains("rw")), (distinct, false));
    // Reads wait for the writes in flight.
    let text = "[a]\nrw=write\nsize=16k\niodepth=3\nverify=crc32c\n";
    assert_eq!(played(text, 100).iter().map(|seen| seen.0).collect::<Vec<_>>(), [0, 0, 0, 100, 200, 200, 200, 300]);
    // A read-back follows in a clocked run, too, after each pass.
    assert_eq!(played(&format!("{text}loops=2\n"), 100).len(), 16);
}

#[test]
fn jobs_wait_for_each_other_and_end_together() {
    let seen = played("[a]\nn=2\n[b]\nwait_for=a\nn=1\n[c]\nn=1\n", 100);
    assert_eq!(seen, [(0, 0), (0, 2), (100, 0), (200, 1)]);
    // The end of a job is known when its next request would be due.
    let ends = |keys: &str, rest: &str| {
        let seen = played(&format!("[a]\nn=2\nexitall\n{keys}[b]\nn=100\n{rest}[c]\nstonewall\nn=1\n"), 100);
        [1, 2].map(|job| seen.iter().filter(|(_, other)| *other == job).count())
    };
    assert_eq!(ends("", ""), [2, 1]);
    assert_eq!(ends("", "new_group\n"), [100, 1]);
    assert_eq!(ends("exit_what=stonewall\n", "new_group\n"), [2, 1]);
    assert_eq!(ends("exit_what=all\n", ""), [2, 0]);
    for (text, line) in [("[a]\n[b]\nwait_for=c\n", 3), ("[a]\nwait_for=a\n", 2), ("[a]\n[a]\n[b]\nwait_for=a\n", 4)] {
        assert!(wrong(text).starts_with(&format!("j.fio:{line}: wait_for: expected one earlier job")), "{text}");
    }
}

/// The requests of jobs of a flow are as their weights; a job alone has all.
#[test]
fn flows_share_requests_by_weight() {
    for (weights, sleep) in [([1, 3], ""), ([2, 2], ""), ([1, 8], "flow_sleep=1000\n")] {
        let [a, b] = weights;
        let text = format!(
            "[global]\n{sleep}runtime=1\ntime_based\nsize=1g\nfilename=x\niodepth=4\n[a]\nflow={a}\n[b]\nflow={b}\n"
        );
        let seen = played(&text, 100_000);
        let [first, second] = [0, 1].map(|job| seen.iter().filter(|(_, other)| *other == job).count() as u64);
        assert!((first * b).abs_diff(second * a) <= 5 * (a + b), "{weights:?}: {first} {second}");
        assert!(first + second > 5000, "{weights:?}: {first} {second}");
    }
    assert_eq!(played("[a]\nflow=1\nn=5\n[b]\nflow=9\nn=1\n", 100).len(), 6);
}

/// A drive that serves one request after the other, in 100 ns each.
#[test]
fn queues_fill_again_as_their_marks_say() {
    let at = |keys: &str| {
        let text = format!("[a]\nsize=1g\niodepth=4\nn=8\n{keys}");
        let mut source = JobFile::parse(&text, "j.fio").unwrap().source(GIB, 1).unwrap();
        let (mut free, mut seen) = (0, Vec::new());
        let end = |now: Nanos| {
            free = now.max(free) + 100;
            free
        };
        drive_until(source.jobs().unwrap(), end, |now, _| seen.push(now));
        seen
    };
    assert_eq!(at("iodepth_low=3\nstartdelay=0\nruntime=1\n"), [0, 0, 0, 0, 100, 200, 300, 400]);
    assert_eq!(at("iodepth_batch_complete=2\n"), [0, 0, 0, 0, 200, 200, 400, 400]);
    assert_eq!(at("iodepth_low=1\n"), [0, 0, 0, 0, 300, 300, 300, 600]);
    assert_eq!(at("iodepth_batch=0\n"), [0, 0, 0, 0, 400, 400, 400, 400]);
    assert_eq!(at("iodepth_batch_submit=3\niodepth_batch_complete_min=1\n"), [0, 0, 0, 0, 300, 300, 300, 600]);
}

#[test]
fn ramps_delays_and_pauses_are_simulated_time() {
    let ramp = "[a]\nramp_time=1ms\nruntime=1ms\ntime_based\nsize=4k\nfilename=x\n[b]\nstartdelay=500us\nn=1\n";
    assert_eq!(played(ramp, 300_000).iter().filter(|seen| seen.1 == 0).count(), 7);
    let mut source = JobFile::parse(ramp, "j.fio").unwrap().source(GIB, 1).unwrap();
    let jobs = source.jobs().unwrap();
    let Due::Request(first) = jobs.due(0).unwrap() else { panic!("a request is due") };
    assert_eq!((jobs.is_ramping(999_999), jobs.is_ramping(1_000_000), jobs.take_restarted()), (true, false, None));
    jobs.completed(&first.command, 1_000_000);
    assert!(matches!(jobs.due(1_000_000), Ok(Due::Request(_))));
    assert_eq!((jobs.take_restarted(), jobs.take_restarted()), (Some(0), None));
    let seen = played("[a]\nstartdelay=1ms-2ms\nn=1\nnumjobs=50\n", 100);
    assert!(seen.iter().all(|(at, _)| (1_000_000..=2_000_000).contains(at)) && seen[0].0 < seen[49].0 - 500_000);
    let text = "[a]\nrw=write\nthinktime=1000\nthinktime_iotime=500us\nn=4\n";
    let at: Vec<Nanos> = played(text, 300_000).iter().map(|seen| seen.0 / 1000).collect();
    assert_eq!(at, [0, 300, 1600, 1900]);
}

#[test]
fn job_files_are_recognized_by_their_start() {
    for text in JOB_FILES {
        assert!(is_job_file(text.as_bytes()), "{text}");
        fuzz_job_file(text.as_bytes());
        JobFile::parse(text, "j.fio").unwrap();
    }
    assert!(is_job_file(b"\xef\xbb\xbf# x\r\n\r\n  [a]\r\n") && is_job_file(b"; a\nrw = write\nbs=4k\n"));
    assert!(!is_job_file(b"1,h,0,Write,0,512,1\n") && !is_job_file(b"") && !is_job_file(b"fio version 3 iolog\n[a]"));
}
