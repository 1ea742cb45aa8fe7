//! The source: descriptions and their faults, warm-up, arrivals, sections, and equal requests for equal seeds.

use super::super::{KEYS, ObjectRequest, ObjectSource, ObjectSpec, Objects, open_objects};
use crate::request::{Arrivals, Request, RequestKind, Source};
use palimpsest_flash::error::Result;
use std::io::Cursor;

const DRIVE: u64 = 64 << 20;
const SMALL: &str = "cache=50%,region=64KiB,n=20000";

fn generated(text: &str, seed: u64) -> ObjectSource {
    ObjectSource::new(ObjectSpec::parse(text).unwrap(), None, DRIVE, seed).unwrap()
}

fn layout(source: &mut ObjectSource) -> Vec<Request> {
    std::iter::from_fn(|| source.next_of_layout()).collect()
}

fn rest(source: &mut ObjectSource) -> Vec<Request> {
    std::iter::from_fn(|| source.next_request().unwrap()).collect()
}

fn fault(text: &str) -> String {
    let made = ObjectSpec::parse(text).and_then(|spec| ObjectSource::new(spec, None, DRIVE, 1));
    made.map(drop).unwrap_err().to_string()
}

/// A trace replaces the generated requests of a preset, but keys beside the trace stay mistakes.
#[test]
fn a_preset_may_play_a_trace() {
    let preset = "cache=50%,memory=2%,sizes=200/80:16k/20,zipf=0.9,iodepth=32,n=1000";
    let changed = ObjectSpec::changed(preset, "trace=t.csv,n=7");
    assert_eq!(changed, "cache=50%,memory=2%,trace=t.csv,n=7");
    let spec = ObjectSpec::parse(&changed).unwrap();
    assert_eq!((spec.trace.as_deref(), spec.requests, spec.depth), (Some("t.csv"), Some(7), None));
    assert_eq!(ObjectSpec::changed(preset, "zipf=2"), format!("{preset},zipf=2"));
    assert!(fault(&ObjectSpec::changed(preset, "trace=t.csv,zipf=2")).contains("the key is of generated requests"));
}

#[test]
fn equal_seeds_give_equal_commands() {
    let all = |seed| {
        let mut source = generated(SMALL, seed);
        (layout(&mut source), rest(&mut source), source.objects())
    };
    let (one, other) = (all(1), all(1));
    assert_eq!(one, other);
    assert_ne!(one.1, all(2).1);
    let bytes = DRIVE / 2;
    let written: u64 = one.0.iter().map(|request| u64::from(request.extent.sectors) * 512).sum();
    assert!((2 * DRIVE..2 * DRIVE + (1 << 20)).contains(&written), "{written}");
    let end = one.0.iter().chain(&one.1).map(|request| request.extent.end()).max().unwrap();
    assert!(end * 512 <= bytes, "{end}");
    assert!(one.0.iter().all(|request| request.kind == RequestKind::Write));
}

/// Counts of the measured part: all requests, and the bytes that the run wrote.
#[test]
fn figures_are_those_of_the_measured_part() {
    let mut source = generated("cache=50%,region=64KiB,n=20000,puts=20%,deletes=5%,trim=deletes", 3);
    layout(&mut source);
    let requests = rest(&mut source);
    let figures = source.objects().unwrap();
    assert_eq!(figures.gets + figures.puts + figures.deletes, 20_000);
    for (part, owner) in figures.classes.iter().zip(1..) {
        let of = |kind: RequestKind| {
            let each = requests.iter().filter(|each| each.kind == kind && each.owner() == owner);
            each.map(|each| u64::from(each.extent.sectors) * 512).sum::<u64>()
        };
        assert_eq!((part.written_bytes, part.trimmed_bytes), (of(RequestKind::Write), of(RequestKind::Trim)));
        let handles = requests.iter().filter(|each| each.owner() == owner && each.kind == RequestKind::Write);
        assert!(handles.clone().all(|each| each.command.directives.placement == part.handle), "{part:?}");
    }
    let gets = requests.iter().filter(|each| each.owner() == 0).count() as u64;
    assert_eq!(gets, figures.hits - figures.classes[1].memory_hits);
    let names: Vec<String> = source.sections().into_iter().map(|section| section.name).collect();
    assert_eq!(names, ["get", "fill small", "fill large"]);
}

#[test]
fn classes_have_logs_and_handles_of_their_own() {
    let mut source = generated("cache=50%,small=0%,region=64KiB,logs=1:2:5,mix=1:1:1,n=20000", 1);
    layout(&mut source);
    let requests = rest(&mut source);
    let figures = source.objects().unwrap();
    let capacities: Vec<u64> = figures.classes.iter().map(|part| part.capacity_bytes >> 16).collect();
    assert_eq!(capacities, [64, 128, 320]);
    let handles: Vec<u16> = figures.classes.iter().map(|part| part.handle).collect();
    assert_eq!(handles, [1, 2, 3]);
    assert!(figures.classes.iter().all(|part| part.inserts > 1000), "{figures:?}");
    assert!(requests.iter().any(|each| each.command.directives.placement == 3));
    let off = generated("cache=50%,region=64KiB,placement=off", 1).objects().unwrap();
    assert!(off.classes.iter().all(|part| part.handle == 0));
}

#[test]
fn arrivals_follow_the_rate_the_trace_or_a_depth() {
    let mut open = generated("cache=50%,region=64KiB,n=20000,rate=10k", 1);
    assert_eq!(open.arrivals(), Arrivals::Open);
    let last = rest(&mut open).last().unwrap().arrival as f64 / 1e9;
    assert!((last / 2.0 - 1.0).abs() < 0.03, "20000 requests take 2 s: {last}");
    assert_eq!(generated("cache=50%,region=64KiB,iodepth=3", 1).arrivals(), Arrivals::Closed { depth: 3 });
    assert_eq!(generated("cache=50%,region=64KiB", 1).arrivals(), Arrivals::Closed { depth: 32 });
}

fn trace(text: &'static str, description: &str) -> ObjectSource {
    let open =
        move || -> Result<Box<dyn Objects>> { open_objects(Box::new(Cursor::new(text)), "t", None, 1000, false) };
    let spec = ObjectSpec::parse(description).unwrap();
    ObjectSource::new(spec, Some((open().unwrap(), Some(Box::new(open)))), DRIVE, 1).unwrap()
}

/// Four objects of 1 MB warm up a log of 4 MiB until the drive is written twice, and then the trace is played once.
#[test]
fn a_trace_warms_up_and_is_played_from_its_start() {
    const TEXT: &str = "key,op,size,op_time\n1,SET,1000000,9\n2,SET,1000000,10\n3,SET,1000000,11\n4,GET,1000000,12\n";
    let mut source = trace(TEXT, "cache=4MiB,small=0%,region=1MiB,warm=2x,trace=t");
    assert_eq!((layout(&mut source).len(), source.arrivals()), (128, Arrivals::Open));
    let requests = rest(&mut source);
    let figures = source.objects().unwrap();
    assert_eq!((figures.puts, figures.gets, figures.hits), (3, 1, 0));
    assert_eq!(requests.first().map(|request| request.arrival), Some(0));
    let mut cold = trace(TEXT, "cache=4MiB,small=0%,region=1MiB,warm=0x,trace=t");
    assert_eq!(layout(&mut cold).len(), 0);
    let arrivals: Vec<u64> = rest(&mut cold).iter().map(|request| request.arrival / 1_000_000_000).collect();
    // A region is written when the next object comes.
    assert_eq!((arrivals, cold.objects().unwrap().hits), (vec![1, 2, 3], 0));
}

/// A trace without inserts cannot warm up a cache, and ends the warm-up after a play.
#[test]
fn a_trace_that_writes_nothing_ends_the_warm_up() {
    let mut source = trace("key,op,size\n1,GET,0\n", "cache=4MiB,small=0%,region=1MiB,trace=t");
    assert_eq!((layout(&mut source).len(), rest(&mut source).len()), (0, 0));
    assert_eq!(source.objects().unwrap().gets, 1);
}

#[test]
fn mistakes_have_one_line_each() {
    for (text, part) in [
        ("cache=50%,regoin=1MiB", "no key of object workloads is called \"regoin\"; did you mean region?"),
        ("cache=50%,policy=lruu", "policy=lruu: no value of this key; did you mean lru?"),
        ("cache=200%", "cache=200%: no value of this key; expected a size or a percentage of the drive"),
        ("cache=65MiB", "cache=65MiB: the drive has 67108864 bytes; expected a cache that fits"),
        ("cache=50%,small=0%,threshold=100", "threshold: the cache has no buckets"),
        ("cache=50%,trace=t,zipf=0.9", "zipf: the key is of generated requests"),
        ("cache=50%,token=1k", "token: generated objects have sizes"),
        ("cache=50%,rate=5,iodepth=2", "iodepth: an open loop"),
        ("cache=50%,puts=60%,deletes=50%", "puts: puts and deletes are more than all requests"),
        ("cache=50%,mix=1:2", "mix: expected a weight for each log"),
        ("cache=50%,region=1MiB:2MiB", "region: expected one for all logs, or one for each log"),
        ("cache=50%,logs=1:1:1,sizes=1k/1+2k/1", "sizes: expected one for all logs, or one for each log"),
        ("cache=50%,memory_policy=fifo", "memory_policy: the cache has no memory; expected memory=2% too"),
        ("cache=50%,handles=1", "handles: expected a handle for each of the 2 parts"),
        ("cache=50%,placement=off,handles=1:2", "handles: expected"),
        ("cache=50%,handles=1:70000", "handles=1:70000: no value of this key"),
        ("cache=50%,region=16MiB", "region: a log of 31460KiB has 1 regions of 16MiB; expected 4 to 2^32"),
        ("cache=50%,sizes=1/1:x/2", "sizes=1/1:x/2: no value of this key"),
    ] {
        assert!(fault(text).contains(part) && fault(text).len() < 200, "{text}: {}", fault(text));
    }
}

/// Every key has an effect: another value changes the commands.
#[test]
fn every_key_changes_the_commands() {
    let base = "cache=50%,region=64KiB,n=20000,puts=10%,deletes=10%,logs=1:1";
    let values = "cache=40% reclaim=index small=8% threshold=100 region=128KiB policy=lru logs=1:2 \
                  handles=3:4:5 placement=off trim=all admit=50% warm=1x n=10 rate=100 footprint=2x zipf=0.7 \
                  sizes=100/1:8k/1 mix=1:3 puts=5% deletes=5% churn=5% memory=2%";
    let all = |text: &str| {
        let mut source = generated(text, 1);
        (layout(&mut source), rest(&mut source))
    };
    let plain = all(base);
    for change in values.split(' ') {
        assert_ne!(all(&format!("{base},{change}")), plain, "{change}");
    }
    assert_ne!(all(&format!("{base},memory=2%,memory_policy=fifo")), all(&format!("{base},memory=2%")));
    let others = ["trace", "token", "iodepth", "memory_policy"];
    let tried = values.split(' ').map(|change| change.split('=').next().unwrap()).chain(others);
    assert!(KEYS.iter().all(|key| tried.clone().any(|name| name == key.0)));
}

/// The newest object is the most popular, and old objects are requested no more.
#[test]
fn churn_brings_new_objects() {
    let keys = |churn: &str| {
        let spec = ObjectSpec::parse(&format!("cache=1MiB,sizes=4096/1,zipf=1.2{churn}")).unwrap();
        let mut generator = super::super::generator::Generator::new(&spec, &[1.0], 1 << 20, 1);
        let all: Vec<ObjectRequest> = (0..20_000).map(|_| generator.next_object().unwrap().unwrap()).collect();
        all.iter().map(|each| each.key).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(keys("") <= 1024 && keys(",churn=50%") > 5000);
}
