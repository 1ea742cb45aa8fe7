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
//!    erase, a second program) starts after reads of the block planned before, and before those planned after.
//!
//! Ignored: the time at which the layer's records in memory are up to date.

mod messages;

use crate::ring::Ring;
use messages::describe;
use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::pieces::Pieces;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::ledger::{Barrier, Ledger, Named, Noted, Promise, Source, Stored};
use palimpsest_ftl_api::plan::{Io, OperationKind};
use palimpsest_ftl_api::{Durability, Guarantee};
use std::collections::{BTreeMap, VecDeque};

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

#[derive(Clone, Copy)]
struct Tracked {
    noted: Noted,
    state: State,
    /// Time of the last change of `state`.
    at: Nanos,
}

impl Tracked {
    const NOTHING: Tracked = Tracked { noted: Noted::NOTHING, state: State::Ended, at: 0 };
}

/// A copy on flash: program number and content number.
type Copy = (u64, u64);

/// Operations of a block that have started.
#[derive(Clone, Copy, Default)]
struct Started {
    /// Programs and erases, and those of them that change the content.
    changes: u32,
    contents: u32,
    reads: u32,
}

/// The condition for the completion of a request.
#[derive(Default)]
enum Pledge {
    #[default]
    None,
    Read,
    /// A write; true: with FUA.
    Write(bool),
    /// Logical subpages, each with the program that must have ended.
    Flush(Vec<(u32, Copy)>),
}

/// The check of a run.
pub struct Causality {
    guarantee: Guarantee,
    /// Operations that have not ended, and some that have.
    operations: Ring<Tracked>,
    /// Lists of a [`palimpsest_ftl_api::plan::ledger::Call`], over the calls of these operations.
    sources: Ring<Source>,
    stored: Ring<Stored>,
    held: Ring<(u32, u64)>,
    /// Barriers of operations that must follow one, by number in the plan.
    barriers: VecDeque<(u64, Barrier)>,
    blocks: Vec<Started>,
    /// For each logical subpage, the newest copy whose program has ended; `None` if data is protected and writes are
    /// acknowledged from a buffer.
    ended: Option<Pieces<Copy>>,
    /// If `ended` is `None`: logical subpages of writes with FUA that have not completed, each with the number of such
    /// writes and the newest copy whose program has ended since.
    forced: BTreeMap<u32, (u32, Copy)>,
    /// The newest planned copy of logical subpages where no such program has ended, if flushes must wait for them.
    under_way: BTreeMap<u32, Copy>,
    /// First logical subpage that flushes need not wait for: from here on is the layer's own map, which recovery
    /// rebuilds.
    pub flushed: u32,
    /// By number of the request, with its promise.
    pledges: Vec<(Pledge, Promise)>,
    /// Operations that started in the present event, with the barriers that they must follow.
    barred: Vec<(u64, Barrier)>,
    /// The last changes of state, the latest before `changes`.
    recent: [Option<(Named, State, Nanos)>; SHOWN],
    changes: usize,
    violation: Option<String>,
}

impl Causality {
    /// A check that starts with the present content of `nand` and operation `next` of the plan, for a layer that gives
    /// `guarantee`.
    pub fn new(nand: &Nand, next: u64, guarantee: Guarantee, addresses: u64) -> Self {
        let subpages = nand.geometry().subpages() as u32;
        let needed = !guarantee.protected || guarantee.durable == Durability::Programmed;
        let mut ended: Option<Pieces<Copy>> = needed.then(|| Pieces::new(addresses.max(subpages.into()) as usize));
        // Only the fourth law needs the copies of before, and not for protected data.
        if let Some(ended) = ended.as_mut().filter(|_| !guarantee.protected) {
            for psn in 0..subpages {
                let (lsn, program) = (nand.logical(psn), nand.sequence(psn));
                if lsn < TORN {
                    let copy = ended.at(lsn as usize);
                    copy.0 = copy.0.max(program);
                }
            }
        }
        Causality {
            guarantee,
            operations: Ring::new(next, Tracked::NOTHING),
            sources: Ring::new(0, Source::Link(0)),
            stored: Ring::new(0, Stored { lsn: 0, content: 0 }),
            held: Ring::new(0, (0, 0)),
            barriers: VecDeque::new(),
            blocks: Vec::new(),
            ended,
            forced: BTreeMap::new(),
            under_way: BTreeMap::new(),
            flushed: u32::MAX,
            pledges: Vec::new(),
            barred: Vec::new(),
            recent: [None; SHOWN],
            changes: 0,
            violation: None,
        }
    }

    /// True if a law is broken.
    #[inline]
    pub fn is_violated(&self) -> bool {
        self.violation.is_some()
    }

    /// True if writes are acknowledged from a buffer that survives a power cut.
    pub fn is_buffered(&self) -> bool {
        self.guarantee.durable == Durability::Buffered
    }

    /// Takes the message of the first broken law.
    pub fn violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Takes the operations of the call that `ledger` has closed.
    pub fn accept(&mut self, ledger: &mut Ledger, now: Nanos) {
        let call = ledger.call();
        if let Some(what) = call.violation.take() {
            let last = call.noted.last().map_or_else(|| "the request".into(), |noted| describe(&noted.named));
            self.accuse(format!("{what}, in the call that planned {last} at {now} ns"));
        }
        let first = self.operations.end();
        if !call.barriers.is_empty() {
            self.barriers.extend(call.barriers.drain(..).map(|(index, barrier)| (first + u64::from(index), barrier)));
        }
        self.sources.take(&mut call.sources);
        self.stored.take(&mut call.stored);
        self.held.take(&mut call.held);
        call.noted.iter().for_each(|&noted| self.operations.push(Tracked { noted, state: State::Waits, at: now }));
        call.noted.clear();
        if self.flushes_wait() {
            for order in first..self.operations.end() {
                let Some(&Tracked { noted, .. }) = self.operations.get(order) else { continue };
                let number = noted.named.number;
                let stored = self.stored_of(order, &noted).collect::<Vec<_>>();
                self.under_way.extend(stored.iter().map(|piece| (piece.lsn, (number, piece.content))));
            }
        }
        self.drop_ended();
        ledger.ended_before(self.operations.first());
    }

    /// Drops the operations before the first that has not ended.
    #[inline]
    fn drop_ended(&mut self) {
        let before = self.operations.first();
        let mut first = before;
        while let Some(Tracked { state: State::Ended, .. }) = self.operations.get(first) {
            first += 1;
        }
        if first == before {
            return;
        }
        self.operations.drop_before(first);
        while self.barriers.front().is_some_and(|&(order, _)| order < first) {
            self.barriers.pop_front();
        }
        let next = self.operations.get(first).map(|tracked| &tracked.noted);
        self.sources.drop_before(next.map_or(u64::MAX, |next| self.sources.widened(next.sources)));
        self.stored.drop_before(next.map_or(u64::MAX, |next| self.stored.widened(next.stored)));
        self.held.drop_before(next.map_or(u64::MAX, |next| self.held.widened(next.held)));
    }

    /// Registers `pledge` for request `id`, with `promise`.
    fn register(&mut self, id: u32, pledge: Pledge, promise: &Promise) {
        if self.pledges.len() <= id as usize {
            self.pledges.resize_with(id as usize + 1, Default::default);
        }
        let (of_request, own) = &mut self.pledges[id as usize];
        *of_request = pledge;
        own.sources.clone_from(&promise.sources);
        own.stored.clone_from(&promise.stored);
    }

    /// Registers read `id`, which must not complete before `promise` holds.
    pub fn read(&mut self, id: u32, promise: &Promise) {
        self.register(id, Pledge::Read, promise);
    }

    /// Registers write `id`, which must not complete before `promise` holds, with `fua` not before its programs end.
    pub fn write(&mut self, id: u32, promise: &Promise, fua: bool) {
        if fua && self.ended.is_none() {
            promise.stored.iter().for_each(|piece| self.forced.entry(piece.lsn).or_default().0 += 1);
        }
        self.register(id, Pledge::Write(fua), promise);
    }

    /// True if a flush must wait for programs.
    fn flushes_wait(&self) -> bool {
        self.guarantee.durable == Durability::Flushed && !self.guarantee.protected
    }

    /// Registers flush `id`, which must wait for everything written before.
    pub fn flush(&mut self, id: u32) {
        if self.flushes_wait() {
            let all = self.under_way.range(..self.flushed).map(|(&lsn, &copy)| (lsn, copy)).collect();
            self.register(id, Pledge::Flush(all), &Promise::default());
        }
    }

    /// The entries of operation `order`, which is `noted`, in `list`, whose first entry `first` names.
    #[inline]
    fn entries<T: std::marker::Copy>(
        &self,
        list: &Ring<T>,
        order: u64,
        noted: &Noted,
        first: impl Fn(&Noted) -> u32,
    ) -> impl Iterator<Item = T> {
        let next = self.operations.get(order + 1);
        let end = next.map_or(u64::MAX, |next| list.widened(first(&next.noted)));
        list.range(list.widened(first(noted)), end).map(|(_, entry)| entry)
    }

    #[inline]
    fn sources_of(&self, order: u64, noted: &Noted) -> impl Iterator<Item = Source> {
        self.entries(&self.sources, order, noted, |noted| noted.sources)
    }

    #[inline]
    fn stored_of(&self, order: u64, noted: &Noted) -> impl Iterator<Item = Stored> {
        self.entries(&self.stored, order, noted, |noted| noted.stored)
    }

    /// Records that operation `order` has reached `state` at `now`.
    #[inline]
    fn advance(&mut self, order: u64, state: State, now: Nanos) {
        let Some(tracked) = self.operations.get_mut(order) else { return };
        (tracked.state, tracked.at) = (state, now);
        self.recent[self.changes % SHOWN] = Some((tracked.noted.named, state, now));
        self.changes += 1;
    }

    /// Records that operation `order` starts at `now`; the transfer of a program ends at `loaded`.
    pub fn started(&mut self, order: u64, now: Nanos, loaded: Nanos) {
        if let Some(&Tracked { noted, .. }) = self.operations.get(order) {
            if self.violation.is_none()
                && let Some(why) = self.too_early(order, &noted, loaded)
            {
                let what = describe(&noted.named);
                self.accuse(format!("{what} starts at {now} ns, {why}"));
            } else if noted.barred && !self.guarantee.protected {
                let place = self.barriers.binary_search_by_key(&order, |&(of, _)| of);
                self.barred.extend(place.ok().map(|place| self.barriers[place]));
            }
            let started = self.started_on(noted.named.block);
            if noted.named.kind == OperationKind::Read {
                started.reads = started.reads.wrapping_add(1);
            } else {
                started.changes = started.changes.wrapping_add(1);
                started.contents = started.contents.wrapping_add(noted.destroys.into());
            }
        }
        self.advance(order, State::Runs, now);
    }

    /// Operations of `block` that have started.
    #[inline]
    fn started_on(&mut self, block: u32) -> &mut Started {
        if self.blocks.len() <= block as usize {
            self.blocks.resize(block as usize + 1, Started::default());
        }
        &mut self.blocks[block as usize]
    }

    /// Records that the last page of the word line of program `order` reaches the die at `loaded`, after the start.
    pub fn loaded(&mut self, order: u64, loaded: Nanos) {
        let Some(&Tracked { noted, .. }) = self.operations.get(order) else { return };
        let early = self.sources_of(order, &noted).find(|&source| !self.has_come(source, State::Arrived, loaded));
        if let Some(early) = early {
            let what = describe(&noted.named);
            let what = format!("{what} has its data by {loaded} ns, before that is there: {}", self.source(early));
            self.accuse(what);
        }
    }

    /// The reason why an operation may not start yet.
    #[inline]
    fn too_early(&self, order: u64, noted: &Noted, loaded: Nanos) -> Option<String> {
        let reads = noted.named.kind == OperationKind::Read;
        let started = self.blocks.get(noted.named.block as usize).copied().unwrap_or_default();
        let in_turn = match reads {
            true => started.contents >= noted.turn.changes,
            false => started.changes >= noted.turn.changes && started.reads >= noted.turn.reads,
        };
        if !in_turn {
            return Some(self.out_of_turn(order, noted));
        }
        let early = self.sources_of(order, noted).find(|&source| !self.has_come(source, State::Arrived, loaded));
        match early {
            Some(early) => Some(self.unready(early, reads, loaded)),
            None if noted.destroys => self.destroys(order, noted),
            None => None,
        }
    }

    /// A message if operation `order`, which is `noted`, would lose data.
    fn destroys(&self, order: u64, noted: &Noted) -> Option<String> {
        if self.guarantee.protected {
            return None;
        }
        let mut held = self.entries(&self.held, order, noted, |noted| noted.held);
        let lost = held.find(|&(lsn, by)| self.newest_ended(lsn).0 == by);
        lost.map(|(lsn, _)| {
            let newer = self.newest_of(lsn).map_or("no other copy is planned".into(), |order| self.progress(order));
            format!("while its block holds all that is safe of logical subpage {lsn}: {newer}")
        })
    }

    /// The newest copy of `lsn` whose program has ended, if such copies are recorded.
    fn newest_ended(&self, lsn: u32) -> Copy {
        self.ended.as_ref().map_or((0, 0), |ended| ended.get(lsn as usize))
    }

    /// True if `source` has delivered by `now`: a read must have reached `state`.
    fn has_come(&self, source: Source, state: State, now: Nanos) -> bool {
        match source {
            Source::Read(order) => self.has_reached(order, state),
            Source::Program(order) => self.has_reached(order, State::Ended),
            Source::Link(at) => at <= now,
        }
    }

    /// True if operation `order` has reached `state`.
    #[inline]
    fn has_reached(&self, order: u64, state: State) -> bool {
        match self.operations.get(order) {
            Some(tracked) => tracked.state >= state,
            None => order < self.operations.first(),
        }
    }

    /// Records that the data of read `order` is in the controller.
    pub fn arrived(&mut self, order: u64, now: Nanos) {
        self.advance(order, State::Arrived, now);
    }

    /// Records that operation `order` has ended.
    pub fn ended(&mut self, order: u64, now: Nanos) {
        self.advance(order, State::Ended, now);
        if self.forced.is_empty() && self.ended.is_none() {
            return;
        }
        let Some(&Tracked { noted, .. }) = self.operations.get(order) else { return };
        let number = noted.named.number;
        let flushes = self.flushes_wait();
        let next = self.operations.get(order + 1);
        let end = next.map_or(u64::MAX, |next| self.stored.widened(next.noted.stored));
        for (_, piece) in self.stored.range(self.stored.widened(noted.stored), end) {
            if let Some((_, copy)) = self.forced.get_mut(&piece.lsn) {
                *copy = (*copy).max((number, piece.content));
            }
            let Some(ended) = &mut self.ended else { continue };
            let copy = ended.at(piece.lsn as usize);
            if copy.0 < number {
                *copy = (number, piece.content);
            }
            if flushes && self.under_way.get(&piece.lsn).is_some_and(|planned| copy.0 >= planned.0) {
                self.under_way.remove(&piece.lsn);
            }
        }
    }

    /// Checks at the end of an event that the operations started in the event follow their barriers.
    #[inline]
    pub fn event_ended(&mut self, io: &Io, now: Nanos) {
        if !self.barred.is_empty() {
            self.check_barriers(io, now);
        }
    }

    fn check_barriers(&mut self, io: &Io, now: Nanos) {
        while let Some((order, barrier)) = self.barred.pop() {
            let early = match io.ledger.as_ref().and_then(|ledger| self.unsafe_before(barrier.until, ledger)) {
                Some(early) => self.progress(early),
                None if io.plan.gates.is_open(barrier.gate) => "the gate of the barrier is open".into(),
                None => continue,
            };
            let what = self.operations.get(order).map(|tracked| describe(&tracked.noted.named)).unwrap_or_default();
            let why = "before all is programmed that a file system wrote before it";
            self.accuse(format!("{what} starts at {now} ns, {why}: {early}"));
        }
    }

    /// The first program before number `until` of the plan that has not ended and stores the only copy of some data.
    fn unsafe_before(&self, until: u64, ledger: &Ledger) -> Option<u64> {
        let before = self.operations.range(0, until);
        let mut running = before.filter(|(_, tracked)| tracked.state != State::Ended);
        let early = running.find(|(order, Tracked { noted, .. })| {
            let number = noted.named.number;
            let is_lost = |piece: Stored| self.would_be_lost(piece.lsn, (number, piece.content), ledger);
            self.stored_of(*order, noted).any(|piece| piece.lsn < self.flushed && is_lost(piece))
        });
        early.map(|(order, _)| order)
    }

    /// True if a power cut now would lose `copy` of logical subpage `lsn` and every equal or newer copy.
    fn would_be_lost(&self, lsn: u32, (program, content): Copy, ledger: &Ledger) -> bool {
        let (ended, kept) = self.newest_ended(lsn);
        ended < program && kept != content && !ledger.is_forgotten(lsn, content)
    }

    /// Checks that request `id` may complete at `now`.
    pub fn completed(&mut self, id: u32, ledger: &Ledger, now: Nanos) {
        let Some((pledge, _)) = self.pledges.get_mut(id as usize) else { return };
        let pledge = std::mem::take(pledge);
        let (_, promise) = &self.pledges[id as usize];
        let not_before = |state: State| promise.sources.iter().find(|&&source| !self.has_come(source, state, now));
        let broken = match &pledge {
            Pledge::None => None,
            Pledge::Read => {
                let early = not_before(State::Ended);
                early.map(|&source| ("a read completes", "before it has what it delivers", self.source(source)))
            }
            Pledge::Write(fua) => {
                let programmed = *fua || self.guarantee.durable == Durability::Programmed;
                let unsafe_yet = promise.stored.iter().filter(|_| programmed).find(|piece| {
                    self.content_of(piece.lsn) < piece.content && !ledger.is_forgotten(piece.lsn, piece.content)
                });
                match (not_before(State::Arrived), unsafe_yet) {
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
        if let Pledge::Write(true) = pledge {
            self.end_forced(id);
        }
        if let Some((what, why, source)) = broken {
            self.accuse(format!("{what} at {now} ns, {why}: {source}"));
        }
    }

    /// The newest content of `lsn` whose program has ended, if a write must be programmed.
    fn content_of(&self, lsn: u32) -> u64 {
        let of_forced = || self.forced.get(&lsn).map_or(0, |&(_, (_, content))| content);
        self.ended.as_ref().map_or_else(of_forced, |ended| ended.get(lsn as usize).1)
    }

    /// Forgets the subpages of write `id` with FUA, unless other such writes name them.
    fn end_forced(&mut self, id: u32) {
        for piece in self.pledges[id as usize].1.stored.iter().filter(|_| self.ended.is_none()) {
            if let Some((writes, _)) = self.forced.get_mut(&piece.lsn) {
                *writes -= 1;
                if *writes == 0 {
                    self.forced.remove(&piece.lsn);
                }
            }
        }
    }
}
