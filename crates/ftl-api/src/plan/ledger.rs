//! The ledger of a checked run: records against which `sim` verifies times. They name the source of each program's
//! data, the data that each operation stores or destroys, and the promise of each request.
//!
//! Each piece of data carries an *origin*. The origin of a load is the read of that subpage in the same call: the
//! latest before the load, else the first after. The origin of a piece of a host write is its arrival over the host
//! link, joined with the origin of the data it is merged with. Content has a *number* that grows with the time at which
//! host or layer made it; copies keep the number. The layer's own bytes carry no origin: a layer that finds places in
//! them must report that ([`found`](super::CodedIo::found)), and must read them before it programs them anew. Ignored:
//! data that waits in memory while a quarter of a million other origins are made (assumed to have arrived).

mod cells;
mod memory;

use super::operations::{OperationKind, Plan};
use super::{Cause, Gate, Operation, Program, Read};
use cells::Cells;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Nand, SubpageMask, TORN, first_subpages};
use palimpsest_flash::units::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of origins remembered.
const WINDOW: usize = 1 << 18;

/// An event that data waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The end of the read with this number in the plan.
    Read(u64),
    /// The arrival over the host link, at this time.
    Link(Nanos),
}

/// A logical subpage with its stored content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Logical subpage.
    pub lsn: u32,
    /// Content number.
    pub content: u64,
}

/// The effect of an operation on data.
#[derive(Debug, Clone)]
pub enum Fact {
    /// A read of data.
    Read {
        /// The read that located the data, in a map kept in flash.
        located: Option<Source>,
        /// The programs that stored the data.
        stored: Vec<u64>,
    },
    /// A program.
    Program {
        /// Events that the data waits for.
        sources: Vec<Source>,
        /// Logical subpages that the program stores; empty if the program fails.
        stored: Vec<Stored>,
        /// Logical subpages that the program destroys, as an erase does: in its page, or in the whole block if the
        /// program begins a pass.
        held: Vec<(u32, u64)>,
        /// Operations that must have started before: the last change of the block, and reads of the changed content.
        behind: Vec<u64>,
        /// The barrier that the program must follow if it stores records of a file system or destroys data.
        barrier: Barrier,
    },
    /// An erase.
    Erase {
        /// Logical subpages in the block that were not forgotten, each with the number of its program.
        held: Vec<(u32, u64)>,
        /// Operations that must have started before: the last change of the block, and reads of the block.
        behind: Vec<u64>,
        /// The barrier that the erase must follow.
        barrier: Barrier,
    },
}

/// A barrier of a file system: later operations must wait for everything written before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Barrier {
    /// Closes when everything before the barrier is programmed.
    pub gate: Gate,
    /// Number in the plan of the first operation behind the barrier.
    pub until: u64,
}

/// The content of the cells before a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Erased cells, or word lines that the present pass had not reached.
    Erased,
    /// Cells with data that the program's data derives from.
    Data,
    /// All data of the block, because the program begins a pass.
    Pass,
}

/// The result of a program.
pub(super) struct Programmed {
    pub over: Over,
    /// True if the program succeeded.
    pub done: bool,
}

/// An operation of the plan with its effect on data.
#[derive(Debug, Clone)]
pub struct Noted {
    /// The operation, before any mutation.
    pub operation: Operation,
    /// Number of the flash operation.
    pub number: u64,
    /// The effect on data.
    pub fact: Fact,
}

/// The promise of a completed request.
#[derive(Debug, Clone, Default)]
pub struct Promise {
    /// Events that the delivered or written data waits for, merged data included.
    pub sources: Vec<Source>,
    /// Logical subpages of a write that must be durable when the request completes.
    pub stored: Vec<Stored>,
}

/// All records of one call.
#[derive(Debug, Default)]
pub struct Call {
    /// Operations, in the order of the plan.
    pub noted: Vec<Noted>,
    /// Promise of the request.
    pub promise: Promise,
    /// A contradiction within the call.
    pub violation: Option<String>,
}

/// A deliberate planning error, for tests of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mutation {
    /// Kind of the operations to mutate.
    pub kind: OperationKind,
    /// Cause of the operations to mutate.
    pub cause: super::Cause,
    /// True: drops the gate that they follow. False: drops their signal, so that the signalled gate may close too
    /// early.
    pub drops_after: bool,
}

impl Mutation {
    fn fits(self, operation: &Operation) -> bool {
        self.kind == operation.kind && self.cause == operation.cause
    }
}

#[derive(Debug, Clone, Default)]
enum Waits {
    #[default]
    Nothing,
    One(Source),
    /// A load of a physical subpage that is not read yet.
    Unread,
    Many(Box<[Source]>),
    /// Two other origins of the same call.
    Both(u32, u32),
}

#[derive(Debug, Clone, Default)]
struct Origin {
    waits: Waits,
    content: u64,
}

/// The ledger of a checked run.
pub struct Ledger {
    origins: Vec<Origin>,
    /// Number of origins made, and of those resolved in earlier calls.
    made: u32,
    flat: u32,
    /// Number of the next operation of the plan.
    next: u64,
    contents: u64,
    /// Content of each physical subpage.
    content_at: Vec<u64>,
    /// For each logical subpage, the numbers of flash operations and contents when it was last forgotten.
    forgotten: BTreeMap<u32, (u64, u64)>,
    /// The last read of each whole page since its last program.
    whole_reads: FxHashMap<u32, u64>,
    noted: Vec<Noted>,
    /// Origins of the data of programs of this call, by index in `noted`.
    unresolved: Vec<(usize, Vec<u32>)>,
    /// Reads of this call, by physical subpage.
    reads: FxHashMap<u32, u64>,
    hits: FxHashSet<u32>,
    /// Physical subpages rebuilt in this call, with origins.
    rebuilt: FxHashMap<u32, u32>,
    cells: Cells,
    /// Reads of the layer's own bytes in this call, by logical number and cause.
    own_reads: FxHashMap<(u32, Cause), u64>,
    /// The read that located a logical subpage, until that read has ended.
    places: FxHashMap<u32, u64>,
    /// Loads of this call without a read yet.
    unread: FxHashMap<u32, u32>,
    /// Pieces that the host wrote in this call, with their origins.
    pieces: Vec<(Stored, u32)>,
    /// Contents that the layer kept in memory or programmed in this call.
    kept: FxHashSet<u64>,
    violation: Option<String>,
    /// Operations of the plan before this number have ended.
    ended_before: u64,
    /// Operations of the plan from this number on are behind the last barrier.
    barrier: u64,
    held: Vec<(u32, u64)>,
    /// False until the run is timed; before, only forgotten subpages are recorded.
    active: bool,
    mutation: Option<Mutation>,
    /// True while the controller reads a page to copy it, because the layer never sees that data.
    pub(super) copying: bool,
    plantable: FxHashMap<Mutation, u64>,
}

impl Ledger {
    /// A ledger for `nand`, inactive until [`Self::restart`].
    pub fn new(nand: &Nand, mutation: Option<Mutation>) -> Self {
        Ledger {
            origins: vec![Origin::default()],
            made: 0,
            flat: 0,
            next: 0,
            contents: 0,
            content_at: vec![0; nand.all_pages() * nand.geometry().subpages_per_page as usize],
            forgotten: BTreeMap::new(),
            whole_reads: FxHashMap::default(),
            noted: Vec::new(),
            unresolved: Vec::new(),
            reads: FxHashMap::default(),
            hits: FxHashSet::default(),
            rebuilt: FxHashMap::default(),
            cells: Cells::new(nand.all_pages() * nand.geometry().subpages_per_page as usize),
            own_reads: FxHashMap::default(),
            places: FxHashMap::default(),
            unread: FxHashMap::default(),
            pieces: Vec::new(),
            kept: FxHashSet::default(),
            violation: None,
            ended_before: 0,
            barrier: 0,
            held: Vec::new(),
            active: false,
            mutation,
            copying: false,
            plantable: FxHashMap::default(),
        }
    }

    /// Mutations that some operation of the plan had a gate for, with the number of those operations.
    pub fn plantable(&self) -> BTreeMap<Mutation, u64> {
        self.plantable.iter().map(|(&mutation, &count)| (mutation, count)).collect()
    }

    /// Declares that operations of the plan before number `order` have ended.
    pub fn ended_before(&mut self, order: u64) {
        self.ended_before = order;
    }

    fn make(&mut self, waits: Waits, content: u64) -> u32 {
        self.made = self.made.checked_add(1).unwrap_or(1);
        let (place, origin) = (self.made as usize % WINDOW, Origin { waits, content });
        match self.origins.get_mut(place) {
            Some(old) => *old = origin,
            None => self.origins.push(origin),
        }
        self.made
    }

    fn origin(&self, id: u32) -> Option<&Origin> {
        let known = id != 0 && (self.made.wrapping_sub(id) as usize) < WINDOW;
        known.then(|| &self.origins[id as usize % WINDOW])
    }

    /// Content number of `origin`; a new number for data without one.
    fn content_of(&mut self, origin: u32) -> u64 {
        if let Some(origin) = self.origin(origin) {
            return origin.content;
        }
        self.contents += 1;
        self.contents
    }

    /// Attaches an origin to `data`, loaded from physical subpage `psn`.
    pub(super) fn load(&mut self, psn: u32, data: Data) -> Data {
        if !self.active {
            return data;
        }
        let content = self.content_at[psn as usize];
        let origin = match self.reads.get(&psn) {
            Some(&order) => self.make(Waits::One(Source::Read(order)), content),
            None if self.rebuilt.contains_key(&psn) => self.rebuilt[&psn],
            None if self.hits.contains(&psn) => self.make(Waits::Both(self.cells.origin(psn), 0), content),
            None => match self.unread.get(&psn) {
                Some(&origin) => origin,
                None => {
                    let origin = self.make(Waits::Unread, content);
                    self.unread.insert(psn, origin);
                    origin
                }
            },
        };
        Data { origin, ..data }
    }

    /// Attaches an origin to `data`, which the host wrote to `lsn` over `old`; the link transfers it until `at`.
    pub(super) fn written(&mut self, lsn: u32, old: Data, data: Data, at: Nanos) -> Data {
        if !self.active {
            return data;
        }
        self.contents += 1;
        let content = self.contents;
        let arrival = self.make(Waits::One(Source::Link(at)), content);
        let origin = if old.origin == 0 { arrival } else { self.make(Waits::Both(arrival, old.origin), content) };
        // A layer that could not store a piece may compute the content again.
        self.pieces.retain(|(piece, _)| piece.lsn != lsn);
        self.pieces.push((Stored { lsn, content }, origin));
        Data { origin, ..data }
    }

    /// Attaches an origin to `data`, computed from `from`. The content number is that of the first, of which `data` is
    /// another form.
    pub(super) fn derived(&mut self, data: Data, from: &[Data]) -> Data {
        let Some(first) = from.first() else { return data };
        let mut origin = first.origin;
        let content = self.content_of(origin);
        for other in from[1..].iter().filter(|other| other.origin != 0) {
            origin = if origin == 0 { other.origin } else { self.make(Waits::Both(origin, other.origin), content) };
        }
        Data { origin, ..data }
    }

    /// Records that the layer keeps `data` in memory.
    pub(super) fn keep(&mut self, data: Data) {
        if let Some(content) = self.origin(data.origin).map(|origin| origin.content) {
            self.kept.insert(content);
        }
    }

    /// Collects the data in `pages`, which the next operation erases or programs over.
    pub(super) fn before_loss(&mut self, nand: &Nand, pages: Range<u32>) {
        if !self.active {
            return;
        }
        let width = nand.geometry().subpages_per_page;
        self.held.clear();
        for ppn in pages {
            for psn in ppn * width..(ppn + 1) * width {
                let (lsn, written) = (nand.logical(psn), nand.sequence(psn));
                // Collection may move forgotten data while the trim itself is served.
                let is_gone =
                    |&(until, content): &(u64, u64)| written <= until || self.content_at[psn as usize] <= content;
                if lsn < TORN && !self.forgotten.get(&lsn).is_some_and(is_gone) {
                    self.held.push((lsn, written));
                }
            }
        }
    }

    /// True if plans are mutated, so that gates may close too early.
    pub(super) fn mutates(&self) -> bool {
        self.mutation.is_some()
    }

    /// Records `operation` under flash operation `number`. Returns the operation for the plan, mutated if a mutation
    /// fits.
    fn note(&mut self, operation: Operation, number: u64, fact: Fact) -> Operation {
        self.next += 1;
        self.noted.push(Noted { operation, number, fact });
        let Operation { kind, cause, after, signal, .. } = operation;
        for (drops_after, gate) in [(true, after), (false, signal)] {
            if !gate.is_none() {
                *self.plantable.entry(Mutation { kind, cause, drops_after }).or_default() += 1;
            }
        }
        let Some(mutation) = self.mutation.filter(|it| it.fits(&operation)) else { return operation };
        match mutation.drops_after {
            true => Operation { after: Gate::NONE, ..operation },
            false => Operation { signal: Gate::NONE, ..operation },
        }
    }

    pub(super) fn read(&mut self, operation: Operation, nand: &Nand, ppn: u32, subpages: SubpageMask) -> Operation {
        let (order, width) = (self.next, nand.geometry().subpages_per_page);
        let psns = || (0..width).filter(|index| subpages >> index & 1 == 1).map(|index| ppn * width + index);
        if !self.copying && subpages == first_subpages(width) && nand.part().nop > 1 {
            self.whole_reads.insert(ppn, order);
        }
        for psn in psns().filter(|_| !self.copying) {
            self.reads.insert(psn, order);
            self.hits.remove(&psn);
            self.rebuilt.remove(&psn);
            if nand.own(psn).is_some() {
                self.own_reads.insert((nand.logical(psn), operation.cause), order);
            }
            if let Some(origin) = self.unread.remove(&psn) {
                self.origins[origin as usize % WINDOW].waits = Waits::One(Source::Read(order));
            }
        }
        let has_place = matches!(operation.cause, Cause::Host | Cause::Rmw | Cause::ReadAhead);
        let located = if has_place { self.place_of(nand.logical_of(ppn)) } else { None };
        let stored = self.cells.read(operation.block, psns(), order, self.ended_before);
        self.note(operation, nand.operations(), Fact::Read { located, stored })
    }

    pub(super) fn program(
        &mut self,
        operation: Operation,
        nand: &Nand,
        program: &Program<'_>,
        Programmed { over, done }: Programmed,
        plan: &mut Plan,
    ) -> Operation {
        let again = over == Over::Data;
        let (width, mut sources) = (nand.geometry().subpages_per_page, Vec::new());
        let (mut stored, mut origins) = (Vec::new(), Vec::new());
        let mut records = false;
        let first = program.ppn as usize * width as usize;
        // Data programmed before the run was timed may also have been read before.
        let timed = self.content_at[first..first + width as usize].iter().any(|&content| content > 0);
        for index in (0..width as usize).filter(|index| program.written >> index & 1 == 1) {
            let (lsn, data) = (program.logical[index], program.data[index]);
            if data.origin != 0 {
                origins.push(data.origin);
            }
            // Zeros of a subpage not written since a trim may be lost.
            let is_blank = data.origin == 0 && data == Data::ZERO && program.own.is_empty();
            let content = if is_blank { 0 } else { self.content_of(data.origin) };
            self.kept.insert(content);
            self.content_at[first + index] = content;
            let psn = (first + index) as u32;
            self.cells.program(psn, data.origin, self.next);
            self.overwritten(psn);
            records |= lsn < TORN && data.origin == 0 && ![Data::ZERO, Data::LOST].contains(&data);
            if lsn < TORN && done {
                stored.push(Stored { lsn, content });
                self.places.remove(&lsn);
            }
        }
        match self.whole_reads.remove(&program.ppn) {
            Some(order) if again => sources.push(Source::Read(order)),
            None if again && timed => {
                self.accuse(format!("page {} is programmed again and was not read before", program.ppn))
            }
            _ => {}
        }
        if !program.own.is_empty() {
            // The layer must have read the entries that remain in the new bytes.
            let before = program.logical.iter().filter_map(|&lsn| self.own_reads.get(&(lsn, program.cause)));
            if let Some(&order) = before.max() {
                sources.push(Source::Read(order));
                let origin = self.make(Waits::One(Source::Read(order)), 0);
                (first as u32..first as u32 + width).for_each(|psn| self.cells.program(psn, origin, self.next));
            }
        }
        self.unresolved.push((self.noted.len(), origins));
        let destroys = over != Over::Erased;
        let barrier = if records || destroys { self.barrier_of(plan) } else { Barrier::default() };
        let behind = self.behind(operation.block, destroys);
        let held = if destroys { std::mem::take(&mut self.held) } else { Vec::new() };
        let planned = self.note(operation, nand.operations(), Fact::Program { sources, stored, held, behind, barrier });
        self.mutate_follows(operation, plan);
        planned
    }

    pub(super) fn erase(&mut self, operation: Operation, nand: &Nand, plan: &mut Plan) -> Operation {
        let (held, behind) = (std::mem::take(&mut self.held), self.behind(operation.block, true));
        let barrier = self.barrier_of(plan);
        let planned = self.note(operation, nand.operations(), Fact::Erase { held, behind, barrier });
        self.mutate_follows(operation, plan);
        planned
    }

    /// A mutation that drops the gate of `operation` drops the programs that the operation follows, too.
    fn mutate_follows(&mut self, operation: Operation, plan: &mut Plan) {
        let index = plan.operations.len() as u32;
        if plan.follows.last().is_some_and(|&(erase, _)| erase == index) {
            let Operation { kind, cause, .. } = operation;
            *self.plantable.entry(Mutation { kind, cause, drops_after: true }).or_default() += 1;
        }
        if self.mutation.is_some_and(|it| it.drops_after && it.fits(&operation)) {
            plan.follows.retain(|&(erase, _)| erase != index);
        }
    }

    fn accuse(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Appends the sources of `origin` to `sources`. Returns false for a load without a read.
    fn resolve(&self, origin: u32, sources: &mut Vec<Source>) -> bool {
        match self.origin(origin).map(|origin| &origin.waits) {
            None | Some(Waits::Nothing) => true,
            Some(Waits::One(source)) => {
                sources.push(*source);
                true
            }
            Some(Waits::Many(all)) => {
                sources.extend_from_slice(all);
                true
            }
            Some(&Waits::Both(one, other)) => self.resolve(one, sources) & self.resolve(other, sources),
            Some(Waits::Unread) => false,
        }
    }

    /// The sources of `origins` that have not ended or arrived at `now`.
    fn sources_of(&mut self, origins: &[u32], now: Nanos) -> Vec<Source> {
        let mut sources = Vec::new();
        let read = origins.iter().fold(true, |read, &origin| read & self.resolve(origin, &mut sources));
        if !read {
            self.accuse("data is used that was never read".into());
        }
        let ended = self.ended_before;
        sources.retain(|source| match *source {
            Source::Read(order) => order >= ended,
            Source::Link(at) => at > now,
        });
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// Ends the call at `now` and returns all records. `delivered` is the data that a read delivered to the host. If
    /// `buffered`, the layer must hold the data that the host wrote.
    pub fn close(&mut self, now: Nanos, delivered: &[(u32, Data)], buffered: bool) -> Call {
        // Resolves joins of this call, so that later calls need not follow chains.
        let made = self.made;
        let first = std::mem::replace(&mut self.flat, made) + 1;
        for id in first.max(made.saturating_sub(WINDOW as u32 - 1))..=made {
            if let Waits::Both(..) = self.origins[id as usize % WINDOW].waits {
                let sources = self.sources_of(&[id], now);
                self.origins[id as usize % WINDOW].waits = match sources.as_slice() {
                    [] => Waits::Nothing,
                    [one] => Waits::One(*one),
                    _ => Waits::Many(sources.into()),
                };
            }
        }
        for (index, origins) in std::mem::take(&mut self.unresolved) {
            let more = self.sources_of(&origins, now);
            if let Fact::Program { sources, .. } = &mut self.noted[index].fact {
                sources.extend(more);
            }
        }
        let pieces = std::mem::take(&mut self.pieces);
        let mut origins: Vec<u32> = delivered.iter().map(|(_, data)| data.origin).collect();
        origins.extend(pieces.iter().map(|&(_, origin)| origin));
        let sources = self.sources_of(&origins, now);
        let lost = pieces.iter().find(|(piece, _)| buffered && !self.kept.contains(&piece.content));
        if let Some(&(Stored { lsn, .. }, _)) = lost {
            self.accuse(format!("logical subpage {lsn} is written, but neither kept in memory nor programmed"));
        }
        self.reads.clear();
        self.hits.clear();
        self.rebuilt.clear();
        self.own_reads.clear();
        self.unread.clear();
        self.kept.clear();
        let stored = pieces.into_iter().map(|(piece, _)| piece).collect();
        Call {
            noted: std::mem::take(&mut self.noted),
            promise: Promise { sources, stored },
            violation: self.violation.take(),
        }
    }

    /// Stops recording until [`Self::restart`], except for forgotten subpages.
    pub fn pause(&mut self) {
        self.active = false;
    }

    /// Starts recording, and discards the operations that the present call has planned. The next operation of the plan
    /// has number `next`.
    pub fn restart(&mut self, next: u64) {
        self.noted.clear();
        self.unresolved.clear();
        self.reads.clear();
        self.hits.clear();
        self.rebuilt.clear();
        self.cells.clear();
        self.own_reads.clear();
        self.unread.clear();
        self.pieces.clear();
        self.kept.clear();
        self.whole_reads.clear();
        self.places.clear();
        self.content_at.fill(0);
        self.violation = None;
        (self.next, self.ended_before, self.barrier, self.active) = (next, next, next, true);
    }
}
