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
mod marks;
mod memory;
mod origins;
mod records;

use super::operations::{OperationKind, Plan};
use super::{CAUSES, Cause, Gate, Operation, Program, Read};
use cells::Cells;
use marks::{Marks, Seen};
use origins::{Origin, WINDOW, Waits, Wanted};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Nand, SubpageMask, TORN, first_subpages};
use palimpsest_flash::units::Nanos;
pub use records::{Barrier, Call, Mutation, Named, Noted, Promise, Source, Stored, Turn};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of kinds of operations.
const KINDS: usize = 3;

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

/// The bits of `mask`.
#[inline]
fn ones(mut mask: SubpageMask) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// The ledger of a checked run.
pub struct Ledger {
    origins: Vec<Origin>,
    /// Number of origins made.
    made: u32,
    /// Origins of this call that wait for two others.
    joins: Vec<u32>,
    /// Number of the next operation of the plan.
    next: u64,
    contents: u64,
    /// The value of `contents` at the begin of the call.
    contents_before: u64,
    /// For each logical subpage, the numbers of flash operations and contents when it was last forgotten.
    forgotten: BTreeMap<u32, (u64, u64)>,
    /// True if programs over data are expected: the part orders low and high pages, or there was one.
    reprograms: bool,
    /// The last read of each whole page since its last program, if [`Self::reprograms`].
    whole_reads: FxHashMap<u32, u64>,
    call: Call,
    /// Numbers of the entries that the calls before made in `sources`, `stored` and `held`.
    before: [u32; 3],
    /// Events that the operations of this call wait for, by index in the operations of the call, in order.
    unresolved: Vec<(u32, Wanted)>,
    /// Memory of [`Self::resolve_joins`].
    resolved: Vec<Source>,
    marks: Marks,
    cells: Cells,
    /// Reads of the layer's own bytes in this call, by logical number and cause.
    own_reads: FxHashMap<(u32, Cause), u64>,
    /// The read that located a logical subpage, until that read has ended.
    places: FxHashMap<u32, u64>,
    /// Pieces that the host wrote in this call, with their origins.
    pieces: Vec<(Stored, u32)>,
    /// The logical subpages of `pieces` are below this.
    pieces_end: u32,
    /// By content of this call from the first on: true if the layer kept it in memory or programmed it.
    kept: Vec<bool>,
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
    /// Number of operations by kind, cause, and gate of a [`Mutation`].
    plantable: [[[u64; 2]; CAUSES]; KINDS],
}

impl Ledger {
    /// A ledger for `nand`, inactive until [`Self::restart`].
    pub fn new(nand: &Nand, mutation: Option<Mutation>) -> Self {
        Ledger {
            origins: vec![Origin::default()],
            made: 0,
            joins: Vec::new(),
            next: 0,
            contents: 0,
            contents_before: 0,
            forgotten: BTreeMap::new(),
            reprograms: nand.part().order.pairs(),
            whole_reads: FxHashMap::default(),
            call: Call::default(),
            before: [0; 3],
            unresolved: Vec::new(),
            resolved: Vec::new(),
            marks: Marks::new(),
            cells: Cells::new(nand.all_pages() * nand.geometry().subpages_per_page as usize),
            own_reads: FxHashMap::default(),
            places: FxHashMap::default(),
            pieces: Vec::new(),
            pieces_end: 0,
            kept: Vec::new(),
            violation: None,
            ended_before: 0,
            barrier: 0,
            held: Vec::new(),
            active: false,
            mutation,
            copying: false,
            plantable: [[[0; 2]; CAUSES]; KINDS],
        }
    }

    /// Mutations that some operation of the plan had a gate for, with the number of those operations.
    pub fn plantable(&self) -> BTreeMap<Mutation, u64> {
        let mut all = BTreeMap::new();
        for (kind, causes) in OperationKind::ALL.into_iter().zip(&self.plantable) {
            for (cause, counts) in Cause::ALL.into_iter().zip(causes) {
                for (drops_after, &count) in [true, false].into_iter().zip(counts).filter(|(_, count)| **count > 0) {
                    all.insert(Mutation { kind, cause, drops_after }, count);
                }
            }
        }
        all
    }

    /// Declares that operations of the plan before number `order` have ended.
    pub fn ended_before(&mut self, order: u64) {
        self.ended_before = order;
    }

    /// Prefetches the records of physical subpage `psn`.
    #[inline]
    pub fn prefetch(&self, psn: u32) {
        self.cells.prefetch(psn);
    }

    /// Attaches an origin to `data`, loaded from physical subpage `psn`.
    pub(super) fn load(&mut self, psn: u32, data: Data) -> Data {
        if !self.active {
            return data;
        }
        let origin = match self.marks.seen(psn) {
            Seen::Read(order) => self.make(Waits::One(Source::Read(order)), self.cells.content(psn)),
            Seen::Rebuilt(origin) => origin,
            Seen::Hit => self.make(Waits::Both(self.cells.origin(psn), 0), self.cells.content(psn)),
            Seen::No => match self.marks.at(psn).unread {
                0 => {
                    let origin = self.make(Waits::Unread, self.cells.content(psn));
                    self.marks.at(psn).unread = origin;
                    origin
                }
                origin => origin,
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
        if lsn < self.pieces_end {
            self.pieces.retain(|(piece, _)| piece.lsn != lsn);
        }
        self.pieces_end = self.pieces_end.max(lsn + 1);
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
            self.keep_content(content);
        }
    }

    /// Records that the layer kept `content` if the host wrote the content in this call.
    #[inline]
    fn keep_content(&mut self, content: u64) {
        if let Some(index) = content.checked_sub(self.contents_before + 1) {
            let index = index as usize;
            if self.kept.len() <= index {
                self.kept.resize(index + 1, false);
            }
            self.kept[index] = true;
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
                let is_gone = |&(until, content): &(u64, u64)| written <= until || self.cells.content(psn) <= content;
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

    /// Records `operation` as `noted`.
    #[inline]
    fn record(&mut self, operation: &Operation, noted: Noted) {
        self.next += 1;
        self.call.noted.push(noted);
        let gates = &mut self.plantable[operation.kind as usize][operation.cause as usize];
        gates[0] += u64::from(!operation.after.is_none());
        gates[1] += u64::from(!operation.signal.is_none());
    }

    /// As [`Self::record`]. Returns the operation for the plan, mutated if a mutation fits.
    #[inline]
    fn note(&mut self, operation: &Operation, noted: Noted) -> Operation {
        self.record(operation, noted);
        let Some(mutation) = self.mutation.filter(|it| it.fits(operation)) else { return *operation };
        match mutation.drops_after {
            true => Operation { after: Gate::NONE, ..*operation },
            false => Operation { signal: Gate::NONE, ..*operation },
        }
    }

    /// Records that `read` and `program`, the next operations of the plan, copy page `from` to page `to`, which is
    /// erased. The read is flash operation `number`. As [`Self::read`], [`Self::load`] and [`Self::program`] of a page
    /// that the layer itself does not see.
    pub(super) fn copy(&mut self, nand: &Nand, read: &Operation, program: &Operation, pages: [u32; 2], number: u64) {
        let width = nand.geometry().subpages_per_page;
        let order = self.next;
        let index = self.call.noted.len() as u32;
        let [from, to] = pages.map(|ppn| ppn * width);
        let mut of_read = self.noted(read, number);
        let mut of_program = self.noted(program, number + 1);
        of_read.turn = self.cells.read(read.block);
        of_program.turn = self.cells.change(program.block, false);
        let mut last = 0;
        for place in 0..width {
            let (content, by) = self.cells.copied(from + place);
            if by >= self.ended_before.max(1) && by != last {
                self.unresolved.push((index, Wanted::Source(Source::Program(by))));
                last = by;
            }
            let origin = self.make(Waits::One(Source::Read(order)), content);
            self.keep_content(content);
            self.cells.program(to + place, content, order + 1, origin);
            let lsn = nand.logical(from + place);
            if lsn < TORN {
                self.call.stored.push(Stored { lsn, content });
                if !self.places.is_empty() {
                    self.places.remove(&lsn);
                }
            }
        }
        self.unresolved.push((index + 1, Wanted::Source(Source::Read(order))));
        self.record(read, of_read);
        self.record(program, of_program);
    }

    pub(super) fn read(&mut self, operation: &Operation, nand: &Nand, ppn: u32, subpages: SubpageMask) -> Operation {
        let (order, width) = (self.next, nand.geometry().subpages_per_page);
        let psns = || ones(subpages).map(|index| ppn * width + index);
        if !self.copying {
            if self.reprograms && subpages == first_subpages(width) {
                self.whole_reads.insert(ppn, order);
            }
            for psn in psns() {
                let mark = self.marks.at(psn);
                mark.seen = Seen::Read(order);
                let unread = std::mem::take(&mut mark.unread);
                if unread != 0 {
                    self.origins[unread as usize % WINDOW].waits = Waits::One(Source::Read(order));
                }
                if nand.has_own() && nand.own(psn).is_some() {
                    self.own_reads.insert((nand.logical(psn), operation.cause), order);
                }
            }
        }
        let index = self.call.noted.len() as u32;
        let has_place = matches!(operation.cause, Cause::Host | Cause::Rmw | Cause::ReadAhead);
        if has_place && !self.places.is_empty() {
            let located = self.place_of(nand.logical_of(ppn));
            self.unresolved.extend(located.map(|source| (index, Wanted::Source(source))));
        }
        let mut last = 0;
        for by in psns().map(|psn| self.cells.program_of(psn)) {
            if by >= self.ended_before.max(1) && by != last {
                self.unresolved.push((index, Wanted::Source(Source::Program(by))));
                last = by;
            }
        }
        let turn = self.cells.read(operation.block);
        self.note(operation, Noted { turn, ..self.noted(operation, nand.operations()) })
    }

    pub(super) fn program(
        &mut self,
        operation: &Operation,
        nand: &Nand,
        program: &Program<'_>,
        Programmed { over, done }: Programmed,
        plan: &mut Plan,
    ) -> Operation {
        let index = self.call.noted.len() as u32;
        let width = nand.geometry().subpages_per_page;
        let psns = program.ppn * width..(program.ppn + 1) * width;
        if over == Over::Data {
            self.expect_whole_read(program.ppn, psns.clone(), index);
        }
        if !self.whole_reads.is_empty() {
            self.whole_reads.remove(&program.ppn);
        }
        let mut noted = self.noted(operation, nand.operations());
        let mut records = false;
        for place in ones(program.written) {
            let (psn, lsn, data) = (psns.start + place, program.logical[place as usize], program.data[place as usize]);
            if data.origin != 0 {
                self.unresolved.push((index, Wanted::Origin(data.origin)));
            }
            // Zeros of a subpage not written since a trim may be lost.
            let is_blank = data.origin == 0 && data == Data::ZERO && program.own.is_empty();
            let content = if is_blank { 0 } else { self.content_of(data.origin) };
            self.keep_content(content);
            self.cells.program(psn, content, self.next, data.origin);
            self.marks.forget(psn);
            records |= lsn < TORN && data.origin == 0 && ![Data::ZERO, Data::LOST].contains(&data);
            if lsn < TORN && done {
                self.call.stored.push(Stored { lsn, content });
                self.places.remove(&lsn);
            }
        }
        if !program.own.is_empty() {
            self.follow_own_reads(program, psns, index);
        }
        noted.destroys = over != Over::Erased;
        if records || noted.destroys {
            noted.barred = self.bar(plan);
        }
        noted.turn = self.cells.change(operation.block, noted.destroys);
        if noted.destroys {
            self.call.held.append(&mut self.held);
        }
        let planned = self.note(operation, noted);
        self.mutate_follows(operation, plan);
        planned
    }

    /// `operation`, the next one and flash operation `number`, with entries from the ends of the lists on.
    #[inline]
    fn noted(&self, operation: &Operation, number: u64) -> Noted {
        let &Operation { block, page, kind, cause, .. } = operation;
        let [sources, stored, held] = self.before;
        Noted {
            named: Named { number, block, page, kind, cause },
            sources,
            stored: stored.wrapping_add(self.call.stored.len() as u32),
            held: held.wrapping_add(self.call.held.len() as u32),
            ..Noted::NOTHING
        }
    }

    /// Checks that page `ppn` was read as a whole before operation `index` of the call programs the page again.
    #[cold]
    fn expect_whole_read(&mut self, ppn: u32, mut psns: Range<u32>, index: u32) {
        // Data programmed before the run was timed may also have been read before. So may data before the first program
        // over data.
        let reprograms = std::mem::replace(&mut self.reprograms, true);
        let timed = reprograms && psns.any(|psn| self.cells.content(psn) > 0);
        match self.whole_reads.get(&ppn) {
            Some(&order) => self.unresolved.push((index, Wanted::Source(Source::Read(order)))),
            None if timed => self.accuse(format!("page {ppn} is programmed again and was not read before")),
            None => {}
        }
    }

    /// Makes `program`, operation `index` of the call with bytes of the layer's own in `psns`, wait for the reads of
    /// the entries that remain in the new bytes.
    #[cold]
    fn follow_own_reads(&mut self, program: &Program<'_>, psns: Range<u32>, index: u32) {
        let before = program.logical.iter().filter_map(|&lsn| self.own_reads.get(&(lsn, program.cause)));
        if let Some(&order) = before.max() {
            self.unresolved.push((index, Wanted::Source(Source::Read(order))));
            let origin = self.make(Waits::One(Source::Read(order)), 0);
            psns.for_each(|psn| self.cells.program(psn, self.cells.content(psn), self.next, origin));
        }
    }

    pub(super) fn erase(&mut self, operation: &Operation, nand: &Nand, plan: &mut Plan) -> Operation {
        let turn = self.cells.change(operation.block, true);
        let barred = self.bar(plan);
        let noted = Noted { turn, destroys: true, barred, ..self.noted(operation, nand.operations()) };
        self.call.held.append(&mut self.held);
        let planned = self.note(operation, noted);
        self.mutate_follows(operation, plan);
        planned
    }

    /// A mutation that drops the gate of `operation` drops the programs that the operation follows, too.
    fn mutate_follows(&mut self, operation: &Operation, plan: &mut Plan) {
        let index = plan.operations.len() as u32;
        if plan.follows.last().is_some_and(|&(erase, _)| erase == index) {
            self.plantable[operation.kind as usize][operation.cause as usize][0] += 1;
        }
        if self.mutation.is_some_and(|it| it.drops_after && it.fits(operation)) {
            plan.follows.retain(|&(erase, _)| erase != index);
        }
    }

    fn accuse(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Ends the call at `now`; [`Self::call`] then has its records, which the caller must take before the next call.
    /// `delivered` is the data that a read delivered to the host. If `buffered`, the layer must hold the data that the
    /// host wrote.
    pub fn close(&mut self, now: Nanos, delivered: &[(u32, Data)], buffered: bool) {
        if !self.joins.is_empty() {
            self.resolve_joins(now);
        }
        if !self.call.noted.is_empty() {
            self.name_sources(now);
        }
        let mut sources = std::mem::take(&mut self.call.promise.sources);
        let pieces = std::mem::take(&mut self.pieces);
        sources.clear();
        let origins = delivered.iter().map(|(_, data)| data.origin).chain(pieces.iter().map(|&(_, origin)| origin));
        let only = if delivered.len() + pieces.len() == 1 { origins.clone().next() } else { None };
        if !only.is_some_and(|origin| self.gather_one(Wanted::Origin(origin), now, &mut sources)) {
            self.gather(origins.map(Wanted::Origin), now, &mut sources);
        }
        let is_kept = |content: u64| {
            let index = content.checked_sub(self.contents_before + 1);
            index.is_some_and(|index| self.kept.get(index as usize) == Some(&true))
        };
        let lost = pieces.iter().find(|(piece, _)| buffered && !is_kept(piece.content));
        if let Some(&(Stored { lsn, .. }, _)) = lost {
            self.accuse(format!("logical subpage {lsn} is written, but neither kept in memory nor programmed"));
        }
        self.call.promise.stored.clear();
        self.call.promise.stored.extend(pieces.iter().map(|&(piece, _)| piece));
        self.call.promise.sources = sources;
        self.pieces = pieces;
        self.call.violation = self.violation.take();
        self.pieces.clear();
        self.marks.clear();
        if !self.own_reads.is_empty() {
            self.own_reads.clear();
        }
        self.kept.clear();
        (self.contents_before, self.pieces_end) = (self.contents, 0);
    }

    /// The records of the call that ended.
    pub fn call(&mut self) -> &mut Call {
        &mut self.call
    }

    /// Stops recording until [`Self::restart`], except for forgotten subpages.
    pub fn pause(&mut self) {
        self.active = false;
    }

    /// Starts recording, and discards the operations that the present call has planned. The next operation of the plan
    /// has number `next`.
    pub fn restart(&mut self, next: u64) {
        self.call.clear();
        self.unresolved.clear();
        self.marks.clear();
        self.cells.clear();
        self.own_reads.clear();
        self.pieces.clear();
        self.kept.clear();
        self.whole_reads.clear();
        self.places.clear();
        (self.contents_before, self.pieces_end) = (self.contents, 0);
        self.violation = None;
        self.before = [0; 3];
        (self.next, self.ended_before, self.barrier, self.active) = (next, next, next, true);
    }
}
