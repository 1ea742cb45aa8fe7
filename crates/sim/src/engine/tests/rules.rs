//! Rules of order that decide ties, each where a wrong engine gives another time: which of two events comes first,
//! which die gets the bus, which operations form a group. Ignored: rules of layers, such as the choice of a victim.

use super::*;

const PROGRAMMED: Nanos = COMMAND + TRANSFER + PROGRAM;
/// The first page of plane 1, and an erased page of planes 0 and 1.
const SECOND: u32 = 4 * PAGES;
const ERASED: [u32; 2] = [2 * PAGES, SECOND + 2 * PAGES];

/// The order in which requests ended.
fn order(bench: &mut Bench) -> Vec<u32> {
    while bench.engine.next_time().is_some() {
        bench.step();
    }
    bench.ended.iter().map(|&(id, _)| id).collect()
}

/// A gate that waits for a time and an operation keeps the place of the time among events of that time.
#[test]
fn a_gate_keeps_the_place_of_its_time() {
    let late = 2 * READ;
    let mut bench = Bench::new(&settings());
    let first = bench.at(0, |io| {
        let gate = io.present.gate;
        read(io, 0, Gate::NONE);
        io.plan.delay(gate, late);
    });
    let second = bench.at(1, |io| {
        let gate = io.present.gate;
        io.plan.delay(gate, late);
    });
    // The read ends between the two reservations and their time.
    assert_eq!(order(&mut bench), [first, second]);
    assert_eq!(bench.ended, [(first, late), (second, late)]);
}

/// Requests that one event completes go to the host last first.
#[test]
fn requests_of_one_event_complete_last_first() {
    let mut bench = Bench::of(&SimSettings { multi_plane: MultiPlane::Waiting, ..settings() }, 1, 2);
    bench.at(0, |io| read(io, 0, Gate::NONE));
    let pair = ERASED.map(|ppn| bench.at(1, |io| program(io, ppn, Gate::NONE)));
    let end = READ + COMMAND + TRANSFER + PROGRAMMED;
    assert_eq!(order(&mut bench)[1..], [pair[1], pair[0]]);
    assert_eq!(bench.ended[1..], [(pair[1], end), (pair[0], end)]);
}

/// Two dies on a channel, released together: the bus serves them in the order of planning, by plan and by gate alike.
#[test]
fn dies_released_together_take_the_bus_in_order_of_planning() {
    let ends = |gated: bool, dies: [usize; 2]| {
        let mut bench = Bench::of(&settings(), 2, 1);
        let time = if gated { 1_000_000 } else { 0 };
        bench.at(0, |io| {
            let gate = if gated { gate_at(io, time) } else { Gate::NONE };
            dies.iter().for_each(|&die| program(io, ERASED[die], gate));
        });
        while bench.engine.next_time().is_some_and(|next| next <= time) {
            bench.step();
        }
        let busy_from: Vec<Nanos> =
            bench.engine.hardware.dies.iter().map(|die| die.front.map_or(0, |front| front.loaded - time)).collect();
        dies.map(|die| busy_from[die])
    };
    for dies in [[0, 1], [1, 0]] {
        for gated in [false, true] {
            let loaded = COMMAND + TRANSFER;
            assert_eq!(ends(gated, dies), [loaded, 2 * loaded], "gated {gated}, dies {dies:?}");
        }
    }
}

/// The command of a read goes before the data of another die: data on the bus is not delayed, data behind is.
#[test]
fn a_command_goes_before_data_and_delays_later_data() {
    let mut bench = Bench::of(&settings(), 2, 1);
    let during = COMMAND + SENSE + 1_000;
    let first = bench.at(0, |io| read(io, 0, Gate::NONE));
    let second = bench.at(during, |io| read(io, SECOND, Gate::NONE));
    let ended = bench.run();
    assert_eq!(ended[first as usize], READ, "its data is on the bus");
    assert!(during + READ - TRANSFER < READ, "the second page is sensed before");
    assert_eq!(ended[second as usize], READ + COMMAND + TRANSFER);
}

/// Programs and erases wait in one queue of a plane: an erase at the head keeps later programs from a group.
#[test]
fn an_erase_at_the_head_prevents_a_group_of_programs() {
    let ends = |erases: bool| {
        let mut bench = Bench::of(&SimSettings { multi_plane: MultiPlane::Waiting, ..settings() }, 1, 2);
        bench.at(0, |io| read(io, 0, Gate::NONE));
        let first = bench.at(1, |io| program(io, ERASED[0], Gate::NONE)) as usize;
        if erases {
            bench.at(1, |io| erase(io, 4));
        }
        let second = bench.at(1, |io| program(io, ERASED[1], Gate::NONE)) as usize;
        let ended = bench.run();
        [ended[first] - READ, ended[second] - READ]
    };
    let group = COMMAND + TRANSFER + PROGRAMMED;
    assert_eq!(ends(false), [group; 2]);
    assert_eq!(ends(true), [PROGRAMMED, PROGRAMMED + COMMAND + ERASE + PROGRAMMED]);
}

/// A program that ends lets others on other dies start before the next operation of its own die.
#[test]
fn an_end_starts_other_dies_before_its_own() {
    let mut bench = Bench::of(&settings(), 2, 1);
    let mut gate = Gate::NONE;
    bench.at(0, |io| {
        gate = io.gate();
        let write = Write { signal: gate, ..Write::new(ERASED[0], &[0], &[Data::ZERO], Cause::Host) };
        assert_eq!(io.program(write).expect("an erased page"), Outcome::Done);
    });
    let own = bench.at(1, |io| program(io, ERASED[0] + 1, Gate::NONE)) as usize;
    let other = bench.at(2, |io| program(io, ERASED[1], gate)) as usize;
    let ended = bench.run();
    assert_eq!(ended[other], 2 * PROGRAMMED);
    assert_eq!(ended[own], 2 * PROGRAMMED + COMMAND + TRANSFER);
}

/// The bound of a program begins when the program before on the block starts.
#[test]
fn a_program_behind_another_waits_from_the_start_of_that() {
    let bound = 350_000;
    let settings = SimSettings { scheduler: Scheduler::ReadFirst, starvation_bound: bound, ..settings() };
    let mut bench = Bench::new(&settings);
    bench.at(0, |io| read(io, 0, Gate::NONE));
    let programs = [0, 1].map(|page| bench.at(1, |io| program(io, 2 * PAGES + page, Gate::NONE)) as usize);
    (1..2 * PAGES).for_each(|ppn| _ = bench.at(2, |io| read(io, ppn, Gate::NONE)));
    let ended = bench.run();
    let started = 3 * READ;
    assert_eq!(ended[programs[0]], started + PROGRAMMED);
    // When the first ends, the second has waited for less than the bound, though it was planned longer ago.
    assert!(started + PROGRAMMED > bound && PROGRAMMED < bound);
    assert_eq!(ended[programs[1]], started + PROGRAMMED + READ + PROGRAMMED);
}

/// Programs that end together free room and complete requests in one event.
#[test]
fn a_group_frees_its_room_at_once() {
    let mut bench = Bench::of(&SimSettings { multi_plane: MultiPlane::Waiting, ..settings() }, 1, 2);
    bench.at(0, |io| read(io, 0, Gate::NONE));
    for ppn in ERASED {
        bench.at(1, |io| {
            let signal = io.request();
            let write = Write { frees: 2, signal, ..Write::new(ppn, &[0], &[Data::ZERO], Cause::Host) };
            assert_eq!(io.program(write).expect("an erased page"), Outcome::Done);
        });
    }
    let mut freed = Vec::new();
    while bench.engine.next_time().is_some() {
        bench.step();
        freed.push((bench.engine.take_buffer_freed(), bench.ended.len()));
    }
    freed.retain(|&(room, _)| room > 0);
    assert_eq!(freed, [(4, 3)]);
}

/// A block is free for plans once the erase is planned; later programs start after the erase.
#[test]
fn a_planned_erase_frees_its_block_for_later_plans() {
    let mut bench = Bench::new(&settings());
    let late = 5_000_000;
    let erased = bench.at(0, |io| {
        let signal = io.request();
        let after = gate_at(io, late);
        assert_eq!(io.erase(Erase { after, signal, ..Erase::new(0, Cause::Gc) }).expect("a block"), Outcome::Done);
    }) as usize;
    let behind = bench.at(1, |io| program(io, 0, Gate::NONE)) as usize;
    let beside = bench.at(2, |io| program(io, ERASED[0], Gate::NONE)) as usize;
    let ended = bench.run();
    assert_eq!(ended[beside], 2 + PROGRAMMED);
    assert_eq!([ended[erased], ended[behind]], [late + COMMAND + ERASE, late + COMMAND + ERASE + PROGRAMMED]);
}
