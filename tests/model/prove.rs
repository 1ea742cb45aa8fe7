//! Every power cut of every sequence of requests on a tiny drive, and every cut of the recoveries: exhaustive, not
//! random.
//!
//! A drive has two planes of four blocks of four pages, plus the layer's reserved blocks. From each of several initial
//! states, the test runs all sequences, of a given length, of flushes and of writes and trims of some units. Power
//! fails in each flash operation in turn, then in each operation of that recovery. After the recovery the layer's
//! tables must agree, acknowledged data must read back, and the request is served again.
//!
//! Two facts bound the work. States seen before (flash content and the host's record, with no memory that survives) are
//! skipped. And all cuts of a sequence except the cuts in the last request belong to a shorter sequence. In timed runs,
//! all requests are in flight at once, and a cut tears the running operation of every die. Ignored: more than two cuts,
//! requests that are no whole units, file systems (their smallest drive is too large).
//!
//! `make prove LENGTH=4` prints the number of states that each layer survived; the default suite has a small scope.

use crate::drives::{Shape, build_with_spare, needed, plain, with};
use crate::harness::{count_cuts, for_each_seed_of, is_partial, note};
use crate::power::Powered;
use crate::power_timed::Case;
use crate::workload::fill;
use crate::zones::legal;
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::nand::{Flash, Halt};
use palimpsest_lab::sim::drive::Command;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Bounds of the enumeration.
#[derive(Clone, Copy)]
struct Scope {
    /// Requests of the longest sequence.
    length: u32,
    units: u64,
    /// Whether to begin also on a drive that is only full, and on one used longer, besides one that erases a block
    /// next.
    more_states: bool,
    /// Whether recoveries are cut, too.
    nested: bool,
}

/// Counts for one layer.
#[derive(Debug, Default)]
struct Survived {
    sequences: u64,
    lives: u64,
    states: u64,
    /// States with an erase that was cut off.
    torn: u64,
    /// Drives that a second cut left without a block.
    ended: u64,
}

struct Prover<'a> {
    entry: &'static Entry,
    shape: &'a Shape,
    scope: Scope,
    requests: Vec<Command>,
    seen: BTreeSet<u64>,
    survived: Survived,
}

/// The smallest drive of the layer; writes are acknowledged in the buffer or by programs.
fn tiny(entry: &Entry, acknowledge: &str, more: &[&str]) -> Shape {
    let spare = if entry.hot_and_cold { 3 } else { 2 };
    let settings = with(&plain(2, 4, 4, entry.least_subpages()), &["ftl.streams=1", acknowledge]);
    let settings = with(&needed(entry, &settings), more);
    let most = 4 + 8;
    let shapes = (4..most).map(|blocks| build_with_spare(entry.name, &settings, blocks, spare));
    shapes.into_iter().find_map(Result::ok).unwrap_or_else(|| panic!("no tiny drive of {}", entry.name))
}

/// Writes and trims of the first units, and a flush.
fn alphabet(shape: &Shape, entry: &'static Entry, units: u64) -> Vec<Command> {
    let sectors = Powered::new(shape, entry, 1).unit_sectors();
    let request = |kind, unit: u64| Command::new(kind, Extent { sector: unit * sectors, sectors: sectors as u32 });
    let changes = (0..units).flat_map(|unit| [RequestKind::Write, RequestKind::Trim].map(|kind| request(kind, unit)));
    changes.chain([Command::FLUSH]).collect()
}

/// Requests before the sequences: a full drive, and `overwrites` of the first units.
fn used(shape: &Shape, requests: &[Command], overwrites: usize) -> Vec<Command> {
    let writes = requests.iter().copied().filter(|request| request.kind == RequestKind::Write).cycle();
    fill(&shape.drive, u64::from(shape.drive.geometry.page_bytes()) / 512).chain(writes.take(overwrites)).collect()
}

/// Numbers of initial overwrites: one after which the next overwrite erases a block; with `more`, also none, and some
/// more.
fn overwrites(entry: &'static Entry, shape: &Shape, requests: &[Command], more: bool) -> Vec<usize> {
    let mut life = Powered::new(shape, entry, 1);
    let erased = (0..).zip(used(shape, requests, 300)).find(|&(_, command)| {
        let command = legal(&life.drive, command);
        life.serve(command).expect("a drive that is not worn");
        life.served(command);
        life.drive.io.nand().counters().erases > 0
    });
    let full = used(shape, requests, 0).len();
    let brink = erased.map_or(0, |(number, _)| usize::saturating_sub(number, full));
    if more { vec![0, brink, brink + 7] } else { vec![brink] }
}

impl Prover<'_> {
    /// Runs `commands`; returns the flash operations that they take.
    fn operations(&mut self, commands: &[Command]) -> u64 {
        let mut life = Powered::new(self.shape, self.entry, 1);
        for &command in commands {
            let command = legal(&life.drive, command);
            life.serve(command).unwrap_or_else(|halt| panic!("{commands:?}: {halt:?}"));
            life.served(command);
        }
        life.check();
        life.operations()
    }

    /// All sequences that begin with `sequence` after `before`, whose operations end with number `done`.
    fn explore(&mut self, commands: &mut Vec<Command>, left: u32, done: u64) {
        if left == 0 {
            return;
        }
        for request in self.requests.clone() {
            commands.push(request);
            self.survived.sequences += 1;
            let end = self.operations(commands);
            for cut in done + 1..=end {
                self.cut(commands, cut);
            }
            self.explore(commands, left - 1, end);
            commands.pop();
        }
    }

    /// The power fails in operation `cut`, then, from the start again, in each operation of the recovery too.
    fn cut(&mut self, commands: &[Command], cut: u64) {
        let Some(operations) = self.life(commands, cut, &[]) else { return };
        self.survived.states += 1;
        if self.scope.nested {
            for nested in 1..=operations {
                self.life(commands, cut, &[nested]);
            }
        }
    }

    /// One life with a cut in operation `cut` and in the operations `nested` of the recovery. Returns the number of the
    /// recovery's operations; `None` for a state seen before.
    fn life(&mut self, commands: &[Command], cut: u64, nested: &[u64]) -> Option<u64> {
        let mut life = Powered::new(self.shape, self.entry, 1);
        life.drive.io.set_power_cut_at(Some(cut));
        for &command in commands {
            let command = legal(&life.drive, command);
            match life.serve(command) {
                Ok(()) => life.served(command),
                Err(Halt::PowerCut) => {
                    life.interrupted(command);
                    let known = nested.is_empty() && !life.keeps_memory() && !self.seen.insert(image(&life, command));
                    if known {
                        return None;
                    }
                    let nand = life.drive.io.nand();
                    self.survived.torn += u64::from((0..nand.geometry().blocks()).any(|block| nand.is_torn(block)));
                    self.survived.lives += 1;
                    count_cuts(1 + nested.len() as u64);
                    let before = life.operations();
                    let settled = self.settle(&mut life, command, nested).map(|recovered| recovered - before);
                    return match settled {
                        Ok(operations) => Some(operations),
                        Err(Halt::NoSpace | Halt::Ended(_)) if !nested.is_empty() => {
                            self.survived.ended += 1;
                            Some(0)
                        }
                        Err(halt) => panic!("{commands:?}, cut in {cut} and {nested:?}: {halt:?}"),
                    };
                }
                Err(halt) => panic!("{commands:?}, before the cut in {cut}: {halt:?}"),
            }
        }
        panic!("{commands:?}: the power did not fail in {cut}")
    }

    /// After power returns, all acknowledged data is readable, and `command` is served again. Returns the operations up
    /// to the end of recovery.
    fn settle(&self, life: &mut Powered, command: Command, nested: &[u64]) -> Flash<u64> {
        life.recover(nested)?;
        let recovered = life.operations();
        life.check();
        life.read_all(&self.shape.drive, true)?;
        let command = legal(&life.drive, command);
        life.serve(command)?;
        life.served(command);
        life.check();
        life.read_all(&self.shape.drive, false)?;
        Ok(recovered)
    }
}

/// A hash of flash content and the host's record.
fn image(life: &Powered, command: Command) -> u64 {
    let mut hash = DefaultHasher::new();
    let nand = life.drive.io.nand();
    let subpages = 0..nand.geometry().subpages() as u32;
    let mut sequence: Vec<u64> = subpages.clone().map(|psn| nand.sequence(psn)).collect();
    sequence.sort_unstable();
    for psn in subpages {
        let (programs, logical) = (nand.programs(psn / nand.geometry().subpages_per_page), nand.logical(psn));
        let rank = if programs > 0 { sequence.binary_search(&nand.sequence(psn)).unwrap_or(0) } else { 0 };
        (programs, logical, rank, nand.own(psn)).hash(&mut hash);
    }
    for ppn in 0..nand.geometry().pages() as u32 {
        nand.spare(ppn).hash(&mut hash);
    }
    for block in 0..nand.geometry().blocks() {
        (nand.is_bad(block), nand.is_torn(block), nand.next_page(block), nand.erases(block)).hash(&mut hash);
    }
    life.knows().hash(&mut hash);
    (command.kind as u8, command.extent.sector).hash(&mut hash);
    hash.finish()
}

/// Survives all of `scope`, or panics.
fn prove(entry: &'static Entry, scope: Scope, more: &[&str]) -> Survived {
    let mut all = Survived::default();
    let acknowledges: &[&str] =
        if entry.gathers { &["buffer.ack=buffer", "buffer.ack=program"] } else { &["buffer.ack=buffer"] };
    for acknowledge in acknowledges {
        let shape = tiny(entry, acknowledge, more);
        note(&shape.settings);
        let requests = alphabet(&shape, entry, scope.units);
        for overwrites in overwrites(entry, &shape, &requests, scope.more_states) {
            let mut commands = used(&shape, &requests, overwrites);
            let mut prover = Prover {
                entry,
                shape: &shape,
                scope,
                requests: requests.clone(),
                seen: BTreeSet::new(),
                survived: Survived::default(),
            };
            let done = prover.operations(&commands);
            prover.explore(&mut commands, scope.length, done);
            let Survived { sequences, lives, states, torn, ended } = prover.survived;
            all.sequences += sequences;
            all.lives += lives;
            all.states += states;
            all.torn += torn;
            all.ended += ended;
        }
    }
    assert!(all.states > 0, "some cut came: {all:?}");
    all
}

/// As [`prove`], timed: all sequences of the length, with all requests in flight at once, and one cut. Returns the
/// lives.
fn prove_timed(entry: &'static Entry, scope: Scope) -> u64 {
    let shape = tiny(entry, "buffer.ack=program", &[]);
    note(&shape.settings);
    let requests = alphabet(&shape, entry, scope.units);
    let (mut lives, count) = (0, requests.len() as u64);
    for overwrites in overwrites(entry, &shape, &requests, scope.more_states) {
        for number in 0..count.pow(scope.length) {
            let mut commands = used(&shape, &requests, overwrites);
            let counted = commands.len();
            commands.extend((0..scope.length).map(|at| requests[(number / count.pow(at) % count) as usize]));
            let case = Case {
                shape: shape.clone(),
                entry,
                seed: 1,
                payload: Payload::Tag,
                commands,
                counted,
                depth: scope.length,
            };
            let (start, end) = case.run(None).expect("no cut, no end");
            for cut in start + 1..=end {
                lives += u64::from(case.run(Some(cut)).is_some());
            }
        }
    }
    lives
}

/// Settings with which programs corrupt the other pages of the word line, for parts that support them.
fn corrupting(entry: &Entry) -> Option<&'static [&'static str]> {
    let needs = entry.needs();
    match needs.iter().find(|need| need.starts_with("part.cell=")) {
        None => Some(&["part.cell=mlc", "part.pair_corruption=true"]),
        Some(&"part.cell=mlc") => Some(&["part.pair_corruption=true"]),
        // Word lines of a code of cells are programmed as a whole.
        Some(_) => None,
    }
}

#[test]
fn every_cut_of_every_short_sequence() {
    let scope = Scope { length: 2, units: 1, more_states: false, nested: true };
    let torn = Cell::new(0);
    for_each_seed_of(REGISTRY, "prove::every_cut_of_every_short_sequence", 1, |entry, _| {
        torn.set(torn.get() + prove(entry, scope, &[]).torn);
        if let Some(more) = corrupting(entry) {
            prove(entry, scope, more);
        }
        true
    });
    assert!(torn.get() > 0 || is_partial(), "cuts came in erases, too");
}

#[test]
fn every_cut_of_every_short_sequence_in_flight() {
    let scope = Scope { length: 2, units: 1, more_states: false, nested: false };
    for_each_seed_of(REGISTRY, "prove::every_cut_of_every_short_sequence_in_flight", 1, |entry, _| {
        prove_timed(entry, scope) > 0
    });
}

/// All sequences of `PROVE_LENGTH` requests (default 4) over three units.
#[test]
#[ignore = "minutes to hours"]
fn long_every_cut_of_every_sequence() {
    let length = std::env::var("PROVE_LENGTH").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let scope = Scope { length, units: 3, more_states: true, nested: true };
    for_each_seed_of(REGISTRY, "--ignored prove::long_every_cut_of_every_sequence", 1, |entry, _| {
        let Survived { sequences, lives, states, torn, ended } = prove(entry, scope, &[]);
        let timed = prove_timed(entry, Scope { length: length.min(3), ..scope });
        assert!(torn > 0, "cuts came in erases, too");
        let pairs = |more| prove(entry, Scope { length: length - 1, ..scope }, more).states;
        let pairs = corrupting(entry).map_or(0, pairs);
        println!(
            "{}: {states} states survived, and {pairs} where programs corrupt others ({sequences} sequences, {lives} \
             lives, {torn} with an erase cut off, {ended} ended by a second cut); {timed} lives in flight",
            entry.name
        );
        true
    });
}
