//! Collection while the host is idle (`ftl.gc_background`), under the check of data and times, with power cuts.

use crate::drives::cells;
use crate::harness::{count_cuts, for_each_seed, for_each_seed_of, note};
use palimpsest_check::idle::{draw_idle, requests, run_groups};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::rng::Rng;

pub fn idle(entry: &'static Entry, seed: u64) -> bool {
    idle_with(entry, seed, &[]).is_some()
}

/// As [`idle`], with `more` settings; returns the reads of the patrol.
pub fn idle_with(entry: &'static Entry, seed: u64, more: &[&str]) -> Option<u64> {
    let (shape, apart) = draw_idle(entry, seed, more).ok()?;
    note(&shape.settings);
    match run_groups(entry, &shape, requests(&shape, seed), seed) {
        Ok(outcome) => {
            let flash = outcome.summary.flash;
            let (cuts, scanned) = outcome.summary.power.map_or((0, 0), |power| (power.cuts, power.pages_scanned));
            count_cuts(cuts);
            // Scans of recovery, and operations that were planned and never ran, do not count between two cuts.
            // Operations that a cut tears or rolls back (one in each of the two registers of a die) no longer count.
            let run = flash.page_reads + flash.page_programs + flash.erases - scanned;
            let torn = 3 * u64::from(shape.drive.geometry.planes());
            assert!(run + cuts * torn >= cuts * u64::from(apart), "{cuts} cuts {apart} apart in {run} operations");
            Some(flash.by_cause["patrol"].reads)
        }
        // Each cut spoils a page, of which the smallest drives have few.
        Err(error) if seed % 2 == 1 && error.to_string().contains("end of its life") => Some(0),
        Err(error) => panic!("{error}"),
    }
}

/// Reads with errors, and a patrol over pages that are moved, trimmed and written meanwhile.
#[test]
fn a_patrol_while_the_host_is_idle() {
    let more = [
        "ecc.strength=8",
        "ftl.patrol=700ms",
        "ecc.refresh_retries=1",
        "ecc.t_retention=2s",
        "ecc.t_retries=[\"50us\", \"90us\"]",
        "ecc.retry_rates=[\"70%\", \"40%\"]",
    ];
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "background::a_patrol_while_the_host_is_idle", 4, |entry, seed| {
        let more = [&more[..], &cells(&mut Rng::new(seed, 0xce11))].concat();
        idle_with(entry, seed, &more).is_some_and(|reads| reads > 0 || seed % 2 == 1)
    });
}

#[test]
fn collection_while_the_host_is_idle() {
    for_each_seed("background::collection_while_the_host_is_idle", 6, idle);
}

/// Once red: a cut counted planned operations, some of which an idle die ran at once. Fewer and fewer operations ran
/// between two cuts, and more and more requests waited.
#[test]
fn cuts_count_what_ran_on_all_dies() {
    assert!(idle(crate::drives::entry("block"), 1055));
}

#[test]
#[ignore = "minutes"]
fn long_collection_while_the_host_is_idle() {
    for_each_seed("--ignored background::long_collection_while_the_host_is_idle", 2000, |entry, seed| {
        idle(entry, seed + 1000)
    });
}
