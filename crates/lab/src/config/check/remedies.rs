//! Remedies of refusals: a message names only settings that make the drive possible, or at least get past the refusal.
//!
//! Ignored: remedies in the text of a refusal without [`Unfit::cures`], and settings that the layer does not read.

use crate::config::build::Values;
use palimpsest_flash::units::parse::format_capacity;
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::{Cure, Unfit};

/// Builds the drive with more settings, as options of the user; the error is the problem of that drive.
pub(in crate::config) type Attempt<'a> = &'a dyn Fn(&[(&'static str, String)]) -> Result<(), String>;

/// Remedies that a message names at most.
const MOST: usize = 3;
/// Units of capacities in messages.
const UNITS: [u64; 2] = [1 << 20, 1 << 30];
/// The largest capacity.
const LARGEST: u64 = 1 << 60;
/// Doublings of a capacity that are tried.
const DOUBLINGS: u32 = 22;

/// The text of `unfit`: the problem, and remedies that work.
pub(super) fn of(values: &Values, unfit: &Unfit, attempt: Attempt) -> String {
    if let Some(capacity) = least_capacity(values, attempt) {
        return format!("{}; expected ssd.capacity = {capacity} or more", problem(&unfit.what));
    }
    if unfit.cures.is_empty() {
        return unfit.what.clone();
    }
    let outcomes: Vec<(&Cure, Result<(), String>)> = unfit.cures.iter().map(|cure| (cure, attempt(cure))).collect();
    let working = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
    let mut named: Vec<&Cure> = Vec::new();
    // Growing sizes, of which the first that works is enough.
    let is_larger = |cure: &Cure, other: &Cure| cure[0].0.starts_with("ssd.") && cure[0].0 == other[0].0;
    let repeats = |cure: &Cure, other: &Cure| other.iter().all(|setting| cure.contains(setting));
    for (cure, _) in working {
        if named.len() < MOST && !named.iter().any(|other| is_larger(cure, other) || repeats(cure, other)) {
            named.push(cure);
        }
    }
    if named.is_empty() {
        let is_past = |text: &str| kind(text) != kind(&unfit.what);
        let past = outcomes.iter().find(|(_, outcome)| outcome.as_ref().is_err_and(|text| is_past(text)));
        named.extend(past.map(|(cure, _)| *cure));
    }
    if named.is_empty() {
        return format!("{}; expected other values of these keys", unfit.what);
    }
    let texts: Vec<String> = named.into_iter().map(text).collect();
    format!("{}; expected {}", unfit.what, texts.join(" or "))
}

/// The problem of a text, without the expected values.
fn problem(what: &str) -> &str {
    what.split("; expected ").next().unwrap_or(what)
}

/// The problem without numbers.
fn kind(what: &str) -> String {
    problem(what).chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn text(cure: &Cure) -> String {
    let is_bare = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/[]".contains(c));
    let settings = cure.iter().map(|(key, value)| match is_bare(value) {
        true => format!("{key} = {value}"),
        false => format!("{key} = \"{value}\""),
    });
    settings.collect::<Vec<_>>().join(" and ")
}

/// The least capacity with which the drive is possible, if the user sets a smaller one.
fn least_capacity(values: &Values, attempt: Attempt) -> Option<String> {
    let capacity = values.key("ssd.capacity");
    let blocks = values.key("ssd.blocks_per_plane");
    let Value::Capacity(bytes) = capacity.value else { return None };
    if bytes == 0 || capacity.rank == 0 || capacity.rank < blocks.rank {
        return None;
    }
    let unit = UNITS[usize::from(bytes >= UNITS[1])];
    let of = |count: u64| format_capacity(count * unit);
    let works = |count: u64| attempt(&[("ssd.capacity", of(count))]).is_ok();
    let first = bytes.div_ceil(unit).max(1);
    let mut tried = (1..=DOUBLINGS).map(|doublings| first << doublings).take_while(|&count| count <= LARGEST / unit);
    let mut most = tried.find(|&count| works(count))?;
    let mut least = most / 2;
    while least + 1 < most {
        let middle = u64::midpoint(least, most);
        if works(middle) { most = middle } else { least = middle }
    }
    Some(of(most))
}
