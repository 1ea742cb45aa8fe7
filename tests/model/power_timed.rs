//! Power cuts in timed runs: planned operations have not run, some are torn, many requests are in flight.
//!
//! Data acknowledged before the cut must read back once the layer has recovered. Each subpage of a request that was not
//! acknowledged, and repeated later, is old or new.

use crate::drives::{Limits, Shape, build, draw, entry, pick, plain, with};
use crate::harness::{Model, count_cuts, for_each_seed_of, note, payload_of};
use crate::room::{has_room, is_tight, picture};
use crate::sequences::requests;
use crate::workload::fill;
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, Figure, REGISTRY};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::TORN;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    fn draw(entry: &'static Entry, seed: u64, more: &[&str]) -> Option<Case> {
        let mut rng = Rng::new(seed, 0x7c07);
        let shape = match entry.below {
            Some(_) => crate::filesystem::draw(entry, &mut rng, 120),
            None => draw(entry.name, &mut rng, SMALL),
        }?;
        let acknowledge = format!("buffer.ack={}", pick(&mut rng, &["buffer", "program", "volatile"]));
        let suspend = format!("sim.suspend={}", pick(&mut rng, &["none", "program-erase"]));
        let mut settings = with(&with(&shape.settings, &[&acknowledge, &suspend]), more);
        // Only a protected buffer makes a flush free.
        if acknowledge != "buffer.ack=buffer" {
            settings = with(&settings, &["buffer.flush=programs"]);
        }
        let shape = build(entry.name, &settings).ok()?;
        let mut commands = requests(&shape, seed);
        let counted = commands.len() / 3;
        commands.truncate(counted + 300);
        let payload = payload_of(entry, seed);
        Some(Case { shape, entry, seed, payload, commands, counted, depth: pick(&mut rng, &[1, 4, 32]) })
    }

    /// Runs the case, with a cut in flash operation `cut`. Returns the drive, and the flash operations at the start of
    /// timing; `None` if the cut ends the life of a very small drive.
    fn play(&self, cut: Option<u64>) -> Option<(Model, u64)> {
        self.play_mutant(cut, None)
    }

    /// As [`Self::play`], with a drive that plans wrongly.
    fn play_mutant(&self, cut: Option<u64>, mutation: Option<Mutation>) -> Option<(Model, u64)> {
        let mut model = Model::new(&self.shape, self.entry, self.payload, self.seed);
        model.drive.verify_times(mutation);
        let failed = |error| panic!("cut in operation {cut:?}: {error}");
        count_cuts(u64::from(cut.is_some()));
        if cut.is_some() {
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
                assert!(
                    !has_room(io, &self.shape),
                    "cut in operation {cut:?}: the drive ends with room:{}",
                    picture(io)
                );
                return None;
            }
            result => result.unwrap_or_else(failed),
        }
        assert_eq!(model.drive.power.cuts, u64::from(cut.is_some()), "the power fails once, in operation {cut:?}");
        model.check();
        Some((model, start))
    }

    /// Runs the case and reads everything back. Returns the flash operations at start and end; `None` if the cut ends
    /// the drive's life.
    pub fn run(&self, cut: Option<u64>) -> Option<(u64, u64)> {
        self.run_mutant(cut, None)
    }

    /// As [`Self::run`], with a drive that plans wrongly.
    pub fn run_mutant(&self, cut: Option<u64>, mutation: Option<Mutation>) -> Option<(u64, u64)> {
        let (model, start) = self.play_mutant(cut, mutation)?;
        let end = model.drive.io.nand().operations();
        read_back(model, cut);
        Some((start, end))
    }
}

/// Reads everything back without time.
fn read_back(mut model: Model, cut: Option<u64>) {
    model.drive.io.plan.timed = false;
    model.read_back().unwrap_or_else(|error| panic!("cut in operation {cut:?}: {error}"));
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

/// Cuts one run at `cuts` of its operations.
fn cut(entry: &'static Entry, seed: u64, cuts: u64) -> bool {
    cut_with(entry, seed, cuts, &[])
}

/// As [`cut`], with `more` settings.
fn cut_with(entry: &'static Entry, seed: u64, cuts: u64, more: &[&str]) -> bool {
    let Some(case) = Case::draw(entry, seed, more) else { return false };
    cut_case(&case, cuts);
    true
}

/// Cuts `case` at `cuts` of its operations.
pub fn cut_case(case: &Case, cuts: u64) {
    note(&case.shape.settings);
    let (model, start) = case.play(None).expect("no cut, no end");
    let (end, affordable) = (model.drive.io.nand().operations(), MOST_ENCODINGS / encodings(&model).max(1));
    read_back(model, None);
    let mut rng = Rng::new(case.seed, 0x7c08);
    (0..cuts.min(end - start).min(affordable.max(1))).for_each(|_| {
        case.run(Some(start + 1 + rng.below(end - start)));
    });
}

/// A cut tears the running operation of every die, not only the operation of the cut.
#[test]
fn a_cut_tears_what_every_die_works_on() {
    let settings = with(&plain(4, 12, 8, 1), &["buffer.ack=program", "ssd.over_provisioning=100%"]);
    let shape = build("page", &settings).expect("a drive");
    let case = Case {
        commands: fill(&shape.drive, 8).take(40).collect(),
        entry: entry("page"),
        seed: 1,
        payload: Payload::Tag,
        counted: 0,
        depth: 16,
        shape,
    };
    let (model, _) = case.play(Some(17)).expect("there is room");
    let nand = model.drive.io.nand();
    let torn = (0..nand.geometry().subpages() as u32).filter(|&psn| nand.logical(psn) == TORN);
    let dies: BTreeSet<u32> = torn.map(|psn| nand.geometry().plane_of_block(nand.split(psn).0)).collect();
    assert_eq!(dies.len(), 4, "a page of each die");
}

/// A program that does not wait for copies of the pages at risk: a cut finds the mutant. The scheduler lets the host's
/// programs overtake the copies, because a die would otherwise keep the order.
#[test]
fn a_cut_finds_a_program_that_is_ahead_of_its_copies() {
    let more = [
        "part.cell=mlc",
        "part.pair_corruption=true",
        "part.t_program_high=900us",
        "buffer.ack=program",
        "sim.scheduler=host-first",
        "ssd.over_provisioning=150%",
    ];
    let shape = build("page", &with(&plain(1, 10, 16, 1), &more)).expect("a drive");
    let commands: Vec<_> = fill(&shape.drive, 8).collect();
    let (entry, seed, payload, counted, depth) = (entry("page"), 1, Payload::Tag, 0, 16);
    let case = Case { shape, entry, seed, payload, commands, counted, depth };
    let early = Mutation { kind: OperationKind::Program, cause: Cause::Metadata, drops_after: false };
    let (start, end) = case.run(None).expect("no cut, no end");
    let found = |mutation| {
        let lost = |cut: &u64| catch_unwind(AssertUnwindSafe(|| case.run_mutant(Some(*cut), mutation))).is_err();
        (start + 1..=end).step_by(3).filter(lost).count()
    };
    assert_eq!(found(None), 0, "the drive that waits");
    assert!(found(Some(early)) > 0, "the drive that does not");
}

#[test]
fn cuts_in_timed_runs() {
    for_each_seed_of(REGISTRY, "power_timed::cuts_in_timed_runs", 12, |entry, seed| cut(entry, seed, 5));
}

#[test]
fn cuts_in_timed_runs_of_file_systems() {
    for_each_seed_of(ENTRIES, "power_timed::cuts_in_timed_runs_of_file_systems", 6, |entry, seed| cut(entry, seed, 5));
}

/// Once red: operations that run together end at one moment, and a read of a page that one of them programs may start
/// then.
#[test]
fn reads_start_at_the_moment_when_their_program_ends() {
    let more = [
        "ssd.planes_per_die=2",
        "ssd.over_provisioning=150%",
        "ftl.allocation=round-robin",
        "sim.multi_plane=waiting",
        "sim.block_order=planned",
        "buffer.ack=program",
        "buffer.timeout=1ms",
    ];
    for seed in 0..6 {
        let shape = build("subpage", &with(&plain(2, 5, 4, 2), &more)).expect("a drive");
        let (entry, payload, commands) = (entry("subpage"), Payload::Tag, requests(&shape, seed));
        Case { commands, entry, seed, payload, counted: 0, depth: 32, shape }.run(None).expect("no cut, no end");
    }
}

/// Once red: the cut comes while the link transfers data into a protected buffer. Neither recovery nor later plans may
/// use the data before the transfer ends.
#[test]
fn what_is_on_the_link_at_the_cut_comes_in_its_time() {
    let slow = ["buffer.ack=buffer", "host.link_rate=1MB/s"];
    let test = "power_timed::what_is_on_the_link_at_the_cut_comes_in_its_time";
    // Layers without a buffer program the data of the link at once.
    for_each_seed_of(REGISTRY, test, 5, |entry, seed| cut_with(entry, seed, 4, &slow));
}

/// Once red: the layer did not find existing space. The space was in another plane than the plane whose moved data had
/// none (spftl), in the block of the map (dftl), or in the block of hot data and in pages that the file system had
/// trimmed (fs-llh). Without a cut: in blocks of cold data that wait to be written again. And again in another plane,
/// where the pages that collection needs were spoiled (sector-log).
#[test]
fn space_after_a_cut_is_found() {
    let cut = [("spftl", 1119, 943), ("dftl", 1019, 2291), ("fs-llh", 701_006, 5921), ("sector-log", 1036, 6518)];
    let cases = cut.into_iter().map(|(name, seed, operation)| (name, seed, Some(operation)));
    for (name, seed, operation) in cases.chain([("fs-llh", 701_022, None)]) {
        let case = Case::draw(entry(name), seed, &[]).expect("a drive");
        note(&case.shape.settings);
        assert!(case.run(operation).is_some(), "{name}: the drive ends");
    }
}

#[test]
#[ignore = "minutes"]
fn long_cuts_in_timed_runs() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "--ignored power_timed::long_cuts_in_timed_runs", 100, |entry, seed| {
        cut(entry, seed + 1000, 20)
    });
}
