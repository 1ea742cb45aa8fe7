//! The engine: computes times for plans.
//!
//! An operation becomes ready when its gate has closed and the operations that must precede on the same block have
//! started (`order`), under every policy. Ready operations wait in their plane in order of arrival. A die starts one
//! batch at a time: the operation that the policy selects, and operations of other planes that may run with it.
//! Operations of one plan, or released by one gate, become ready together before any die starts. A bus serves data in
//! (with command and address) and data out first come, first served. The command and address of a read or erase go
//! before data, so that no array waits for the data of another. With the cache register, a die transfers one batch
//! while its array works on the next of the same kind. Ignored: timing variation between dies and blocks.

mod ahead;
mod bus;
mod copies;
mod die;
mod dies;
mod energy;
mod gates;
mod joins;
mod late;
mod link;
mod order;
mod pending;
mod power;
pub mod present;
mod ready;
mod record;
mod results;
mod setup;
mod shots;
mod unneeded;
mod unplanned;

use super::causality::Causality;
use super::events::{Event, EventQueue};
use super::settings::{HostTimes, Scheduler, SimSettings};
use super::timeline::Timeline;
use bus::Bus;
use gates::Edges;
use joins::Joins;
use late::Late;
use link::HostLink;
use order::Orders;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::operations::Program;
use palimpsest_ftl_api::plan::{Cause, Io, Operation, OperationKind};
use palimpsest_ftl_api::plan::{replacing, under_way};
use pending::{Details, Operations, Pending};
use ready::Ready;
use results::Results;
use setup::{Hardware, Setup};

const NONE: u32 = u32::MAX;
/// Class of collection steps.
const STEPS: usize = 2;
/// Turn bit of operations behind the reads of collection steps.
const BEHIND: u64 = 1 << 63;

/// The event engine of a drive.
pub struct Engine {
    setup: Setup,
    link: HostLink,
    hardware: Hardware,
    events: EventQueue,
    now: Nanos,
    order: u64,
    pending: Operations,
    orders: Orders,
    edges: Edges,
    plan: PresentPlan,
    joins: Joins,
    results: Results,
    /// The check of times in a checked run.
    pub causality: Option<Box<Causality>>,
    /// The timeline; `None` if not recorded.
    pub(super) timeline: Option<Box<Timeline>>,
    power_cut: Option<Box<power::PowerCut>>,
}

/// Acceptance of the present plan.
#[derive(Default)]
struct PresentPlan {
    /// Indices of the plan's operations, if erases of the plan follow programs.
    accepted: Vec<u32>,
    /// Number of entries of `follows` already processed.
    followed: usize,
    /// Dies to start after the plan or gate.
    woken: Vec<u32>,
    late: Late,
}

impl Engine {
    /// An idle engine.
    pub fn new(settings: &SimSettings, geometry: &Geometry, part: &Part, host: HostTimes) -> Self {
        Engine {
            setup: Setup::new(settings, geometry, part),
            link: HostLink::new(host),
            hardware: Hardware::new(geometry, part),
            events: EventQueue::default(),
            now: 0,
            order: 0,
            pending: Operations::default(),
            orders: Orders::new(geometry),
            edges: Edges::default(),
            plan: PresentPlan::default(),
            joins: Joins::default(),
            results: Results::default(),
            causality: None,
            timeline: None,
            power_cut: None,
        }
    }

    /// Simulated time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Time of the next event, if any.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.events.next_time()
    }

    /// Number of the next operation of a plan.
    pub fn next_order(&self) -> u64 {
        self.order + 1
    }

    /// Number of operations that have not ended.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.pending.count()
    }

    /// Advances the clock to `time`. No event may be due before.
    #[inline]
    pub fn advance_to(&mut self, time: Nanos) {
        debug_assert!(time >= self.now && self.next_time().is_none_or(|next| next >= time));
        self.now = time;
    }

    /// Accepts the plan in `io` and starts the dies that can start.
    #[inline]
    pub fn accept(&mut self, io: &mut Io) {
        for index in 0..io.plan.links.len() {
            let (earlier, later) = io.plan.links[index];
            self.add_waiter(io, earlier, gates::Waiter::Gate(later.slot()));
        }
        for index in 0..io.plan.delays.len() {
            let (gate, at) = io.plan.delays[index];
            self.planned(io, gate, at);
        }
        self.plan.late.begin(io);
        let operations = std::mem::take(&mut io.plan.operations);
        let (mut next, mut run) = (0, 0);
        while next < operations.len() {
            if let Some(copies) = io.plan.copies.get(run).filter(|copies| copies.start == next).cloned() {
                run += 1;
                if self.enqueue_copies(io, &operations[copies.clone()]) {
                    next = copies.end;
                    continue;
                }
            }
            self.enqueue(io, &operations[next], next as u32);
            next += 1;
        }
        io.plan.operations = operations;
        if !io.plan.late.is_empty() {
            self.schedule_late();
        }
        if !io.plan.links.is_empty() && self.setup.has_ranks() {
            self.join_links(io);
        }
        io.plan.clear();
        self.plan.accepted.clear();
        self.plan.followed = 0;
        self.kick_woken(io);
    }

    #[inline]
    fn enqueue(&mut self, io: &mut Io, operation: &Operation, number: u32) {
        self.order += 1;
        let order = self.order;
        let (die, plane) = self.setup.place_of(operation.block);
        let load = &mut io.dies[die as usize];
        load.operations += 1;
        load.reads += u32::from(operation.kind == OperationKind::Read);
        let follows = io.plan.gates.is_open(operation.after);
        let late = self.plan.late.is_next(number).then(|| self.plan.late.take(io));
        let data_at = late.map_or(0, |crossing| crossing.last);
        let index = self.pending.add(operation, order, (die, plane), self.now, data_at);
        if operation.step && self.class_of(operation.kind, operation.cause, true) == STEPS {
            self.hardware.ready[plane as usize].steps += 1;
        }
        let (on_block, last) = self.join_block(index, operation);
        let mut waits = u32::from(follows) + on_block;
        if let Some(crossing) = late {
            waits += 1;
            self.add_late(index, crossing);
        }
        if !io.plan.protected {
            waits += self.follow(io, index, number, operation.stored);
        }
        self.noted(move |engine| engine.record_plan(index, operation, last));
        if follows {
            self.add_waiter(io, operation.after, gates::Waiter::Operation(index));
        }
        if self.setup.has_ranks() {
            self.rank(io, index, operation);
        }
        if waits == 0 {
            // Not from `pending`, because loading a value just copied is slow.
            if operation.codec > 0 {
                self.encode(index);
            } else {
                let class = self.class_of(operation.kind, operation.cause, operation.step);
                self.join_ready(index, order, (die, plane), class, operation.step);
            }
            self.wake(die);
        } else {
            self.pending[index].waits = waits;
        }
    }

    /// Makes operation `index`, number `number` of the plan, follow the programs that replace the destroyed data, and
    /// lets later operations follow. Returns the number of programs followed.
    #[inline]
    fn follow(&mut self, io: &mut Io, index: u32, number: u32, stored: u32) -> u32 {
        io.plan.replacing.run(stored, index);
        if io.plan.follows.is_empty() {
            return 0;
        }
        self.plan.accepted.push(index);
        let mut waits = 0;
        // The entries are in the order of the erases.
        while let Some(&(erase, program)) = io.plan.follows.get(self.plan.followed)
            && erase == number
        {
            self.plan.followed += 1;
            let program = match program {
                Program::Running(program) => program,
                Program::Planned(number) => self.plan.accepted[number as usize],
            };
            let head = self.pending.details(program).followers;
            self.pending.details_mut(program).followers = self.add_edge(gates::Waiter::Operation(index), head);
            waits += 1;
        }
        waits
    }

    /// Removes a program that has ended from the lists of stored subpages (from `stored` on), and releases the
    /// `followers`.
    #[inline]
    fn unfollow(&mut self, io: &mut Io, stored: u32, mut followers: u32) {
        if stored != replacing::NONE {
            io.plan.replacing.remove(stored);
        }
        while followers != NONE {
            followers = self.pass_edge(followers);
        }
        self.close_listed(io);
        self.kick_woken(io);
    }

    /// Scheduling class: class 0 goes first, steps of collection last. Reads of such steps are first in class 1,
    /// because they delay little and the host may wait for their data. So are the programs of bursts.
    #[inline]
    fn class_of(&self, kind: OperationKind, cause: Cause, step: bool) -> usize {
        let first = match self.setup.settings.scheduler {
            Scheduler::Fifo => true,
            _ if step && (kind == OperationKind::Read || self.setup.settings.steps_first) => return 1,
            _ if step => return STEPS,
            Scheduler::ReadFirst => kind == OperationKind::Read,
            Scheduler::HostFirst => cause.is_awaited(),
        };
        usize::from(!first)
    }

    #[inline]
    fn release(&mut self, index: u32) -> u32 {
        self.noted(move |engine| engine.record_release(index));
        let pending = &mut self.pending[index];
        pending.waits -= 1;
        let (ready, die) = (pending.waits == 0, pending.die());
        if ready {
            self.encode(index);
        }
        die
    }

    /// Starts the encoding of operation `index` if needed; otherwise makes the operation ready.
    #[inline(always)]
    fn encode(&mut self, index: u32) {
        let codec = self.pending.details(index).codec;
        if codec > 0 && self.pending[index].kind == OperationKind::Program {
            self.events.push(self.now + Nanos::from(codec), Event::Coded(index));
        } else {
            self.make_ready(index);
        }
    }

    /// Handles the end of a program's encoding or a read's decoding.
    fn coded(&mut self, io: &mut Io, index: u32) {
        let pending = &self.pending[index];
        if pending.kind == OperationKind::Read {
            return self.end(io, index);
        }
        let die = pending.die();
        self.make_ready(index);
        self.kick(io, die);
    }

    /// Processes the next event, and later ones before `until`. Stops early when a request completes, a collection
    /// ends, no operation is left, a check has findings, or room in the write buffer is freed while a request `waits`
    /// for room.
    #[inline]
    pub fn run(&mut self, io: &mut Io, until: Nanos, waits: bool) {
        let until = if self.power_cut.is_some() { 0 } else { until };
        loop {
            self.step(io);
            let noticed = !self.results.completed.is_empty()
                || !self.results.collections.is_empty()
                || waits && self.results.buffer_freed > 0
                || self.causality.is_some() && self.has_findings()
                || self.pending.count() == 0;
            if noticed || self.next_time().is_none_or(|next| next >= until) {
                return;
            }
        }
    }

    /// Processes the next event.
    #[inline]
    pub fn step(&mut self, io: &mut Io) {
        let Some((time, event)) = self.events.pop() else { return };
        self.now = time;
        match event {
            Event::Nothing => {}
            Event::Sensed(die) => self.sensed(io, die),
            Event::Moved(index) => self.moved(io, index),
            Event::Finished(tagged) => self.finished(io, tagged),
            Event::Wake(die) => self.kick(io, die),
            Event::Coded(index) => self.coded(io, index),
            Event::Accepted(slot) => {
                self.noted(move |engine| engine.record_time(Some(slot)));
                self.signal(io, slot);
            }
            Event::Loaded(die) => self.load_on(die),
            Event::Arrived(list) => self.arrived(io, list),
            Event::PowerFails => self.power_failed(),
            Event::Answered(id) => self.results.completed.push(id),
        }
        self.check_erases(io);
    }

    /// Checks that operations started by the present event follow their barriers.
    #[inline]
    pub fn check_erases(&mut self, io: &Io) {
        if let Some(causality) = &mut self.causality {
            causality.event_ended(io, self.now);
        }
    }

    /// Handles read data that has left the die.
    #[inline(always)]
    fn moved(&mut self, io: &mut Io, index: u32) {
        let pending = &self.pending[index];
        let (die, detailed) = (pending.die(), pending.detailed);
        if let Some(causality) = &mut self.causality {
            causality.arrived(pending.order, self.now);
        }
        self.read_left_die(io, die);
        let end = if detailed { self.send_on(index) } else { self.now };
        if end > self.now {
            self.events.push(end, Event::Coded(index));
            return self.kick(io, die);
        }
        self.end(io, index);
        self.kick(io, die);
    }

    /// Applies the end of a program or erase.
    #[inline]
    fn changed(&mut self, io: &mut Io, index: u32) {
        let Pending { kind, cause, under_way, .. } = self.pending[index];
        if under_way != under_way::NONE {
            io.plan.under_way.remove(under_way);
        }
        if self.pending[index].detailed {
            let &Details { frees, enqueued, stored, followers, .. } = self.pending.details(index);
            self.results.buffer_freed += u64::from(frees);
            if kind == OperationKind::Erase && cause == Cause::Gc {
                self.results.collections.push(self.now - enqueued);
            }
            if stored != replacing::NONE || followers != NONE {
                self.unfollow(io, stored, followers);
            }
        }
    }

    /// Ends an operation and signals the gate.
    #[inline(always)]
    fn end(&mut self, io: &mut Io, index: u32) {
        let Pending { kind, cause, order, signal, .. } = self.pending[index];
        let (die, reads) = (self.pending[index].die(), kind == OperationKind::Read);
        if reads && let Some(causality) = &mut self.causality {
            causality.ended(order, self.now);
        }
        if self.power_cut.is_some() {
            self.note_end(io, order);
        }
        self.results.count(order, kind, cause);
        let load = &mut io.dies[die as usize];
        load.operations -= 1;
        load.reads -= u32::from(reads);
        self.pending.remove(index);
        if !reads {
            self.changed(io, index);
        }
        self.noted(move |engine| engine.record_end(index));
        if signal != NONE {
            self.signal(io, signal);
        }
    }
}

#[cfg(test)]
mod tests;
