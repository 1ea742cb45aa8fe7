//! Order of operations of one block: to the nanosecond, with plans by hand and on a preset.

use crate::engine::{Bench, COMMAND, ERASE, Op, PROGRAM, SENSE, TRANSFER, Unverified, config, first, times};
use palimpsest_lab::ftl;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::observe::Observer;
use palimpsest_lab::plan::Cause;
use palimpsest_lab::sim::drive::{Command, Drive};
use palimpsest_lab::units::Nanos;

use Op::{Erase, Program, Read};

/// A read waits for the running operation of the die, and not for programs that wait for earlier programs of the block.
#[test]
fn reads_do_not_wait_for_programs_of_other_pages() {
    let alone = COMMAND + TRANSFER + PROGRAM;
    let mut ops: Vec<(Nanos, Op)> = (0..4).map(|page| (0, Program(first(1) + page))).collect();
    ops.push((alone + 20_000, Read(first(1))));
    let of = |order: &str| times(&["sim.scheduler=read-first", order], 1, &ops)[4];
    assert_eq!(of("sim.block_order=needed"), 2 * alone + COMMAND + SENSE + TRANSFER);
    assert_eq!(of("sim.block_order=planned"), 4 * alone + COMMAND + SENSE + TRANSFER);
}

/// Data that a program has not stored yet is in the controller; such a read takes no flash operation.
#[test]
fn pages_under_way_are_read_from_memory() {
    let ops =
        [(0, Program(first(1))), (0, Program(first(1) + 1)), (20_000, Read(first(1))), (20_000, Read(first(1) + 1))];
    let alone = COMMAND + TRANSFER + PROGRAM;
    let mut bench = Bench::new(&config(&[]), 1);
    for (time, op) in ops {
        bench.at(time, op, Cause::Host);
    }
    let done = bench.run();
    assert_eq!(done, [alone, 2 * alone, 20_000, 20_000]);
    let io = &bench.drive.io;
    assert_eq!((io.nand.counters().reads, io.counters.reads[0], io.counters.memory_reads[0]), (0, 0, 2));
    // Memory has the data from the host link's transfer until the program ends. The first request writes one sector.
    let link = 4_096_000;
    let slow = ["host.link_rate=0.125MB/s"];
    let done = times(&slow, 1, &[(0, Program(first(1))), (20_000, Read(first(1)))]);
    assert_eq!(done[0], link + PROGRAM);
    assert!(done[1] >= link && done[1] < link + 3 * link, "{done:?}");
    let done = times(&[], 1, &[(0, Program(first(1))), (alone, Read(first(1)))]);
    assert_eq!(done[1], alone + COMMAND + SENSE + TRANSFER);
    let planned = times(&["sim.block_order=planned"], 1, &ops);
    assert_eq!(planned[3], 2 * alone + 2 * (COMMAND + SENSE + TRANSFER), "without, they wait for their programs");
}

/// An erase waits for reads of the block that were planned before, with every scheduler.
#[test]
fn an_erase_waits_for_reads_of_its_block() {
    for order in ["sim.block_order=needed", "sim.block_order=planned"] {
        let mut bench = Bench::new(&config(&["sim.scheduler=host-first", order]), 2);
        bench.at(0, Read(first(1)), Cause::Host);
        // Both wait for the die; the scheduler would take the erase first.
        bench.at(10, Read(0), Cause::Gc);
        bench.at(20, Erase(0), Cause::Host);
        let done = bench.run();
        let each = COMMAND + SENSE + TRANSFER;
        assert_eq!(done, [each, 2 * each, 2 * each + COMMAND + ERASE], "{order}");
    }
}

/// The longest response time of reads.
#[derive(Default)]
struct LongestRead(Nanos);

impl Observer for LongestRead {
    fn request_completed(&mut self, kind: RequestKind, _bytes: u64, latency: Nanos, _now: Nanos) {
        if kind == RequestKind::Read {
            self.0 = self.0.max(latency);
        }
    }
}

/// On `default`, a read 20 us after a write of another page in the same block suspends the program. Earlier versions
/// waited for the program.
#[test]
fn a_read_beside_a_write_takes_little_longer_than_alone() {
    let longest = |changes: &[&str], writes: bool| {
        let sets =
            ["ssd.blocks_per_plane=16", "part.pages_per_block=32", "ssd.over_provisioning=28%", "host.t_request=0ns"];
        let sets: Vec<String> = sets.iter().chain(changes).map(|&set| set.into()).collect();
        let resolved = palimpsest_lab::config::resolve("tlc-32g", None, &sets, &|_| Ok(String::new()));
        let config = resolved.expect("a possible drive").drive;
        let entry = ftl::find(&config.ftl.name).expect("a registered layer");
        let mut drive = crate::harness::drive(&config, entry, Payload::None, 1);
        drive.start_timing().expect("nothing to program");
        let (page, planes) = (config.geometry.page_bytes() / 512, u64::from(config.geometry.planes()));
        let mut longest = LongestRead::default();
        let mut submit = |drive: &mut Drive, at: Nanos, kind: RequestKind, number: u64, sectors: u32| {
            while drive.next_time().is_some_and(|next| next <= at) {
                drive.step(&mut longest, &mut Unverified).expect("a legal plan");
            }
            drive.engine.advance_to(at);
            let extent = Extent { sector: number * u64::from(page), sectors };
            drive.submit(Command::new(kind, extent), at, &mut Unverified).expect("a legal plan");
            drive.harvest(&mut longest, &mut Unverified).expect("a legal plan");
        };
        (0..2 * planes).for_each(|number| submit(&mut drive, 0, RequestKind::Write, number, page));
        // Pages go to the planes in turn: page n, page planes + n and page 2 planes + n are in one block.
        for number in 0..planes {
            let at = 100_000_000 + number * 10_000_000;
            if writes {
                submit(&mut drive, at, RequestKind::Write, 2 * planes + number, page);
            }
            submit(&mut drive, at + 20_000, RequestKind::Read, planes + number, 8);
        }
        submit(&mut drive, 10_000_000_000, RequestKind::Flush, 0, 0);
        (longest.0, config.part.t_program, config.part.t_suspend)
    };
    let (alone, program, suspend) = longest(&[], false);
    let (beside, ..) = longest(&[], true);
    let (planned, ..) = longest(&["sim.block_order=planned"], true);
    println!("alone {alone} ns, beside a write {beside} ns, as planned {planned} ns");
    assert!(beside <= alone + suspend && planned > program);
}
