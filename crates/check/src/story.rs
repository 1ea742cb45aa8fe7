//! The present case of the thread: settings of the drive, requests with the flash operations before each, power cuts.
//! A failure is reported from this record, because a panic leaves no other. Ignored: completions of timed requests.

use palimpsest_lab::nand::Nand;
use palimpsest_lab::sim::drive::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static CUTS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static PRESENT: Arc<Present> = Arc::default();
}

/// The present case of a thread, for a thread that watches it: a layer may never return from a call.
#[derive(Default)]
pub struct Present {
    story: Mutex<Story>,
    calls: AtomicU64,
}

impl Present {
    /// The case so far.
    pub fn story(&self) -> MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rises with each request and each other call of the layer.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// The present case of this thread.
pub fn present() -> Arc<Present> {
    PRESENT.with(Arc::clone)
}

/// A call of the layer begins or has ended.
pub fn call() {
    PRESENT.with(|present| present.calls.fetch_add(1, Ordering::Relaxed));
}

fn change(change: impl FnOnce(&mut Story)) {
    call();
    PRESENT.with(|present| change(&mut present.story()));
}

/// A request as the drive got it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The place in the list of requests.
    pub number: usize,
    /// The request.
    pub command: Command,
    /// Flash operations before the request.
    pub operations: u64,
    /// Of these the recorded ones: without scans, and with copies of several pages as one.
    pub recorded: u64,
    /// Recorded flash operations up to each one in which the power failed during the request, recoveries included.
    pub cuts: Vec<u64>,
}

/// A case so far.
#[derive(Debug, Clone, Default)]
pub struct Story {
    /// Settings of the drive, each `key=value`.
    pub settings: Vec<String>,
    /// The power cuts of the case, for messages; empty without any.
    pub cuts: String,
    /// Requests so far.
    pub steps: Vec<Step>,
}

/// Begins a case on the drive of `settings`.
pub fn note(settings: &[String]) {
    change(|story| *story = Story { settings: settings.to_vec(), ..Story::default() });
}

/// Forgets the requests: a new drive begins.
pub fn begin() {
    change(|story| {
        story.steps.clear();
        story.cuts.clear();
    });
}

/// Names the power cuts of the case.
pub fn name_cuts(cuts: String) {
    change(|story| story.cuts = cuts);
}

/// A request at `number` of the list begins on `nand`.
pub fn request(number: usize, command: Command, nand: &Nand) {
    let (operations, recorded) = (nand.operations(), nand.recorded());
    change(|story| story.steps.push(Step { number, command, operations, recorded, cuts: Vec::new() }));
}

/// The power failed in recorded flash operation `operation`, the first being 1.
pub fn cut(operation: u64) {
    change(|story| {
        if let Some(step) = story.steps.last_mut() {
            step.cuts.push(operation);
        }
    });
}

/// The case so far, which ends.
pub fn take() -> Story {
    call();
    PRESENT.with(|present| std::mem::take(&mut *present.story()))
}

/// Adds to the number of power cuts of the process.
pub fn count_cuts(cuts: u64) {
    CUTS.fetch_add(cuts, Ordering::Relaxed);
}

/// Power cuts of the process so far.
pub fn cuts() -> u64 {
    CUTS.load(Ordering::Relaxed)
}
