//! `palimpsest check`: so many cases of each kind on one layer, in turn, until all are done or a case fails. A failure
//! is shrunk and described. The seed draws the same cases in the same order on every machine: no case depends on a
//! clock. A time limit of the caller may end a check before, and the verdict then names the kinds that have cases left.

use crate::catch::Caught;
use crate::digest::Digest;
use crate::drives::{Drawn, needed, plain, with};
use crate::kinds::{KINDS, Kind};
use crate::scale::Scaled;
use crate::shapes::{Covered, Wanted, wanted};
use crate::shrink::shrink;
use crate::story::Story;
use crate::trial::{Failure, Played, Progress, Trial, Watch};
use crate::words;
use palimpsest_lab::config::resolve;
use palimpsest_lab::config::unread::Gravity;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;
use serde::Serialize;
use std::collections::BTreeMap;

/// Cases of each kind, unless the caller says otherwise: more than there are values of drives to cover, and about a
/// minute for the layer `page`.
pub const CASES: u64 = 48;

/// Drives that are drawn for one case at most, if any drive will do.
const MOST_DRAWS: u64 = 60;

/// Drives that are drawn for a case that wants a value: some values are rare.
const WANTED_DRAWS: u64 = 300;

/// Lines of the history of an endless case, at most.
const SHOWN: usize = 40;

/// Flash operations that are shown of the last requests, at most.
const REPORTED: usize = 24;

/// The cases of a check.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of all cases.
    pub seed: u64,
    /// Settings of every drive, each `key=value`.
    pub settings: Vec<String>,
    /// The drive of which every case has the shape.
    pub ssd: Option<Scaled>,
    /// Only this case, `KIND:NUMBER`.
    pub case: Option<String>,
    /// Cases of each kind, each with all its power cuts.
    pub cases: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, settings: Vec::new(), ssd: None, case: None, cases: CASES }
    }
}

impl Options {
    /// The settings of every drive: of the given drive, and then of the user.
    fn all_settings(&self) -> Vec<String> {
        let own: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        with(self.ssd.as_ref().map_or(&[], |ssd| ssd.settings.as_slice()), &own)
    }
}

/// Counts of one kind of cases.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the kind.
    pub kind: &'static str,
    /// The kind in words.
    pub about: &'static str,
    /// Cases that passed with all their power cuts.
    pub cases: u64,
    /// Cases of a whole check; 0 if the layer does not support the kind.
    pub expected: u64,
    /// Runs of cases: one without a power cut, and one for each cut.
    pub runs: u64,
    /// Requests.
    pub requests: u64,
    /// Power cuts.
    pub cuts: u64,
    /// False if the layer supports none of the drawn drives.
    pub supported: bool,
    /// Why the layer does not support the kind.
    pub reason: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Every case of every supported kind passed.
    #[serde(rename = "passed")]
    Passed,
    /// No case failed, and some kinds have cases left.
    #[serde(rename = "passed in part")]
    Part,
    /// A case failed.
    #[serde(rename = "failed")]
    Failed,
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
    /// The outcome.
    pub verdict: Verdict,
    /// Digest of all runs that passed: drives, requests, power cuts, flash operations. Equal checks have equal digests.
    pub cases_digest: String,
    /// Counts of all kinds.
    pub rows: Vec<Row>,
    /// Cases in which the drive had each value of each dimension.
    pub drives: Vec<Covered>,
    /// The drive whose shape all cases have.
    pub ssd: Option<Scaled>,
    /// The failure, if there is one.
    pub broken: Option<Broken>,
}

impl Checked {
    /// A check of `layer` that found `broken`, and of which nothing else is known.
    pub fn failed(layer: &str, seed: u64, broken: Broken) -> Checked {
        Checked {
            layer: layer.into(),
            seed,
            verdict: Verdict::Failed,
            cases_digest: Digest::default().hex(),
            rows: Vec::new(),
            drives: Vec::new(),
            ssd: None,
            broken: Some(broken),
        }
    }
}

/// Checks the layer `entry`.
///
/// # Errors
/// [`Error::Input`] for a wrong setting or case, [`Error::Interrupted`] if `watch` ends the check.
pub fn check(entry: &'static Entry, options: &Options, watch: &mut dyn Watch) -> Result<Checked> {
    expect_settings(entry, &options.settings)?;
    let only = options.case.as_deref().map(case_of).transpose()?;
    let mut check = Check::new(entry, options, only);
    let broken = check.run(only, watch)?;
    if check.rows.iter().all(|row| row.runs == 0) && broken.is_none() && !check.is_over {
        return Err(check.unsupported());
    }
    Ok(check.ended(broken))
}

/// A check under way.
struct Check<'a> {
    entry: &'static Entry,
    options: &'a Options,
    settings: Vec<String>,
    wanted: Vec<Wanted>,
    rows: Vec<Row>,
    /// Cases with each of `wanted`.
    covered: Vec<u64>,
    digest: Digest,
    /// True if the time ended before the cases.
    is_over: bool,
}

impl Check<'_> {
    fn new<'a>(entry: &'static Entry, options: &'a Options, only: Option<(&Kind, u64)>) -> Check<'a> {
        let settings = options.all_settings();
        let wanted = wanted(entry, &settings);
        let rows = KINDS.iter().map(|kind| Row {
            kind: kind.name,
            about: kind.about,
            cases: 0,
            expected: only.map_or(options.cases, |(wanted, _)| u64::from(wanted.name == kind.name)),
            runs: 0,
            requests: 0,
            cuts: 0,
            supported: true,
            reason: None,
        });
        let (rows, covered) = (rows.collect(), vec![0; wanted.len()]);
        Check { entry, options, settings, wanted, rows, covered, digest: Digest::default(), is_over: false }
    }

    /// Runs all cases; returns the failure that ended them.
    fn run(&mut self, only: Option<(&Kind, u64)>, watch: &mut dyn Watch) -> Result<Option<Broken>> {
        for round in 0..self.rows.iter().map(|row| row.expected).max().unwrap_or(0) {
            for (row, kind) in KINDS.iter().enumerate() {
                if self.rows[row].expected == 0 {
                    continue;
                }
                if watch.stops(self.progress()) {
                    return Err(Error::Interrupted);
                }
                if watch.is_over() {
                    self.is_over = true;
                    return Ok(None);
                }
                let number = only.map_or(round, |(_, number)| number);
                let name = format!("{}:{number}", kind.name);
                watch.begins(&name);
                match self.case(row, kind, number, watch) {
                    Ok(()) => {}
                    Err(Stop::Interrupted) => return Err(Error::Interrupted),
                    Err(Stop::Broken(trial, failure)) => {
                        let requests = trial.commands.len();
                        watch.fails(&trial, &failure);
                        // An interrupt ends the search; failures found so far count.
                        let shrunk = shrink(*trial, failure, &self.settings, watch);
                        return Ok(Some(described(&name, requests, &shrunk.trial, &shrunk.failure)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn progress(&self) -> Progress {
        let sum = |of: fn(&Row) -> u64| self.rows.iter().map(of).sum();
        Progress { phase: "check", done: sum(|row| row.cases), expected: sum(|row| row.expected) }
    }

    /// Case `number` of `kind`: the drawn drive, then the same with power cuts.
    fn case(&mut self, row: usize, kind: &Kind, number: u64, watch: &mut dyn Watch) -> Ended<()> {
        let trial = match draw(self.entry, kind, (self.options.seed, number), &self.settings, &self.wanted) {
            Ok(trial) => trial,
            Err(reason) => {
                let row = &mut self.rows[row];
                if row.cases == 0 {
                    (row.supported, row.expected, row.reason) = (false, 0, Some(reason));
                } else {
                    row.expected -= 1;
                }
                return Ok(());
            }
        };
        self.digest.add_text(kind.name);
        let played = self.play(row, trial.clone(), watch)?;
        for form in (kind.cuts)(&trial, &played) {
            if watch.stops(self.progress()) {
                return Err(Stop::Interrupted);
            }
            if watch.is_over() {
                self.is_over = true;
                return Ok(());
            }
            self.play(row, trial.with_form(form), watch)?;
        }
        for (wanted, covered) in self.wanted.iter().zip(&mut self.covered) {
            *covered += u64::from(wanted.holds(&trial.shape));
        }
        self.rows[row].cases += 1;
        Ok(())
    }

    fn play(&mut self, row: usize, trial: Trial, watch: &mut dyn Watch) -> Ended<Played> {
        match trial.play(watch) {
            Ok(played) => {
                let row = &mut self.rows[row];
                row.runs += 1;
                row.requests += played.requests;
                row.cuts += played.cuts;
                self.digest.run(&trial, &played);
                Ok(played)
            }
            Err(failure) => Err(Stop::Broken(Box::new(trial), failure)),
        }
    }

    /// The error of a layer that supports no case.
    fn unsupported(&self) -> Error {
        let place = format!("check {}", self.entry.name);
        let reason = self.rows.iter().find_map(|row| row.reason.clone()).unwrap_or_default();
        if let (Some(case), None) = (&self.options.case, &self.options.ssd) {
            let kind = case.split(':').next().unwrap_or_default();
            return Error::input(place, format!("--case {case}: the layer does not support {kind}: {reason}"));
        }
        match &self.options.ssd {
            Some(ssd) => Error::input(format!("--ssd {}", ssd.name), format!("no case fits the drive: {reason}")),
            None => Error::input(
                place,
                format!(
                    "the layer supports none of the drawn drives: {reason}; expected other settings (--set), or an \
                     entry whose `model` states the needs of the layer"
                ),
            ),
        }
    }

    /// The result.
    fn ended(self, broken: Option<Broken>) -> Checked {
        let is_whole = self.rows.iter().all(|row| row.cases == row.expected);
        let verdict = match &broken {
            Some(_) => Verdict::Failed,
            None if is_whole => Verdict::Passed,
            None => Verdict::Part,
        };
        let covered = self.wanted.into_iter().zip(self.covered);
        let covered = covered.map(|(Wanted { dimension, value, .. }, cases)| Covered { dimension, value, cases });
        Checked {
            layer: self.entry.name.into(),
            seed: self.options.seed,
            verdict,
            cases_digest: self.digest.hex(),
            rows: self.rows,
            drives: covered.collect(),
            ssd: self.options.ssd.clone(),
            broken,
        }
    }
}

/// Draws case `number` of `kind` from `seed`: the first drive with the value of `wanted` that the number names, or else
/// the first drive.
///
/// # Errors
/// The reason why the layer supports none of the drawn drives.
pub fn draw(
    entry: &'static Entry,
    kind: &Kind,
    (seed, number): (u64, u64),
    settings: &[String],
    wanted: &[Wanted],
) -> Drawn<Trial> {
    let first = Rng::new(seed, 0xc4ec).next_u64().wrapping_add(number) % (1 << 40);
    let own: Vec<&str> = settings.iter().map(String::as_str).collect();
    // Changes the residue for kinds that use seeds modulo a small number.
    let seeds = |draws: u64| (0..draws).map(|draw| first + draw * 1_000_003);
    // The first case has any drive.
    let place = number.checked_sub(1).map(|index| index as usize % wanted.len().max(1));
    if let Some(wanted) = place.and_then(|place| wanted.get(place)) {
        let settings = with(&wanted.settings, &own);
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut drawn = seeds(WANTED_DRAWS).filter_map(|seed| (kind.draw)(entry, seed, &settings).ok());
        if let Some(trial) = drawn.find(|trial| wanted.holds(&trial.shape)) {
            return Ok(trial);
        }
    }
    let mut refusals: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds(MOST_DRAWS) {
        match (kind.draw)(entry, seed, &own) {
            Ok(trial) => return Ok(trial),
            Err(reason) => *refusals.entry(reason).or_default() += 1,
        }
    }
    // The most frequent reason: others are of single draws.
    Err(refusals.into_iter().max_by_key(|(_, count)| *count).map(|(reason, _)| reason).unwrap_or_default())
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

type Ended<T> = std::result::Result<T, Stop>;

/// The end of a check before its last case.
enum Stop {
    Interrupted,
    Broken(Box<Trial>, Box<Failure>),
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
