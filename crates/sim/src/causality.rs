//! The check of times in a checked run: the engine must not start or end an operation before the data it needs is
//! there.
//!
//! The [ledger](palimpsest_ftl_api::plan::ledger) records the effect of each planned operation on data. The engine
//! reports when each operation starts, moves its data, and ends. Seven laws must hold for every layer; only the engine
//! can break the last two:
//!
//! 1. A program starts after its data has arrived in the controller (for a second write, the old cells too). Its
//!    transfer does not end before the host link has transferred the host's data. A read starts after the part of a map
//!    in flash that locates the data has arrived.
//! 2. A write is acknowledged when its data is as safe as the layer declares ([`Durability`]): programmed, or arrived
//!    and held in a protected buffer. A write with FUA is acknowledged when programmed.
//!    A flush of a file system completes when everything written before is programmed.
//! 3. A read completes when its data has arrived at the host.
//! 4. An erase or second write starts only when no data is lost: for each logical subpage in the block or page that the
//!    host has not trimmed, a newer program has ended. With protected buffers no data is lost, because hold-up energy
//!    programs everything in the controller.
//! 5. Behind a barrier of a file system, its records start only when everything planned before the barrier, or an equal
//!    copy, is programmed. The same holds for operations that change a block's content.
//! 6. A read starts when its data is programmed.
//! 7. Programs and erases of a block start in the order of planning. An operation that changes a block's content (an
//!    erase, a second program) starts after reads of the block planned before.
//!
//! Ignored: the time at which the layer's records in memory are up to date.

use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::ledger::{Barrier, Call, Fact, Ledger, Noted, Promise, Source};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, Io, Operation, OperationKind};
use palimpsest_ftl_api::{Durability, Guarantee};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// Number of events that an error lists.
const SHOWN: usize = 8;

/// Progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Waits,
    Runs,
    /// The data of a read is in the controller.
    Arrived,
    Ended,
}

struct Tracked {
    noted: Noted,
    state: State,
    /// Time of the last change of `state`.
    at: Nanos,
}

/// A copy on flash: program number and content number.
#[derive(Debug, Clone, Copy, Default)]
struct Copy {
    program: u64,
    content: u64,
}

/// The condition for the completion of a request.
enum Pledge {
    Read(Promise),
    /// A write; true: with FUA.
    Write(Promise, bool),
    /// Logical subpages, each with the program that must have ended.
    Flush(Vec<(u32, Copy)>),
}

/// The check of a run.
pub struct Causality {
    guarantee: Guarantee,
    /// Operations that have not ended, and some that have.
    operations: VecDeque<Tracked>,
    /// Number in the plan of the first of `operations`.
    base: u64,
    /// For each logical subpage, the newest copy whose program has ended, and the newest planned copy.
    ended: Vec<Copy>,
    planned: Vec<Copy>,
    /// Logical subpages where the two differ, if flushes must wait for them.
    under_way: BTreeSet<u32>,
    /// First logical subpage that flushes need not wait for: from here on is the layer's own map, which recovery
    /// rebuilds.
    pub flushed: u32,
    pledges: BTreeMap<u32, Pledge>,
    /// Operations that started in the present event, with the barriers that they must follow.
    barred: Vec<(u64, Barrier)>,
    /// The last changes of state, each with operation, number and time.
    recent: VecDeque<(Operation, u64, State, Nanos)>,
    violation: Option<String>,
}

impl Causality {
    /// A check that starts with the present content of `nand` and operation `next` of the plan, for a layer that gives
    /// `guarantee`.
    pub fn new(nand: &Nand, next: u64, guarantee: Guarantee, addresses: u64) -> Self {
        let subpages = nand.geometry().subpages() as u32;
        let mut ended = vec![Copy::default(); addresses.max(subpages.into()) as usize];
        for psn in 0..subpages {
            let (lsn, program) = (nand.logical(psn), nand.sequence(psn));
            if lsn < TORN && ended[lsn as usize].program < program {
                ended[lsn as usize].program = program;
            }
        }
        Causality {
            guarantee,
            operations: VecDeque::new(),
            base: next,
            planned: ended.clone(),
            ended,
            under_way: BTreeSet::new(),
            flushed: u32::MAX,
            pledges: BTreeMap::new(),
            barred: Vec::new(),
            recent: VecDeque::new(),
            violation: None,
        }
    }

    /// True if writes are acknowledged from a buffer that survives a power cut.
    pub fn is_buffered(&self) -> bool {
        self.guarantee.durable == Durability::Buffered
    }

    /// Takes the message of the first broken law.
    pub fn violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Adds the operations of a call that the layer has finished. Returns the promise of the call.
    pub fn accept(&mut self, call: Call, ledger: &mut Ledger, now: Nanos) -> Promise {
        if let Some(what) = call.violation {
            let last = call.noted.last().map_or_else(|| "the request".into(), name);
            self.accuse(format!("{what}, in the call that planned {last} at {now} ns"));
        }
        let flushes = self.flushes_wait();
        for noted in call.noted {
            if let Fact::Program { stored, .. } = &noted.fact {
                for piece in stored {
                    self.planned[piece.lsn as usize] = Copy { program: noted.number, content: piece.content };
                    if flushes {
                        self.under_way.insert(piece.lsn);
                    }
                }
            }
            self.operations.push_back(Tracked { noted, state: State::Waits, at: now });
        }
        while self.operations.front().is_some_and(|first| first.state == State::Ended) {
            self.operations.pop_front();
            self.base += 1;
        }
        ledger.ended_before(self.base);
        call.promise
    }

    /// Registers read `id`, which must not complete before `promise` holds.
    pub fn read(&mut self, id: u32, promise: Promise) {
        self.pledges.insert(id, Pledge::Read(promise));
    }

    /// Registers write `id`, which must not complete before `promise` holds, with `fua` not before its programs end.
    pub fn write(&mut self, id: u32, promise: Promise, fua: bool) {
        self.pledges.insert(id, Pledge::Write(promise, fua));
    }

    /// True if a flush must wait for programs.
    fn flushes_wait(&self) -> bool {
        self.guarantee.durable == Durability::Flushed && !self.guarantee.protected
    }

    /// Registers flush `id`, which must wait for everything written before.
    pub fn flush(&mut self, id: u32) {
        if self.flushes_wait() {
            let all = self.under_way.range(..self.flushed).map(|&lsn| (lsn, self.planned[lsn as usize]));
            let all = all.collect();
            self.pledges.insert(id, Pledge::Flush(all));
        }
    }

    fn tracked(&self, order: u64) -> Option<&Tracked> {
        self.operations.get(order.checked_sub(self.base)? as usize)
    }

    /// Records that operation `order` has reached `state` at `now`.
    fn advance(&mut self, order: u64, state: State, now: Nanos) {
        let index = (order - self.base) as usize;
        let Some(tracked) = self.operations.get_mut(index) else { return };
        (tracked.state, tracked.at) = (state, now);
        if self.recent.len() == SHOWN {
            self.recent.pop_front();
        }
        self.recent.push_back((tracked.noted.operation, tracked.noted.number, state, now));
    }

    /// Records that operation `order` starts at `now`; the transfer of a program ends at `loaded`.
    pub fn started(&mut self, order: u64, now: Nanos, loaded: Nanos) {
        if self.violation.is_none()
            && let Some(why) = self.too_early(order, loaded)
        {
            let what = self.tracked(order).map(|tracked| name(&tracked.noted)).unwrap_or_default();
            self.accuse(format!("{what} starts at {now} ns, {why}"));
        }
        if let Some(Fact::Program { barrier, .. } | Fact::Erase { barrier, .. }) =
            self.tracked(order).map(|tracked| &tracked.noted.fact)
            && (!barrier.gate.is_none() || barrier.until > self.base)
            && !self.guarantee.protected
        {
            self.barred.push((order, *barrier));
        }
        self.advance(order, State::Runs, now);
    }

    /// Records that the last page of the word line of program `order` reaches the die at `loaded`, after the start.
    pub fn loaded(&mut self, order: u64, loaded: Nanos) {
        let Some(Tracked { noted, .. }) = self.tracked(order) else { return };
        let Fact::Program { sources, .. } = &noted.fact else { return };
        if let Some(&early) = sources.iter().find(|&&source| !self.has_come(source, State::Arrived, loaded)) {
            let what =
                format!("{} has its data by {loaded} ns, before that is there: {}", name(noted), self.source(early));
            self.accuse(what);
        }
    }

    /// The reason why operation `order` may not start yet.
    fn too_early(&self, order: u64, loaded: Nanos) -> Option<String> {
        let tracked = self.tracked(order)?;
        match &tracked.noted.fact {
            Fact::Read { located, stored } => {
                if let Some(early) = located.filter(|&source| !self.has_come(source, State::Arrived, loaded)) {
                    return Some(format!("before it is known where its data is: {}", self.source(early)));
                }
                let early = stored.iter().find(|&&by| !self.has_come(Source::Read(by), State::Ended, loaded))?;
                Some(format!("before what it reads is programmed: {}", self.progress(*early)))
            }
            Fact::Program { sources, held, behind, .. } => {
                if let Some(early) = self.overtakes(behind) {
                    return Some(early);
                }
                let early = sources.iter().find(|&&source| !self.has_come(source, State::Arrived, loaded));
                match early {
                    Some(&Source::Read(read)) => Some(format!("before its data is there: {}", self.progress(read))),
                    Some(&Source::Link(at)) => {
                        Some(format!("and has its data by {loaded} ns, before the host link brings it at {at} ns"))
                    }
                    None => self.destroys(held),
                }
            }
            Fact::Erase { held, behind, .. } => self.overtakes(behind).or_else(|| self.destroys(held)),
        }
    }

    /// A message if an operation of `behind`, planned earlier on the same block, has not started.
    fn overtakes(&self, behind: &[u64]) -> Option<String> {
        let early = behind.iter().find(|&&order| !self.has_come(Source::Read(order), State::Runs, 0))?;
        Some(format!("before what was planned before it on its block: {}", self.progress(*early)))
    }

    /// A message if destroying `held` would lose data.
    fn destroys(&self, held: &[(u32, u64)]) -> Option<String> {
        if self.guarantee.protected {
            return None;
        }
        let lost = held.iter().find(|(lsn, by)| self.ended[*lsn as usize].program == *by);
        lost.map(|&(lsn, _)| {
            let newer = self.planned[lsn as usize].program;
            let newer = self.operations.iter().position(|other| other.noted.number == newer);
            let newer = newer.map_or("no other copy is planned".into(), |at| self.progress(self.base + at as u64));
            format!("while its block holds all that is safe of logical subpage {lsn}: {newer}")
        })
    }

    /// True if `source` has delivered by `now`: a read must have reached `state`.
    fn has_come(&self, source: Source, state: State, now: Nanos) -> bool {
        match source {
            Source::Read(order) => order < self.base || self.tracked(order).is_some_and(|read| read.state >= state),
            Source::Link(at) => at <= now,
        }
    }

    /// The progress of operation `order`, for messages.
    fn progress(&self, order: u64) -> String {
        let Some(Tracked { noted, state, at }) = self.tracked(order) else { return "an operation that ended".into() };
        let state = match state {
            State::Waits => "was planned",
            State::Runs => "started",
            State::Arrived => "brought its data",
            State::Ended => "ended",
        };
        format!("{} {state} at {at} ns", name(noted))
    }

    /// Records that the data of read `order` is in the controller.
    pub fn arrived(&mut self, order: u64, now: Nanos) {
        self.advance(order, State::Arrived, now);
    }

    /// Records that operation `order` has ended.
    pub fn ended(&mut self, order: u64, now: Nanos) {
        self.advance(order, State::Ended, now);
        let index = (order - self.base) as usize;
        let Some(Tracked { noted, .. }) = self.operations.get(index) else { return };
        let Fact::Program { stored, .. } = &noted.fact else { return };
        let flushes = self.flushes_wait();
        for piece in stored {
            let copy = &mut self.ended[piece.lsn as usize];
            if copy.program < noted.number {
                *copy = Copy { program: noted.number, content: piece.content };
            }
            if flushes && copy.program >= self.planned[piece.lsn as usize].program {
                self.under_way.remove(&piece.lsn);
            }
        }
    }

    /// Checks at the end of an event that the operations started in the event follow their barriers.
    pub fn event_ended(&mut self, io: &Io, now: Nanos) {
        while let Some((order, barrier)) = self.barred.pop() {
            let early = match io.ledger.as_ref().and_then(|ledger| self.unsafe_before(barrier.until, ledger)) {
                Some(early) => self.progress(early),
                None if io.plan.gates.is_open(barrier.gate) => "the gate of the barrier is open".into(),
                None => continue,
            };
            let what = self.tracked(order).map(|tracked| name(&tracked.noted)).unwrap_or_default();
            let why = "before all is programmed that a file system wrote before it";
            self.accuse(format!("{what} starts at {now} ns, {why}: {early}"));
        }
    }

    /// The first program before number `until` of the plan that has not ended and stores the only copy of some data.
    fn unsafe_before(&self, until: u64, ledger: &Ledger) -> Option<u64> {
        let before = self.operations.iter().take(until.saturating_sub(self.base) as usize);
        let mut running = (self.base..).zip(before).filter(|(_, tracked)| tracked.state != State::Ended);
        let early = running.find(|(_, Tracked { noted, .. })| {
            let Fact::Program { stored, .. } = &noted.fact else { return false };
            stored.iter().any(|piece| {
                let copy = Copy { program: noted.number, content: piece.content };
                piece.lsn < self.flushed && self.would_be_lost(piece.lsn, copy, ledger)
            })
        });
        early.map(|(order, _)| order)
    }

    /// True if a power cut now would lose `copy` of logical subpage `lsn` and every equal or newer copy.
    fn would_be_lost(&self, lsn: u32, copy: Copy, ledger: &Ledger) -> bool {
        let ended = self.ended[lsn as usize];
        ended.program < copy.program && ended.content != copy.content && !ledger.is_forgotten(lsn, copy.content)
    }

    /// Checks that request `id` may complete at `now`.
    pub fn completed(&mut self, id: u32, ledger: &Ledger, now: Nanos) {
        let Some(pledge) = self.pledges.remove(&id) else { return };
        let broken = match &pledge {
            Pledge::Read(promise) => {
                let early = promise.sources.iter().find(|&&source| !self.has_come(source, State::Ended, now));
                early.map(|&source| ("a read completes", "before it has what it delivers", self.source(source)))
            }
            Pledge::Write(promise, fua) => {
                let early = promise.sources.iter().find(|&&source| !self.has_come(source, State::Arrived, now));
                let unsafe_yet = promise.stored.iter().find(|piece| {
                    (*fua || self.guarantee.durable == Durability::Programmed)
                        && self.ended[piece.lsn as usize].content < piece.content
                        && !ledger.is_forgotten(piece.lsn, piece.content)
                });
                match (early, unsafe_yet) {
                    (Some(&source), _) => {
                        Some(("a write is acknowledged", "before its data is there", self.source(source)))
                    }
                    (None, Some(piece)) => {
                        let newest = self.newest_program(piece.lsn);
                        Some(("a write is acknowledged", "before it is programmed", newest))
                    }
                    (None, None) => None,
                }
            }
            Pledge::Flush(all) => {
                let missing = all.iter().find(|&&(lsn, copy)| self.would_be_lost(lsn, copy, ledger));
                let why = "before all is programmed that was written before";
                missing.map(|&(lsn, _)| ("a flush completes", why, self.newest_program(lsn)))
            }
        };
        if let Some((what, why, source)) = broken {
            self.accuse(format!("{what} at {now} ns, {why}: {source}"));
        }
    }

    fn source(&self, source: Source) -> String {
        match source {
            Source::Read(order) => self.progress(order),
            Source::Link(at) => format!("the host link brings it at {at} ns"),
        }
    }

    /// The progress of the newest program of `lsn`, for messages.
    fn newest_program(&self, lsn: u32) -> String {
        let newest = self.planned[lsn as usize].program;
        let at = self.operations.iter().position(|other| other.noted.number == newest);
        let progress = at.map_or("no program of it is under way".into(), |at| self.progress(self.base + at as u64));
        format!("of logical subpage {lsn}, {progress}")
    }

    #[cold]
    fn accuse(&mut self, what: String) {
        if self.violation.is_none() {
            let mut text = format!("the translation layer broke the order of time: {what}");
            for (index, (operation, number, state, at)) in self.recent.iter().enumerate() {
                let separator = if index == 0 { "; before it: " } else { ", " };
                let what = match state {
                    State::Runs => "starts",
                    State::Arrived => "brings its data",
                    _ => "ends",
                };
                let _ = write!(text, "{separator}{} {what} at {at} ns", describe(operation, *number));
            }
            self.violation = Some(text);
        }
    }
}

fn name(noted: &Noted) -> String {
    describe(&noted.operation, noted.number)
}

fn describe(operation: &Operation, number: u64) -> String {
    let (block, cause) = (operation.block, CAUSE_NAMES[operation.cause as usize]);
    match operation.kind {
        OperationKind::Read => format!("read {number} ({cause}) of block {block} page {}", operation.page),
        OperationKind::Program => format!("program {number} ({cause}) of block {block} page {}", operation.page),
        OperationKind::Erase => format!("erase {number} ({cause}) of block {block}"),
    }
}
