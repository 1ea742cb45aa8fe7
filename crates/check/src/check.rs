//! `palimpsest check`: all kinds of cases on one layer, in turn, until the time is over or a case fails. A failure is
//! shrunk and described. The same seed draws the same cases in the same order; only their number depends on time.

use crate::catch::Caught;
use crate::drives::{needed, plain, with};
use crate::kinds::{KINDS, Kind};
use crate::shrink::shrink;
use crate::story::Story;
use crate::trial::{Failure, Progress, Trial, Watch};
use crate::words;
use palimpsest_lab::config::resolve;
use palimpsest_lab::config::unread::Gravity;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;
use serde::Serialize;

/// Drives that are drawn for one case at most.
const MOST_DRAWS: u64 = 60;

/// Lines of the history of an endless case, at most.
const SHOWN: usize = 40;

/// Flash operations that are shown of the last requests, at most.
const REPORTED: usize = 24;

/// The cases of a check.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seed of all cases.
    pub seed: u64,
    /// Settings of every drive, each `key=value`.
    pub settings: Vec<String>,
    /// Only this case, `KIND:NUMBER`.
    pub case: Option<String>,
    /// The most cases of a kind, each with all its power cuts; `None` for as many as the time allows.
    pub rounds: Option<u64>,
}

/// Counts of one kind of cases.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the kind.
    pub kind: &'static str,
    /// The kind in words.
    pub about: &'static str,
    /// Cases that passed. A drive with a number of power cuts counts as that many cases, and one.
    pub cases: u64,
    /// Requests.
    pub requests: u64,
    /// Power cuts.
    pub cuts: u64,
    /// False if the layer supports none of the drawn drives.
    pub supported: bool,
}

/// A failure in words.
#[derive(Debug, Clone, Serialize)]
pub struct Broken {
    /// The case, `KIND:NUMBER`.
    pub case: String,
    /// The failure.
    pub message: String,
    /// File and line of a panic of the layer or the simulator.
    pub place: Option<String>,
    /// Settings of the drive, each `key=value`.
    pub settings: Vec<String>,
    /// Contents, faults and form of the run in words.
    pub form: String,
    /// Requests of the case that failed first.
    pub requests: usize,
    /// Requests of the shortest history.
    pub shortest: usize,
    /// The shortest history, a line each: requests, and operations of the last ones.
    pub history: Vec<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// Name of the layer.
    pub layer: String,
    /// Seed of all cases.
    pub seed: u64,
    /// Counts of all kinds.
    pub rows: Vec<Row>,
    /// The failure, if there is one.
    pub broken: Option<Broken>,
}

/// Checks the layer `entry`.
///
/// # Errors
/// [`Error::Input`] for a wrong setting or case, [`Error::Interrupted`] if `watch` ends the check.
pub fn check(entry: &'static Entry, options: &Options, watch: &mut dyn Watch) -> Result<Checked> {
    expect_settings(entry, &options.settings)?;
    let only = options.case.as_deref().map(case_of).transpose()?;
    let mut checked = Checked { layer: entry.name.into(), seed: options.seed, rows: rows(), broken: None };
    for round in 0..options.rounds.unwrap_or(u64::MAX) {
        let mut supported = false;
        for (kind, row) in KINDS.iter().zip(0..) {
            let number = match only {
                Some((wanted, _)) if wanted.name != kind.name => continue,
                Some((_, number)) => number,
                None => round,
            };
            if round > 0 && !checked.rows[row].supported {
                continue;
            }
            let done: u64 = checked.rows.iter().map(|row| row.requests).sum();
            if watch.stops(Progress { phase: "check", done }) {
                return Err(Error::Interrupted);
            }
            if watch.is_over() && only.is_none() {
                return Ok(checked);
            }
            let name = format!("{}:{number}", kind.name);
            watch.begins(&name);
            let seed = Rng::new(options.seed, 0xc4ec).next_u64().wrapping_add(number) % (1 << 40);
            match run(entry, kind, seed, options, (&mut checked.rows[row], done), watch) {
                Ok(true) => supported = true,
                Ok(false) => checked.rows[row].supported = checked.rows[row].cases > 0,
                Err(Stop::Interrupted) => return Err(Error::Interrupted),
                Err(Stop::Broken(trial, failure)) => {
                    let requests = trial.commands.len();
                    watch.fails(&trial, &failure);
                    // An interrupt ends the search; failures found so far count.
                    let shrunk = shrink(*trial, failure, &options.settings, watch);
                    checked.broken = Some(described(&name, requests, &shrunk.trial, &shrunk.failure));
                    return Ok(checked);
                }
            }
        }
        if only.is_some() || !supported {
            break;
        }
    }
    if checked.rows.iter().all(|row| row.cases == 0) {
        let what = "the layer supports none of the drawn drives; expected other settings (--set), or an entry whose \
                    `model` states the needs of the layer";
        return Err(Error::input(format!("check {}", entry.name), what));
    }
    Ok(checked)
}

fn rows() -> Vec<Row> {
    let row = |kind: &Kind| Row { kind: kind.name, about: kind.about, cases: 0, requests: 0, cuts: 0, supported: true };
    KINDS.iter().map(row).collect()
}

/// Refuses settings that are wrong, or that nothing reads, on the default drive and on a small one: each may have
/// settings that exclude some of these.
fn expect_settings(entry: &Entry, settings: &[String]) -> Result<()> {
    let plain = with(&plain(1, 64, 16, entry.least_subpages()), &["ssd.over_provisioning=100%"]);
    let small = with(&needed(entry, &plain), &settings.iter().map(String::as_str).collect::<Vec<_>>());
    let refusal = |ssd: &str, all: &[String]| {
        let resolved = match resolve(ssd, Some(entry.name), all, &|_| Ok(String::new())) {
            Ok(resolved) => resolved,
            Err(error) => return Some(error).filter(|error| names_one(error, settings)),
        };
        let mut mistakes = resolved.unread().iter().filter(|unread| unread.gravity == Gravity::Mistake);
        let unread = mistakes.find(|unread| settings.iter().any(|setting| unread.place.contains(setting)))?;
        Some(Error::input(unread.place.clone(), format!("{}; expected {}", unread.what, unread.expected)))
    };
    match (refusal("default", settings), refusal("model.toml", &small)) {
        (Some(refusal), Some(_)) => Err(refusal),
        _ => Ok(()),
    }
}

/// Whether `error` is about one of `settings`.
fn names_one(error: &Error, settings: &[String]) -> bool {
    matches!(error, Error::Input { place, .. } if settings.iter().any(|setting| place.contains(setting.as_str())))
}

/// The kind and number of `KIND:NUMBER`.
fn case_of(text: &str) -> Result<(&'static Kind, u64)> {
    let named = text.split_once(':').and_then(|(name, number)| {
        let kind = KINDS.iter().find(|kind| kind.name == name)?;
        Some((kind, number.parse().ok()?))
    });
    named.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let expected = format!("expected KIND:NUMBER such as cuts:0, with a kind of {}", names.join(", "));
        Error::input(format!("--case {text}"), format!("there is no such case; {expected}"))
    })
}

/// The end of a check before its time.
enum Stop {
    Interrupted,
    Broken(Box<Trial>, Box<Failure>),
}

/// Draws the case of `seed` and runs it, then with power cuts. False if the layer supports none of the drawn drives.
fn run(
    entry: &'static Entry,
    kind: &Kind,
    seed: u64,
    options: &Options,
    (row, done): (&mut Row, u64),
    watch: &mut dyn Watch,
) -> std::result::Result<bool, Stop> {
    let settings: Vec<&str> = options.settings.iter().map(String::as_str).collect();
    // Changes the residue for kinds that use seeds modulo a small number.
    let mut draws = (0..MOST_DRAWS).map(|draw| seed + draw * 1_000_003);
    let Some(trial) = draws.find_map(|seed| (kind.draw)(entry, seed, &settings)) else { return Ok(false) };
    let mut play = |trial: Trial, watch: &mut dyn Watch| match trial.play(watch) {
        Ok(played) => {
            row.cases += 1;
            row.requests += played.requests;
            row.cuts += played.cuts;
            Ok(played)
        }
        Err(failure) => Err(Stop::Broken(Box::new(trial), failure)),
    };
    let played = play(trial.clone(), watch)?;
    for form in (kind.cuts)(&trial, &played) {
        if watch.stops(Progress { phase: "check", done }) {
            return Err(Stop::Interrupted);
        }
        if options.case.is_none() && watch.is_over() {
            break;
        }
        play(trial.with_form(form), watch)?;
    }
    Ok(true)
}

/// The failure of `case` in words; `requests` has the requests of the first failed case.
pub fn described(case: &str, requests: usize, trial: &Trial, failure: &Failure) -> Broken {
    Broken {
        case: case.into(),
        message: failure.caught.message.clone(),
        place: failure.caught.place.clone(),
        settings: trial.shape.settings.clone(),
        form: words::form(trial),
        requests,
        shortest: trial.commands.len(),
        history: words::history(trial, failure, REPORTED),
    }
}

/// The failure of `case`, in which the last call of the layer has not returned, for `reason`. The history
/// has the last requests of the whole case: a run that never ends cannot be shortened.
pub fn endless(case: &str, trial: &Trial, story: Story, reason: &str) -> Broken {
    let last = story.steps.last();
    let place = last.map(|step| words::request(&step.command, &trial.shape.drive.geometry));
    let message = format!("{}: {reason}", place.unwrap_or_else(|| "a call of the layer".into()));
    let recorded = last.map_or(0, |step| step.recorded);
    let failure = Failure { caught: Caught { message, place: None }, story, flash: Vec::new(), recorded };
    let mut broken = described(case, trial.commands.len(), trial, &failure);
    let hidden = broken.history.len().saturating_sub(SHOWN);
    if hidden > 0 {
        broken.history.splice(..hidden, [format!("... {hidden} earlier lines")]);
    }
    broken
}
