//! A run from a kept state must equal a run with preconditioning to the byte, on every layer.

use super::*;
use crate::config;
use crate::run::{Load, Outcome, Warmup, run_from};
use palimpsest_workload::fio::{FioSpec, generated};
use std::ops::ControlFlow;

/// Stores every state, and counts the found ones.
#[derive(Default)]
struct Memory {
    kept: Vec<(Key, Arc<Vec<u8>>)>,
    found: usize,
}

impl States for Memory {
    fn find(&mut self, key: &Key) -> Option<Arc<Vec<u8>>> {
        let state = self.kept.iter().rev().find(|(kept, _)| kept == key).map(|(_, state)| Arc::clone(state))?;
        self.found += 1;
        Some(state)
    }

    fn keep(&mut self, key: &Key, state: Vec<u8>) {
        self.kept.push((key.clone(), Arc::new(state)));
    }
}

const DRIVE: [&str; 8] = [
    "ftl.gc_start=2 blocks",
    "ftl.gc_stop=3 blocks",
    "ssd.channels=2",
    "ssd.planes_per_die=1",
    "ssd.chips_per_channel=1",
    "part.pages_per_block=8",
    "ssd.over_provisioning=60%",
    "part.t_read_words=[\"10us\", \"20us\", \"30us\", \"40us\"]",
];

pub(super) fn drive(layer: &palimpsest_ftl_api::Entry, extra: &[&str]) -> Resolved {
    try_drive(layer, extra).unwrap()
}

pub(super) fn try_drive(layer: &palimpsest_ftl_api::Entry, extra: &[&str]) -> Result<Resolved> {
    let blocks = format!("ssd.blocks_per_plane={}", 16 + layer.model.blocks);
    let mut set: Vec<&str> = layer.needs().into_iter().chain([blocks.as_str()]).chain(extra.iter().copied()).collect();
    let key = |text: &str| text.split('=').next().map(String::from);
    let kept = DRIVE.into_iter().filter(|text| !set.iter().any(|other| key(other) == key(text)));
    set.extend(kept.collect::<Vec<_>>());
    // The last of two values of a key applies.
    let unique = (0..set.len()).filter(|&index| !set[index + 1..].iter().any(|other| key(other) == key(set[index])));
    let set: Vec<String> = unique.map(|index| set[index].to_owned()).collect();
    config::resolve("mga-8k", Some(layer.name), &set, &|_| unreachable!())
}

pub(super) fn options(fidelity: Fidelity, payload: Payload, precondition: &str) -> Options {
    Options {
        workload: "random".into(),
        precondition: Precondition::parse(precondition).unwrap(),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload,
        seed: 3,
        series: true,
        operations: None,
        strict: false,
    }
}

fn outcome(resolved: &Resolved, options: &Options, states: &mut dyn States) -> Outcome {
    let spec = "rw=randrw,rwmixread=30,bssplit=2k/40:4k/30:12k/30,random_distribution=zipf:0.9,n=400";
    let spec = FioSpec::parse(spec).unwrap();
    let mut source = generated(&spec, resolved.drive.logical_bytes(), options.seed).unwrap();
    let watcher = &mut |_| ControlFlow::Continue(());
    run_from(resolved, Load { source: source.as_mut(), endless: None, until: None }, options, watcher, states)
        .unwrap_or_else(|error| {
            panic!("{}: {error}", resolved.drive.ftl.name);
        })
}

/// Result and charts.
pub(super) fn printed(outcome: &Outcome) -> String {
    format!("{}\n{}", serde_json::to_string(&outcome.summary).unwrap(), serde_json::to_string(&outcome.detail).unwrap())
}

/// The state of a new drive after loading `kept`.
fn again(resolved: &Resolved, options: &Options, kept: &[u8]) -> Vec<u8> {
    let watcher: crate::run::Watcher<'_> = &mut |_| ControlFlow::Continue(());
    let mut session = Session::new(&resolved.drive, options, watcher).unwrap();
    let mut done = summary::Precondition::default();
    load(&mut session, &mut done, kept).expect("a state of this drive");
    let state = save(&session, &done).unwrap();
    session.drive.ftl.check(&session.drive.io).unwrap();
    state
}

fn same_with_and_without(resolved: &Resolved, fidelity: Fidelity, payload: Payload) {
    let options = options(fidelity, payload, "fill:90%,random:2x");
    let (mut states, name) = (Memory::default(), &resolved.drive.ftl.name);
    let without = printed(&outcome(resolved, &options, &mut NotKept));
    let first = printed(&outcome(resolved, &options, &mut states));
    assert!(first == without, "{name}: keeping a state changed the result");
    let [(_, kept)] = &states.kept[..] else { panic!("{name} has no state") };
    let kept = Arc::clone(kept);
    assert!(again(resolved, &options, &kept) == *kept, "{name}: a state that was taken over is another one");
    let second = printed(&outcome(resolved, &options, &mut states));
    assert_eq!((states.found, states.kept.len()), (1, 1));
    assert!(second == without, "{name}, {fidelity:?}, {payload:?}: the result from a kept state differs");
}

#[test]
fn drives_of_other_times_share_a_state() {
    let times = ["part.t_read=77us", "part.t_program=333us", "part.t_erase=1ms", "part.bus_rate=300MB/s"];
    let times = [&times[..], &["buffer.t_write=7us", "buffer.t_write_next=900ns"]].concat();
    for layer in crate::layers::layers() {
        let (mut states, options) = (Memory::default(), options(Fidelity::Timed, Payload::Tag, "fill:90%,random:2x"));
        outcome(&drive(layer, &[]), &options, &mut states);
        let other = drive(layer, &times);
        let without = printed(&outcome(&other, &options, &mut NotKept));
        let with = printed(&outcome(&other, &options, &mut states));
        assert_eq!((states.found, states.kept.len()), (1, 1), "{}", layer.name);
        assert!(with == without, "{}: the result from the state of another drive differs", layer.name);
    }
}

#[test]
fn results_are_the_same_on_every_layer() {
    for layer in crate::layers::layers() {
        for (fidelity, payload) in [
            (Fidelity::Count, Payload::None),
            (Fidelity::Count, Payload::Tag),
            (Fidelity::Timed, Payload::None),
            (Fidelity::Timed, Payload::Tag),
        ] {
            same_with_and_without(&drive(layer, &[]), fidelity, payload);
        }
    }
}

#[test]
fn results_agree_with_faults_errors_and_random_policies() {
    let faults = ["faults.program_fail=0.1%", "faults.erase_fail=0.1%", "faults.read_fail=1%", "faults.initial_bad=1%"];
    let errors = ["ecc.strength=8", "ecc.disturb_reads=2000", "ecc.t_retention=1000s"];
    let streams = ["ftl.streams=3", "ftl.victim=d-choices:3"];
    for (name, extra) in [("subpage", &faults[..]), ("mga", &faults[..]), ("page", &errors[..]), ("page", &streams[..])]
    {
        let layer = crate::layers::find_layer(name).unwrap();
        same_with_and_without(&drive(layer, extra), Fidelity::Timed, Payload::Tag);
    }
}

#[test]
fn states_are_of_all_that_preconditioning_reads() {
    let page = crate::layers::find_layer("page").unwrap();
    let of = |extra: &[&str], precondition: &str, fidelity, payload| {
        key(&drive(page, extra), &options(fidelity, payload, precondition))
    };
    let usual = of(&[], "steady", Fidelity::Timed, Payload::None);
    assert!(usual.is_some());
    for shared in ["host.iodepth=7", "host.speedup=2", "sim.scheduler=fifo", "controller.t_read=3us", "part.t_read=1us"]
    {
        assert_eq!(of(&[shared], "steady", Fidelity::Timed, Payload::None), usual, "{shared}");
    }
    assert_eq!(of(&[], "steady", Fidelity::Count, Payload::None), usual);
    for other in ["ftl.victim=fifo", "ssd.blocks_per_plane=17", "part.endurance=77", "buffer.size=2MiB"] {
        assert_ne!(of(&[other], "steady", Fidelity::Timed, Payload::None), usual, "{other}");
    }
    assert_ne!(of(&[], "fill:90%", Fidelity::Timed, Payload::None), usual);
    assert_ne!(of(&[], "steady", Fidelity::Timed, Payload::Tag), usual);
    for unkept in ["none", "layout"] {
        assert_eq!(of(&[], unkept, Fidelity::Timed, Payload::None), None);
    }
    assert_eq!(of(&[], "steady", Fidelity::Timed, Payload::Bytes), None);
    assert_eq!(of(&["faults.power_cut_at=9"], "steady", Fidelity::Timed, Payload::Tag), None);
}

/// A layer's own structure in another crate, with the re-exports of the laboratory.
struct Stranger {
    counts: Vec<u32>,
    last: Option<(u64, bool)>,
    limit: u64,
}

crate::state!(Stranger { counts, last } built { limit });

/// A layer's trait methods in another crate.
trait Layer {
    fn state(&self) -> Option<&dyn State>;
    fn state_mut(&mut self) -> Option<&mut dyn State>;
}

impl Layer for Stranger {
    crate::ftl::keeps_state!();
}

#[test]
fn a_layer_of_another_crate_has_a_state() {
    let old = Stranger { counts: vec![3, 1, 4], last: Some((1 << 40, true)), limit: 9 };
    let (mut new, mut out) = (Stranger { counts: vec![0; 5], last: None, limit: 7 }, Vec::new());
    old.state().unwrap().save(&mut out);
    new.state_mut().unwrap().load(&mut Reader::new(&out)).unwrap();
    assert_eq!((new.counts, new.last, new.limit), (old.counts.clone(), old.last, 7));
    for short in 0..out.len() {
        assert_eq!(old.counts.clone().load(&mut Reader::new(&out[..short.min(19)])), None, "of {short} bytes");
    }
}

#[test]
fn a_state_of_another_drive_is_made_anew() {
    /// Finds foreign bytes instead of a state.
    struct Foreign(Vec<u8>, usize);
    impl States for Foreign {
        fn find(&mut self, _key: &Key) -> Option<Arc<Vec<u8>>> {
            Some(Arc::new(self.0.clone()))
        }

        fn keep(&mut self, _key: &Key, _state: Vec<u8>) {
            self.1 += 1;
        }
    }
    let mga = crate::layers::find_layer("mga").unwrap();
    let (small, large) = (drive(mga, &[]), drive(mga, &["ssd.blocks_per_plane=40"]));
    let options = options(Fidelity::Timed, Payload::Tag, "fill:90%");
    let mut states = Memory::default();
    let without = printed(&outcome(&small, &options, &mut states));
    let own = states.kept[0].1.to_vec();
    outcome(&large, &options, &mut states);
    let longer = [own.as_slice(), &[0]].concat();
    for wrong in [Vec::new(), states.kept[1].1.to_vec(), own[..own.len() / 2].to_vec(), longer] {
        let mut foreign = Foreign(wrong, 0);
        assert!(printed(&outcome(&small, &options, &mut foreign)) == without);
        assert_eq!(foreign.1, 1, "the right state is kept in its place");
    }
}
