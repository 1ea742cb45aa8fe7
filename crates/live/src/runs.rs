//! A whole run of a generated workload: the result of `palimpsest run`, printed by the same code.
//!
//! `sim.wall_s` and `sim.requests_per_s` are 0, because the module has no clock. Ignored: traces, kept states, charts.

use crate::workload;
use palimpsest_lab::config;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{self, Fidelity, Warmup};
use serde::Deserialize;
use std::ops::ControlFlow;

/// Options of a run, by the names of `palimpsest run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    ssd: String,
    ftl: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    workload: String,
    requests: Option<u64>,
    precondition: Option<String>,
    warmup: Option<String>,
    fidelity: Option<String>,
    payload: Option<String>,
    seed: Option<u64>,
}

/// The drive that the options name.
pub fn resolve(ssd: &str, ftl: Option<&str>, set: &[String]) -> Result<config::Resolved> {
    config::resolve(ssd, ftl, set, &|path| Err(Error::input(path, "there is no such preset; expected its name")))
}

/// The value that `text` names, the first without a text.
fn named<T: Copy>(option: &str, text: Option<&str>, values: &[(&str, T)]) -> Result<T> {
    let found = values.iter().find(|(name, _)| text.is_none_or(|text| text == *name));
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        Error::input(option, format!("{}; expected one of {}", text.unwrap_or_default(), names.join(", ")))
    })
}

/// Runs the workload on the drive, and returns the result as JSON.
pub fn run(options: &Options) -> Result<String> {
    let resolved = resolve(&options.ssd, options.ftl.as_deref(), &options.set)?;
    let seed = options.seed.unwrap_or(1);
    let fidelities = [("timed", Fidelity::Timed), ("count", Fidelity::Count)];
    let payloads = [("tag", Payload::Tag), ("none", Payload::None), ("bytes", Payload::Bytes)];
    let core = run::Options {
        workload: options.workload.clone(),
        precondition: Precondition::parse(options.precondition.as_deref().unwrap_or("none"))?,
        requests: options.requests,
        warmup: Warmup::parse(options.warmup.as_deref().unwrap_or("0"))?,
        fidelity: named("fidelity", options.fidelity.as_deref(), &fidelities)?,
        payload: named("payload", options.payload.as_deref(), &payloads)?,
        seed,
        series: false,
        operations: None,
        strict: false,
    };
    let mut source = workload::open(&options.workload, &resolved.drive, seed)?;
    let outcome = run::run(&resolved, source.as_mut(), &core, &mut |_| ControlFlow::Continue(()))?;
    Ok(serde_json::to_string(&outcome.summary).expect("a result can be printed"))
}
