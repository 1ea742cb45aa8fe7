//! `hotcold`: the baseline of the LLH paper (Margaglia et al., FAST 2016, Sec. 5.2): first writes only.
//!
//! A fine-grained map in banks, hot and cold data in separate blocks, greedy cleaning in each bank. The layer is
//! [`super::llh`] without partially-used and reused blocks, so that the two differ only in reuse. Runs on every part.

use super::llh::{Llh, settings};
use super::pages::BuildSubpageLayer;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Blueprint, Entry};

pub const ENTRY: Entry = Entry {
    name: "hotcold",
    about: "fine-grained map in banks, hot and cold data apart: llh without reuse, its baseline",
    gathers: true,
    hot_and_cold: true,
    keys: settings::baseline_keys,
    model: settings::BASELINE_MODEL,
    build: |io: &Io, blueprint: &Blueprint| Box::new(Llh::new(io, blueprint, false)),
    ..Entry::PLAIN
};

pub const UNITS: BuildSubpageLayer = |io, blueprint| Box::new(Llh::new(io, blueprint, false));
