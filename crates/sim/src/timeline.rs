//! A timeline: when each flash operation and request in a part of a run waits, moves data, works in the array, and
//! ends.
//!
//! For debugging of gates, and for teaching. The timeline models nothing: it records decisions of the engine and never
//! changes them. Memory holds operations in flight and recorded ones. Ignored: operations planned before the
//! measurement, the subpages of an operation, and gates that had closed before an operation was planned.

mod history;
pub mod parts;
mod window;

use history::History;
pub use history::Holder;
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Operation, OperationKind};
use parts::{Parts, Trigger, Waits, explain};
use std::collections::BTreeMap;
pub use window::Window;

/// Largest number of operations in a timeline.
pub const MOST_OPERATIONS: usize = 250_000;

/// A span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub from: Nanos,
    pub until: Nanos,
}

/// The place of an operation on the drive; dies, planes and channels count over the drive.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub die: u32,
    pub plane: u32,
    pub channel: u32,
}

/// One flash operation with times on the engine's clock.
#[derive(Debug, Clone)]
pub struct TimedOperation {
    /// Number in the order of planning, 1 for the first of the measurement; 0 and below were planned before.
    pub number: i64,
    pub operation: Operation,
    pub place: Place,
    /// The measured request whose plan holds the operation; 0: none.
    pub request: u64,
    pub request_kind: Option<RequestKind>,
    /// The owner of the request.
    owner: u32,
    pub planned: Nanos,
    /// The gate has closed, and the operation before on the same block has started.
    pub ready: Nanos,
    /// The command goes over the bus.
    pub start: Nanos,
    /// Transfer of data over the channel bus; empty for an erase.
    pub transfer: Span,
    /// Work of the plane, suspensions included.
    pub array: Span,
    /// The data has arrived in the controller, or the cells are programmed or erased.
    pub end: Nanos,
    /// The data of a host read has crossed the host link.
    pub delivered: Option<Nanos>,
    /// Numbers of the operations that closed the gate, or a gate that this gate waited for, in ascending order.
    pub follows: Vec<i64>,
    /// Number of the operation on the same block that had to start before.
    pub behind: Option<i64>,
    /// Suspensions, each until the array resumed.
    pub suspensions: Vec<Span>,
    /// The last event that the operation waited for, and its time: the plan if there is none.
    trigger: Trigger,
    released: Nanos,
    /// The host link has transferred the data of a program.
    data_at: Nanos,
    /// The die takes the operation, with others of a batch, of which this is the first.
    begun: Nanos,
    leader: i64,
    /// Followers are released.
    finished: Nanos,
}

impl TimedOperation {
    /// The owner of the request whose plan holds the operation.
    fn owner(&self) -> Option<u32> {
        (self.request > 0).then_some(self.owner)
    }
}

/// One request with times on the engine's clock.
#[derive(Debug, Clone)]
pub struct TimedRequest {
    /// Number among the measured requests, from 1.
    pub number: u64,
    pub kind: RequestKind,
    pub extent: Extent,
    pub arrival: Nanos,
    /// The host has submitted the request to the drive.
    pub submitted: Nanos,
    /// The layer has planned the request, after the write buffer had room.
    pub planned: Option<Nanos>,
    pub completed: Option<Nanos>,
    /// The parts of the latency; all 0 before the completion.
    pub parts: Parts,
    /// The request waits for room in the write buffer, and the event that freed the room.
    entered: Option<Nanos>,
    room: Trigger,
    /// The last event that the completion waited for, and its time.
    closed: (Nanos, Trigger),
}

/// The content of a window.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Start of the measurement.
    pub zero: Nanos,
    /// In the order of their numbers.
    pub operations: Vec<TimedOperation>,
    /// In the order of their numbers.
    pub requests: Vec<TimedRequest>,
    /// True if operations of the window were left out, because there were more than [`MOST_OPERATIONS`].
    pub truncated: bool,
}

/// An operation that has not ended, and whether the window may hold it.
type Open = Option<(bool, Box<TimedOperation>)>;

/// Records the operations and requests of a window.
pub struct Timeline {
    window: Window,
    recording: Recording,
    /// The engine's order of the last operation before the measurement.
    base: u64,
    /// By the engine's index.
    open: Vec<Open>,
    open_operations: usize,
    /// Numbers of the operations that have signalled each open gate, by slot.
    signalled: Vec<Vec<i64>>,
    /// Number and owner of each request in flight, by the drive's entry; 0: not measured.
    numbers: Vec<(u64, u32)>,
    /// Requests of the window that have not completed, in the order of their numbers.
    open_requests: Vec<TimedRequest>,
    submitted: u64,
    /// The request whose plan the engine accepts now.
    present: (u64, Option<RequestKind>, u32),
    history: History,
    /// The present event, and the last one that freed room in the write buffer.
    trigger: Trigger,
    freed: Trigger,
    /// When the gate of each request in flight closed, by the drive's entry, and the event.
    closed: Vec<(Nanos, Trigger)>,
    /// The events behind transfers over the host link, by the slot of the gate to signal.
    crossing: Vec<Trigger>,
    /// The slowest requests of each kind, with their operations.
    slowest: [Vec<(TimedRequest, Vec<TimedOperation>)>; 4],
}

impl Timeline {
    /// A timeline of `window`; the measurement starts at `zero`, after `base` operations.
    pub fn new(window: Window, zero: Nanos, base: u64) -> Self {
        Timeline {
            window,
            recording: Recording { zero, ..Recording::default() },
            base,
            open: Vec::new(),
            open_operations: 0,
            signalled: Vec::new(),
            numbers: Vec::new(),
            open_requests: Vec::new(),
            submitted: 0,
            present: (0, None, 0),
            history: History::default(),
            trigger: Trigger::default(),
            freed: Trigger::LOST,
            closed: Vec::new(),
            crossing: Vec::new(),
            slowest: Default::default(),
        }
    }

    /// The content of the window so far.
    pub fn recording(&self) -> Recording {
        let mut recording = self.recording.clone();
        if let Window::Slowest(_) = self.window {
            let slowest = self.slowest.iter().flatten();
            let operations: BTreeMap<i64, _> =
                slowest.clone().flat_map(|each| &each.1).map(|op| (op.number, op)).collect();
            recording.operations.extend(operations.into_values().cloned());
            recording.requests.extend(slowest.map(|each| each.0.clone()));
            recording.requests.sort_unstable_by_key(|request| request.number);
            return recording;
        }
        recording.operations.sort_unstable_by_key(|operation| operation.number);
        recording.requests.extend(self.open_requests.iter().cloned());
        recording.requests.sort_unstable_by_key(|request| request.number);
        recording
    }

    /// True if nothing more can be recorded.
    pub fn is_over(&self, now: Nanos) -> bool {
        let passed = match self.window {
            Window::Requests { last, .. } => self.submitted >= last,
            Window::Time { until, .. } => now - self.recording.zero >= until,
            Window::Slowest(_) => false,
        };
        passed && self.open_requests.is_empty() && self.open_operations == 0
    }

    /// True if an operation of request `request`, or the request itself, that begins at `now` may belong to the window.
    fn may_hold(&self, request: u64, now: Nanos) -> bool {
        match self.window {
            // Operations without a request belong to the window while one of its requests is outstanding.
            Window::Requests { .. } if request == 0 => !self.open_requests.is_empty(),
            Window::Requests { first, last } => (first..=last).contains(&request),
            Window::Time { until, .. } => now - self.recording.zero < until,
            Window::Slowest(_) => request > 0,
        }
    }

    /// True if an operation or request that ends at `now` ends before the window.
    fn ends_before(&self, now: Nanos) -> bool {
        matches!(self.window, Window::Time { from, .. } if now - self.recording.zero < from)
    }

    fn number(&self, order: u64) -> i64 {
        order as i64 - self.base as i64
    }

    /// Submission of the oldest request in flight.
    fn oldest(&self, now: Nanos) -> Nanos {
        self.open_requests.first().map_or(now, |request| request.submitted)
    }

    /// Keeps `request` if it is one of the slowest `most` of its kind, with its operations and those of `path`.
    fn keep_slow(&mut self, request: TimedRequest, path: &[i64], most: usize) {
        let slowest = &mut self.slowest[request.kind as usize];
        let latency = |request: &TimedRequest| request.completed.map(|completed| completed - request.arrival);
        if slowest.len() == most {
            let fastest = (0..most).min_by_key(|&index| latency(&slowest[index].0)).unwrap_or(0);
            if latency(&slowest[fastest].0) >= latency(&request) {
                return;
            }
            slowest.swap_remove(fastest);
        }
        let is_part = |each: &&TimedOperation| each.request == request.number || path.contains(&each.number);
        let operations = self.history.ended().filter(is_part).cloned().collect();
        slowest.push((request, operations));
    }
}

/// Calls of the drive, kept out of its functions. `id` is the drive's entry for the request.
impl Timeline {
    /// Records the submission of a measured request.
    #[cold]
    pub fn submitted(&mut self, id: u32, command: &Command, arrival: Nanos, now: Nanos) {
        let &Command { kind, extent, directives } = command;
        self.submitted += 1;
        *at(&mut self.numbers, id) = (self.submitted, directives.owner);
        if self.may_hold(self.submitted, now) {
            let number = self.submitted;
            self.open_requests.push(TimedRequest {
                number,
                kind,
                extent,
                arrival,
                submitted: now,
                planned: None,
                completed: None,
                parts: Parts::default(),
                entered: None,
                room: Trigger::LOST,
                closed: (now, Trigger::LOST),
            });
        }
    }

    /// Records that a request waits for room in the write buffer.
    #[cold]
    pub fn waits(&mut self, id: u32, now: Nanos) {
        let (number, _) = *at(&mut self.numbers, id);
        if let Some(request) = self.open_requests.iter_mut().find(|request| request.number == number) {
            request.entered = Some(now);
        }
    }

    /// Records that the end of write `id` has freed its room in the write buffer.
    #[cold]
    pub fn freed(&mut self, id: u32) {
        self.freed = at(&mut self.closed, id).1;
    }

    /// Begins the plan of a request.
    #[cold]
    pub fn begin_plan(&mut self, id: u32, kind: RequestKind, now: Nanos) {
        let (number, owner) = *at(&mut self.numbers, id);
        self.present = (number, (number > 0).then_some(kind), owner);
        if let Some(request) = self.open_requests.iter_mut().find(|request| request.number == number) {
            (request.planned, request.room) = (Some(now), self.freed);
        }
    }

    /// Ends the plan of a request; later operations belong to no request.
    pub fn end_plan(&mut self) {
        self.present = (0, None, 0);
    }

    /// Records the completion of a request. Returns the parts of the latency, and the waits among them by owner, if the
    /// window is the whole run.
    #[cold]
    pub fn completed(&mut self, id: u32, now: Nanos) -> Option<(Parts, Waits)> {
        let (number, _) = std::mem::take(at(&mut self.numbers, id));
        let place = self.open_requests.iter().position(|request| request.number == number)?;
        let closed = *at(&mut self.closed, id);
        let mut request = TimedRequest { completed: Some(now), closed, ..self.open_requests.remove(place) };
        let (parts, waits, path) = explain(&self.history, &self.open, &request);
        request.parts = parts;
        if let Window::Slowest(most) = self.window {
            self.keep_slow(request, &path, most);
            return Some((parts, waits));
        }
        if !self.ends_before(now) {
            self.recording.requests.push(request);
        }
        None
    }
}

/// Calls of the engine. `index` is the engine's entry for the operation, `order` its number in the order of planning.
impl Timeline {
    /// Records a planned operation, behind operation `behind` on its block. The data of a program arrives at `data_at`.
    pub fn planned(
        &mut self,
        index: u32,
        order: u64,
        (operation, place): (Operation, Place),
        behind: Option<u64>,
        (now, data_at): (Nanos, Nanos),
    ) {
        let (request, request_kind, owner) = self.present;
        let mut held = self.may_hold(request, now) && !matches!(self.window, Window::Slowest(_));
        if held && self.recording.operations.len() + self.open_operations >= MOST_OPERATIONS {
            self.recording.truncated = true;
            held = false;
        }
        self.open_operations += usize::from(held);
        let number = self.number(order);
        let behind = behind.map(|order| self.number(order));
        *at(&mut self.open, index) = Some((
            held,
            Box::new(TimedOperation {
                number,
                operation,
                place,
                request,
                request_kind,
                owner,
                planned: now,
                ready: now,
                start: now,
                transfer: Span::default(),
                array: Span::default(),
                end: now,
                delivered: None,
                follows: Vec::new(),
                behind,
                suspensions: Vec::new(),
                trigger: Trigger::default(),
                released: now,
                data_at,
                begun: now,
                leader: number,
                finished: now,
            }),
        ));
    }

    /// The operation under `index`, if it was planned in the measurement.
    pub fn operation(&mut self, index: u32) -> Option<&mut TimedOperation> {
        at(&mut self.open, index).as_mut().map(|(_, operation)| &mut **operation)
    }

    /// Records that the die takes operation `index`, ready since `ready`, in the batch whose first operation has the
    /// number `leader`.
    pub fn begun(&mut self, index: u32, ready: Nanos, leader: u64, now: Nanos) {
        let leader = self.number(leader);
        if let Some(operation) = self.operation(index) {
            (operation.ready, operation.begun, operation.leader) = (ready, now, leader);
        }
    }

    /// Records the work of `die` from `now` on: nothing, or the batch of operation `index`, number `order`.
    pub fn holds(&mut self, die: u32, works: Option<(u32, u64, OperationKind, Cause)>, idle: Holder, now: Nanos) {
        let holder = works.map_or(idle, |(index, order, kind, cause)| {
            let planned = self.operation(index).map(|operation| (operation.request, operation.owner));
            let (request, owner) = planned.unwrap_or_default();
            Holder::Works { leader: self.number(order), kind, cause, request, owner }
        });
        let oldest = self.oldest(now);
        self.history.hold(die, now, holder, oldest);
    }

    /// Sets the present event: the end or, if `started`, the start of operation `order`.
    pub fn triggered(&mut self, order: u64, started: bool) {
        self.trigger = Trigger { number: Some(self.number(order)), started };
    }

    /// Sets the present event: a time, or the arrival of a transfer that signals the gate in `slot`.
    pub fn timed(&mut self, slot: Option<u32>) {
        self.trigger = slot.map_or_else(Trigger::default, |slot| std::mem::take(at(&mut self.crossing, slot)));
    }

    /// Records that the present event frees room in the write buffer.
    pub fn frees(&mut self) {
        self.freed = self.trigger;
    }

    /// Records that the present event releases operation `index`.
    pub fn released(&mut self, index: u32, now: Nanos) {
        let trigger = self.trigger;
        if let Some(operation) = self.operation(index) {
            (operation.released, operation.trigger) = (now, trigger);
        }
    }

    /// Records that the present event closes the gate of request `id`.
    pub fn closes_request(&mut self, id: u32, now: Nanos) {
        *at(&mut self.closed, id) = (now, self.trigger);
    }

    /// Records that the present event begins a transfer over the host link, which signals the gate in `slot`.
    pub fn crosses(&mut self, slot: u32) {
        *at(&mut self.crossing, slot) = self.trigger;
    }

    /// Records that operation `order` has ended and signals the gate in `slot`.
    pub fn signalled(&mut self, slot: u32, order: u64) {
        let number = self.number(order);
        at(&mut self.signalled, slot).push(number);
    }

    /// Closes the gate in `slot`; returns the numbers of the operations that signalled it, in ascending order.
    pub fn closed(&mut self, slot: u32) -> Vec<i64> {
        let mut numbers = std::mem::take(at(&mut self.signalled, slot));
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Records that the gate in `slot` also waited for a gate that these operations closed.
    pub fn linked(&mut self, slot: u32, numbers: &[i64]) {
        at(&mut self.signalled, slot).extend_from_slice(numbers);
    }

    /// Records the end of an operation; `delivered`: its data went to the host.
    pub fn ended(&mut self, index: u32, delivered: bool, now: Nanos) {
        let Some((held, mut operation)) = at(&mut self.open, index).take() else { return };
        self.open_operations -= usize::from(held);
        operation.finished = now;
        operation.delivered = delivered.then_some(now);
        if operation.operation.kind == OperationKind::Read {
            operation.end = operation.transfer.until;
        } else {
            (operation.end, operation.array.until) = (now, now);
        }
        if held && !self.ends_before(now) {
            self.recording.operations.push((*operation).clone());
        }
        let oldest = self.oldest(now);
        self.history.add(*operation, oldest);
    }
}

/// The entry `index` of `entries`, which grow as needed.
fn at<T: Default>(entries: &mut Vec<T>, index: u32) -> &mut T {
    if entries.len() <= index as usize {
        entries.resize_with(index as usize + 1, T::default);
    }
    &mut entries[index as usize]
}
