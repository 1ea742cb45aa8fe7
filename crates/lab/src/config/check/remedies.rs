//! Remedies of refusals: settings with which the whole drive is possible. Each named remedy has been tried on the
//! drive.
//!
//! A refusal declares remedies ([`Unfit::cures`]); beside them, the search tries other values of the keys that the user
//! set, nearest first, then combinations, then the drive without these settings. Ignored: files and options of the run.

use crate::config::build::Values;
use crate::config::notation::read_bare;
use crate::config::{ResolvedKey, nearest, schema};
use palimpsest_flash::units::parse::format_capacity;
use palimpsest_ftl_api::keys::{Need, Value};
use palimpsest_ftl_api::{Cure, Unfit};

/// A changed setting: the key with a value, or without the settings of the user.
pub(in crate::config) type Change = (&'static str, Option<String>);

/// The drive of the user, with changes.
pub(in crate::config) trait Trial {
    /// The settings of the user that nothing reads on the drive with `changes`.
    ///
    /// # Errors
    /// The refusal of that drive.
    fn attempt(&self, changes: &[Change]) -> Result<Vec<&'static str>, Unfit>;

    /// Whether the user set the key.
    fn is_of_user(&self, key: &ResolvedKey) -> bool;

    /// The settings of the user that nothing reads on the drive as it is.
    fn unread(&self) -> &[&'static str];

    /// The value of `key` without the settings of the user.
    fn before(&self, key: &'static str) -> Option<Value>;
}

/// Remedies that a message names at most.
const MOST: usize = 3;
/// Remedies beyond which none are searched.
const ENOUGH: usize = 2;
/// Changes that may lead from one refusal to the next until the drive is possible.
const MOST_STEPS: usize = 3;
/// Changes of each refusal on the way that the search follows.
const MOST_BRANCHES: usize = 4;
/// Units of capacities in messages.
const UNITS: [u64; 2] = [1 << 20, 1 << 30];
/// The largest capacity.
const LARGEST: u64 = 1 << 60;
/// Doublings of a capacity that are tried.
const DOUBLINGS: u32 = 22;

/// The texts of `unfit`, the longest first: problem, remedies, and the rule that the remedies meet.
pub(super) fn of(values: &Values, unfit: &Unfit, trial: &dyn Trial) -> Vec<String> {
    let (problem, rule) = match unfit.what.split_once("expected ") {
        Some((problem, rule)) => (problem.trim_end_matches("; "), Some(rule)),
        None => (unfit.what.as_str(), None),
    };
    let colon = if problem.is_empty() { "" } else { "; " };
    let least = least_capacity(values, trial);
    let more = if least.is_some() { " or more" } else { "" };
    let named = match least {
        Some(capacity) => vec![vec![("ssd.capacity", Some(capacity))]],
        None => found(values, unfit, trial),
    };
    if named.is_empty() {
        let rule = rule.unwrap_or("other values of these keys");
        return vec![format!("{problem}{colon}expected {rule}")];
    }
    let texts: Vec<String> = named.iter().map(|changes| text(changes)).collect();
    let bare = format!("{problem}{colon}expected {}{more}", texts.join(" or "));
    let whole = rule.map(|rule| format!("{bare} ({rule})"));
    whole.into_iter().chain([bare]).collect()
}

/// Remedies of `unfit`.
fn found(values: &Values, unfit: &Unfit, trial: &dyn Trial) -> Vec<Vec<Change>> {
    let declared: Vec<Vec<Change>> = unfit.cures.iter().map(changes).collect();
    if unfit.keys.iter().any(|key| trial.unread().contains(key)) {
        // The drive would refuse these settings next, unless a remedy makes it read them.
        let reads_all = |changes: &[Change]| trial.attempt(changes).is_ok_and(|unread| unread.is_empty());
        let unread: Vec<Change> = trial.unread().iter().map(|key| (*key, None)).collect();
        let named = smallest(declared.iter().filter(|changes| reads_all(changes)));
        if !named.is_empty() || reads_all(&unread) {
            return if named.is_empty() { vec![unread] } else { named };
        }
    }
    let mut named = smallest(declared.iter().filter(|changes| fits(trial, changes)));
    for key in of_user(values, unfit, trial) {
        let is_named = named.iter().flatten().any(|(name, _)| *name == key.key.name);
        if !is_named && named.len() < ENOUGH {
            named.extend(nearest_that_fits(key, &[], trial).map(|value| vec![(key.key.name, Some(value))]));
        }
    }
    if named.is_empty() {
        named.extend(several(values, unfit, trial).or_else(|| without(values, unfit, trial)));
    }
    if named.is_empty() {
        // A drive of the user whose unread settings another message names.
        named.extend(declared.into_iter().find(|changes| trial.attempt(changes).is_ok()));
    }
    named
}

fn changes(cure: &Cure) -> Vec<Change> {
    cure.iter().map(|(key, value)| (*key, Some(value.clone()))).collect()
}

/// Whether the drive with `changes` is possible, and reads all settings that it reads now.
fn fits(trial: &dyn Trial, changes: &[Change]) -> bool {
    trial.attempt(changes).is_ok_and(|unread| unread.iter().all(|key| trial.unread().contains(key)))
}

/// The first few of `all` that no other makes superfluous.
fn smallest<'a>(all: impl Iterator<Item = &'a Vec<Change>>) -> Vec<Vec<Change>> {
    let mut named: Vec<Vec<Change>> = Vec::new();
    for changes in all {
        if named.len() < MOST && !named.iter().any(|other| is_larger(changes, other) || repeats(changes, other)) {
            named.push(changes.clone());
        }
    }
    named
}

/// Whether both are growing sizes, of which the first that works is enough.
fn is_larger(changes: &[Change], other: &[Change]) -> bool {
    changes[0].0.starts_with("ssd.") && changes[0].0 == other[0].0
}

fn repeats(changes: &[Change], other: &[Change]) -> bool {
    other.iter().all(|change| changes.contains(change))
}

/// The keys of `unfit` that the user set, the last option first.
fn of_user<'a>(values: &'a Values, unfit: &Unfit, trial: &dyn Trial) -> Vec<&'a ResolvedKey> {
    let mut keys: Vec<&ResolvedKey> = unfit.keys.iter().map(|key| values.key(key)).collect();
    keys.retain(|key| trial.is_of_user(key));
    keys.sort_by_key(|key| std::cmp::Reverse(key.rank));
    keys
}

/// The value of `key` nearest to the user's with which the drive with `changes` is possible.
fn nearest_that_fits(key: &ResolvedKey, changes: &[Change], trial: &dyn Trial) -> Option<String> {
    let values = nearest::candidates(key, trial.before(key.key.name).as_ref());
    values.into_iter().find(|value| {
        let all = [changes, &[(key.key.name, Some(value.clone()))]].concat();
        fits(trial, &all)
    })
}

/// Changes of which each leads to the next refusal, and the last one to a possible drive; breadth first.
fn several(values: &Values, unfit: &Unfit, trial: &dyn Trial) -> Option<Vec<Change>> {
    let mut reached: Vec<(Vec<Change>, Unfit)> = vec![(Vec::new(), unfit.clone())];
    for _ in 0..MOST_STEPS {
        let mut next = Vec::new();
        for (so_far, unfit) in &reached {
            let is_new = |change: &Change| !so_far.iter().any(|(key, _)| *key == change.0);
            let of_user = of_user(values, unfit, trial).into_iter().filter(|key| is_new(&(key.key.name, None)));
            let before = |key: &ResolvedKey| trial.before(key.key.name).map(|value| value.to_text());
            let restored = of_user.filter_map(|key| before(key).map(|text| vec![(key.key.name, Some(text))]));
            let steps = unfit.cures.iter().map(changes).chain(restored).filter(|step| step.iter().all(is_new));
            for step in steps {
                let all = [so_far.as_slice(), &step].concat();
                match trial.attempt(&all) {
                    Ok(_) if fits(trial, &all) => return Some(all),
                    Ok(_) => {}
                    Err(unfit) if next.len() < MOST_BRANCHES => next.push((all, unfit)),
                    Err(_) => {}
                }
            }
        }
        reached = next;
    }
    None
}

/// The fewest settings of the user, found one refusal after the other, without which the drive is possible; or the
/// layer that the drive has without the user's.
fn without(values: &Values, unfit: &Unfit, trial: &dyn Trial) -> Option<Vec<Change>> {
    let fits = |changes: &[Change]| fits(trial, changes);
    let mut dropped: Vec<Change> = Vec::new();
    let mut refusal = Some(unfit.clone());
    while let Some(unfit) = refusal {
        let keys = of_user(values, &unfit, trial).into_iter().map(|key| key.key.name);
        let more: Vec<Change> =
            keys.filter(|key| !dropped.iter().any(|(other, _)| other == key)).map(|key| (key, None)).collect();
        if more.is_empty() {
            break;
        }
        dropped.extend(more);
        refusal = trial.attempt(&dropped).err();
    }
    if !fits(&dropped) {
        dropped = values.all().iter().filter(|key| trial.is_of_user(key)).map(|key| (key.key.name, None)).collect();
    }
    for at in (0..dropped.len()).rev() {
        let fewer = [&dropped[..at], &dropped[at + 1..]].concat();
        if !fewer.is_empty() && fits(&fewer) {
            dropped = fewer;
        }
    }
    (!dropped.is_empty() && trial.attempt(&dropped).is_ok()).then_some(dropped)
}

/// The changes as settings: `KEY = VALUE and no KEY`.
pub(in crate::config) fn text(changes: &[Change]) -> String {
    let is_bare = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/[]".contains(c));
    let settings = changes.iter().map(|(key, value)| match value {
        None => format!("no {key}"),
        Some(value) if is_bare(value) || value.contains('"') => format!("{key} = {value}"),
        Some(value) => format!("{key} = \"{value}\""),
    });
    settings.collect::<Vec<_>>().join(" and ")
}

/// The remedy of settings that nothing reads: layers or settings with which the drive reads all of `keys`, or the drive
/// without them. `layers` and `needs` name candidates.
pub(in crate::config) fn of_unread(
    keys: &[&'static str],
    layers: &[&'static str],
    needs: &[Vec<Change>],
    trial: &dyn Trial,
) -> String {
    let reads = |changes: &[Change]| trial.attempt(changes).is_ok_and(|unread| unread.is_empty());
    let on_layers = layers.iter().map(|layer| vec![("ftl.name", Some((*layer).to_owned()))]);
    let mut named: Vec<String> = needs.iter().filter(|changes| reads(changes)).take(1).map(|one| text(one)).collect();
    named.extend(on_layers.filter(|changes| reads(changes)).take(MOST - named.len()).map(|one| text(&one)));
    let dropped: Vec<Change> = keys.iter().map(|key| (*key, None)).collect();
    named.push(text(&dropped));
    named.join(", or ")
}

/// Changes that meet the condition `need`, usual values first.
pub(in crate::config) fn meeting(need: &Need) -> Vec<Vec<Change>> {
    let kind = schema::known(need.key).value_type;
    let usual = ["1", "40", "64KiB", "1MiB", "1s", "90d", "10%", "5 blocks", "true"];
    let texts: Vec<&str> = if need.exceeds { usual.into() } else { need.operand.split('|').collect() };
    let meets = |text: &&str| read_bare(kind, text).is_ok_and(|value| need.is_met(&value));
    texts.into_iter().filter(meets).map(|text| vec![(need.key, Some(text.to_owned()))]).collect()
}

/// The least capacity with which the drive is possible, if the user sets a smaller one.
fn least_capacity(values: &Values, trial: &dyn Trial) -> Option<String> {
    let capacity = values.key("ssd.capacity");
    let blocks = values.key("ssd.blocks_per_plane");
    let Value::Capacity(bytes) = capacity.value else { return None };
    if bytes == 0 || capacity.rank == 0 || capacity.rank < blocks.rank {
        return None;
    }
    let unit = UNITS[usize::from(bytes >= UNITS[1])];
    let of = |count: u64| format_capacity(count * unit);
    let works = |count: u64| trial.attempt(&[("ssd.capacity", Some(of(count)))]).is_ok();
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
