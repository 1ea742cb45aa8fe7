//! The model suite: every FTL of the registry against a shadow of the host's writes, on drives of many shapes, counted
//! and timed, with faults and power cuts. Also checks the rules of flash and the engine's times against hand
//! computation.
//!
//! Cases are seeded. A failure prints the command that repeats the case. `MODEL_SEED` runs one seed, `MODEL_FTL` one
//! layer; `MODEL_CASES` sets the number of seeds, from `MODEL_FROM` on. With `MODEL_ALL=1` a test continues after a
//! failing seed and lists all failures. Tests called `long_*` run the same cases with many more seeds.

use palimpsest_check::{drives, workload};

#[path = "model/background.rs"]
mod background;
#[path = "model/block_order.rs"]
mod block_order;
#[path = "model/checkpoint.rs"]
mod checkpoint;
#[path = "model/dies.rs"]
mod dies;
#[path = "model/engine.rs"]
mod engine;
#[path = "model/every_fault.rs"]
mod every_fault;
#[path = "model/fast_cache.rs"]
mod fast_cache;
#[path = "model/faults.rs"]
mod faults;
#[path = "model/filesystem.rs"]
mod filesystem;
#[path = "model/harness.rs"]
mod harness;
#[path = "model/kept.rs"]
mod kept;
#[path = "model/laws.rs"]
mod laws;
#[path = "model/mutants.rs"]
mod mutants;
#[path = "model/overlap.rs"]
mod overlap;
#[path = "model/placement.rs"]
mod placement;
#[path = "model/power.rs"]
mod power;
#[path = "model/power_timed.rs"]
mod power_timed;
#[path = "model/prove.rs"]
mod prove;
#[path = "model/rain.rs"]
mod rain;
#[path = "model/read_ahead.rs"]
mod read_ahead;
#[path = "model/readers.rs"]
mod readers;
#[path = "model/reuse.rs"]
mod reuse;
#[path = "model/room.rs"]
mod room;
#[path = "model/rules.rs"]
mod rules;
#[path = "model/runs.rs"]
mod runs;
#[path = "model/sequences.rs"]
mod sequences;
#[path = "model/steps.rs"]
mod steps;
#[path = "model/streams.rs"]
mod streams;
#[path = "model/superblocks.rs"]
mod superblocks;
#[path = "model/timeline.rs"]
mod timeline;
#[path = "model/whole_runs.rs"]
mod whole_runs;
#[path = "model/womv.rs"]
mod womv;
#[path = "model/word_lines.rs"]
mod word_lines;
#[path = "model/zones.rs"]
mod zones;
