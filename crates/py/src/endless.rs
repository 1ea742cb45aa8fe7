//! A thread that watches a check whose layer may never return from a call: the report lies in a file, for the process
//! that started this one, and an endless call ends this process.
//!
//! The report has the present case, and the failure if there is one. So a failure outlives the search for a shorter
//! history, whatever ends the process: an endless call, a crash of native code, or a signal.
//!
//! A call may take some seconds in which its thread could run or waited by itself. Time in which the machine ran other
//! programs does not count, because a verdict must not depend on the load of a machine. Ignored: the time before the
//! first case, in which the layer is loaded.

use crate::files::resident_bytes;
use palimpsest_check::check::{Broken, Checked, described, endless};
use palimpsest_check::story::{self, Present};
use palimpsest_check::trial::{Failure, Trial};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between two looks that counts, at most: in a longer time the process was stopped.
const MOST_PASSED: Duration = Duration::from_secs(5);
/// Without the times of threads, a tenth of the time counts: a machine may have ten times as much work as processors.
const UNKNOWN_SHARE: u32 = 10;
/// A call that is not over after this time may not take memory without end.
const GROWS_AFTER: Duration = Duration::from_secs(1);
/// Most bytes that a single call may take.
const MOST_BYTES: u64 = 4 << 30;

/// What the file reports.
#[derive(Default)]
struct Seen {
    /// The present case.
    case: String,
    /// The present run of the case.
    trial: Option<Trial>,
    /// Requests of the failed case, and its shortest failure so far.
    failed: Option<(usize, Trial, Failure)>,
    is_over: bool,
}

/// The file as JSON.
#[derive(Serialize)]
struct Report<'a> {
    case: &'a str,
    checked: Option<Checked>,
}

/// Ends the thread when dropped.
pub struct Guard(Arc<Watch>);

impl Guard {
    /// Starts the thread for the check of `layer` with `seed` by this thread. A call may take `patience`.
    pub fn start(report: &str, layer: &str, seed: u64, patience: Duration) -> Guard {
        let watch = Arc::new(Watch {
            seen: Mutex::default(),
            present: story::present(),
            report: report.into(),
            layer: layer.into(),
            seed,
            patience,
        });
        let watching = Arc::clone(&watch);
        thread::spawn(move || watching.run());
        Guard(watch)
    }

    /// The case called `name` begins.
    pub fn begins(&self, name: &str) {
        let mut seen = self.0.seen();
        (seen.case, seen.failed) = (name.into(), None);
        self.0.write(&seen, None);
    }

    /// A run of the present case begins.
    pub fn plays(&self, trial: &Trial) {
        self.0.seen().trial = Some(trial.clone());
    }

    /// The case has failed; then a shorter one has.
    pub fn fails(&self, trial: &Trial, failure: &Failure) {
        let mut seen = self.0.seen();
        let requests = seen.failed.as_ref().map_or(trial.commands.len(), |failed| failed.0);
        seen.failed = Some((requests, trial.clone(), failure.clone()));
        self.0.write(&seen, None);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.seen().is_over = true;
    }
}

/// Nanoseconds that each thread of this process could have run while the machine ran other programs, by its number.
/// `None` where the system does not tell.
fn starved() -> Option<BTreeMap<u64, u64>> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, text.split_whitespace().nth(1)?.parse().ok()?))
    };
    let all: BTreeMap<u64, u64> = threads.flatten().filter_map(of).collect();
    (!all.is_empty()).then_some(all)
}

/// The time of a call without the time in which the machine ran other programs, or in which the process was stopped.
struct OwnTime {
    /// The last look of the watching thread.
    last: Instant,
    /// Time of the looks so far.
    looked: Duration,
    /// As [`starved`], at the begin of the call.
    at_begin: BTreeMap<u64, u64>,
}

impl OwnTime {
    fn begin() -> OwnTime {
        OwnTime { last: Instant::now(), looked: Duration::ZERO, at_begin: starved().unwrap_or_default() }
    }

    /// The time so far.
    fn so_far(&mut self) -> Duration {
        let passed = self.last.elapsed().min(MOST_PASSED);
        self.last = Instant::now();
        let Some(now) = starved() else {
            self.looked += passed / UNKNOWN_SHARE;
            return self.looked;
        };
        self.looked += passed;
        let of_call = now.iter().map(|(thread, delay)| delay - self.at_begin.get(thread).unwrap_or(&0).min(delay));
        self.looked.saturating_sub(Duration::from_nanos(of_call.max().unwrap_or(0)))
    }
}

struct Watch {
    seen: Mutex<Seen>,
    present: Arc<Present>,
    report: PathBuf,
    layer: String,
    seed: u64,
    patience: Duration,
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut calls = self.present.calls();
        let mut own = OwnTime::begin();
        let mut bytes = resident_bytes();
        loop {
            thread::sleep(LOOK_EVERY);
            let seen = self.seen();
            if seen.is_over {
                return;
            }
            let now = self.present.calls();
            if now != calls || seen.trial.is_none() {
                (calls, own, bytes) = (now, OwnTime::begin(), resident_bytes());
                continue;
            }
            let waited = own.so_far();
            let grown = resident_bytes().saturating_sub(bytes);
            let what = if waited >= self.patience {
                format!("the layer has not returned after {} s; expected a call that ends", waited.as_secs())
            } else if waited >= GROWS_AFTER && grown >= MOST_BYTES {
                format!("the layer has taken {} GiB and not returned; expected a call that ends", grown >> 30)
            } else {
                continue;
            };
            self.write(&seen, Some(&what));
            // No other end is certain: the thread of the layer may hold any lock.
            std::process::abort();
        }
    }

    /// Writes the report; `what` is said of an endless call, unless the case has failed before.
    fn write(&self, seen: &Seen, what: Option<&str>) {
        let broken = match (&seen.failed, &seen.trial, what) {
            (Some((requests, trial, failure)), ..) => Some(described(&seen.case, *requests, trial, failure)),
            (None, Some(trial), Some(what)) => Some(endless(&seen.case, trial, self.present.story().clone(), what)),
            _ => None,
        };
        let checked = |broken: Broken| Checked::failed(&self.layer, self.seed, broken);
        let report = Report { case: &seen.case, checked: broken.map(checked) };
        let text = serde_json::to_vec(&report).expect("a report can be printed");
        write_whole(&self.report, &text);
    }
}

/// Writes a file that is never seen in part. Without room the report is lost, and the check goes on.
fn write_whole(path: &Path, text: &[u8]) {
    let beside = path.with_extension("part");
    let _ = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
}
