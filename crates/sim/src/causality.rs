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
use palimpsest_flash::pieces::Pieces;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::ledger::{Barrier, Call, Items, Ledger, Noted, Promise, Source, Stored};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, Io, OperationKind};
use palimpsest_ftl_api::{Durability, Guarantee};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::ops::Range;

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

/// A copy on flash: program number and content number.
type Copy = (u64, u64);

/// A list of [`Call`] over many calls. Entries leave in the order in which they came, with their operations.
struct List<T> {
    items: VecDeque<T>,
    /// Number of the first of `items`, modulo 2^32.
    base: u32,
}

impl<T: std::marker::Copy + 'static> List<T> {
    fn new() -> Self {
        List { items: VecDeque::new(), base: 0 }
    }

    /// Number of the next entry.
    #[inline]
    fn end(&self) -> u32 {
        self.base.wrapping_add(self.items.len() as u32)
    }

    #[inline]
    fn take(&mut self, list: &mut Vec<T>) {
        if !list.is_empty() {
            self.items.extend(&*list);
            list.clear();
        }
    }

    #[inline]
    fn drop_first(&mut self, Items { count, .. }: Items) {
        if count > 0 {
            self.items.drain(..count as usize);
            self.base = self.base.wrapping_add(count);
        }
    }

    #[inline]
    fn of(&self, Items { first, count }: Items) -> impl Iterator<Item = T> {
        let first = first.wrapping_sub(self.base) as usize;
        let range: Range<usize> = if count == 0 { 0..0 } else { first..first + count as usize };
        self.items.range(range).copied()
    }
}

/// The lists of the operations that have not ended.
struct Lists {
    sources: List<Source>,
    stored: List<Stored>,
    held: List<(u32, u64)>,
    orders: List<u64>,
}

impl Lists {
    /// Adds the lists of `call`, whose operations then name the entries here.
    fn accept(&mut self, call: &mut Call) {
        let [sources, stored, held, orders] =
            [self.sources.end(), self.stored.end(), self.held.end(), self.orders.end()];
        for noted in &mut call.noted {
            noted.sources.first = noted.sources.first.wrapping_add(sources);
            noted.stored.first = noted.stored.first.wrapping_add(stored);
            noted.held.first = noted.held.first.wrapping_add(held);
            noted.orders.first = noted.orders.first.wrapping_add(orders);
        }
        self.sources.take(&mut call.sources);
        self.stored.take(&mut call.stored);
        self.held.take(&mut call.held);
        self.orders.take(&mut call.orders);
    }

    /// Removes the entries of `noted`, the first operation.
    #[inline]
    fn drop_first(&mut self, noted: &Noted) {
        self.sources.drop_first(noted.sources);
        self.stored.drop_first(noted.stored);
        self.held.drop_first(noted.held);
        self.orders.drop_first(noted.orders);
    }
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
    operations: VecDeque<Tracked>,
    lists: Lists,
    /// Number in the plan of the first of `operations`.
    base: u64,
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
    recent: [Option<Tracked>; SHOWN],
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
            operations: VecDeque::new(),
            lists: Lists { sources: List::new(), stored: List::new(), held: List::new(), orders: List::new() },
            base: next,
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

    /// Takes the operations of a call that the layer has finished.
    pub fn accept(&mut self, call: &mut Call, ledger: &mut Ledger, now: Nanos) {
        if let Some(what) = call.violation.take() {
            let last = call.noted.last().map_or_else(|| "the request".into(), describe);
            self.accuse(format!("{what}, in the call that planned {last} at {now} ns"));
        }
        let flushes = self.flushes_wait();
        self.lists.accept(call);
        for noted in call.noted.drain(..) {
            if flushes {
                let stored = self.lists.stored.of(noted.stored);
                self.under_way.extend(stored.map(|piece| (piece.lsn, (noted.number, piece.content))));
            }
            self.operations.push_back(Tracked { noted, state: State::Waits, at: now });
        }
        while let Some(Tracked { noted, state: State::Ended, .. }) = self.operations.front() {
            self.lists.drop_first(noted);
            self.operations.pop_front();
            self.base += 1;
        }
        ledger.ended_before(self.base);
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

    fn tracked(&self, order: u64) -> Option<&Tracked> {
        self.operations.get(order.checked_sub(self.base)? as usize)
    }

    /// Records that operation `order` has reached `state` at `now`.
    #[inline]
    fn advance(&mut self, order: u64, state: State, now: Nanos) {
        let index = (order - self.base) as usize;
        let Some(tracked) = self.operations.get_mut(index) else { return };
        (tracked.state, tracked.at) = (state, now);
        self.recent[self.changes % SHOWN] = Some(*tracked);
        self.changes += 1;
    }

    /// Records that operation `order` starts at `now`; the transfer of a program ends at `loaded`.
    pub fn started(&mut self, order: u64, now: Nanos, loaded: Nanos) {
        if let Some(Tracked { noted, .. }) = self.tracked(order) {
            if self.violation.is_none()
                && let Some(why) = self.too_early(noted, loaded)
            {
                let what = describe(noted);
                self.accuse(format!("{what} starts at {now} ns, {why}"));
            } else if (!noted.barrier.gate.is_none() || noted.barrier.until > self.base) && !self.guarantee.protected {
                let barrier = noted.barrier;
                self.barred.push((order, barrier));
            }
        }
        self.advance(order, State::Runs, now);
    }

    /// Records that the last page of the word line of program `order` reaches the die at `loaded`, after the start.
    pub fn loaded(&mut self, order: u64, loaded: Nanos) {
        let Some(Tracked { noted, .. }) = self.tracked(order) else { return };
        let early = self.lists.sources.of(noted.sources).find(|&source| !self.has_come(source, State::Arrived, loaded));
        if let Some(early) = early {
            let what = describe(noted);
            let what = format!("{what} has its data by {loaded} ns, before that is there: {}", self.source(early));
            self.accuse(what);
        }
    }

    /// The reason why an operation may not start yet.
    #[inline]
    fn too_early(&self, noted: &Noted, loaded: Nanos) -> Option<String> {
        if noted.kind == OperationKind::Read {
            if let Some(early) = noted.located.filter(|&source| !self.has_come(source, State::Arrived, loaded)) {
                return Some(format!("before it is known where its data is: {}", self.source(early)));
            }
            let mut stored = self.lists.orders.of(noted.orders);
            let early = stored.find(|&by| !self.has_come(Source::Read(by), State::Ended, loaded))?;
            return Some(format!("before what it reads is programmed: {}", self.progress(early)));
        }
        let mut behind = self.lists.orders.of(noted.orders);
        if let Some(early) = behind.find(|&order| !self.has_come(Source::Read(order), State::Runs, 0)) {
            return Some(format!("before what was planned before it on its block: {}", self.progress(early)));
        }
        let mut sources = self.lists.sources.of(noted.sources);
        match sources.find(|&source| !self.has_come(source, State::Arrived, loaded)) {
            Some(Source::Read(read)) => Some(format!("before its data is there: {}", self.progress(read))),
            Some(Source::Link(at)) => {
                Some(format!("and has its data by {loaded} ns, before the host link brings it at {at} ns"))
            }
            None => self.destroys(noted.held),
        }
    }

    /// A message if destroying `held` would lose data.
    fn destroys(&self, held: Items) -> Option<String> {
        if self.guarantee.protected {
            return None;
        }
        let lost = self.lists.held.of(held).find(|&(lsn, by)| self.newest_ended(lsn).0 == by);
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
        format!("{} {state} at {at} ns", describe(noted))
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
        let (number, flushes) = (noted.number, self.flushes_wait());
        if !self.forced.is_empty() {
            for piece in self.lists.stored.of(noted.stored) {
                if let Some((_, copy)) = self.forced.get_mut(&piece.lsn) {
                    *copy = (*copy).max((number, piece.content));
                }
            }
        }
        let Some(ended) = &mut self.ended else { return };
        for piece in self.lists.stored.of(noted.stored) {
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
            let what = self.tracked(order).map(|tracked| describe(&tracked.noted)).unwrap_or_default();
            let why = "before all is programmed that a file system wrote before it";
            self.accuse(format!("{what} starts at {now} ns, {why}: {early}"));
        }
    }

    /// The first program before number `until` of the plan that has not ended and stores the only copy of some data.
    fn unsafe_before(&self, until: u64, ledger: &Ledger) -> Option<u64> {
        let before = self.operations.iter().take(until.saturating_sub(self.base) as usize);
        let mut running = (self.base..).zip(before).filter(|(_, tracked)| tracked.state != State::Ended);
        let early = running.find(|(_, Tracked { noted, .. })| {
            self.lists.stored.of(noted.stored).any(|piece| {
                piece.lsn < self.flushed && self.would_be_lost(piece.lsn, (noted.number, piece.content), ledger)
            })
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

    fn source(&self, source: Source) -> String {
        match source {
            Source::Read(order) => self.progress(order),
            Source::Link(at) => format!("the host link brings it at {at} ns"),
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

    /// The newest program of `lsn` that has not been dropped.
    fn newest_of(&self, lsn: u32) -> Option<u64> {
        let stores = |one: &Tracked| self.lists.stored.of(one.noted.stored).any(|piece| piece.lsn == lsn);
        self.operations.iter().rposition(stores).map(|at| self.base + at as u64)
    }

    /// The progress of the newest program of `lsn`, for messages.
    fn newest_program(&self, lsn: u32) -> String {
        let progress = self.newest_of(lsn).map_or("no program of it is under way".into(), |order| self.progress(order));
        format!("of logical subpage {lsn}, {progress}")
    }

    #[cold]
    fn accuse(&mut self, what: String) {
        if self.violation.is_none() {
            let mut text = format!("the translation layer broke the order of time: {what}");
            let changes = (self.changes.saturating_sub(SHOWN)..self.changes).filter_map(|at| self.recent[at % SHOWN]);
            for (index, Tracked { noted, state, at }) in changes.enumerate() {
                let separator = if index == 0 { "; before it: " } else { ", " };
                let what = match state {
                    State::Runs => "starts",
                    State::Arrived => "brings its data",
                    _ => "ends",
                };
                let _ = write!(text, "{separator}{} {what} at {at} ns", describe(&noted));
            }
            self.violation = Some(text);
        }
    }
}

fn describe(noted: &Noted) -> String {
    let &Noted { number, block, page, .. } = noted;
    let cause = CAUSE_NAMES[noted.cause as usize];
    match noted.kind {
        OperationKind::Read => format!("read {number} ({cause}) of block {block} page {page}"),
        OperationKind::Program => format!("program {number} ({cause}) of block {block} page {page}"),
        OperationKind::Erase => format!("erase {number} ({cause}) of block {block}"),
    }
}
