//! `hotcold`: the baseline of the LLH paper (Margaglia et al., FAST 2016, Sec. 5.2): first writes only.
//!
//! The layer is [`super::subpage`] with the placement that the paper fixes. Logical subpage n belongs to bank n mod
//! banks (a bank is a plane), hot and cold data have separate blocks, moved data goes to the blocks of cold data, and
//! cleaning moves whole blocks. [`super::llh`] has the same placement, and reuse. Ignored: as in `subpage`.

use super::pages::BuildSubpageLayer;
use super::subpage::{self, Subpage};
use crate::log::pace::WHOLE_BLOCKS;
use crate::log::settings::{
    CACHE, COLLECTION, FIXED_CACHE, GATHER, LEVELING, READ, STATIC_LEVELING, WRITE_POLICY, WritePolicy,
    classifier_keys, keys_of,
};
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Blueprint, Entry, Model};

pub const ENTRY: Entry = Entry {
    name: "hotcold",
    about: "fine-grained map in banks, hot and cold data apart: llh without reuse, its baseline",
    hot_and_cold: true,
    keys: || {
        let shared = [COLLECTION, LEVELING, STATIC_LEVELING, READ, GATHER, CACHE, FIXED_CACHE, WRITE_POLICY];
        [keys_of(&shared), classifier_keys()].concat()
    },
    fixes: |_| {
        let fixed = [
            ("ftl.streams", "3"),
            ("ftl.moved", "cold"),
            ("ftl.allocation", "unit"),
            ("ftl.superblock_dies", "0"),
            ("ftl.gc_pace", "block"),
        ];
        fixed.map(|(key, value)| (key, value.into())).into()
    },
    reasons: &[("ftl.gc_pace", WHOLE_BLOCKS)],
    model: Model { varies: |rng, _| varies(rng), ..Model::ANY },
    build: |io, blueprint| Box::new(layer(io, blueprint)),
    ..subpage::ENTRY
};

pub const UNITS: BuildSubpageLayer = |io, blueprint| Box::new(layer(io, blueprint));

fn layer(io: &Io, blueprint: &Blueprint) -> Subpage {
    Subpage::new(io, blueprint, Some(&WritePolicy::new(&blueprint.settings)))
}

/// Each option of [`WritePolicy`], for the model suite.
pub(super) fn varies(rng: &mut Rng) -> Vec<String> {
    let mut one_of = |key: &str, words: [&str; 2]| format!("{key}={}", words[rng.below(2) as usize]);
    vec![one_of("ftl.open_block", ["after", "before"]), one_of("ftl.absorb", ["true", "false"])]
}
