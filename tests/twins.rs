//! Layers that differ in nothing but their name have equal results, because no code may depend on the name of a layer.
//!
//! A separate test binary, because the twins are in the registry of the whole process.

use palimpsest_lab::config::resolve;
use palimpsest_lab::ftl::{Entry, Model};
use palimpsest_lab::host::fio::{FioSource, FioSpec};
use palimpsest_lab::layers::{add, layers};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup, run};
use std::ops::ControlFlow;

/// A small drive.
const SMALL: [&str; 5] = [
    "ssd.channels=2",
    "ssd.chips_per_channel=1",
    "ssd.blocks_per_plane=40",
    "ssd.over_provisioning=100%",
    "part.pages_per_block=32",
];

/// The whole result of a run on a small drive with the layer `name`, without the name.
fn result(name: &str, entry: &Entry, fidelity: Fidelity) -> String {
    let needs = entry.needs();
    let key = |set: &&str| set.split_once('=').map(|(key, _)| key.to_owned());
    let small = SMALL.iter().filter(|set| !needs.iter().any(|need| key(need) == key(set)));
    let sets: Vec<String> = small.chain(&needs).map(|&set| set.into()).collect();
    let ssd = resolve("spread-16g", Some(name), &sets, &|_| unreachable!("presets need no files"))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let bytes = ssd.drive.logical_bytes();
    let spec: FioSpec = format!("rw=randrw,bs=8k,size={},n=2000,iodepth=8", bytes / 2).parse().expect("a workload");
    let options = Options {
        workload: "twins".into(),
        precondition: Precondition::parse(if entry.is_file_system() { "fill:50%" } else { "fill:100%,random:1x" })
            .expect("a state"),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Tag,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let mut source = FioSource::new(&spec, bytes, 1).expect("a source");
    let outcome = run(&ssd, &mut source, &options, &mut |_| ControlFlow::Continue(()));
    let mut summary = outcome.unwrap_or_else(|error| panic!("{name}: {error}")).summary;
    let collects = !entry.is_file_system() && !entry.zoned;
    assert!(summary.gc.runs + summary.merge.count > 0 || !collects, "{name}: the drive collects");
    (summary.ftl, summary.config) = (String::new(), serde_json::Value::Null);
    serde_json::to_string(&summary).expect("a result is text")
}

#[test]
fn layers_that_differ_only_in_their_name_are_equal() {
    let originals: Vec<&Entry> = layers().collect();
    let twin = |entry: &Entry| {
        let (name, model) = (format!("{}-twin", entry.name).leak(), Model { ..entry.model });
        Entry { name, model, ..*entry }
    };
    let twins: &[Entry] = originals.iter().map(|entry| twin(entry)).collect::<Vec<_>>().leak();
    add(twins, "twins").expect("new names");
    for (entry, twin) in originals.into_iter().zip(twins) {
        for fidelity in [Fidelity::Count, Fidelity::Timed] {
            let (one, other) = (result(entry.name, entry, fidelity), result(twin.name, twin, fidelity));
            assert_eq!(one, other, "{} by another name", entry.name);
        }
    }
}
