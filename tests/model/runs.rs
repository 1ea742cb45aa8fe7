//! Whole runs as a user makes them: laws that the figures of every run obey, and a check of every layer on every
//! preset.

use crate::drives::{Limits, draw, pick, with};
use crate::harness::{for_each_seed_of, note};
use crate::workload::Mix;
use palimpsest_lab::config::{resolve, ssd_presets};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::host::replay::Volume;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::layers::layers;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Outcome, Warmup, run};
use palimpsest_lab::sim::drive::Command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Requests in a closed loop, of two volumes.
struct Listed {
    commands: std::vec::IntoIter<Command>,
    depth: u32,
    taken: u32,
    volumes: [Volume; 2],
}

impl Source for Listed {
    fn next_request(&mut self) -> Result<Option<Request>> {
        self.taken += 1;
        let stream = 1 + self.taken % 2;
        Ok(self.commands.next().map(|command| Request::new(0, command.of(stream))))
    }
    fn place(&self) -> String {
        "model".into()
    }
    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: self.depth }
    }
    fn has_volumes(&self) -> bool {
        true
    }
    fn volumes(&self) -> Vec<Volume> {
        self.volumes.to_vec()
    }
}

fn options(seed: u64, fidelity: Fidelity, precondition: &str) -> Options {
    Options {
        workload: "model".into(),
        precondition: Precondition::parse(precondition).expect("a precondition"),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Tag,
        seed,
        series: true,
        operations: None,
        strict: false,
    }
}

fn run_listed(
    (ssd, ftl, set): (&str, &str, &[String]),
    options: &Options,
    commands: Vec<Command>,
    depth: u32,
) -> Result<Outcome> {
    let resolved = resolve(ssd, Some(ftl), set, &|_| Ok(String::new()))?;
    let volumes = [1, 2].map(|id| Volume { id, name: id.to_string().into(), sector: 0, sectors: 0 });
    let mut source = Listed { commands: commands.into_iter(), depth, taken: 0, volumes };
    run(&resolved, &mut source, options, &mut |_| ControlFlow::Continue(()))
}

/// The sum of a column of the series, or of all numbers under `value`.
fn sum(value: &Value) -> f64 {
    match value {
        Value::Array(all) => all.iter().map(sum).sum(),
        Value::Object(all) => all.values().map(sum).sum(),
        other => other.as_f64().unwrap_or(0.0),
    }
}

fn same(what: &str, one: f64, two: f64) {
    assert!((one - two).abs() <= 1e-6 * one.abs().max(two.abs()), "{what}: {one} against {two}");
}

fn rise(what: &str, latency: &Value) {
    let percentiles = ["p50", "p90", "p99", "p999", "max"].map(|name| latency[name].as_u64().unwrap_or(0));
    assert!(percentiles.is_sorted(), "percentiles of {what}: {percentiles:?}");
}

/// Laws of the figures of a run.
fn hold(outcome: &Outcome, timed: bool) {
    let summary = serde_json::to_value(&outcome.summary).expect("a summary");
    let detail = serde_json::to_value(&outcome.detail).expect("a detail");
    let (flash, host, requests) = (&summary["flash"], &summary["host"], &summary["requests"]);
    let of_causes =
        |what: &str| flash["by_cause"].as_object().map_or(0.0, |all| all.values().map(|by| sum(&by[what])).sum());
    same("programs by cause", of_causes("programs"), sum(&flash["page_programs"]));
    same("reads by cause", of_causes("reads"), sum(&flash["page_reads"]));
    let energy = &summary["energy_uj"];
    let parts = ["read", "program", "reprogram", "erase"].map(|part| sum(&energy[part])).iter().sum();
    same("parts of the energy", parts, sum(&energy["total"]));
    if let Some(checkpoint) = summary["checkpoint"].as_object() {
        let by_cause = &flash["by_cause"]["checkpoint"]["programs"];
        same("programs of checkpoints", sum(&checkpoint["page_programs"]), sum(by_cause));
    }
    let volumes = summary["volumes"].as_array().expect("two volumes");
    assert_eq!(volumes.len(), 2);
    let of_volumes = |what: &str, kind: &str| -> f64 {
        volumes.iter().map(|volume| if kind.is_empty() { sum(&volume[what]) } else { sum(&volume[what][kind]) }).sum()
    };
    for kind in ["read", "write", "trim", "flush"] {
        same(&format!("{kind} requests of volumes"), of_volumes("requests", kind), sum(&requests[kind]));
    }
    same("bytes read of volumes", of_volumes("bytes_read", ""), sum(&host["bytes_read"]));
    same("bytes written of volumes", of_volumes("bytes_written", ""), sum(&host["bytes_written"]));
    if !timed {
        return;
    }
    let series = &detail["time"];
    let transferred = sum(&host["bytes_read"]) + sum(&host["bytes_written"]);
    for (column, total) in [
        ("requests", sum(requests)),
        ("bytes", transferred),
        ("programs", sum(&flash["page_programs"])),
        ("reads", sum(&flash["page_reads"])),
        ("erases", sum(&flash["erases"])),
    ] {
        same(&format!("series of {column}"), sum(&series[column]), total);
    }
    ["all", "read", "write"].iter().for_each(|class| rise(class, &summary["latency_ns"][class]));
    for busy in ["channels", "dies"] {
        let shares = detail["utilization"][busy].as_array().expect("shares of time");
        assert!(shares.iter().filter_map(Value::as_f64).all(|share| share <= 1.0), "{busy}: {shares:?}");
    }
}

/// A run of a random drive, with power cuts where that is possible.
pub fn lawful(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0x1a35);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 120),
        None => draw(entry.name, &mut rng, Limits { subpages: 1024, planes: 4 }),
    };
    let Ok(shape) = shape else { return false };
    let mut settings = with(&shape.settings, &["part.e_read=1uJ", "part.e_program=7uJ", "part.e_erase=20uJ"]);
    if rng.below(2) == 0 {
        settings = with(&settings, &["ftl.checkpoint=64KiB"]);
    }
    let cuts = pick(&mut rng, &["never", "every:400", "poisson:300"]);
    settings = with(&settings, &[&format!("faults.power_cuts={cuts}")]);
    note(&settings);
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<Command> = (0..400).map(|_| mix.draw()).collect();
    let fidelity = pick(&mut rng, &[Fidelity::Timed, Fidelity::Timed, Fidelity::Count]);
    let depth = pick(&mut rng, &[1, 8, 32]);
    match run_listed(("model.toml", entry.name, &settings), &options(seed, fidelity, "none"), commands, depth) {
        Ok(outcome) if outcome.summary.lifetime.worn_out => false,
        Ok(outcome) => {
            hold(&outcome, fidelity == Fidelity::Timed);
            true
        }
        // Each cut spoils pages, and a checkpoint needs blocks.
        Err(Error::WornOut(_) | Error::Input { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn figures_of_random_runs_obey_the_laws() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "runs::figures_of_random_runs_obey_the_laws", 6, lawful);
}

#[test]
#[ignore = "minutes"]
fn long_figures_of_random_runs_obey_the_laws() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "--ignored runs::long_figures_of_random_runs_obey_the_laws", 150, |entry, seed| {
        lawful(entry, seed + 1000)
    });
}

/// Once wrong: a flush that is free did not reach the file system above a buffer.
#[test]
fn every_layer_passes_the_check_on_every_preset() {
    let (mut presets, mut checked) = (BTreeSet::new(), BTreeSet::new());
    let commands: Vec<Command> = (0..240u64)
        .map(|index| match index % 8 {
            7 => Command::FLUSH,
            kind => Command::new(
                if kind < 5 { RequestKind::Write } else { RequestKind::Read },
                Extent { sector: index * 7919 % 512 * 8, sectors: 8 },
            ),
        })
        .collect();
    for preset in ssd_presets() {
        for entry in layers() {
            // A small drive of the preset's part, channels, buffer and controller.
            let blocks = format!("ssd.blocks_per_plane={}", 24 + entry.model.blocks);
            let smaller = with(
                &[],
                &[
                    "ssd.capacity=0B",
                    "part.pages_per_block=48",
                    "ftl.slc_fixed=0%",
                    "ssd.over_provisioning=250%",
                    &blocks,
                ],
            );
            let drive = (preset.name, entry.name, &smaller[..]);
            match run_listed(drive, &options(1, Fidelity::Timed, "none"), commands.clone(), 16) {
                Ok(outcome) => hold(&outcome, true),
                Err(Error::Input { .. }) => continue,
                Err(error) => panic!("{} on {}: {error}", entry.name, preset.name),
            }
            presets.insert(preset.name);
            checked.insert(entry.name);
        }
    }
    let unchecked: Vec<&str> =
        ssd_presets().iter().map(|preset| preset.name).filter(|name| !presets.contains(name)).collect();
    assert!(unchecked.is_empty(), "presets without a checked layer: {unchecked:?}");
    let unchecked: Vec<&str> = layers().map(|entry| entry.name).filter(|name| !checked.contains(name)).collect();
    assert!(unchecked.is_empty(), "layers without a checked preset: {unchecked:?}");
}

/// Two layers that differ in nothing but their names have the same results: `page-fgm` is `subpage` that reads whole
/// pages.
#[test]
fn layers_that_differ_in_name_alone_compare_equal() {
    for buffer in ["buffer.ack=buffer", "buffer.ack=program", "buffer.ack=volatile"] {
        let own = ["ssd.over_provisioning=80%", "ftl.read=page", buffer];
        let settings = with(&crate::drives::plain(2, 24, 8, 4), &own);
        let mut mix = Mix::new(&crate::drives::build("subpage", &settings).expect("a drive").drive, 5);
        let commands: Vec<Command> = (0..600).map(|_| mix.draw()).collect();
        let results = ["subpage", "page-fgm"].map(|name| {
            let drive = ("model.toml", name, &settings[..]);
            let outcome = run_listed(drive, &options(3, Fidelity::Timed, "none"), commands.clone(), 8);
            let mut summary = serde_json::to_value(outcome.expect("a run").summary).expect("a summary");
            summary.as_object_mut().expect("an object").retain(|key, _| key != "ftl" && key != "config");
            summary
        });
        assert_eq!(results[0], results[1], "{buffer}");
    }
}
