//! The loop over seeds, and the command that repeats a failure.

pub use palimpsest_check::model::*;
pub use palimpsest_check::story::{count_cuts, note};
use palimpsest_check::{catch, story};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

static LIVES: AtomicU64 = AtomicU64::new(0);

/// The long tests run one seed in so many, because `make test-long` must end within an hour on two cores; `make soak`
/// runs new seeds for any time.
const LONG_SHARE: u64 = 8;
/// Drives that are drawn for one case at most.
const MOST_DRAWS: u64 = 240;
/// Step from the seed of one draw to the next: changes the residue for tests that use seeds modulo a small number.
const SEED_STEP: u64 = 1_000_003;

/// The failure of `seed`, and the command that repeats the case.
fn failure(test: &str, entry: &Entry, seed: u64, panic: &(dyn Any + Send)) -> String {
    let story = story::take();
    // The last request, unless the message names one.
    let what = catch::text(panic);
    let last = story.steps.last().filter(|_| !what.starts_with("request "));
    let cuts = if story.cuts.is_empty() { String::new() } else { format!("{}: ", story.cuts) };
    let last = last.map_or(String::new(), |step| format!("request {}, {:?}: ", step.number, step.command));
    let settings = story.settings.join(" --set ");
    format!(
        "{cuts}{last}{what}\n\
         repeat with: MODEL_SEED={seed} MODEL_FTL={} cargo test -p palimpsest-lab --test model -- --exact {test}\n\
         its drive: --set {settings}",
        entry.name,
    )
}

/// Runs `case` for every layer with seeds 0 to `seeds`. `case` returns whether the layer supports the drawn drive; if
/// not, another is drawn.
pub fn for_each_seed(test: &str, seeds: u64, case: impl Fn(&'static Entry, u64) -> bool) {
    for_each_seed_of(REGISTRY, test, seeds, case);
}

/// Whether the run is limited to one seed or one layer, so that checks of coverage do not apply.
pub fn is_partial() -> bool {
    ["MODEL_SEED", "MODEL_FTL"].iter().any(|name| std::env::var_os(name).is_some())
}

/// As [`for_each_seed`], for the layers `entries`.
pub fn for_each_seed_of(
    entries: impl IntoIterator<Item = &'static Entry>,
    test: &str,
    seeds: u64,
    case: impl Fn(&'static Entry, u64) -> bool,
) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = if test.starts_with("--ignored") { seeds.div_ceil(LONG_SHARE) } else { seeds };
    let only = std::env::var("MODEL_FTL").ok();
    let range = match number("MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("MODEL_FROM").unwrap_or(0);
            from..from + number("MODEL_CASES").unwrap_or(seeds)
        }
    };
    // To the last seed, despite failures.
    let goes_on = std::env::var_os("MODEL_ALL").is_some();
    let mut red = 0;
    for entry in entries.into_iter().filter(|entry| only.as_ref().is_none_or(|only| only == entry.name)) {
        for first in range.clone() {
            // Other seeds, until one gives a drive that the layer can have.
            let mut possible = false;
            for seed in (0..MOST_DRAWS).map(|draw| first + draw * SEED_STEP) {
                note(&[]);
                match catch_unwind(AssertUnwindSafe(|| case(entry, seed))) {
                    Ok(did) => {
                        possible = did;
                        LIVES.fetch_add(u64::from(did), Ordering::Relaxed);
                    }
                    Err(panic) => {
                        let what = failure(test, entry, seed, &*panic);
                        assert!(goes_on, "{what}");
                        (red, possible) = (red + 1, true);
                        println!("red seed {red}: {what}");
                    }
                }
                if possible || range.end == range.start + 1 {
                    break;
                }
            }
            let one = range.end == range.start + 1;
            assert!(possible || one, "{}: none of {MOST_DRAWS} drives of seed {first} was possible", entry.name);
        }
    }
    assert_eq!(red, 0, "red seeds, each of which is listed above");
    println!("lives {}, cuts {}", LIVES.load(Ordering::Relaxed), story::cuts());
}
