//! Kept states: a run from the stored state of a preconditioned drive must equal the run that preconditions.

use crate::drives::Shape;
use crate::story;
use palimpsest_lab::config::{Resolved, resolve};
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::states::{Key, States, key};
use palimpsest_lab::run::{Fidelity, Load, Options, Warmup, run_from};
use palimpsest_lab::sim::drive::Command;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The only state.
#[derive(Default)]
struct Memory {
    kept: Option<(Key, Arc<Vec<u8>>)>,
    found: u32,
}

impl States for Memory {
    fn find(&mut self, key: &Key) -> Option<Arc<Vec<u8>>> {
        let state = self.kept.as_ref().filter(|(kept, _)| kept == key).map(|(_, state)| Arc::clone(state))?;
        self.found += 1;
        Some(state)
    }

    fn keep(&mut self, key: &Key, state: Vec<u8>) {
        self.kept = Some((key.clone(), Arc::new(state)));
    }
}

/// Requests one after the other.
pub struct Listed<T>(pub T);

impl<T: Iterator<Item = Command> + Send> Source for Listed<T> {
    fn next_request(&mut self) -> Result<Option<Request>> {
        story::call();
        Ok(self.0.next().map(|command| Request::new(0, command)))
    }

    fn place(&self) -> String {
        "model".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: 1 }
    }
}

fn options(seed: u64) -> Options {
    Options {
        workload: "model".into(),
        precondition: Precondition::parse("fill:100%,random:0.5x").expect("a precondition"),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: if seed.is_multiple_of(2) { Fidelity::Count } else { Fidelity::Timed },
        payload: Payload::Tag,
        seed,
        series: false,
        operations: None,
        strict: false,
    }
}

fn resolved(entry: &Entry, shape: &Shape) -> Resolved {
    resolve("model.toml", Some(entry.name), &shape.settings, &|_| Ok(String::new())).expect("as before")
}

/// True if the state of such a drive is kept; drives with superblocks keep none.
pub fn keeps(entry: &Entry, shape: &Shape, seed: u64) -> bool {
    key(&resolved(entry, shape), &options(seed)).is_some()
}

/// Runs `commands` on a full and overwritten drive, then again from the kept state. Returns whether a state was kept.
///
/// # Panics
/// The figures differ, or a run fails.
pub fn compare(entry: &Entry, shape: &Shape, commands: &[Command], seed: u64) -> bool {
    let (resolved, options) = (resolved(entry, shape), options(seed));
    let mut memory = Memory::default();
    let mut run = || {
        let mut source = Listed(commands.iter().copied());
        let mut watch = |_| {
            story::call();
            ControlFlow::Continue(())
        };
        let load = Load { source: &mut source, endless: None, until: None };
        let outcome = run_from(&resolved, load, &options, &mut watch, &mut memory);
        let summary = outcome.unwrap_or_else(|error| panic!("{error}")).summary;
        serde_json::to_string(&summary).expect("a result can be printed")
    };
    assert!(run() == run(), "a run from the kept state of the drive differs from the run that preconditions the drive");
    memory.found > 0
}
