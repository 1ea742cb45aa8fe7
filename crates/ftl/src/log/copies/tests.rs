//! Copies of slices leave the state and plan of single moves: the same drive with a power cut scheduled after its end
//! moves each unit alone. Not tested here: file systems.

use super::*;
use crate::log::Append;
use crate::log::settings::{LogSettings, keys};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::part::{CellKind, Part, ProgramOrder};
use palimpsest_flash::nand::stripes::{StripeShape, striped};
use palimpsest_flash::nand::{Halt, Nand};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::state::State;
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_ftl_api::plan::ledger::{Ledger, Noted, Source, Stored};
use palimpsest_ftl_api::plan::operations::{Operation, Program};
use palimpsest_ftl_api::plan::under_way;
use palimpsest_ftl_api::settings::Settings;
use std::collections::VecDeque;

#[derive(Clone)]
struct Case {
    /// Shape of the drive itself, and of the superblocks that the log sees as blocks.
    geometry: Geometry,
    superblocks: Option<StripeShape>,
    part: Part,
    settings: Settings,
    unit_subpages: u32,
    payload: Payload,
    protected: bool,
    /// Number of plans under way at once; none if the run only counts.
    plans: Option<usize>,
    seed: u64,
}

fn draw(seed: u64) -> Case {
    let mut rng = Rng::new(seed, 7);
    let mut one_of = |count: u64| rng.below(count) as usize;
    let subpages_per_page = [1, 2, 4, 8][one_of(4)];
    let pages_per_block = [8, 12, 66, 130][one_of(4)];
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: [1, 2][one_of(2)],
        blocks_per_plane: 28,
        pages_per_block,
        subpages_per_page,
        subpage_bytes: 4096,
    };
    let cell = [CellKind::Slc, CellKind::Tlc, CellKind::Mlc][one_of(3)];
    let page_bytes = subpages_per_page * 4096;
    let word_bytes = [1024, page_bytes][one_of(2)];
    let order = [ProgramOrder::Strict, ProgramOrder::Ascending][one_of(2)];
    let part = Part { cell, page_bytes, pages_per_block, word_bytes, order, ..slc() };
    let mut settings = Settings::of_defaults("subpage", keys());
    for (key, values) in [
        ("ftl.gc_pace", &["paced", "block"][..]),
        ("ftl.moved_to", &["plane", "die"]),
        ("ftl.wear_leveling", &["none", "static"]),
    ] {
        settings = settings.with(key, Value::Text(values[one_of(2)].into()));
    }
    settings = settings.with("ftl.streams", Value::Count([1, 2][one_of(2)]));
    Case {
        geometry,
        superblocks: None,
        part,
        settings,
        unit_subpages: [1, subpages_per_page][one_of(2)],
        payload: [Payload::None, Payload::Tag][one_of(2)],
        protected: one_of(4) > 0,
        plans: None,
        seed,
    }
}

/// A minimal engine: takes plans, and ends the oldest if more than `most` are under way.
struct Plans {
    most: usize,
    running: VecDeque<Vec<Operation>>,
    links: Vec<(Gate, Gate)>,
    planned: Planned,
}

#[derive(Default, PartialEq)]
struct Planned {
    operations: Vec<Operation>,
    links: Vec<(Gate, Gate)>,
    follows: Vec<(u32, Program)>,
    /// What the ledger recorded of a checked case.
    noted: Vec<Noted>,
    sources: Vec<Source>,
    stored: Vec<Stored>,
}

impl Plans {
    fn take(&mut self, io: &mut Io) {
        self.planned.links.extend_from_slice(&io.plan.links);
        self.planned.follows.extend_from_slice(&io.plan.follows);
        self.links.append(&mut io.plan.links);
        io.plan.delays.drain(..).collect::<Vec<_>>().iter().for_each(|&(gate, _)| self.signal(io, gate));
        let taken = std::mem::take(&mut io.plan.operations);
        for (operation, number) in taken.iter().zip(self.planned.operations.len() as u32..) {
            io.plan.replacing.run(operation.stored, number);
        }
        io.plan.clear();
        self.planned.operations.extend_from_slice(&taken);
        if let Some(ledger) = &mut io.ledger {
            ledger.close(0, &[], false);
            let call = ledger.call();
            assert_eq!(call.violation, None);
            self.planned.noted.append(&mut call.noted);
            self.planned.sources.append(&mut call.sources);
            self.planned.stored.append(&mut call.stored);
            call.clear();
            let running: usize = self.running.iter().map(Vec::len).sum();
            ledger.ended_before((self.planned.operations.len() - taken.len() - running) as u64);
        }
        self.running.push_back(taken);
        while self.running.len() > self.most
            && let Some(oldest) = self.running.pop_front()
        {
            for operation in oldest {
                if operation.under_way != under_way::NONE {
                    io.plan.under_way.remove(operation.under_way);
                }
                io.plan.replacing.remove(operation.stored);
                self.signal(io, operation.signal);
            }
        }
    }

    /// Ends one operation that `gate` waits for.
    fn signal(&mut self, io: &mut Io, gate: Gate) {
        if gate.is_none() {
            return;
        }
        let slot = &mut io.plan.gates.slots[gate.slot() as usize];
        slot.remaining -= 1;
        if slot.remaining == 0 {
            io.plan.gates.close(gate);
            let (closed, open) = self.links.iter().partition::<Vec<_>, _>(|link| link.0 == gate);
            self.links = open;
            closed.into_iter().for_each(|(_, later)| self.signal(io, later));
        }
    }
}

/// The state after random writes, trims and flushes, the plans, and whether pages were copied.
fn state(case: &Case, in_slices: bool) -> (Vec<u8>, Planned, bool) {
    let Case { geometry: physical, superblocks, part, settings, unit_subpages, payload, protected, plans, seed } = case;
    let geometry = superblocks.map_or(*physical, |shape| striped(physical, shape));
    let mut nand = Nand::new(geometry, part.clone(), *payload, None);
    if let Some(shape) = *superblocks {
        nand.set_stripes(*physical, shape);
    }
    let mut io = Io::new(nand, plans.is_some());
    if !in_slices {
        io.set_power_cut_at(Some(u64::MAX - 1));
    }
    (io.plan.reads_memory, io.plan.protected) = (seed % 5 > 0, *protected);
    if seed % 3 > 0 {
        io.plan.meter(io.nand.counters());
    }
    let most = plans.unwrap_or_default();
    if plans.is_some() && seed % 7 > 2 {
        let mut ledger = Ledger::new(io.nand(), None);
        ledger.restart(0);
        io.ledger = Some(Box::new(ledger));
    }
    let mut plans = Plans { most, running: VecDeque::new(), links: Vec::new(), planned: Planned::default() };
    let units = geometry.subpages() as u32 / unit_subpages * 21 / 28;
    let mut log_settings = LogSettings::new(settings);
    log_settings.read.mode = [ReadMode::Page, ReadMode::Dma][(seed % 2) as usize];
    let map = FullMap::new(units);
    let mut log = Log::new(&io, &log_settings, map, *unit_subpages, *protected, *seed);
    let mut rng = Rng::new(*seed, 8);
    for write in 0..4 * units {
        let unit = if write < units { write } else { rng.below(units.into()) as u32 };
        let contents: Vec<Data> = (0..*unit_subpages).map(|_| Data::new(rng.next_u64())).collect();
        let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
        let what = Append { unit, data: contents[0], cause, after, signal, holds: 1 };
        let done = match (unit_subpages, rng.below(40)) {
            (_, 0) => {
                log.trim(&mut io, unit);
                Ok(())
            }
            (_, 1) => log.flush(&mut io, u64::MAX, Gate::NONE),
            (1, _) => log.append(&mut io, 0, what),
            _ => log.append_page(&mut io, 0, what, &contents),
        };
        match done {
            Err(Halt::NoSpace) => break,
            done => done.unwrap_or_else(|halt| panic!("seed {seed}: {halt:?}")),
        }
        plans.take(&mut io);
    }
    log.check(&io).unwrap_or_else(|what| panic!("seed {seed}, in slices: {in_slices}: {what}"));
    let mut bytes = Vec::new();
    io.save(&mut bytes);
    log.save(&mut bytes);
    let many = io.takes_slices() && (log.shape.units_per_page == 1 || log.gathers(&io, 0));
    (bytes, plans.planned, many && log.counters.moved_units > 0)
}

/// Asserts that copies leave the state of moves. True if `case` copies.
fn compare(case: &Case) -> bool {
    let ((with, planned, copies), (without, as_moves, moves)) = (state(case, true), state(case, false));
    assert!(with == without, "seed {}: the states differ", case.seed);
    for (number, (copy, moved)) in planned.operations.iter().zip(&as_moves.operations).enumerate() {
        assert_eq!(copy, moved, "seed {}: operation {number}", case.seed);
    }
    assert!(planned == as_moves, "seed {}: how many were planned, or what they follow, differs", case.seed);
    assert!(!moves, "seed {}: no copies were to be made", case.seed);
    copies
}

#[test]
fn copies_leave_what_moves_leave() {
    let copied = (0..150).map(draw).filter(compare).count();
    assert!(copied > 75, "{copied} drives had copies");
}

#[test]
fn copies_are_planned_as_moves_are() {
    let mut copied = 0;
    for seed in 150..300 {
        let mut case = draw(seed);
        case.geometry.blocks_per_plane = 14;
        case.plans = Some([0, 3, 30, 200][(seed % 4) as usize]);
        copied += u32::from(compare(&case));
    }
    assert!(copied > 40, "{copied} drives had copies");
}

#[test]
fn copies_of_superblocks_leave_what_moves_leave() {
    let mut copied = 0;
    for seed in 300..360 {
        let (mut case, mut rng) = (draw(seed), Rng::new(seed, 9));
        let pages_per_block = [8, 12][rng.below(2) as usize];
        (case.geometry.pages_per_block, case.part.pages_per_block) = (pages_per_block, pages_per_block);
        let (dies, planes) = (2 + rng.below(3) as u32, [1, case.geometry.planes_per_die][rng.below(2) as usize]);
        (case.geometry.channels, case.geometry.blocks_per_plane) = (dies, 14);
        case.superblocks = Some(StripeShape { data: dies * planes, parity: false, planes });
        case.plans = [None, Some(0), Some(3), Some(200)][(seed % 4) as usize];
        copied += u32::from(compare(&case));
    }
    assert!(copied > 15, "{copied} drives had copies");
}
