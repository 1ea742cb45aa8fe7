//! The parts of a request's latency: the critical path, walked back from the completion to the arrival.
//!
//! Each nanosecond belongs to one part, so the parts sum to the latency. The walk follows the operation whose end or
//! start released the waiter last. A wait for a die belongs to the operations that held the die, and to the owner of
//! the request whose plan has these operations: collection belongs to the write that started it. Ignored: holders of
//! a bus, of the host link and of the controller, and the latency without the critical path.

use super::history::{Holder, UNKNOWN};
use super::{Nanos, Open, TimedOperation, TimedRequest, history::History};
use palimpsest_ftl_api::plan::{Cause, OperationKind};

/// Declares the parts and their names.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident $name:literal,)*) => {
        /// A part of a latency.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Part {
            $($(#[$doc])* $part,)*
        }

        /// Names of the parts, in the order of [`Part`].
        pub const PART_NAMES: [&str; [$($name),*].len()] = [$($name),*];

        const PARTS: [Part; PART_NAMES.len()] = [$(Part::$part),*];
    };
}

parts! {
    /// From the arrival to the submission.
    Host "host",
    /// The controller, the answer to the host included.
    Controller "controller",
    /// Transfers over the host link and into the write buffer, and waits for them.
    Link "link",
    /// Records of the layer: its map, its journal and checkpoints.
    Map "map",
    /// Arrays that sense the data of the request.
    Read "read",
    /// Retries of these reads.
    Retry "retry",
    /// Reads for a read-modify-write.
    Modify "modify",
    /// Arrays that program the data of the request.
    Program "program",
    /// Suspensions of programs and erases.
    Suspend "suspend",
    /// Buses of channels, and waits for them.
    Bus "bus",
    /// Codes in the controller.
    Codec "codec",
    /// Reads of other requests.
    BehindReads "behind_reads",
    /// Programs of other requests.
    BehindPrograms "behind_programs",
    /// Reads and programs of garbage collection and merges.
    Collection "collection",
    /// Erases.
    Erase "erase",
    /// Patrol, parity and rebuilding.
    Upkeep "upkeep",
    /// Until later requests fill a page.
    Gather "gather",
    /// Operations planned before the recording.
    Earlier "earlier",
}

impl Part {
    /// True for work beside the data of the request: of other requests, or of the drive itself.
    fn is_of_others(self) -> bool {
        use Part::{BehindPrograms, BehindReads, Collection, Erase, Map, Modify, Upkeep};
        matches!(self, BehindReads | BehindPrograms | Collection | Erase | Map | Modify | Upkeep)
    }
}

/// Nanoseconds of each part, in the order of [`Part`].
pub type Parts = [Nanos; PART_NAMES.len()];

/// Waits for operations, by the owner of the request that planned them; `None`: no request did, as in the background.
pub type Waits = Vec<(Option<u32>, Parts)>;

/// The event that released a waiter last: the end of an operation or, if `started`, its start. Without a number, a
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trigger {
    pub number: Option<i64>,
    pub started: bool,
}

impl Trigger {
    /// An event that was not recorded.
    pub const LOST: Trigger = Trigger { number: Some(UNKNOWN), started: false };

    /// The end of operation `number`.
    pub fn ended(number: i64) -> Self {
        Trigger { number: Some(number), started: false }
    }

    /// The start of operation `number`.
    pub fn started(number: i64) -> Self {
        Trigger { number: Some(number), started: true }
    }
}

/// The part of work of this kind and cause, on a die that another operation waits for unless it is the request's `own`.
fn part_of(kind: OperationKind, cause: Cause, own: bool) -> Part {
    match (cause, kind) {
        (_, OperationKind::Erase) => Part::Erase,
        (Cause::Host | Cause::ReadAhead, OperationKind::Read) if own => Part::Read,
        (Cause::Host | Cause::ReadAhead, OperationKind::Read) => Part::BehindReads,
        (Cause::Host | Cause::ReadAhead, OperationKind::Program) if own => Part::Program,
        (Cause::Host | Cause::ReadAhead, OperationKind::Program) => Part::BehindPrograms,
        (Cause::Gc | Cause::Merge, _) => Part::Collection,
        (Cause::Rmw | Cause::Prefetch, _) => Part::Modify,
        (Cause::Metadata | Cause::Checkpoint, _) => Part::Map,
        (Cause::Patrol | Cause::Parity | Cause::Rebuild, _) => Part::Upkeep,
    }
}

/// The way back through the latency of a request. Everything after `at` has its part.
struct Walk<'a> {
    history: &'a History,
    /// Operations that have not ended.
    open: &'a [Open],
    request: u64,
    at: Nanos,
    /// The walk ends here.
    floor: Nanos,
    parts: Parts,
    waits: Waits,
    /// The owner of the request that planned the operations that are charged now.
    owner: Option<u32>,
    path: Vec<i64>,
}

impl<'a> Walk<'a> {
    /// Operation `number`, if it has ended lately or not at all.
    fn find(&self, number: i64) -> Option<&'a TimedOperation> {
        let open = || self.open.iter().flatten().map(|(_, timed)| &**timed).find(|timed| timed.number == number);
        self.history.get(number).or_else(open)
    }

    /// Adds the time from `from` on to `part`.
    fn charge(&mut self, from: Nanos, part: Part) {
        let from = from.clamp(self.floor, self.at);
        self.parts[part as usize] += self.at - from;
        if part.is_of_others() && from < self.at {
            let at = self.waits.iter().position(|(owner, _)| *owner == self.owner).unwrap_or_else(|| {
                self.waits.push((self.owner, Parts::default()));
                self.waits.len() - 1
            });
            self.waits[at].1[part as usize] += self.at - from;
        }
        self.at = from;
    }

    /// Adds the time from `from` on to the parts of the operations that held the die of `waiting`.
    fn charge_holders(&mut self, waiting: &TimedOperation, from: Nanos) {
        let log = self.history.holders(waiting.place.die);
        let mut index = log.partition_point(|&(since, _)| since < self.at);
        let from = from.clamp(self.floor, self.at);
        while self.at > from {
            let (since, holder) = index.checked_sub(1).map_or((0, Holder::Unknown), |last| log[last]);
            index = index.saturating_sub(1);
            let part = match holder {
                Holder::Unknown | Holder::Idle => Part::Earlier,
                Holder::Suspends => Part::Suspend,
                Holder::Works { leader, .. } if leader == waiting.leader => Part::Bus,
                Holder::Works { kind, cause, request, owner, .. } => {
                    self.owner = (request > 0).then_some(owner);
                    part_of(kind, cause, request == self.request)
                }
            };
            self.charge(since.max(from), part);
        }
        self.owner = waiting.owner();
    }

    /// Adds the time of `timed` from its start on, `own` if the data is the request's. Returns true if the host link
    /// brought the last byte, so that nothing before the plan mattered.
    fn charge_work(&mut self, timed: &TimedOperation, own: bool) -> bool {
        let (operation, array, moved) = (&timed.operation, timed.array, timed.transfer);
        let part = part_of(operation.kind, operation.cause, own);
        let is_own = matches!(part, Part::Read | Part::Program);
        let bus = if is_own { Part::Bus } else { part };
        if operation.kind == OperationKind::Read {
            self.charge(moved.until + Nanos::from(operation.codec), Part::Link);
            self.charge(moved.until, Part::Codec);
            self.charge(moved.from, bus);
            self.charge(array.until, Part::Bus);
            self.charge(array.until - Nanos::from(operation.retry), if is_own { Part::Retry } else { part });
            self.charge(array.from, part);
        } else {
            for suspension in timed.suspensions.iter().rev() {
                self.charge(suspension.until, part);
                self.charge(suspension.from, Part::Suspend);
            }
            self.charge(array.from, part);
            self.charge_holders(timed, moved.until);
            if timed.data_at == moved.until {
                self.charge(timed.planned, Part::Link);
                return true;
            }
            if operation.loads > 1 {
                self.charge_holders(timed, moved.from);
            }
            self.charge(moved.from, bus);
        }
        self.charge(timed.begun, Part::Bus);
        false
    }

    /// Walks from the event `trigger` back to the floor, through operations that released each other.
    fn follow(&mut self, mut trigger: Trigger, mut is_last: bool) {
        while self.at > self.floor {
            let Some(number) = trigger.number else { return self.charge(self.floor, Part::Link) };
            let Some(timed) = self.find(number) else { return self.charge(self.floor, Part::Earlier) };
            self.path.push(number);
            self.owner = timed.owner();
            let own = timed.request == self.request || std::mem::take(&mut is_last);
            let event = if trigger.started { timed.begun } else { timed.finished };
            debug_assert!(event <= self.at, "{timed:?} releases a waiter before its event");
            let ends = !trigger.started;
            trigger = timed.trigger;
            if ends {
                self.charge(timed.finished, Part::Link);
                if self.charge_work(timed, own) {
                    trigger = Trigger::default();
                }
            }
            self.charge_holders(timed, timed.ready);
            self.charge(timed.released, Part::Codec);
            if trigger.number.is_none() {
                self.charge(timed.planned, Part::Link);
                let part = match part_of(timed.operation.kind, timed.operation.cause, own) {
                    Part::Read | Part::BehindReads | Part::Program | Part::BehindPrograms => Part::Gather,
                    part => part,
                };
                return self.charge(self.floor, part);
            }
        }
    }
}

/// The parts of the latency of `request`, which has completed, its waits, and the operations of its critical path.
pub(super) fn explain(history: &History, open: &[Open], request: &TimedRequest) -> (Parts, Waits, Vec<i64>) {
    let completed = request.completed.unwrap_or(request.arrival);
    let planned = request.planned.unwrap_or(completed);
    let parts = [0; PART_NAMES.len()];
    let (waits, path) = (Vec::new(), Vec::new());
    let mut walk =
        Walk { history, open, request: request.number, at: completed, floor: planned, parts, waits, owner: None, path };
    walk.charge(request.closed.0, Part::Controller);
    walk.follow(request.closed.1, true);
    walk.floor = request.entered.unwrap_or(planned);
    walk.follow(request.room, false);
    walk.floor = request.arrival;
    walk.charge(request.submitted, Part::Controller);
    walk.charge(request.arrival, Part::Host);
    debug_assert_eq!(walk.parts.iter().sum::<Nanos>(), completed - request.arrival, "the parts of {request:?}");
    debug_assert!(PARTS.into_iter().filter(|part| part.is_of_others()).all(|part| {
        let waited = walk.waits.iter().map(|(_, parts)| parts[part as usize]).sum::<Nanos>();
        waited == walk.parts[part as usize]
    }));
    (walk.parts, walk.waits, walk.path)
}
