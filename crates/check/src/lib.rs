//! The model suite for one translation layer: random requests against a shadow of the host's data, on drives of many
//! shapes, counted and timed, with faults and power cuts. `tests/model` runs the same functions over every layer of the
//! registry; [`check::check`] runs all kinds of cases on one layer and shrinks the first failure to a short history.
//!
//! No clock, no files, no threads: the caller of [`check::check`] watches the time. Failures are panics with a message,
//! because most rules are assertions; [`catch`] turns them into values.

pub mod catch;
pub mod check;
pub mod digest;
pub mod drives;
pub mod faults;
pub mod file_systems;
pub mod idle;
pub mod kept;
pub mod kinds;
pub mod model;
pub mod power;
pub mod room;
pub mod scale;
pub mod sequences;
pub mod shapes;
pub mod shrink;
pub mod story;
pub mod timed;
pub mod trial;
pub mod words;
pub mod workload;
pub mod zones;
