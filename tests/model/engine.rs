//! The engine's times, with plans by hand: to the nanosecond while one or two operations run, and as properties under
//! random load.

use crate::drives::{build, pick, plain, with};
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::{self, Durability, Ftl, Guarantee, LayerFigures};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::{Data, Payload};
use palimpsest_lab::nand::{Flash, Nand};
use palimpsest_lab::observe::Observer;
use palimpsest_lab::plan::{self, Cause, Gate, Io};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::{Command, Drive, Verifier};
use palimpsest_lab::sim::engine::Engine;
use palimpsest_lab::units::Nanos;
use std::sync::{Arc, Mutex};

/// One operation of a plan.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    Read(u32),
    Program(u32),
    Erase(u32),
}

use Op::{Erase, Program, Read};

/// A layer that follows a script: request number n plans operation n.
struct Scripted {
    script: Arc<Mutex<Vec<(Op, Cause)>>>,
}

impl Op {
    /// Plans the operation.
    pub fn plan(self, io: &mut Io, cause: Cause, after: Gate, signal: Gate) -> Flash<()> {
        match self {
            Read(ppn) => io.read(plan::Read { after, signal, ..plan::Read::new(ppn, 1, cause) }),
            Erase(block) => io.erase(plan::Erase { block, cause, after, signal }).map(|_| ()),
            Program(ppn) => {
                let program = plan::Program::new(ppn, &[0], &[Data::ZERO], cause);
                io.program(plan::Program { after, signal, ..program }).map(|_| ())
            }
        }
    }
}

impl Scripted {
    fn act(&mut self, io: &mut Io, number: u64) -> Flash<()> {
        let (op, cause) = self.script.lock().expect("one thread")[number as usize];
        let request = io.request();
        io.plan.step = cause == crate::steps::STEP;
        op.plan(io, cause, Gate::NONE, request)
    }
}

impl Ftl for Scripted {
    fn unit_subpages(&self) -> u32 {
        1
    }
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.act(io, extent.sector)
    }
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.act(io, extent.sector)
    }
    fn trim(&mut self, _io: &mut Io, _extent: Extent) -> Flash<()> {
        Ok(())
    }
    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }
    fn recover(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }
    fn check(&mut self, _io: &Io) -> std::result::Result<(), String> {
        Ok(())
    }
    fn figures(&self) -> LayerFigures {
        LayerFigures::default()
    }
}

pub struct Unverified;

impl Verifier for Unverified {
    fn served(&mut self, _io: &mut Io, _command: Command) -> Result<()> {
        Ok(())
    }
}

/// When each request completed. Sizes distinguish requests.
#[derive(Default)]
pub struct Times(pub Vec<(usize, Nanos)>);

impl Observer for Times {
    fn request_completed(&mut self, _kind: RequestKind, bytes: u64, _latency: Nanos, now: Nanos) {
        self.0.push(((bytes / 512) as usize - 1, now));
    }
}

/// tR 40 us, tPROG 200 us, tBERS 2 ms, command 1 us; a page of 4 KiB takes 10.24 us on the bus.
pub const COMMAND: Nanos = 1_000;
pub const SENSE: Nanos = 40_000;
pub const PROGRAM: Nanos = 200_000;
pub const ERASE: Nanos = 2_000_000;
pub const TRANSFER: Nanos = 10_240;

pub fn config(changes: &[&str]) -> DriveConfig {
    let base = with(&plain(1, 8, 16, 1), &["ssd.over_provisioning=100%", "sim.multi_plane=false"]);
    build("page", &with(&base, changes)).expect("a possible drive").drive
}

/// `layer` on a drive whose blocks 0 to `written` of every plane are full, so that they can be read.
pub fn drive(config: &DriveConfig, written: u32, layer: Box<dyn Ftl>) -> Drive {
    let mut nand = Nand::new(config.geometry, config.part.clone(), Payload::None, None);
    let (per_plane, pages) = (config.geometry.blocks_per_plane, config.geometry.pages_per_block);
    for block in (0..config.geometry.blocks()).filter(|block| block % per_plane < written) {
        for ppn in block * pages..(block + 1) * pages {
            assert!(nand.program(ppn, 1, &[0], &[Data::ZERO]).is_ok());
        }
    }
    let engine = Engine::new(&config.sim, &config.geometry, &config.part, config.host_times());
    // Scripts state the order of erases.
    let guarantee = Guarantee { durable: Durability::Programmed, protected: true };
    Drive::new(Io::new(nand, true), layer, engine, guarantee)
}

/// Such a drive under a script.
pub struct Bench {
    pub drive: Drive,
    script: Arc<Mutex<Vec<(Op, Cause)>>>,
    times: Times,
    submitted: usize,
}

impl Bench {
    pub fn new(config: &DriveConfig, written: u32) -> Self {
        let script = Arc::new(Mutex::new(Vec::new()));
        let drive = drive(config, written, Box::new(Scripted { script: Arc::clone(&script) }));
        Bench { drive, script, times: Times::default(), submitted: 0 }
    }

    /// Processes events up to `time`, then submits `op`. Returns the request's number.
    pub fn at(&mut self, time: Nanos, op: Op, cause: Cause) -> usize {
        while self.drive.next_time().is_some_and(|next| next <= time) {
            self.drive.step(&mut self.times, &mut Unverified).expect("a legal plan");
        }
        self.drive.engine.advance_to(time);
        self.script.lock().expect("one thread").push((op, cause));
        let number = self.submitted;
        self.submitted += 1;
        let kind = if matches!(op, Read(_)) { RequestKind::Read } else { RequestKind::Write };
        let extent = Extent { sector: number as u64, sectors: number as u32 + 1 };
        self.drive.submit(Command::new(kind, extent), time, &mut Unverified).expect("a legal plan");
        self.drive.harvest(&mut self.times, &mut Unverified).expect("a legal plan");
        number
    }

    /// Runs to the end; returns when each request completed.
    pub fn run(&mut self) -> Vec<Nanos> {
        while self.drive.next_time().is_some() {
            self.drive.step(&mut self.times, &mut Unverified).expect("a legal plan");
        }
        let mut done = vec![0; self.submitted];
        assert_eq!(self.times.0.len(), self.submitted, "each completes once");
        for &(number, time) in &self.times.0 {
            assert_eq!(done[number], 0, "each completes once");
            done[number] = time;
        }
        assert_eq!(self.drive.engine.outstanding(), 0);
        done
    }
}

/// When each of `ops` completes, submitted at the times given.
pub fn times(changes: &[&str], written: u32, ops: &[(Nanos, Op)]) -> Vec<Nanos> {
    let mut bench = Bench::new(&config(changes), written);
    for &(time, op) in ops {
        bench.at(time, op, Cause::Host);
    }
    bench.run()
}

/// The first page of `block`.
pub fn first(block: u32) -> u32 {
    block * 16
}

#[test]
fn one_operation_at_a_time() {
    assert_eq!(times(&[], 1, &[(0, Read(0))]), [COMMAND + SENSE + TRANSFER]);
    assert_eq!(times(&[], 0, &[(5, Program(0))]), [5 + COMMAND + TRANSFER + PROGRAM]);
    assert_eq!(times(&[], 1, &[(0, Erase(0))]), [COMMAND + ERASE]);
}

#[test]
fn one_die_works_one_after_the_other() {
    let read = COMMAND + SENSE + TRANSFER;
    assert_eq!(times(&[], 1, &[(0, Read(0)), (0, Read(1))]), [read, 2 * read]);
}

#[test]
fn the_cache_register_moves_a_page_while_the_next_is_sensed() {
    let on = "sim.cache_register=true";
    // The command of the next read pauses the data of this read, which excludes the delay; later data includes the
    // delay.
    let reads = times(&[on], 1, &[(0, Read(0)), (0, Read(1)), (0, Read(2))]);
    let each = COMMAND + SENSE;
    assert_eq!(reads, [each + TRANSFER, 2 * each + TRANSFER, 3 * each + TRANSFER]);
    // If the bus is slower than the array, the bus never rests.
    let slow = [on, "part.bus_rate=40MB/s"];
    let transfer = 10 * TRANSFER;
    let reads = times(&slow, 1, &[(0, Read(0)), (0, Read(1)), (0, Read(2))]);
    let first = each + transfer;
    assert_eq!(reads, [first, first + COMMAND + transfer, first + 2 * (COMMAND + transfer)]);
    // Programs: the second is loaded while the first is programmed, which then follows at once.
    let programs = times(&[on], 0, &[(0, Program(0)), (0, Program(1))]);
    let loaded = COMMAND + TRANSFER;
    assert_eq!(programs, [loaded + PROGRAM, loaded + 2 * PROGRAM]);
}

#[test]
fn planes_run_together() {
    let two = ["ssd.planes_per_die=2", "sim.multi_plane=true"];
    // Planes 0 and 1 hold blocks 0 to 7 and 8 to 15. Commands and data take the bus in turn, the array works once.
    let reads = times(&two, 1, &[(0, Read(first(0) + 3)), (0, Read(first(8) + 3))]);
    // The first starts before the second arrives in the same nanosecond: no operation waits for company.
    assert_eq!(reads[0], COMMAND + SENSE + TRANSFER);
    let ops = [(0, Erase(1)), (5, Program(first(2))), (5, Program(first(10))), (5, Program(first(11) + 1))];
    let done = times(&two, 0, &ops);
    let start = COMMAND + ERASE;
    assert_eq!(done[0], start);
    assert_eq!(done[1], start + 2 * (COMMAND + TRANSFER) + PROGRAM, "the same page of two planes");
    assert_eq!(done[2], done[1]);
    assert_eq!(done[3], done[1] + COMMAND + TRANSFER + PROGRAM, "another page waits");
    let ops = [(0, Erase(1)), (5, Read(first(0))), (5, Read(first(8))), (6, Erase(2)), (6, Erase(11))];
    let done = times(&two, 1, &ops);
    let sensed = start + 2 * COMMAND + SENSE;
    assert_eq!(done[1..3], [sensed + TRANSFER, sensed + 2 * TRANSFER]);
    assert_eq!(done[3..], [done[2] + 2 * COMMAND + ERASE; 2], "any two blocks are erased together");
    let off = ["ssd.planes_per_die=2"];
    let done = times(&off, 0, &[(0, Erase(1)), (5, Program(first(2))), (5, Program(first(10)))]);
    assert_eq!(done[2], start + 2 * (COMMAND + TRANSFER + PROGRAM), "not without the setting");
}

#[test]
fn two_dies_share_a_bus() {
    // Blocks 0 to 7 and 8 to 15 are in dies 0 and 1 of one channel.
    let dies = ["ssd.chips_per_channel=2"];
    let done = times(&dies, 1, &[(0, Read(first(0))), (0, Read(first(8)))]);
    // Commands at 0 and 1 us; data at 41 us, then as soon as the bus is free.
    assert_eq!(done, [COMMAND + SENSE + TRANSFER, COMMAND + SENSE + 2 * TRANSFER]);
    let done = times(&dies, 0, &[(0, Program(first(0))), (0, Program(first(8)))]);
    assert_eq!(done, [COMMAND + TRANSFER + PROGRAM, 2 * (COMMAND + TRANSFER) + PROGRAM]);
    let channels = ["ssd.channels=2"];
    let done = times(&channels, 0, &[(0, Program(first(0))), (0, Program(first(8)))]);
    assert_eq!(done, [COMMAND + TRANSFER + PROGRAM; 2], "two channels share nothing");
}

pub const SUSPENDS: [&str; 3] = ["sim.suspend=program-erase", "part.t_suspend=20us", "part.t_resume=10us"];
const SUSPEND: Nanos = 20_000;
const RESUME: Nanos = 10_000;

/// A read that suspends something.
fn read() -> Nanos {
    SUSPEND + COMMAND + SENSE + TRANSFER
}

#[test]
fn a_read_suspends_an_erase() {
    for arrival in [500_000, 1_000_000, 1_900_000] {
        let done = times(&SUSPENDS, 1, &[(0, Erase(1)), (arrival, Read(0))]);
        let read = SUSPEND + COMMAND + SENSE + TRANSFER;
        assert_eq!(done, [COMMAND + ERASE + read + RESUME, arrival + read]);
    }
    // A program or erase that ends sooner by itself is not suspended.
    let done = times(&SUSPENDS, 1, &[(0, Erase(1)), (1_990_000, Read(0))]);
    assert_eq!(done, [COMMAND + ERASE, COMMAND + ERASE + COMMAND + SENSE + TRANSFER]);
    // Reads of other pages of the block suspend, too; in the planned order all wait for their turn, and nothing is
    // suspended.
    let ops = [(0, Program(first(1))), (300_000, Program(first(1) + 1)), (400_000, Read(first(1)))];
    let loaded = COMMAND + TRANSFER;
    assert_eq!(times(&SUSPENDS, 1, &ops)[1..], [300_000 + loaded + PROGRAM + read() + RESUME, 400_000 + read()]);
    let planned = [&SUSPENDS[..], &["sim.block_order=planned"]].concat();
    let done = times(&planned, 1, &ops);
    assert_eq!(done[1..], [300_000 + loaded + PROGRAM, 300_000 + loaded + PROGRAM + COMMAND + SENSE + TRANSFER]);
}

#[test]
fn a_read_suspends_a_program_that_still_takes_its_data() {
    // The read arrives while the program is loaded: the array can be suspended as soon as programming starts.
    let done = times(&SUSPENDS, 1, &[(0, Program(first(1))), (5_000, Read(0))]);
    let loaded = COMMAND + TRANSFER;
    let read = SUSPEND + COMMAND + SENSE + TRANSFER;
    assert_eq!(done, [loaded + PROGRAM + read + RESUME, loaded + read]);
    let done = times(&SUSPENDS, 1, &[(0, Erase(1)), (500, Read(0))]);
    assert_eq!(done, [COMMAND + ERASE + read + RESUME, COMMAND + read], "and an erase behind its command");
}

/// The cache register loads the next page while the array programs. Loading does not delay a read, and the page stays
/// in the register.
#[test]
fn a_read_suspends_a_program_in_front_of_the_cache_register() {
    let settings = [&SUSPENDS[..], &["sim.cache_register=true"]].concat();
    let (loaded, read) = (COMMAND + TRANSFER, SUSPEND + COMMAND + SENSE + TRANSFER);
    let done = times(&settings, 1, &[(0, Program(first(1))), (50_000, Read(0))]);
    assert_eq!(done, [loaded + PROGRAM + read + RESUME, 50_000 + read]);
    // With the next page in the register, and while the register loads.
    for arrival in [50_000, 15_000] {
        let done = times(&settings, 1, &[(0, Program(first(1))), (0, Program(first(2))), (arrival, Read(0))]);
        let end = loaded + PROGRAM + read + RESUME;
        assert_eq!(done, [end, end + PROGRAM, arrival + read], "a read at {arrival}");
    }
    // A die with more programs than time serves each read in the time of a lone read.
    for scheduler in ["sim.scheduler=fifo", "sim.scheduler=read-first"] {
        let settings = [&settings[..], &[scheduler]].concat();
        let mut ops: Vec<(Nanos, Op)> =
            (0..16).map(|number| (0, Program(first(1 + number % 4) + number / 4))).collect();
        ops.push((500_000, Read(0)));
        let wait = times(&settings, 1, &ops)[16] - 500_000;
        match scheduler {
            "sim.scheduler=fifo" => assert!(wait > 10 * PROGRAM, "it is the last in line"),
            _ => assert_eq!(wait, read),
        }
    }
}

#[test]
fn a_read_suspends_what_is_being_resumed() {
    let read = SUSPEND + COMMAND + SENSE + TRANSFER;
    let resumed = 500_000 + read + RESUME;
    let arrival = resumed - 3_000;
    let done = times(&SUSPENDS, 1, &[(0, Erase(1)), (500_000, Read(0)), (arrival, Read(1))]);
    assert_eq!(done, [COMMAND + ERASE + 2 * (read + RESUME), 500_000 + read, resumed + read]);
}

#[test]
fn suspensions_of_an_operation_are_counted() {
    let reads = [(0, Erase(1)), (500_000, Read(0)), (1_000_000, Read(1))];
    let (ended, once) = (COMMAND + ERASE + read() + RESUME, 500_000 + read());
    let limited = [&SUSPENDS[..], &["sim.suspend_limit=1"]].concat();
    assert_eq!(times(&limited, 1, &reads), [ended, once, ended + COMMAND + SENSE + TRANSFER]);
    let more = [&SUSPENDS[..], &["sim.suspend_limit=2"]].concat();
    assert_eq!(times(&more, 1, &reads), [ended + read() + RESUME, once, 1_000_000 + read()]);
    // Each operation has its own count.
    let reads_first = [&limited[..], &["sim.scheduler=read-first"]].concat();
    let loaded = COMMAND + TRANSFER;
    let second = loaded + PROGRAM + read() + RESUME + loaded + PROGRAM / 2;
    let programs = [(0, Program(first(1))), (0, Program(first(2))), (50_000, Read(0)), (second, Read(1))];
    assert_eq!(times(&reads_first, 1, &programs)[2..], [50_000 + read(), second + read()]);
}

#[test]
fn programs_are_suspended_between_pulses() {
    let (pulsed, loaded) = ([&SUSPENDS[..], &["sim.suspend_pulse=40us"]].concat(), COMMAND + TRANSFER);
    let arrival = 50_000;
    let rest = (loaded + PROGRAM - arrival) % 40_000;
    let done = times(&pulsed, 1, &[(0, Program(first(1))), (arrival, Read(0))]);
    assert_eq!(done, [loaded + PROGRAM + read() + RESUME, arrival + rest + read()]);
    // No program can be suspended in its last pulse.
    let whole = [&SUSPENDS[..], &["sim.suspend_pulse=1s"]].concat();
    let done = times(&whole, 1, &[(0, Program(first(1))), (arrival, Read(0))]);
    assert_eq!(done, [loaded + PROGRAM, loaded + PROGRAM + COMMAND + SENSE + TRANSFER]);
}

#[test]
fn a_suspended_erase_has_a_time_of_its_own() {
    let settings = [&SUSPENDS[..], &["part.t_suspend_erase=100us"]].concat();
    let done = times(&settings, 1, &[(0, Erase(1)), (500_000, Read(0))]);
    assert_eq!(done[1], 500_000 + 100_000 + COMMAND + SENSE + TRANSFER);
    let loaded = COMMAND + TRANSFER;
    let done = times(&settings, 1, &[(0, Program(first(1))), (100_000, Read(0))]);
    assert_eq!(done, [loaded + PROGRAM + read() + RESUME, 100_000 + read()]);
}

#[test]
fn suspended_operations_are_not_starved() {
    for cache in ["sim.cache_register=true", "sim.cache_register=false"] {
        let mut bench = Bench::new(&config(&[&SUSPENDS[..], &["sim.starvation_bound=1ms", cache]].concat()), 1);
        bench.at(0, Erase(1), Cause::Gc);
        // More reads than the die can serve.
        for number in 0..400 {
            bench.at(10_000 + number * 30_000, Read((number % 16) as u32), Cause::Host);
        }
        let done = bench.run();
        assert!(done[0] < ERASE + 1_000_000 + 300_000, "{cache}: the erase ends at {}", done[0]);
    }
}

#[test]
fn reads_first_until_the_bound() {
    for cache in ["sim.cache_register=true", "sim.cache_register=false"] {
        let settings = ["sim.scheduler=read-first", "sim.starvation_bound=1ms", cache];
        let mut bench = Bench::new(&config(&settings), 1);
        bench.at(0, Read(0), Cause::Host);
        bench.at(1, Program(first(1)), Cause::Host);
        for number in 0..200 {
            bench.at(2 + number * 30_000, Read((number % 16) as u32), Cause::Host);
        }
        let done = bench.run();
        let alone = COMMAND + TRANSFER + PROGRAM;
        assert!(done[1] > 1_000_000, "{cache}: reads overtake it, but it ends at {}", done[1]);
        assert!(done[1] < 1_000_000 + 3 * (COMMAND + SENSE + TRANSFER) + alone, "{cache}: it ends at {}", done[1]);
    }
    let fifo = times(&["sim.scheduler=fifo"], 1, &[(0, Read(0)), (1, Program(first(1))), (2, Read(1))]);
    assert!(fifo[1] < fifo[2]);
    let reads = times(&["sim.scheduler=read-first"], 1, &[(0, Read(0)), (1, Program(first(1))), (2, Read(1))]);
    assert!(reads[2] < reads[1]);
}

/// Programs of a block become ready one by one: at most one of many waiting programs goes before reads within such a
/// time.
#[test]
fn one_program_of_a_block_goes_before_reads_within_the_bound() {
    const BOUND: Nanos = 1_000_000;
    for cache in ["sim.cache_register=true", "sim.cache_register=false"] {
        let settings = ["sim.scheduler=read-first", "sim.starvation_bound=1ms", cache];
        let mut bench = Bench::new(&config(&settings), 1);
        bench.at(0, Read(0), Cause::Host);
        for page in 0..6 {
            bench.at(1, Program(first(1) + page), Cause::Host);
        }
        // More reads than the die can serve.
        for number in 0..300 {
            bench.at(2 + number * 30_000, Read((number % 16) as u32), Cause::Host);
        }
        let done = bench.run();
        let read = COMMAND + SENSE + TRANSFER;
        for (one, next) in done[1..6].iter().zip(&done[2..7]) {
            assert!(next - one + 3 * read > BOUND, "{cache}: two within {} ns", next - one);
            assert!(next - one < BOUND + PROGRAM + 4 * read, "{cache}: the next comes after {} ns", next - one);
        }
    }
}

#[test]
fn the_host_first() {
    let run = |scheduler: &str| {
        let mut bench = Bench::new(&config(&[scheduler]), 3);
        bench.at(0, Read(0), Cause::Host);
        bench.at(1, Read(first(1)), Cause::Gc);
        bench.at(2, Program(first(3)), Cause::Gc);
        bench.at(3, Program(first(4)), Cause::Host);
        bench.at(4, Read(first(2)), Cause::Rmw);
        let mut order: Vec<(Nanos, usize)> = bench.run().into_iter().zip(0..).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, number)| number).collect::<Vec<_>>()
    };
    assert_eq!(run("sim.scheduler=host-first"), [0, 3, 4, 1, 2]);
    assert_eq!(run("sim.scheduler=read-first"), [0, 1, 4, 2, 3]);
    assert_eq!(run("sim.scheduler=fifo"), [0, 1, 2, 3, 4]);
}

#[test]
fn the_host_link_cuts_through() {
    // A fast link sends while the bus transfers, and both end together.
    let done = times(&["host.link_rate=4GB/s"], 1, &[(0, Read(0))]);
    assert_eq!(done, [COMMAND + SENSE + TRANSFER]);
    // A slow link (40.96 us a sector) begins with the first byte that leaves the die. Request n reads n + 1 sectors of
    // the page, and no other sectors cross the link.
    let link = 4 * TRANSFER;
    let done = times(&["host.link_rate=12.5MB/s"], 1, &[(0, Read(0))]);
    assert_eq!(done, [COMMAND + SENSE + link]);
    // Two channels, one link: the second waits for the first.
    let done = times(&["host.link_rate=12.5MB/s", "ssd.channels=2"], 1, &[(0, Read(first(0))), (0, Read(first(8)))]);
    assert_eq!(done, [COMMAND + SENSE + link, COMMAND + SENSE + 3 * link]);
}

/// The link carries the written sectors: request n has n + 1, of 4.096 ms each at 125 kB/s.
#[test]
fn a_write_is_programmed_when_its_data_has_come() {
    let link = 4_096_000;
    let done = times(&["host.link_rate=0.125MB/s"], 0, &[(0, Program(0))]);
    assert_eq!(done, [link + PROGRAM]);
    let done = times(&["host.link_rate=0.125MB/s", "ssd.channels=2"], 0, &[(0, Program(0)), (0, Program(first(8)))]);
    assert_eq!(done, [link + PROGRAM, 3 * link + PROGRAM], "the link brings one after the other");
}

/// The host takes time for each request, and for several at once.
#[test]
fn time_in_the_host_comes_on_top_and_overlaps() {
    let both = [(0, Read(first(0))), (0, Read(first(8)))];
    let done = times(&["host.t_request=70us", "ssd.channels=2"], 1, &both);
    assert_eq!(done, [COMMAND + SENSE + TRANSFER + 70_000; 2]);
    let [first, second] = times(&["host.t_request=70us"], 1, &[(0, Read(0)), (0, Read(1))])[..] else { panic!("two") };
    assert_eq!(second - first, COMMAND + SENSE + TRANSFER, "the die does not wait for the host");
}

/// Operations on one block keep the order of their submission: as far as flash needs, or all of them, with every policy
/// and however dies overlap.
#[test]
fn the_order_within_a_block_never_changes() {
    let seeds = 0..std::env::var("MODEL_CASES").map_or(150, |text| text.parse().expect("a number"));
    for seed in seeds {
        let mut rng = Rng::new(seed, 0x0bde);
        let flag = |key: &str, value: bool| format!("{key}={value}");
        let settings = [
            format!("sim.scheduler={}", pick(&mut rng, &["fifo", "read-first", "host-first"])),
            format!("sim.suspend={}", pick(&mut rng, &["none", "erase", "program-erase"])),
            format!("sim.starvation_bound={}", pick(&mut rng, &["0ns", "500us", "10ms"])),
            format!("sim.block_order={}", if seed % 3 > 0 { "needed" } else { "planned" }),
            flag("sim.cache_register", rng.below(2) == 0),
            flag("sim.multi_plane", rng.below(2) == 0),
            format!("ssd.planes_per_die={}", pick(&mut rng, &[1, 2, 4])),
            format!("ssd.chips_per_channel={}", pick(&mut rng, &[1, 2])),
            format!("part.t_suspend={}", pick(&mut rng, &["0ns", "20us"])),
            format!("part.t_resume={}", pick(&mut rng, &["0ns", "10us"])),
            format!("part.t_suspend_erase={}", ["0ns", "20us", "200us"][seed as usize % 3]),
            format!("sim.suspend_limit={}", seed % 4),
            format!("sim.suspend_pulse={}", ["0ns", "70us", "300us"][seed as usize / 3 % 3]),
        ];
        let config = config(&settings.iter().map(String::as_str).collect::<Vec<_>>());
        let mut bench = Bench::new(&config, 2);
        let blocks = config.geometry.blocks();
        // The next page of each block; reads need a written page.
        let mut next: Vec<u32> = (0..blocks).map(|block| if block % 8 < 2 { 16 } else { 0 }).collect();
        let (mut now, mut log) = (0, Vec::new());
        for _ in 0..300 {
            let block = rng.below(u64::from(blocks.min(5 + seed as u32 % 20))) as usize;
            let op = match rng.below(5) {
                0..=2 if next[block] > 0 => Read(first(block as u32) + rng.below(u64::from(next[block])) as u32),
                3 | 4 if next[block] < 16 => {
                    next[block] += 1;
                    Program(first(block as u32) + next[block] - 1)
                }
                _ => {
                    next[block] = 0;
                    Erase(block as u32)
                }
            };
            let cause = pick(&mut rng, &[Cause::Host, Cause::Gc, Cause::Rmw]);
            now += if rng.below(3) == 0 { rng.below(400_000) } else { 0 };
            bench.at(now, op, cause);
            log.push((block, op));
        }
        let done = bench.run();
        for (later, &(block, op)) in log.iter().enumerate() {
            // An operation that changes the block starts after all earlier ones, and all later ones start afterwards.
            for earlier in (0..later).filter(|&earlier| log[earlier].0 == block) {
                // A read passes programs and, if memory holds all wanted data, erases; a program passes reads.
                let free = match (log[earlier].1, op) {
                    (Read(_), Read(_)) => true,
                    (_, Read(_)) | (Read(_), Program(_)) => seed % 3 > 0,
                    _ => false,
                };
                if free {
                    continue;
                }
                assert!(
                    done[earlier] <= done[later],
                    "seed {seed} ({settings:?}): {:?} of block {block} ended at {}, {op:?} submitted after it at {}",
                    log[earlier].1,
                    done[earlier],
                    done[later]
                );
            }
        }
    }
}

/// A write buffer of one page: a write is acknowledged when the previous program has freed the buffer.
#[test]
fn a_full_write_buffer_holds_writes_back() {
    let entry = ftl::find("subpage").expect("a registered layer");
    let settings = with(&plain(1, 8, 16, 1), &["ssd.over_provisioning=100%", "buffer.size=4KiB"]);
    let config = build("subpage", &settings).expect("a possible drive").drive;
    let mut drive = crate::harness::drive(&config, entry, Payload::None, 1);
    drive.start_timing().expect("nothing to program");
    let mut times = Times::default();
    for number in 0..4u64 {
        // Sizes distinguish requests; each is one subpage at a separate place.
        let extent = Extent { sector: number * 8, sectors: number as u32 + 1 };
        drive.submit(Command::new(RequestKind::Write, extent), 0, &mut Unverified).expect("room");
        drive.harvest(&mut times, &mut Unverified).expect("room");
    }
    while drive.next_time().is_some() {
        drive.step(&mut times, &mut Unverified).expect("room");
    }
    let program = COMMAND + TRANSFER + PROGRAM;
    assert_eq!(times.0, [(0, 0), (1, program), (2, 2 * program), (3, 3 * program)]);
}
