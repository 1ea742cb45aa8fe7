//! Fidelity: runs through the user's path against closed forms, bounds and identities.
//!
//! Each test must state the formula and source, print the measurement and assert a bound. `long_*` tests take longer
//! (`make test-long`).

#[path = "fidelity/amplification.rs"]
mod amplification;
#[path = "fidelity/bench.rs"]
mod bench;
#[path = "fidelity/cached_map.rs"]
mod cached_map;
#[path = "fidelity/codesign.rs"]
mod codesign;
#[path = "fidelity/controller.rs"]
mod controller;
#[path = "fidelity/determinism.rs"]
mod determinism;
#[path = "fidelity/directives.rs"]
mod directives;
#[path = "fidelity/ecc.rs"]
mod ecc;
#[path = "fidelity/fast_cache.rs"]
mod fast_cache;
#[path = "fidelity/fills.rs"]
mod fills;
#[path = "fidelity/forms.rs"]
mod forms;
#[path = "fidelity/jobs.rs"]
mod jobs;
#[path = "fidelity/links.rs"]
mod links;
#[path = "fidelity/objects.rs"]
mod objects;
#[path = "fidelity/operations.rs"]
mod operations;
#[path = "fidelity/patrol.rs"]
mod patrol;
#[path = "fidelity/placement.rs"]
mod placement;
#[path = "fidelity/power.rs"]
mod power;
#[path = "fidelity/queueing.rs"]
mod queueing;
#[path = "fidelity/rates.rs"]
mod rates;
#[path = "fidelity/read_ahead.rs"]
mod read_ahead;
#[path = "fidelity/recovery.rs"]
mod recovery;
#[path = "fidelity/snapshots.rs"]
mod snapshots;
#[path = "fidelity/spread.rs"]
mod spread;
#[path = "fidelity/superblocks.rs"]
mod superblocks;
#[path = "fidelity/throughput.rs"]
mod throughput;
#[path = "fidelity/timing.rs"]
mod timing;
#[path = "fidelity/word_lines.rs"]
mod word_lines;
#[path = "fidelity/zones.rs"]
mod zones;
