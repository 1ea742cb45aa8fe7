//! Power cuts in timed runs: planned operations have not run, some are torn, many requests are in flight.
//!
//! Data acknowledged before the cut must read back once the layer has recovered. Each subpage of a request that was not
//! acknowledged, and repeated later, is old or new.

use crate::drives::{Drawn, Limits, Shape, build, draw, pick, with};
use crate::file_systems;
use crate::model::{Model, payload_of};
use crate::room::{has_room, is_tight, picture};
use crate::sequences::requests;
use crate::story::{count_cuts, name_cuts, note};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, Figure};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::PowerIo;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

const SMALL: Limits = Limits { subpages: 512, planes: 4 };

/// Encodings allowed in the runs of one case: a drive whose code does not fit the pages may retry on each write.
const MOST_ENCODINGS: u64 = 5000;

/// Requests on a drive, of which the first `counted` are not timed.
pub struct Case {
    pub shape: Shape,
    pub entry: &'static Entry,
    pub seed: u64,
    pub payload: Payload,
    pub commands: Vec<Command>,
    pub counted: usize,
    pub depth: u32,
}

impl Case {
    /// The case of `seed`, with `more` settings.
    ///
    /// # Errors
    /// The reason why there is no such drive.
    pub fn draw(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Case> {
        let mut rng = Rng::new(seed, 0x7c07);
        let shape = match entry.below {
            Some(_) => file_systems::draw(entry, &mut rng, 120),
            None => draw(entry.name, &mut rng, SMALL),
        }?;
        let acknowledge = format!("buffer.ack={}", pick(&mut rng, &["buffer", "program", "volatile"]));
        let suspend = format!("sim.suspend={}", pick(&mut rng, &["none", "program-erase"]));
        let mut settings = with(&with(&shape.settings, &[&acknowledge, &suspend]), more);
        // Only a protected buffer makes a flush free.
        if acknowledge != "buffer.ack=buffer" {
            settings = with(&settings, &["buffer.flush=programs"]);
        }
        let shape = build(entry.name, &settings)?;
        let mut commands = requests(&shape, seed);
        let counted = commands.len() / 3;
        commands.truncate(counted + 300);
        let payload = payload_of(entry, seed);
        Ok(Case { shape, entry, seed, payload, commands, counted, depth: pick(&mut rng, &[1, 4, 32]) })
    }

    /// Runs the case, with a cut in flash operation `cut`. Returns the drive, and the flash operations at the start of
    /// timing; `None` if the cut ends the life of a very small drive.
    pub fn play(&self, cut: Option<u64>) -> Option<(Model, u64)> {
        self.play_mutant(cut, None)
    }

    /// As [`Self::play`], with a drive that plans wrongly.
    fn play_mutant(&self, cut: Option<u64>, mutation: Option<Mutation>) -> Option<(Model, u64)> {
        let mut model = Model::new(&self.shape, self.entry, self.payload, self.seed);
        model.drive.verify_times(mutation);
        let start = self.play_on(&mut model, cut)?;
        Some((model, start))
    }

    /// As [`Self::play`], on `model`, a new drive. Returns the flash operations at the start of timing.
    pub fn play_on(&self, model: &mut Model, cut: Option<u64>) -> Option<u64> {
        let failed = |error| panic!("{error}");
        count_cuts(u64::from(cut.is_some()));
        if let Some(cut) = cut {
            name_cuts(format!("cut in operation {cut}"));
            model.shadow.expect_power_cut(false);
        }
        for &command in &self.commands[..self.counted] {
            model.count(command).unwrap_or_else(failed);
        }
        model.drive.power.read_back = cut.map(|_| self.shape.drive.logical_subpages());
        model.drive.io.set_power_cut_at(cut);
        model.shadow.start_timing();
        model.drive.start_timing().unwrap_or_else(failed);
        let start = model.drive.io.nand().operations();
        match model.run_timed(self.commands[self.counted..].iter().copied(), self.depth) {
            Err(Error::WornOut(_)) if cut.is_some() && is_tight(&self.shape) => {
                let io = &model.drive.io;
                assert!(!has_room(io, &self.shape), "the drive ends with room:{}", picture(io));
                return None;
            }
            result => result.unwrap_or_else(failed),
        }
        assert_eq!(model.drive.power.cuts, u64::from(cut.is_some()), "the power does not fail once");
        model.check();
        Some(start)
    }

    /// Runs the case and reads everything back. Returns the flash operations at start and end; `None` if the cut ends
    /// the drive's life.
    pub fn run(&self, cut: Option<u64>) -> Option<(u64, u64)> {
        self.run_mutant(cut, None)
    }

    /// As [`Self::run`], with a drive that plans wrongly.
    pub fn run_mutant(&self, cut: Option<u64>, mutation: Option<Mutation>) -> Option<(u64, u64)> {
        let (mut model, start) = self.play_mutant(cut, mutation)?;
        let end = model.drive.io.nand().operations();
        read_back(&mut model);
        Some((start, end))
    }
}

/// Reads everything back without time.
pub fn read_back(model: &mut Model) {
    model.drive.io.plan.timed = false;
    model.read_back().unwrap_or_else(|error| panic!("{error}"));
    model.check();
}

/// Encodings of pages, failed ones too, by the layer of `model`, if contents are bytes: each may take 20 ms.
fn encodings(model: &Model) -> u64 {
    let own = model.drive.ftl.figures().own.into_iter();
    let counts = own.filter_map(|(name, figure)| match figure {
        Figure::Count(count) if ["reused_low_pages", "wom_failures"].contains(&name) => Some(count),
        _ => None,
    });
    if model.drive.io.nand().payload() == Payload::Bytes { counts.sum() } else { 0 }
}

/// Cuts `case` at `cuts` of its operations.
pub fn cut_case(case: &Case, cuts: u64) {
    note(&case.shape.settings);
    let (mut model, start) = case.play(None).expect("no cut, no end");
    let (end, affordable) = (model.drive.io.nand().operations(), MOST_ENCODINGS / encodings(&model).max(1));
    read_back(&mut model);
    let mut rng = Rng::new(case.seed, 0x7c08);
    (0..cuts.min(end - start).min(affordable.max(1))).for_each(|_| {
        case.run(Some(start + 1 + rng.below(end - start)));
    });
}
