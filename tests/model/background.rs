//! Collection while the host is idle (`ftl.gc_background`), under the check of data and times, with power cuts.

use crate::drives::{Limits, build, cells, draw, with};
use crate::harness::{count_cuts, for_each_seed, for_each_seed_of, note};
use crate::workload::{Mix, fill};
use palimpsest_lab::config::resolve;
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup, run};
use palimpsest_lab::sim::drive::Command;
use palimpsest_lab::units::Nanos;
use std::ops::ControlFlow;

/// Requests in groups of four; between the groups the host is idle.
struct Grouped {
    commands: std::vec::IntoIter<Command>,
    arrival: Nanos,
    number: u64,
}

impl Source for Grouped {
    fn next_request(&mut self) -> Result<Option<Request>> {
        self.number += 1;
        if self.number.is_multiple_of(4) {
            self.arrival += 100_000_000;
        }
        let arrival = self.arrival;
        Ok(self.commands.next().map(|command| Request::new(arrival, command)))
    }

    fn place(&self) -> String {
        "groups".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }
}

pub fn idle(entry: &'static Entry, seed: u64) -> bool {
    idle_with(entry, seed, &[]).is_some()
}

/// As [`idle`], with `more` settings; returns the reads of the patrol.
pub fn idle_with(entry: &'static Entry, seed: u64, more: &[&str]) -> Option<u64> {
    let mut rng = Rng::new(seed, 0xba5e);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 120)?,
        None => draw(entry.name, &mut rng, Limits { subpages: 512, planes: 4 })?,
    };
    let mut changes =
        vec!["ftl.gc_background=true", "ftl.gc_idle=1ms", "ftl.gc_start=1 blocks", "ftl.gc_stop=2 blocks"];
    // Four requests must end between two cuts, or the run repeats forever: reads run first, and alone they change
    // nothing. Four requests may copy two blocks each, with copies of paired pages, and copy every block if victims
    // need not gain space.
    let geometry = &shape.drive.geometry;
    let gains = ["greedy", "cost-benefit"].contains(&shape.drive.log.victim.as_str());
    let copied = if gains { 0 } else { 5 * geometry.pages() as u32 };
    let apart = (40 * geometry.pages_per_block).max(300).max(copied);
    let cuts = format!("faults.power_cuts=every:{apart}");
    changes.extend((seed % 2 == 1).then_some(cuts.as_str()));
    let changed = with(&with(&shape.settings, &changes), more);
    let shape = build(entry.name, &changed).ok()?;
    note(&shape.settings);
    let resolved = resolve("model.toml", Some(entry.name), &shape.settings, &|_| Ok(String::new())).expect("as before");
    let mut mix = Mix::new(&shape.drive, seed);
    let page = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let mut commands: Vec<Command> = fill(&shape.drive, page).collect();
    commands.extend((0..300).map(|_| mix.next()));
    commands.extend(crate::workload::sweep(&shape.drive, RequestKind::Read, 5));
    let options = Options {
        workload: "groups".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Timed,
        payload: Payload::Tag,
        seed,
        series: false,
        operations: None,
        strict: false,
    };
    let mut source = Grouped { commands: commands.into_iter(), arrival: 0, number: 0 };
    let mut watcher = |_| ControlFlow::Continue(());
    match run(&resolved, &mut source, &options, &mut watcher) {
        Ok(outcome) => {
            let flash = outcome.summary.flash;
            let (cuts, scanned) = outcome.summary.power.map_or((0, 0), |power| (power.cuts, power.pages_scanned));
            count_cuts(cuts);
            // Scans of recovery, and operations that were planned and never ran, do not count between two cuts.
            // Operations that a cut tears or rolls back (one in each of the two registers of a die) no longer count.
            let run = flash.page_reads + flash.page_programs + flash.erases - scanned;
            let torn = 3 * u64::from(geometry.planes());
            assert!(run + cuts * torn >= cuts * u64::from(apart), "{cuts} cuts {apart} apart in {run} operations");
            Some(flash.by_cause["patrol"].reads)
        }
        // Each cut spoils a page, of which the smallest drives have few.
        Err(error) if seed % 2 == 1 && error.to_string().contains("end of its life") => Some(0),
        Err(error) => panic!("{error}"),
    }
}

/// Reads with errors, and a patrol over pages that are moved, trimmed and written meanwhile.
#[test]
fn a_patrol_while_the_host_is_idle() {
    let more = [
        "ecc.strength=8",
        "ftl.patrol=700ms",
        "ecc.refresh_retries=1",
        "ecc.t_retention=2s",
        "ecc.t_retries=[\"50us\", \"90us\"]",
        "ecc.retry_rates=[\"70%\", \"40%\"]",
    ];
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "background::a_patrol_while_the_host_is_idle", 4, |entry, seed| {
        let more = [&more[..], &cells(&mut Rng::new(seed, 0xce11))].concat();
        idle_with(entry, seed, &more).is_some_and(|reads| reads > 0 || seed % 2 == 1)
    });
}

#[test]
fn collection_while_the_host_is_idle() {
    for_each_seed("background::collection_while_the_host_is_idle", 6, idle);
}

/// Once red: a cut counted planned operations, some of which an idle die ran at once. Fewer and fewer operations ran
/// between two cuts, and more and more requests waited.
#[test]
fn cuts_count_what_ran_on_all_dies() {
    assert!(idle(crate::drives::entry("block"), 1055));
}

#[test]
#[ignore = "minutes"]
fn long_collection_while_the_host_is_idle() {
    for_each_seed("--ignored background::long_collection_while_the_host_is_idle", 2000, |entry, seed| {
        idle(entry, seed + 1000)
    });
}
