//! Runs whose host is idle between groups of requests, when the layer collects and the drive patrols; with power cuts
//! on some drives. Every read is verified, and the times too.

use crate::drives::{Drawn, Limits, Shape, build, draw, with};
use crate::file_systems;
use crate::story;
use crate::workload::{Mix, fill, sweep};
use palimpsest_lab::config::resolve;
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Outcome, Warmup, run};
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
        story::call();
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

/// A drive with background collection, `more` settings, and on odd seeds power cuts; and the operations between two
/// cuts.
///
/// # Errors
/// The reason why there is no such drive.
pub fn draw_idle(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<(Shape, u32)> {
    let mut rng = Rng::new(seed, 0xba5e);
    let shape = match entry.below {
        Some(_) => file_systems::draw(entry, &mut rng, 120)?,
        None => draw(entry.name, &mut rng, Limits { subpages: 512, planes: 4 })?,
    };
    let mut changes = vec!["ftl.gc_background=true", "ftl.gc_idle=1ms", "ftl.gc_start=1 blocks"];
    // Some drives collect one block at a time for the host, and more while idle.
    match seed.is_multiple_of(3) {
        true => changes.extend(["ftl.gc_stop=1 blocks", "ftl.gc_idle_stop=2 blocks"]),
        false => changes.push("ftl.gc_stop=2 blocks"),
    }
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
    Ok((build(entry.name, &changed)?, apart))
}

/// A full drive, requests of all kinds, and reads of everything.
pub fn requests(shape: &Shape, seed: u64) -> Vec<Command> {
    let mut mix = Mix::new(&shape.drive, seed);
    let page = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let mut commands: Vec<Command> = fill(&shape.drive, page).collect();
    commands.extend((0..300).map(|_| mix.draw()));
    commands.extend(sweep(&shape.drive, RequestKind::Read, 5));
    commands
}

/// Runs `commands` on the drive of `shape`, as a user does.
///
/// # Errors
/// Those of the run.
pub fn run_groups(entry: &Entry, shape: &Shape, commands: Vec<Command>, seed: u64) -> Result<Outcome> {
    let resolved = resolve("model.toml", Some(entry.name), &shape.settings, &|_| Ok(String::new())).expect("as before");
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
    run(&resolved, &mut source, &options, &mut |_| {
        story::call();
        ControlFlow::Continue(())
    })
}
