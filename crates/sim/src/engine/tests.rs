//! The engine alone, by hand: suspension, order on a block, gates, freed room and the host link. Ignored: the drive
//! around the engine, which the model suite tests.

mod rules;

use super::*;
use crate::settings::{BlockOrder, MultiPlane, Suspend};
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::{Nand, Outcome};
use palimpsest_flash::units::Rate;
use palimpsest_ftl_api::plan::arrival::{Arrival, Crossing, Pace};
use palimpsest_ftl_api::plan::{Erase, Gate, Program as Write, Read};

const COMMAND: Nanos = 100;
const SENSE: Nanos = 25_000;
const PROGRAM: Nanos = 200_000;
const ERASE: Nanos = 1_500_000;
/// A page on the bus of 40 MB/s.
const TRANSFER: Nanos = 102_400;
const READ: Nanos = COMMAND + SENSE + TRANSFER;
const PAGES: u32 = 8;

fn settings() -> SimSettings {
    SimSettings {
        scheduler: Scheduler::Fifo,
        starvation_bound: 10_000_000,
        suspend: Suspend::None,
        suspend_limit: 0,
        suspend_pulse: 0,
        cache_register: false,
        cache_read: true,
        multi_plane: MultiPlane::Off,
        independent_reads: false,
        block_order: BlockOrder::Needed,
        steps_first: false,
    }
}

/// An engine of one die with four blocks a plane, of which the first two are written.
struct Bench {
    engine: Engine,
    io: Io,
    ended: Vec<(u32, Nanos)>,
    plans: u32,
}

impl Bench {
    fn new(settings: &SimSettings) -> Self {
        Bench::of(settings, 1, 1)
    }

    /// As [`Self::new`], with `dies` on one channel and `planes` a die, of four blocks each.
    fn of(settings: &SimSettings, dies: u32, planes: u32) -> Self {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: dies,
            planes_per_die: planes,
            blocks_per_plane: 4,
            pages_per_block: PAGES,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let mut nand = Nand::new(geometry, slc(), Payload::None, None);
        for first in (0..dies * planes).map(|plane| 4 * PAGES * plane) {
            (first..first + 2 * PAGES).for_each(|ppn| assert!(nand.program(ppn, 1, &[ppn], &[Data::ZERO]).is_ok()));
        }
        let engine =
            Engine::new(settings, &geometry, &slc(), HostTimes { link_rate: Rate(1_000_000_000), t_request: 0 });
        let mut io = Io::new(nand, true);
        io.plan.protected = true;
        io.plan.reads_memory = engine.reads_memory();
        Bench { engine, io, ended: Vec::new(), plans: 0 }
    }

    fn step(&mut self) {
        self.engine.step(&mut self.io);
        while let Some(id) = self.engine.take_completed() {
            self.ended.push((id, self.engine.now()));
        }
    }

    /// Plans `act` at `time` as one request; returns its number.
    fn at(&mut self, time: Nanos, act: impl FnOnce(&mut Io)) -> u32 {
        while self.engine.next_time().is_some_and(|next| next <= time) {
            self.step();
        }
        self.engine.advance_to(time);
        let id = self.plans;
        let gate = self.io.plan.gates.open();
        self.plans += 1;
        self.engine.watch(&mut self.io, gate, id);
        (self.io.present.now, self.io.present.gate) = (time, gate);
        act(&mut self.io);
        self.engine.accept(&mut self.io);
        self.engine.planned(&mut self.io, gate, time);
        id
    }

    /// Runs to the end; returns when each request ended.
    fn run(&mut self) -> Vec<Nanos> {
        while self.engine.next_time().is_some() {
            self.step();
        }
        assert_eq!((self.ended.len() as u32, self.engine.outstanding()), (self.plans, 0), "each ends once");
        self.ended.sort_unstable();
        self.ended.iter().map(|&(_, time)| time).collect()
    }
}

fn read(io: &mut Io, ppn: u32, after: Gate) {
    let signal = io.request();
    io.read(Read { after, signal, ..Read::new(ppn, 1, Cause::Host) }).expect("a written page");
}

fn program(io: &mut Io, ppn: u32, after: Gate) {
    let signal = io.request();
    let logical = [ppn];
    let write = Write { after, signal, ..Write::new(ppn, &logical, &[Data::ZERO], Cause::Host) };
    assert_eq!(io.program(write).expect("an erased page"), Outcome::Done);
}

fn erase(io: &mut Io, block: u32) {
    let signal = io.request();
    let outcome = io.erase(Erase { signal, ..Erase::new(block, Cause::Gc) });
    assert_eq!(outcome.expect("a block"), Outcome::Done);
}

/// A gate that closes at `time`.
fn gate_at(io: &mut Io, time: Nanos) -> Gate {
    let gate = io.gate();
    io.plan.delay(gate, time);
    gate
}

/// Ten reads during an erase: those that start within the bound after the suspension go first.
#[test]
fn an_erase_is_held_up_for_the_bound_and_no_longer() {
    let before = |suspend: Suspend, starvation_bound: Nanos| {
        let mut bench = Bench::new(&SimSettings { suspend, starvation_bound, ..settings() });
        let erased = bench.at(0, |io| erase(io, 0)) as usize;
        (0..PAGES).for_each(|page| _ = bench.at(200_000, |io| read(io, PAGES + page, Gate::NONE)));
        let ended = bench.run();
        ended.iter().filter(|&&time| time < ended[erased]).count()
    };
    assert_eq!(before(Suspend::None, 10_000_000), 0);
    assert_eq!(before(Suspend::Erase, 10_000_000), PAGES as usize);
    // The first read starts 5 us after the suspension, each of the others a read later.
    for starts in 1..PAGES as usize {
        let last_start = 5_000 + (starts as Nanos - 1) * READ;
        assert_eq!(before(Suspend::Erase, last_start + 1), starts, "just beyond start {starts}");
        assert_eq!(before(Suspend::Erase, last_start + READ), starts, "at start {}", starts + 1);
    }
}

#[test]
fn an_erase_is_suspended_at_most_as_often_as_allowed() {
    let first_ends = |suspend_limit: u32| {
        let mut bench = Bench::new(&SimSettings { suspend: Suspend::Erase, suspend_limit, ..settings() });
        let erased = bench.at(0, |io| erase(io, 0)) as usize;
        (1..4).for_each(|turn| _ = bench.at(turn * 300_000, |io| read(io, PAGES, Gate::NONE)));
        let ended = bench.run();
        ended.iter().filter(|&&time| time < ended[erased]).count()
    };
    assert_eq!([1, 2, 3, 0].map(first_ends), [1, 2, 3, 3]);
}

/// Only the time in which the array stood still counts towards the bound, not that in which it worked again.
#[test]
fn an_erase_that_works_again_may_be_held_again() {
    let settings = SimSettings { suspend: Suspend::Erase, starvation_bound: 400_000, ..settings() };
    let mut bench = Bench::new(&settings);
    let erased = bench.at(0, |io| erase(io, 0)) as usize;
    let times = [100_000, 700_000, 1_300_000, 1_700_000];
    let reads = times.map(|at| (at, bench.at(at, |io| read(io, PAGES, Gate::NONE)) as usize));
    let ended = bench.run();
    // A suspension lasts for 5 us, a read and the resumption: three reach the bound.
    assert_eq!(reads.map(|(at, id)| ended[id] - at <= 5_000 + READ), [true, true, true, false]);
    assert_eq!(ended[reads[3].1], ended[erased] + READ);
}

/// A read of collection, when a program is in the array, and the end of a request that joins the read later.
fn read_beside_a_program(scheduler: Scheduler, step: bool, joins: bool) -> [Nanos; 3] {
    let mut bench = Bench::new(&SimSettings { scheduler, suspend: Suspend::ProgramErase, ..settings() });
    let mut gate = Gate::NONE;
    let programmed = bench.at(0, |io| program(io, 2 * PAGES, Gate::NONE));
    let copied = bench.at(150_000, |io| {
        gate = io.gate();
        io.plan.step = step;
        io.read(Read { signal: gate, ..Read::new(0, 1, Cause::Gc) }).expect("a written page");
        io.plan.step = false;
        io.link(gate, io.request());
        if !joins {
            io.present.gate = Gate::NONE;
        }
    });
    let last = bench.at(160_000, |_| {});
    let ended = bench.run();
    [programmed, copied, last].map(|id| ended[id as usize])
}

/// A read of collection suspends no program, unless a request waits for it.
#[test]
fn collection_suspends_for_requests_only() {
    let program = COMMAND + TRANSFER + PROGRAM;
    for (scheduler, step) in [(Scheduler::Fifo, false), (Scheduler::ReadFirst, false), (Scheduler::ReadFirst, true)] {
        let [programmed, read, _] = read_beside_a_program(scheduler, step, false);
        assert_eq!([programmed, read], [program, program + READ], "{scheduler:?}, {step}");
        let [programmed, read, _] = read_beside_a_program(scheduler, step, true);
        assert_eq!(read, 150_000 + 5_000 + READ, "{scheduler:?}, {step}");
        assert!(programmed > program);
    }
}

/// A request that waits for a step of collection, through other gates, gives it its own class.
#[test]
fn a_step_that_a_request_joins_goes_before_others() {
    let ends = |joins: bool| {
        let mut bench = Bench::new(&SimSettings { scheduler: Scheduler::ReadFirst, ..settings() });
        let mut gate = Gate::NONE;
        bench.at(0, |io| read(io, PAGES, Gate::NONE));
        bench.at(0, |io| {
            gate = io.gate();
            io.plan.step = true;
            io.read(Read { signal: gate, ..Read::new(0, 1, Cause::Gc) }).expect("a written page");
            io.plan.step = false;
        });
        let mut both = Gate::NONE;
        bench.at(1, |io| {
            both = io.gate();
            io.link(gate, both);
        });
        (1..4).for_each(|page| _ = bench.at(2, |io| read(io, PAGES + page, Gate::NONE)));
        let request = bench.at(3, |io| {
            let after = if joins { both } else { Gate::NONE };
            io.link(after, io.request());
        });
        let behind = bench.at(4, |io| read(io, PAGES + 4, both));
        bench.at(5, |io| read(io, PAGES + 5, Gate::NONE));
        let ended = bench.run();
        [request, behind].map(|id| ended[id as usize])
    };
    // The step was planned before the three reads of the host.
    assert_eq!(ends(true)[0], 2 * READ);
    // A read that follows the step gives it its class, too.
    assert_eq!(ends(false)[1], 6 * READ);
    assert_eq!(ends(true)[1], 6 * READ);
}

/// A program whose data is still on the host link leaves die and bus to others until its transfer can run through.
#[test]
fn a_late_program_leaves_the_bus_to_others() {
    let mut bench = Bench::new(&settings());
    let last = 1_000_000;
    let extent = Extent { sector: 0, sectors: 8 };
    let pace = Pace { subpage: 8, ..Pace::default() };
    bench.at(0, |io| {
        io.present.arrival = Arrival::new(extent, Crossing { first: 0, last }, 0, pace);
        let signal = io.request();
        let write = Write { signal, ..Write::new(2 * PAGES, &[0], &[Data::ZERO], Cause::Host) };
        assert_eq!(io.program(write).expect("an erased page"), Outcome::Done);
    });
    bench.at(10_000, |io| read(io, 0, Gate::NONE));
    assert_eq!(bench.run(), [last + PROGRAM, 10_000 + READ]);
}

/// The erase of a block follows a read planned before, which waits for a gate; the erase of another block does not.
#[test]
fn an_erase_follows_reads_planned_before() {
    let ends = |block: u32| {
        let mut bench = Bench::new(&settings());
        bench.at(0, |io| {
            let gate = gate_at(io, 3_000_000);
            read(io, 0, gate);
        });
        bench.at(0, |io| erase(io, block));
        bench.run()
    };
    assert_eq!(ends(1), [3_000_000 + READ, COMMAND + ERASE]);
    assert_eq!(ends(0), [3_000_000 + READ, 3_000_000 + READ + COMMAND + ERASE]);
}

/// Programs of a block keep their order although the first waits longer.
#[test]
fn programs_of_a_block_keep_their_order() {
    let mut bench = Bench::new(&settings());
    let ppn = 2 * PAGES;
    bench.at(0, |io| {
        let gate = gate_at(io, 1_000_000);
        program(io, ppn, gate);
    });
    bench.at(0, |io| program(io, ppn + 1, Gate::NONE));
    let one = COMMAND + TRANSFER + PROGRAM;
    assert_eq!(bench.run(), [1_000_000 + one, 1_000_000 + 2 * one]);
}

/// A gate closes with the last of its signals, and a request with the last of its operations.
#[test]
fn a_gate_closes_with_its_last_signal() {
    let mut bench = Bench::new(&settings());
    bench.at(0, |io| {
        let gate = io.gate();
        for ppn in 0..3 {
            io.read(Read { signal: gate, ..Read::new(ppn, 1, Cause::Gc) }).expect("a written page");
        }
        program(io, 2 * PAGES, gate);
    });
    assert_eq!(bench.run(), [3 * READ + COMMAND + TRANSFER + PROGRAM]);
}

/// Room in the buffer is free when the program has ended, as many subpages as the program says.
#[test]
fn a_program_frees_its_room_at_its_end() {
    let mut bench = Bench::new(&settings());
    bench.at(0, |io| {
        let signal = io.request();
        let write = Write { frees: 3, signal, ..Write::new(2 * PAGES, &[0], &[Data::ZERO], Cause::Host) };
        assert_eq!(io.program(write).expect("an erased page"), Outcome::Done);
    });
    let end = COMMAND + TRANSFER + PROGRAM;
    while bench.engine.next_time().is_some_and(|next| next < end) {
        bench.step();
        assert_eq!(bench.engine.take_buffer_freed(), 0, "at {}", bench.engine.now());
    }
    assert_eq!(bench.run(), [end]);
    assert_eq!(bench.engine.take_buffer_freed(), 3);
}

/// Each direction of the host link serves in order of arrival; a transfer behind a gate starts when the gate closes.
#[test]
fn the_host_link_serves_in_order() {
    let mut bench = Bench::new(&settings());
    let inward = [bench.engine.receive(4096), bench.engine.receive(512)];
    assert_eq!(inward, [Crossing { first: 0, last: 4096 }, Crossing { first: 4096, last: 4608 }]);
    assert_eq!(bench.engine.send(1000, 4096), 5096, "not before the data is there, whatever arrives meanwhile");
    let mut first = Gate::NONE;
    let mut second = Gate::NONE;
    bench.at(0, |io| {
        (first, second) = (gate_at(io, 50_000), gate_at(io, 60_000));
    });
    for gate in [second, first] {
        let gates = &mut bench.io.plan.gates;
        let id = bench.plans;
        let later = gates.open();
        bench.plans += 1;
        bench.engine.watch(&mut bench.io, later, id);
        bench.engine.cross_after(&mut bench.io, gate, later, 20_000);
        bench.engine.planned(&mut bench.io, later, 0);
    }
    // The earlier gate goes first and takes 20 us; the later one, closed meanwhile, follows.
    assert_eq!(bench.run()[1..], [90_000, 70_000]);
}
