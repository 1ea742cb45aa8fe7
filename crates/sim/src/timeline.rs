//! A timeline: when each flash operation and request in a part of a run waits, moves data, works in the array, and
//! ends.
//!
//! For debugging of gates, and for teaching. The timeline models nothing: it records decisions of the engine and never
//! changes them. Memory holds operations in flight and recorded ones. Ignored: operations planned before the
//! measurement, the subpages of an operation, and gates that had closed before an operation was planned.

mod window;

use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Operation, OperationKind};
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

/// Records the operations and requests of a window.
pub struct Timeline {
    window: Window,
    recording: Recording,
    /// The engine's order of the last operation before the measurement.
    base: u64,
    /// Operations that have not ended, by the engine's index.
    open: Vec<Option<Box<TimedOperation>>>,
    open_operations: usize,
    /// Numbers of the operations that have signalled each open gate, by slot.
    signalled: Vec<Vec<i64>>,
    /// Number of each request in flight, by the drive's entry; 0: not measured.
    numbers: Vec<u64>,
    /// Requests of the window that have not completed, in the order of their numbers.
    open_requests: Vec<TimedRequest>,
    submitted: u64,
    /// The request whose plan the engine accepts now.
    present: (u64, Option<RequestKind>),
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
            present: (0, None),
        }
    }

    /// The content of the window so far.
    pub fn recording(&self) -> Recording {
        let mut recording = self.recording.clone();
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
        }
    }

    /// True if an operation or request that ends at `now` ends before the window.
    fn ends_before(&self, now: Nanos) -> bool {
        matches!(self.window, Window::Time { from, .. } if now - self.recording.zero < from)
    }

    fn number(&self, order: u64) -> i64 {
        order as i64 - self.base as i64
    }
}

/// Calls of the drive, kept out of its functions. `id` is the drive's entry for the request.
impl Timeline {
    /// Records the submission of a measured request.
    #[cold]
    pub fn submitted(&mut self, id: u32, kind: RequestKind, extent: Extent, arrival: Nanos, now: Nanos) {
        self.submitted += 1;
        *at(&mut self.numbers, id) = self.submitted;
        if self.may_hold(self.submitted, now) {
            let number = self.submitted;
            let (planned, completed) = (None, None);
            self.open_requests.push(TimedRequest { number, kind, extent, arrival, submitted: now, planned, completed });
        }
    }

    /// Begins the plan of a request.
    #[cold]
    pub fn begin_plan(&mut self, id: u32, kind: RequestKind, now: Nanos) {
        let number = *at(&mut self.numbers, id);
        self.present = (number, (number > 0).then_some(kind));
        if let Some(request) = self.open_requests.iter_mut().find(|request| request.number == number) {
            request.planned = Some(now);
        }
    }

    /// Ends the plan of a request; later operations belong to no request.
    pub fn end_plan(&mut self) {
        self.present = (0, None);
    }

    /// Records the completion of a request.
    #[cold]
    pub fn completed(&mut self, id: u32, now: Nanos) {
        let number = std::mem::take(at(&mut self.numbers, id));
        let Some(place) = self.open_requests.iter().position(|request| request.number == number) else { return };
        let request = TimedRequest { completed: Some(now), ..self.open_requests.remove(place) };
        if !self.ends_before(now) {
            self.recording.requests.push(request);
        }
    }
}

/// Calls of the engine. `index` is the engine's entry for the operation, `order` its number in the order of planning.
impl Timeline {
    /// Records a planned operation, behind operation `behind` on its block.
    pub fn planned(
        &mut self,
        index: u32,
        order: u64,
        (operation, place): (Operation, Place),
        behind: Option<u64>,
        now: Nanos,
    ) {
        let (request, request_kind) = self.present;
        let mut held = self.may_hold(request, now);
        if held && self.recording.operations.len() + self.open_operations >= MOST_OPERATIONS {
            self.recording.truncated = true;
            held = false;
        }
        self.open_operations += usize::from(held);
        let number = self.number(order);
        let behind = behind.map(|order| self.number(order));
        *at(&mut self.open, index) = held.then(|| {
            Box::new(TimedOperation {
                number,
                operation,
                place,
                request,
                request_kind,
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
            })
        });
    }

    /// The operation under `index`, if the window may hold it.
    pub fn operation(&mut self, index: u32) -> Option<&mut TimedOperation> {
        at(&mut self.open, index).as_deref_mut()
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
    pub fn ended(&mut self, index: u32, ready: Nanos, delivered: bool, now: Nanos) {
        let Some(mut operation) = at(&mut self.open, index).take() else { return };
        self.open_operations -= 1;
        operation.ready = ready;
        operation.delivered = delivered.then_some(now);
        if operation.operation.kind == OperationKind::Read {
            operation.end = operation.transfer.until;
        } else {
            (operation.end, operation.array.until) = (now, now);
        }
        if !self.ends_before(now) {
            self.recording.operations.push(*operation);
        }
    }
}

/// The entry `index` of `entries`, which grow as needed.
fn at<T: Default>(entries: &mut Vec<T>, index: u32) -> &mut T {
    if entries.len() <= index as usize {
        entries.resize_with(index as usize + 1, T::default);
    }
    &mut entries[index as usize]
}
