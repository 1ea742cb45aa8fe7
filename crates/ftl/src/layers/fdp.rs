//! `fdp`, `fdp-subpage`, `fdp-dftl`: Flexible Data Placement (NVM Express Base Specification 2.1, 3.2.4; TP4146) above
//! the maps of [`super::page`], [`super::subpage`] and [`super::dftl`].
//!
//! A reclaim unit is a superblock: a block of each plane of `ftl.superblock_dies` dies, written, collected and erased
//! as one; with parity (`ftl.rain`) it has one plane of each of its dies. With `fdp.unit = block` it is one block. The
//! placement identifier of a write names a reclaim unit handle, which refers to one unit at a time; a write without
//! one, or with one that the drive does not have, goes to handle 0, and the latter is an event. Data that collection
//! moves stays among the data of its handle (persistently isolated), or joins the moved data of the other handles
//! (initially isolated). Reclaim groups (`fdp.groups`) are equal parts of the dies, numbered channels first; the most
//! significant bits of an identifier name the group. A write without identifier goes to handle 0 of each group in turn.
//! A classifier (`ftl.classifier`) may name handles in place of the identifiers.
//!
//! Spare space floats: the victim is the drive's best, whichever handle it belongs to. Or handles have shares of the
//! units (`fdp.shares`): the handle that exceeds its share the most gives the victim. A unit of one block may be a
//! block of the fast cache (`ftl.slc_cache`), which has fewer pages. An update of a handle (Reclaim Unit Handle Update)
//! leaves a partly written unit.
//!
//! Ignored: time limits of units, and namespaces. Beyond the specification: data goes to another group if its group has
//! no room.

use super::dftl;
use super::page::{self, Page};
use super::pages::BuildSubpageLayer;
use super::subpage::{self, Subpage};
use crate::log::{Identifiers, streams};
use crate::maps::full::FullMap;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::keys::{Key, is, keys_of};
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Entry, Model, Proposal, Unfit, keys, refuse_if, words};

keys! {
    /// The handles of the drive.
    #[derive(Debug, Clone)]
    pub struct FdpSettings;

    /// The keys of `fdp`.
    group pub KEYS {
        /// reclaim unit handles: each keeps a unit open, and identifiers of writes (fio's plids) name them from 0 on
        pub handles: u32 = "fdp.handles", Count { min: 1, max: 128 }, "8";
        /// reclaim groups: equal parts of the dies; the most significant bits of an identifier name the group
        pub groups: u32 = "fdp.groups", Count { min: 1, max: 64 }, "1";
        /// a reclaim unit: a block of each plane of the dies of ftl.superblock_dies (0: all), or one block
        pub superblocks: bool = "fdp.unit", Choice(&["superblock", "block"]) => is("superblock"), "superblock";
        /// where data of a handle goes when collection moves it: into units of moved data of all handles, or into units
        /// of its handle
        pub isolation: Isolation = "fdp.isolation", Isolation::KIND, "initial";
        /// share of the reclaim units of each handle, from handle 0 on: the handle that exceeds its share the most
        /// gives up its unit with the fewest valid data; empty: the victim is chosen among all
        pub shares: Vec<f64> = "fdp.shares", Ratios, "[]", needs["fdp.isolation = persistent", "ftl.victim = greedy"];
    }
}

words! {
    /// Isolation of the data of reclaim unit handles.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Isolation {
        /// Until collection moves it.
        Initial = "initial",
        /// Also when collection moves it.
        Persistent = "persistent",
    }
}

/// Keys of the layers below whose values follow from the handles.
const FIXED: [&str; 5] = ["ftl.streams", "ftl.moved", "ftl.moved_to", "ftl.allocation", "ftl.slc_fixed"];

/// Streams of a layer, one of them for moved data.
const MOST_STREAMS: u32 = 256;

const MIXED: &str = "a fixed share of a fast cache mixes the data of all handles";

/// A drive of the model suite with as few spare blocks as possible.
const PLAIN: &[&str] =
    &["fdp.handles=1", "fdp.isolation=persistent", "fdp.unit=block", "ftl.classifier=none", "fdp.groups=1"];

/// The entry `base` with handles.
macro_rules! with_handles {
    ($name:literal, $base:path, $build:expr; $about:literal) => {
        Entry {
            name: $name,
            about: $about,
            keys: || keys_beside(($base.keys)()),
            fixes: fixed,
            hides: &["ftl.superblocks", "ftl.superblock_planes"],
            joined_by: ("fdp.unit", "block"),
            reasons: &[("ftl.slc_fixed", MIXED)],
            check,
            frontiers_key: "fdp.handles",
            model: Model {
                needs: PLAIN,
                varies: |rng, drawn| [varies(rng, drawn), ($base.model.varies)(rng, drawn)].concat(),
                ..$base.model
            },
            build: |io, blueprint| {
                let FdpSettings { handles, groups, shares, .. } = FdpSettings::new(&blueprint.settings);
                let (build, names): (fn(&Io, &Blueprint) -> _, _) = ($build, Identifiers { handles, groups });
                Box::new(build(io, blueprint).with_handles(names, &shares, io.geometry().dies()))
            },
            ..$base
        }
    };
}

/// Above the page map.
pub const PAGE: Entry = with_handles!("fdp", page::ENTRY, Page::<FullMap>::new;
    "page map with reclaim unit handles (Flexible Data Placement)");

/// Above the fine-grained map.
pub const SUBPAGE: Entry = with_handles!("fdp-subpage", subpage::ENTRY,
    |io, blueprint| Subpage::new(io, blueprint, None); "fine-grained map with reclaim unit handles");

/// The layer of [`SUBPAGE`] below a file system.
pub const UNITS: BuildSubpageLayer = |io, blueprint| {
    let FdpSettings { handles, groups, shares, .. } = FdpSettings::new(&blueprint.settings);
    let names = Identifiers { handles, groups };
    Box::new(Subpage::new(io, blueprint, None).with_handles(names, &shares, io.geometry().dies()))
};

/// Above the cached page map.
pub const DFTL: Entry = with_handles!("fdp-dftl", dftl::ENTRY, dftl::layer;
    "cached page map with reclaim unit handles");

/// The keys `base` that the handles do not fix, and the keys of the handles.
fn keys_beside(base: Vec<&'static Key>) -> Vec<&'static Key> {
    base.into_iter().filter(|key| !FIXED.contains(&key.name)).chain(keys_of(&[KEYS])).collect()
}

/// A stream for each handle, and for moved data if it is not isolated.
fn fixed(settings: &Settings) -> Vec<(&'static str, String)> {
    let FdpSettings { handles, groups, isolation, superblocks, .. } = FdpSettings::new(settings);
    // [`check`] refuses more handles.
    let isolated = isolation == Isolation::Persistent;
    let all = handles.saturating_mul(groups).min(MOST_STREAMS - 1);
    // A single handle has no other data to be apart from.
    let (streams, moved) = match all {
        1 if isolated => (1, "together"),
        _ if isolated => (all + 1, "class"),
        _ => (all + 1, "together"),
    };
    let collected = superblocks && settings.get::<u32>("ftl.rain") == 0;
    let fixed = [
        ("ftl.streams", streams.to_string()),
        ("ftl.moved", moved.into()),
        ("ftl.moved_to", "plane".into()),
        ("ftl.allocation", "round-robin".into()),
        ("ftl.superblocks", if collected { "collected" } else { "allocated" }.into()),
        ("ftl.superblock_planes", "all".into()),
    ];
    fixed.into()
}

/// Each handle needs a share, and each group dies. A fast cache is folded into blocks of moved data of all handles.
fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let FdpSettings { handles, groups, shares, isolation, .. } = FdpSettings::new(proposal.settings);
    let dies = proposal.geometry.dies();
    refuse_if!(!dies.is_multiple_of(groups) => "fdp.groups", "ftl.superblock_dies";
        "groups are equal parts of the {dies} dies, or sets of dies of a superblock; expected a divisor of {dies}");
    refuse_if!(handles.saturating_mul(groups) >= MOST_STREAMS => "fdp.groups", "fdp.handles";
        "expected at most {} handles in all groups together", MOST_STREAMS - 1);
    let (classifies, by_identifier) = streams::classifies(proposal.settings);
    refuse_if!(by_identifier => "ftl.classifier", "ftl.name";
        "identifiers name the handles without a classifier; expected none, owner, lifetime or another");
    refuse_if!(classifies && (handles == 1 || groups > 1) => "ftl.classifier", "fdp.handles", "fdp.groups";
        "a classifier chooses among the handles of one group; expected two handles or more and one group");
    let cached = proposal.settings.get::<BlockCount>("ftl.slc_cache").of(proposal.geometry.blocks_per_plane);
    refuse_if!(cached > 0 && isolation == Isolation::Persistent => "ftl.slc_cache", "fdp.isolation"
        => ["fdp.isolation" = "initial"];
        "the fast cache is folded into blocks of moved data of all handles");
    if shares.is_empty() {
        return Ok(());
    }
    refuse_if!(shares.len() != handles as usize => "fdp.shares", "fdp.handles";
        "expected a share of each of the {handles} handles, or none");
    let sum: f64 = shares.iter().sum();
    refuse_if!(shares.contains(&0.0) || sum > 1.0 => "fdp.shares";
        "expected shares above 0% that add up to at most 100%");
    Ok(())
}

/// Few handles, because each needs a spare unit, and both kinds of isolation. Two groups of single dies, if the drive
/// has an even number of channels, or a classifier.
fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let isolation = ["initial", "persistent"][rng.below(2) as usize];
    let (handles, mut varied) = ([1, 1, 1, 2, 3][rng.below(5) as usize], vec![format!("fdp.isolation={isolation}")]);
    if isolation == "persistent" && rng.below(2) == 0 {
        let share = format!("\"{}%\"", 100 / handles);
        varied.push(format!("fdp.shares=[{}]", vec![share; handles as usize].join(", ")));
        varied.push("ftl.victim=greedy".into());
    }
    varied.push(format!("fdp.handles={handles}"));
    varied.push(format!("fdp.unit={}", ["superblock", "block"][rng.below(2) as usize]));
    // A source of its own, so that other draws do not depend on these.
    let own = &mut Rng::new(rng.clone().next_u64(), 0x9_20f5);
    let is_even = drawn.iter().any(|one| matches!(one.as_str(), "ssd.channels=2" | "ssd.channels=4"));
    match own.below(3) {
        0 if is_even => varied.extend(["fdp.groups=2", "ftl.superblock_dies=1"].map(String::from)),
        1 if handles > 1 => {
            let name = ["size", "recency", "owner", "lifetime"][own.below(4) as usize];
            varied.push(format!("ftl.classifier={name}"));
        }
        _ => {}
    }
    varied
}
