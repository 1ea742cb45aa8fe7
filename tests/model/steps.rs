//! Steps of collection in the engine, with plans by hand: reads of the host, then reads of steps, then programs, then
//! programs of steps, unless many steps wait or a write waits for a step.

use crate::engine::Op::{Erase, Program, Read};
use crate::engine::{Bench, COMMAND, ERASE, Op, PROGRAM, SENSE, SUSPENDS, TRANSFER, config, first};
use palimpsest_lab::plan::Cause;
use palimpsest_lab::units::Nanos;

/// The cause that makes an operation of a script a step.
pub const STEP: Cause = Cause::Merge;
const WRITE: Nanos = COMMAND + TRANSFER + PROGRAM;
const READ: Nanos = COMMAND + SENSE + TRANSFER;

/// When each of `ops` completes, submitted a nanosecond apart.
fn times(changes: &[&str], ops: &[(Op, Cause)]) -> Vec<Nanos> {
    scheduled("read-first", changes, ops)
}

fn scheduled(scheduler: &str, changes: &[&str], ops: &[(Op, Cause)]) -> Vec<Nanos> {
    let scheduler = format!("sim.scheduler={scheduler}");
    let mut bench = Bench::new(&config(&[&[scheduler.as_str()], changes].concat()), 1);
    for (time, &(op, cause)) in (0..).zip(ops) {
        bench.at(time, op, cause);
    }
    bench.run()
}

#[test]
fn steps_come_last_and_their_reads_behind_those_of_the_host() {
    let ops = [
        (Program(first(1)), Cause::Host),
        (Program(first(2)), STEP),
        (Program(first(1) + 1), Cause::Host),
        (Read(first(0)), STEP),
        (Read(first(0) + 1), Cause::Host),
    ];
    let (host, step, behind) = (WRITE + READ, WRITE + 2 * READ, 2 * WRITE + 2 * READ);
    assert_eq!(times(&[], &ops), [WRITE, behind + WRITE, behind, step, host]);
    // In order of arrival, steps are like all other operations.
    let fifo = scheduled("fifo", &[], &ops);
    assert_eq!(fifo, [WRITE, 2 * WRITE, 3 * WRITE, 3 * WRITE + READ, 3 * WRITE + 2 * READ]);
}

#[test]
fn a_step_that_has_waited_goes_in_its_turn() {
    let mut ops = vec![(Program(first(1)), Cause::Host), (Program(first(2)), STEP)];
    ops.extend((1..16).map(|page| (Program(first(1) + page), Cause::Host)));
    let done = times(&["sim.starvation_bound=1ms"], &ops);
    // The step was ready after 1 ns: the fifth program begins before the step has waited for 1 ms, the sixth after.
    assert_eq!(done[1], 6 * WRITE);
}

#[test]
fn no_more_than_an_eighth_of_a_block_waits() {
    let mut ops: Vec<(Op, Cause)> = (0..10).map(|page| (Program(first(1) + page), STEP)).collect();
    ops.push((Program(first(3)), Cause::Host));
    // Of a block of sixteen pages: the first has started, nine wait, and seven of them go.
    assert_eq!(times(&[], &ops)[10], 9 * WRITE);
}

#[test]
fn a_step_goes_where_a_write_waits_for_it() {
    let ops = |behind| {
        [
            (Program(first(3)), Cause::Host),
            (Erase(0), STEP),
            (Program(first(2)), Cause::Host),
            (Program(first(behind)), Cause::Host),
        ]
    };
    let erased = COMMAND + ERASE;
    assert_eq!(times(&[], &ops(1)), [WRITE, 3 * WRITE + erased, 2 * WRITE, 3 * WRITE]);
    assert_eq!(times(&[], &ops(0)), [WRITE, WRITE + erased, 2 * WRITE + erased, 3 * WRITE + erased]);
}

#[test]
fn a_step_suspends_nothing() {
    let ops = [(Program(first(1)), Cause::Host), (Read(first(0)), STEP)];
    assert_eq!(times(&SUSPENDS, &ops), [WRITE, WRITE + READ]);
}
