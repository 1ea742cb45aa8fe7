//! A case as a value: a drive, requests, power cuts and the form of the run. [`Trial::play`] returns counts or the
//! failure with all that its story needs.

use crate::catch::{Caught, catch};
use crate::drives::Shape;
use crate::idle::run_groups;
use crate::kept;
use crate::model::Model;
use crate::power::{Cuts, Powered, survive};
use crate::sequences::{count, time};
use crate::story::{self, Story};
use crate::timed;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::Io;
use palimpsest_lab::sim::drive::Command;
use std::ops::Range;

/// Flash operations of a failure at most.
const REPORTED: usize = 4096;

/// The program that checks a layer.
pub trait Watch {
    /// Called between cases with the counts so far; true ends the check at once, as after Ctrl-C.
    fn stops(&mut self, progress: Progress) -> bool;

    /// True if the time of the check is over. A check without a limit ends with its last case.
    fn is_over(&mut self) -> bool {
        false
    }

    /// The exception that the layer raised since the last call, as text: a layer in another language cannot pass an
    /// exception through the simulator. Such a case has failed, whatever it returned.
    fn raised(&mut self) -> Option<String> {
        None
    }

    /// The case called `_name` begins, with the first of its runs.
    fn begins(&mut self, _name: &str) {}

    /// A run of the present case begins.
    fn plays(&mut self, _trial: &Trial) {}

    /// The case has failed; then a shorter one has.
    fn fails(&mut self, _trial: &Trial, _failure: &Failure) {}
}

/// Counts so far.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// `check`, or `shrink` after a failure.
    pub phase: &'static str,
    /// Cases so far; requests of the search after a failure.
    pub done: u64,
    /// Cases in all; 0 if unknown.
    pub expected: u64,
}

/// The form of a run.
#[derive(Debug, Clone)]
pub enum Form {
    /// Requests one after the other, without time; the tables are checked after each `check_every`.
    Counted {
        /// Requests from one check to the next.
        check_every: usize,
    },
    /// Requests at a depth, timed after the first `counted`.
    Timed {
        /// Requests without time.
        counted: usize,
        /// Requests in flight.
        depth: u32,
    },
    /// As `Timed`, with a power cut in flash operation `cut`.
    TimedCut {
        /// Requests without time.
        counted: usize,
        /// Requests in flight.
        depth: u32,
        /// The operation, if any.
        cut: Option<u64>,
    },
    /// Requests without time, through power cuts.
    Cut(Cuts),
    /// Groups of requests between which the host is idle; `cuts` if power cuts may end the drive's life.
    Idle {
        /// True if the drive has power cuts.
        cuts: bool,
    },
    /// A run from a kept state and one without.
    Kept,
}

/// A case.
#[derive(Clone)]
pub struct Trial {
    /// The layer.
    pub entry: &'static Entry,
    /// The drive.
    pub shape: Shape,
    /// Contents.
    pub payload: Payload,
    /// Seed of faults and of files.
    pub seed: u64,
    /// True if requests stay without directives.
    pub is_bare: bool,
    /// The form of the run.
    pub form: Form,
    /// The requests.
    pub commands: Vec<Command>,
}

/// Counts of a case without a failure.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// Requests.
    pub requests: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Flash operations that a cut may interrupt.
    pub operations: Range<u64>,
    /// The requests as the drive got them.
    pub story: Story,
}

/// A failed case.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Message and place.
    pub caught: Caught,
    /// The requests up to the failure.
    pub story: Story,
    /// The last flash operations, oldest first.
    pub flash: Vec<String>,
    /// Recorded flash operations in all, as in [`story::Step`].
    pub recorded: u64,
}

impl Failure {
    /// The first words of the message without numbers and lists: equal for failures of one kind.
    pub fn kind(&self) -> String {
        let is_word = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit() || "[]".contains(letter));
        self.caught.message.split_whitespace().filter(is_word).take(6).collect::<Vec<_>>().join(" ")
    }
}

impl Trial {
    /// The same case with other requests.
    pub fn with_commands(&self, commands: Vec<Command>) -> Trial {
        let counted = |counted: usize| counted.min(commands.len());
        let form = match self.form {
            Form::Timed { counted: first, depth } => Form::Timed { counted: counted(first), depth },
            Form::TimedCut { counted: first, depth, cut } => Form::TimedCut { counted: counted(first), depth, cut },
            ref form => form.clone(),
        };
        Trial { commands, form, ..self.clone() }
    }

    /// The same case in another form.
    pub fn with_form(&self, form: Form) -> Trial {
        Trial { form, ..self.clone() }
    }

    /// Runs the case.
    ///
    /// # Errors
    /// The failure of the layer.
    pub fn play(&self, watch: &mut dyn Watch) -> Result<Played, Box<Failure>> {
        story::note(&self.shape.settings);
        watch.plays(self);
        let (mut model, mut powered) = (None, None);
        let mut result = catch(|| self.run(&mut model, &mut powered));
        if let Some(message) = watch.raised() {
            result = Err(Caught { message, place: None });
        }
        let story = story::take();
        let flash = |io: &Io| (io.nand().recent_operations(REPORTED), io.nand().recorded());
        match result {
            Ok((cuts, operations)) => {
                let requests = story.steps.len().max(self.commands.len()) as u64;
                Ok(Played { requests, cuts, operations, story })
            }
            Err(caught) => {
                let of_model = model.as_ref().map(|model| &model.drive.io);
                let io = of_model.or(powered.as_ref().map(|powered| &powered.drive.io));
                let (flash, recorded) = io.map(flash).unwrap_or_default();
                Err(Box::new(Failure { caught, story, flash, recorded }))
            }
        }
    }

    /// Runs the case on a new drive. Returns the power cuts, and the operations that a cut may interrupt.
    fn run(&self, model: &mut Option<Model>, powered: &mut Option<Powered>) -> (u64, Range<u64>) {
        let new_model = || {
            let mut model = Model::new(&self.shape, self.entry, self.payload, self.seed);
            model.is_bare = self.is_bare;
            model
        };
        let ended = |model: &mut Model, from: u64| {
            let lost: u64 = model.drive.io.counters.lost.iter().sum();
            assert!(lost > 0 || model.shadow.unreadable == 0, "the host could not read data that flash had not lost");
            (model.drive.power.cuts, from..model.drive.io.nand().operations())
        };
        match &self.form {
            Form::Counted { check_every } => {
                let model = model.insert(new_model());
                let read_every = if self.shape.drive.faults.any() { 500 } else { usize::MAX };
                count(model, &self.commands, *check_every, read_every);
                ended(model, 0)
            }
            Form::Timed { counted, depth } => {
                let model = model.insert(new_model());
                time(model, &self.commands, *counted, *depth);
                ended(model, 0)
            }
            Form::TimedCut { cut, .. } => {
                let model = model.insert(new_model());
                let Some(start) = self.timed_case().play_on(model, *cut) else { return (1, 0..0) };
                let (cuts, operations) = ended(model, start);
                timed::read_back(model);
                (cuts, operations)
            }
            Form::Cut(cuts) => {
                let powered = powered.insert(Powered::new(&self.shape, self.entry, self.seed));
                survive(powered, &self.shape, &self.commands, cuts);
                (powered.cuts, 0..powered.operations())
            }
            Form::Idle { cuts } => match run_groups(self.entry, &self.shape, self.commands.clone(), self.seed) {
                Ok(outcome) => (outcome.summary.power.map_or(0, |power| power.cuts), 0..0),
                Err(Error::WornOut(_)) if *cuts => (0, 0..0),
                Err(error) => panic!("{error}"),
            },
            Form::Kept => {
                let is_kept = kept::compare(self.entry, &self.shape, &self.commands, self.seed);
                assert!(is_kept, "the layer has a state, and the drive was not loaded from one");
                (0, 0..0)
            }
        }
    }

    fn timed_case(&self) -> timed::Case {
        let (counted, depth) = match self.form {
            Form::TimedCut { counted, depth, .. } => (counted, depth),
            _ => (0, 1),
        };
        timed::Case {
            shape: self.shape.clone(),
            entry: self.entry,
            seed: self.seed,
            payload: self.payload,
            commands: self.commands.clone(),
            counted,
            depth,
        }
    }
}
