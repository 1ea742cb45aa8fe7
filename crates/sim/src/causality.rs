//! Time is verified like data: what a checked run holds against the times of the engine.
//!
//! The [ledger](palimpsest_ftl_api::plan::ledger) says what each operation of a plan means for data; the engine says when it
//! starts, brings its data, and ends. Seven laws follow, for any layer; the engine alone is to answer for the last two:
//!
//! 1. A program starts when its data is there: what was read has arrived in the controller (for a second write the old cells,
//!    too), and its transfer does not end before the host link has brought what the host wrote. A read starts when the part of the map
//!    that locates it has arrived, where that is in flash.
//! 2. A write is acknowledged when what it stored is as safe as the layer declares ([`Durability`]): programmed, or arrived and
//!    held in a protected buffer. A flush of a file system, when all that was written before is programmed.
//! 3. A read completes when what it delivers has arrived at the host.
//! 4. An erase, or a second write, starts when nothing is lost by it: of each logical subpage that the block, or the page, holds and the host
//!    has not trimmed, a newer program has ended. Nothing is lost where buffers are protected: what is in the controller will be programmed.
//!
//! 5. Behind a barrier of a file system, its records, and what changes what a block holds, start when all is programmed that was planned
//!    before the barrier, or an equal copy is.
//!
//! 6. A read starts when what it reads is programmed.
//! 7. Programs and erases of a block start in the order in which they are planned. What changes what a block holds (an erase, a second
//!    program) starts after reads of the block that were planned before.
//!
//! Ignored: when the layer's own records in memory are up to date.

use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::ledger::{Barrier, Call, Fact, Ledger, Noted, Promise, Source};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, Io, Operation, OperationKind};
use palimpsest_ftl_api::{Durability, Guarantee};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// Events that an error shows.
const SHOWN: usize = 8;

/// How far an operation has come.
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
    /// When it came that far.
    at: Nanos,
}

/// Content on flash: the number of the program that stored it, and its own.
#[derive(Debug, Clone, Copy, Default)]
struct Copy {
    program: u64,
    content: u64,
}

/// What the completion of a request waits for.
enum Pledge {
    Read(Promise),
    Write(Promise),
    /// Logical subpages, each with the program that must have ended.
    Flush(Vec<(u32, Copy)>),
}

/// The check of a run.
pub struct Causality {
    guarantee: Guarantee,
    /// Operations that have not ended, and some that have.
    operations: VecDeque<Tracked>,
    /// Number of the first of them in the plan.
    base: u64,
    /// Of each logical subpage the newest copy whose program has ended, and the newest that is planned.
    ended: Vec<Copy>,
    planned: Vec<Copy>,
    /// Logical subpages of which they differ, where a flush waits for them.
    under_way: BTreeSet<u32>,
    /// Flushes need not wait for logical subpages from this one on: a layer's own map, which recovery rebuilds.
    pub flushed: u32,
    pledges: BTreeMap<u32, Pledge>,
    /// What started in the present event, with the barriers that it must follow.
    barred: Vec<(u64, Barrier)>,
    /// What operations, with their numbers, have come to lately, and when.
    recent: VecDeque<(Operation, u64, State, Nanos)>,
    violation: Option<String>,
}

impl Causality {
    /// A check that begins with the state of `nand` and operation `next` of the plan, of a layer that gives `guarantee`.
    pub fn new(nand: &Nand, next: u64, guarantee: Guarantee) -> Self {
        let subpages = nand.geometry().subpages() as u32;
        let mut ended = vec![Copy::default(); subpages as usize];
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

    /// Whether a write is kept in a buffer that survives a power cut.
    pub fn is_buffered(&self) -> bool {
        self.guarantee.durable == Durability::Buffered
    }

    /// The first law that was broken.
    pub fn violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// A call of the layer is over: takes what it planned. Returns its promise.
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

    /// Request `id` is a read, and completes no earlier than `promise` says.
    pub fn read(&mut self, id: u32, promise: Promise) {
        self.pledges.insert(id, Pledge::Read(promise));
    }

    /// Request `id` is a write.
    pub fn write(&mut self, id: u32, promise: Promise) {
        self.pledges.insert(id, Pledge::Write(promise));
    }

    /// Whether a flush waits for programs.
    fn flushes_wait(&self) -> bool {
        self.guarantee.durable == Durability::Flushed && !self.guarantee.protected
    }

    /// Request `id` is a flush.
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

    /// Operation `order` has come to `state` at `now`.
    fn advance(&mut self, order: u64, state: State, now: Nanos) {
        let index = (order - self.base) as usize;
        let Some(tracked) = self.operations.get_mut(index) else { return };
        (tracked.state, tracked.at) = (state, now);
        if self.recent.len() == SHOWN {
            self.recent.pop_front();
        }
        self.recent.push_back((tracked.noted.operation, tracked.noted.number, state, now));
    }

    /// Operation `order` starts at `now`; the transfer of a program ends at `loaded`.
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

    /// The last page of the word line that program `order` writes has come to the die at `loaded`, later than it started.
    pub fn loaded(&mut self, order: u64, loaded: Nanos) {
        let Some(Tracked { noted, .. }) = self.tracked(order) else { return };
        let Fact::Program { sources, .. } = &noted.fact else { return };
        if let Some(&early) = sources.iter().find(|&&source| !self.has_come(source, State::Arrived, loaded)) {
            let what =
                format!("{} has its data by {loaded} ns, before that is there: {}", name(noted), self.source(early));
            self.accuse(what);
        }
    }

    /// Why operation `order` may not start yet.
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

    /// What of `behind`, which is planned before on the same block, an operation overtakes.
    fn overtakes(&self, behind: &[u64]) -> Option<String> {
        let early = behind.iter().find(|&&order| !self.has_come(Source::Read(order), State::Runs, 0))?;
        Some(format!("before what was planned before it on its block: {}", self.progress(*early)))
    }

    /// What an operation that destroys what its block `held` would lose.
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

    /// Whether `source` has brought its data at `now`: a read must have come to `state`.
    fn has_come(&self, source: Source, state: State, now: Nanos) -> bool {
        match source {
            Source::Read(order) => order < self.base || self.tracked(order).is_some_and(|read| read.state >= state),
            Source::Link(at) => at <= now,
        }
    }

    /// How far operation `order` has come, in words.
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

    /// The data of read `order` is in the controller.
    pub fn arrived(&mut self, order: u64, now: Nanos) {
        self.advance(order, State::Arrived, now);
    }

    /// Operation `order` has ended.
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

    /// An event is over: what it started must have come after its barriers.
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

    /// The first program before number `until` of the plan that has not ended and stores what is nowhere else.
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

    /// Whether the power would take `copy` of logical subpage `lsn`, which is not programmed, with all that is equal or newer.
    fn would_be_lost(&self, lsn: u32, copy: Copy, ledger: &Ledger) -> bool {
        let ended = self.ended[lsn as usize];
        ended.program < copy.program && ended.content != copy.content && !ledger.is_forgotten(lsn, copy.content)
    }

    /// Request `id` completes at `now`.
    pub fn completed(&mut self, id: u32, ledger: &Ledger, now: Nanos) {
        let Some(pledge) = self.pledges.remove(&id) else { return };
        let broken = match &pledge {
            Pledge::Read(promise) => {
                let early = promise.sources.iter().find(|&&source| !self.has_come(source, State::Ended, now));
                early.map(|&source| ("a read completes", "before it has what it delivers", self.source(source)))
            }
            Pledge::Write(promise) => {
                let early = promise.sources.iter().find(|&&source| !self.has_come(source, State::Arrived, now));
                let unsafe_yet = promise.stored.iter().find(|piece| {
                    self.guarantee.durable == Durability::Programmed
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

    /// The newest program of `lsn`, in words.
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

/// An operation in words.
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
