//! The model suite of the file system: random operations on files against a model in memory, with remounts and power
//! cuts.
//!
//! Cases are seeded. A failure prints a command that repeats the case; `MODEL_SEED` runs one seed, `MODEL_CASES` sets
//! the number of cases. Tests called `long_*` run many more seeds.

#[path = "filesystem/device.rs"]
mod device;
#[path = "filesystem/lifetimes.rs"]
mod lifetimes;
#[path = "filesystem/losses.rs"]
mod losses;
#[path = "filesystem/model.rs"]
mod model;
#[path = "filesystem/names.rs"]
mod names;
#[path = "filesystem/operations.rs"]
mod operations;
