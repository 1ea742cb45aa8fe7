//! The timeline: single operations to the nanosecond, laws of every row under every layer, operations outside a window,
//! and no effect of a timeline on the run.

use crate::drives::{Limits, Shape, draw};
use crate::engine::{Bench, COMMAND, ERASE, Op, PROGRAM, SENSE, SUSPENDS, TRANSFER, config, first};
use crate::harness::{Model, for_each_seed, note};
use crate::workload::{Mix, fill};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::sim::timeline::parts::{PART_NAMES, Part, Parts};
use palimpsest_lab::sim::timeline::{Recording, Span, TimedOperation, Window};
use palimpsest_lab::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

use Op::{Erase, Program, Read};

const ALL: Window = Window::Time { from: 0, until: Nanos::MAX };

fn span(from: Nanos, until: Nanos) -> Span {
    Span { from, until }
}

/// The timeline of `ops`, each a separate request, submitted at the given times.
fn recorded(changes: &[&str], written: u32, ops: &[(Nanos, Op)]) -> Vec<TimedOperation> {
    recording(changes, written, ops).operations
}

/// As [`recorded`], with the requests.
fn recording(changes: &[&str], written: u32, ops: &[(Nanos, Op)]) -> Recording {
    let mut bench = Bench::new(&config(changes), written);
    bench.drive.engine.record(ALL);
    for &(time, op) in ops {
        bench.at(time, op, Cause::Host);
    }
    bench.run();
    bench.drive.recording().expect("a timeline was asked for")
}

#[test]
fn single_operations() {
    let [read] = &recorded(&["host.link_rate=12.5MB/s"], 1, &[(5, Read(3))])[..] else { panic!("one") };
    assert_eq!((read.number, read.request, read.operation.block, read.operation.page), (1, 1, 0, 3));
    assert_eq!((read.planned, read.ready, read.start), (5, 5, 5));
    let sensed = 5 + COMMAND + SENSE;
    assert_eq!((read.array, read.transfer), (span(5 + COMMAND, sensed), span(sensed, sensed + TRANSFER)));
    // The sector that was asked for at 12.5 MB/s, from the first byte on.
    assert_eq!((read.end, read.delivered), (sensed + TRANSFER, Some(sensed + 4 * TRANSFER)));

    let [program] = &recorded(&[], 0, &[(5, Program(0))])[..] else { panic!("one") };
    let loaded = 5 + COMMAND + TRANSFER;
    assert_eq!((program.start, program.transfer), (5, span(5 + COMMAND, loaded)));
    assert_eq!((program.array, program.end), (span(loaded, loaded + PROGRAM), loaded + PROGRAM));
    assert_eq!(program.delivered, None);

    let [erase] = &recorded(&[], 1, &[(5, Erase(0))])[..] else { panic!("one") };
    let until = 5 + COMMAND + ERASE;
    assert_eq!((erase.start, erase.array, erase.end), (5, span(5 + COMMAND, until), until));
}

#[test]
fn operations_of_one_die_and_of_one_bus_wait() {
    let ops =
        recorded(&["ssd.chips_per_channel=2"], 1, &[(0, Read(first(0))), (0, Read(first(8))), (0, Read(first(0)))]);
    // Commands follow each other; the second page waits for the bus, the third operation for the die.
    assert_eq!(ops[1].start, COMMAND);
    assert_eq!(ops[1].array, span(2 * COMMAND, 2 * COMMAND + SENSE));
    assert_eq!(ops[1].transfer.from, ops[0].transfer.until);
    assert_eq!((ops[2].ready, ops[2].start), (0, ops[0].end));
    assert_eq!((ops[0].behind, ops[1].behind, ops[2].behind), (None, None, None), "the first had started");
    let ops = recorded(&[], 1, &[(0, Read(0)), (0, Erase(1)), (0, Program(first(1)))]);
    assert_eq!((ops[2].behind, ops[2].planned, ops[2].ready), (Some(2), 0, ops[1].start));
}

#[test]
fn suspended_operations_say_when() {
    let ops = recorded(&SUSPENDS, 1, &[(0, Erase(1)), (500_000, Read(0))]);
    let again = ops[1].end + 10_000;
    assert_eq!(ops[0].suspensions, [span(500_000, again)]);
    assert_eq!((ops[0].array, ops[0].end), (span(COMMAND, ops[0].end), COMMAND + ERASE + again - 500_000));
    assert!(ops[1].suspensions.is_empty());
}

/// The parts of the latencies of `ops`, as [`recorded`], without parts that are 0.
fn explained(changes: &[&str], ops: &[(Nanos, Op)]) -> Vec<Vec<(&'static str, Nanos)>> {
    let requests = recording(changes, 1, ops).requests;
    let named = |parts: Parts| PART_NAMES.into_iter().zip(parts).filter(|part| part.1 > 0).collect();
    requests.into_iter().map(|request| named(request.parts)).collect()
}

#[test]
fn waits_belong_to_the_work_that_held_the_die() {
    let (bus, read) = (("bus", COMMAND + TRANSFER), ("read", SENSE));
    let parts = explained(&[], &[(0, Read(0)), (5, Read(1)), (5, Erase(1)), (5, Read(0))]);
    let page = COMMAND + SENSE + TRANSFER;
    assert_eq!(parts[0], [read, bus]);
    assert_eq!(parts[1], [read, bus, ("behind_reads", page - 5)]);
    assert_eq!(parts[2], [("bus", COMMAND), ("behind_reads", 2 * page - 5), ("erase", ERASE)]);
    assert_eq!(parts[3], [read, bus, ("behind_reads", 2 * page - 5), ("erase", COMMAND + ERASE)]);
    let parts = explained(&[], &[(0, Erase(1)), (500_000, Read(0))]);
    assert_eq!(parts[1], [read, bus, ("erase", COMMAND + ERASE - 500_000)]);
    let parts = explained(&["host.link_rate=12.5MB/s"], &[(0, Read(0))]);
    assert_eq!(parts[0], [("link", 3 * TRANSFER), read, bus]);

    let timed = recorded(&SUSPENDS, 1, &[(0, Erase(1)), (500_000, Read(0))]);
    let parts = explained(&SUSPENDS, &[(0, Erase(1)), (500_000, Read(0))]);
    assert_eq!(parts[1], [read, ("suspend", timed[1].start - 500_000), bus]);
    let suspended = timed[0].suspensions[0];
    assert_eq!(parts[0], [("suspend", suspended.until - suspended.from), ("bus", COMMAND), ("erase", ERASE)]);
}

/// A filled drive under 120 random requests, with a timeline of `window` or none; `None` where the seed draws no drive.
fn run(entry: &'static Entry, seed: u64, window: Option<Window>) -> Option<Model> {
    let mut rng = palimpsest_lab::rng::Rng::new(seed, 0x71e1);
    let Shape { drive, settings } = draw(entry.name, &mut rng, Limits { subpages: 1200, planes: 4 }).ok()?;
    note(&settings);
    let mut model = Model::new(&Shape { drive, settings }, entry, Payload::Tag, seed);
    let page = u64::from(model.config.geometry.page_bytes()) / 512;
    for command in fill(&model.config, 2 * page) {
        model.count(command).unwrap_or_else(|error| panic!("{error}"));
    }
    model.drive.start_timing().unwrap_or_else(|error| panic!("{error}"));
    window.into_iter().for_each(|window| model.drive.engine.record(window));
    let mut mix = Mix::new(&model.config, seed);
    let commands: Vec<_> = (0..120).map(|_| mix.draw()).collect();
    model.run_timed(commands.into_iter(), 1 + seed as u32 % 9).unwrap_or_else(|error| panic!("{error}"));
    Some(model)
}

/// When followers of an operation may start.
fn over(operation: &TimedOperation) -> Nanos {
    operation.delivered.unwrap_or(operation.end)
}

fn check_row(each: &TimedOperation) {
    let Span { from, until } = each.array;
    let moved = each.transfer;
    let order = match each.operation.kind {
        OperationKind::Read => vec![each.start, from, until, moved.from, moved.until, each.end, over(each)],
        OperationKind::Program => vec![each.start, moved.from, moved.until, from, until, each.end],
        OperationKind::Erase => vec![each.start, from, until, each.end],
    };
    let order = [vec![each.planned, each.ready], order].concat();
    assert!(order.is_sorted(), "{each:?}");
    assert!(each.suspensions.is_sorted_by(|one, two| one.until <= two.from), "{each:?}");
    assert!(each.suspensions.iter().all(|span| from <= span.from && span.from < span.until && span.until <= until));
}

/// No two of `spans` overlap.
fn check_apart(what: &str, spans: &mut [(Span, i64)]) {
    spans.sort_unstable_by_key(|(span, _)| (span.from, span.until));
    for pair in spans.windows(2) {
        assert!(pair[0].0.until <= pair[1].0.from, "{what}: {pair:?} overlap");
    }
}

/// The spans in which the array works, without suspensions.
fn works(each: &TimedOperation) -> Vec<Span> {
    let mut from = each.array.from;
    let mut spans = Vec::new();
    for suspension in &each.suspensions {
        spans.push(span(from, suspension.from));
        from = suspension.until;
    }
    spans.push(span(from, each.array.until));
    spans
}

fn check_laws(recording: &Recording) {
    let by_number: BTreeMap<i64, &TimedOperation> =
        recording.operations.iter().map(|each| (each.number, each)).collect();
    let (mut arrays, mut buses) = (BTreeMap::<u32, Vec<_>>::new(), BTreeMap::<u32, Vec<_>>::new());
    for each in &recording.operations {
        check_row(each);
        let of_plane = arrays.entry(each.place.plane).or_default();
        of_plane.extend(works(each).into_iter().map(|span| (span, each.number)));
        if each.operation.kind != OperationKind::Erase {
            buses.entry(each.place.channel).or_default().push((each.transfer, each.number));
        }
        let followed: Vec<&TimedOperation> = each.follows.iter().map(|number| by_number[number]).collect();
        assert!(followed.iter().all(|before| before.number < each.number && over(before) <= each.ready), "{each:?}");
        let last = followed.iter().map(|before| over(before)).max();
        assert!(last.is_none_or(|last| last >= each.planned), "the gate was open: {each:?}");
        if let Some(before) = each.behind.map(|number| by_number[&number]) {
            assert!(before.number < each.number && before.operation.block == each.operation.block, "{each:?}");
            assert!(before.start <= each.start, "{before:?} starts behind {each:?}");
        }
    }
    arrays.iter_mut().for_each(|(plane, spans)| check_apart(&format!("plane {plane}"), spans));
    buses.iter_mut().for_each(|(channel, spans)| check_apart(&format!("channel {channel}"), spans));
    let requests: BTreeMap<u64, _> = recording.requests.iter().map(|each| (each.number, each)).collect();
    for each in recording.operations.iter().filter(|each| each.request > 0) {
        let request = requests[&each.request];
        assert_eq!((Some(each.planned), each.request_kind), (request.planned, Some(request.kind)));
    }
    for each in &recording.requests {
        let times = [Some(each.arrival), Some(each.submitted), each.planned, each.completed];
        assert!(times.iter().all(Option::is_some) && times.is_sorted(), "{each:?}");
        let sum: Nanos = each.parts.iter().sum();
        assert_eq!(Some(each.arrival + sum), each.completed, "the parts of the latency of {each:?}");
        assert_eq!(each.parts[Part::Earlier as usize], 0, "all is explained: {each:?}");
    }
}

#[test]
fn every_row_keeps_the_laws_of_time() {
    for_each_seed("timeline::every_row_keeps_the_laws_of_time", 6, |entry, seed| {
        let Some(model) = run(entry, seed, Some(ALL)) else { return false };
        let recording = model.drive.recording().expect("a timeline was asked for");
        let numbers: Vec<i64> = recording.operations.iter().map(|each| each.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>(), "none is left out");
        assert_eq!(recording.requests.len(), 120);
        check_laws(&recording);
        true
    });
}

#[test]
fn a_timeline_changes_nothing() {
    for_each_seed("timeline::a_timeline_changes_nothing", 4, |entry, seed| {
        let Some(with) = run(entry, seed, Some(ALL)) else { return false };
        let without = run(entry, seed, None).expect("as before");
        assert!(without.drive.recording().is_none());
        assert_eq!(with.completions.seen, without.completions.seen);
        assert_eq!(with.drive.engine.now(), without.drive.engine.now());
        assert_eq!(with.drive.engine.die_busy(), without.drive.engine.die_busy());
        true
    });
}

#[test]
fn the_slowest_requests_are_kept_with_their_operations() {
    for_each_seed("timeline::the_slowest_requests_are_kept_with_their_operations", 3, |entry, seed| {
        let Some(model) = run(entry, seed, Some(ALL)) else { return false };
        let all = model.drive.recording().expect("a timeline was asked for");
        let slow = run(entry, seed, Some(Window::Slowest(3))).expect("as before").drive.recording().expect("asked");
        let latencies = |recording: &Recording, kind: u8| -> Vec<Nanos> {
            let of_kind = recording.requests.iter().filter(|each| each.kind as u8 == kind);
            let mut latencies: Vec<Nanos> = of_kind.map(|each| each.parts.iter().sum()).collect();
            latencies.sort_unstable_by(|one, two| two.cmp(one));
            latencies.truncate(3);
            latencies
        };
        (0..4).for_each(|kind| assert_eq!(latencies(&slow, kind), latencies(&all, kind)));
        assert!(slow.operations.is_sorted_by(|one, two| one.number < two.number), "each once");
        let in_all = |number: i64| &all.operations[number as usize - 1];
        assert!(slow.operations.iter().all(|each| format!("{each:?}") == format!("{:?}", in_all(each.number))));
        for each in &slow.requests {
            let as_in_all = &all.requests[each.number as usize - 1];
            assert_eq!((each.parts, each.completed), (as_in_all.parts, as_in_all.completed));
            let own = all.operations.iter().filter(|op| op.request == each.number && Some(over(op)) < each.completed);
            let numbers: BTreeSet<i64> = slow.operations.iter().map(|op| op.number).collect();
            assert!(own.map(|op| op.number).all(|number| numbers.contains(&number)), "{each:?}");
        }
        true
    });
}

#[test]
fn a_window_shows_its_part_of_the_whole() {
    for_each_seed("timeline::a_window_shows_its_part_of_the_whole", 4, |entry, seed| {
        let Some(model) = run(entry, seed, Some(ALL)) else { return false };
        let all = model.drive.recording().expect("a timeline was asked for");
        let part =
            |window: Window| run(entry, seed, Some(window)).expect("as before").drive.recording().expect("asked");
        let rows = |recording: &Recording| -> Vec<String> {
            recording.operations.iter().map(|each| format!("{each:?}")).collect()
        };

        let requests = part(Window::Requests { first: 30, last: 60 });
        assert_eq!(requests.requests.iter().map(|each| each.number).collect::<Vec<_>>(), (30..=60).collect::<Vec<_>>());
        let of_requests = |recording: &Recording| Recording {
            operations: recording.operations.iter().filter(|each| each.request > 0).cloned().collect(),
            ..Recording::default()
        };
        let mut expected = of_requests(&all);
        expected.operations.retain(|each| (30..=60).contains(&each.request));
        assert_eq!(rows(&of_requests(&requests)), rows(&expected));

        let end = all.operations.iter().map(over).max().unwrap_or(0) - all.zero;
        let (from, until) = (end / 3, end / 2 + 1);
        let times = part(Window::Time { from, until });
        let mut expected = all.clone();
        expected.operations.retain(|each| over(each) - all.zero >= from && each.planned - all.zero < until);
        assert_eq!(rows(&times), rows(&expected));
        true
    });
}
