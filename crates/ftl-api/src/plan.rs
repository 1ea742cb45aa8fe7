//! The flash that a translation layer gets: it changes cells immediately and records the operations that the engine times.
//!
//! Each call changes flash (through [`Nand`], which refuses what the part forbids) and, in timed runs, appends one
//! operation to the plan of the present call. The layer gives the gate that an operation follows ([`Gate`]); programs and erases of one
//! block keep their order in any case, and what is read is what was there when the read was planned. There is no clock, queue or source of random numbers here; `now` and the load of the dies
//! are values that the drive sets before each call.

pub mod checkpoint;
mod commands;
pub mod counters;
mod flash;
mod gates;
pub mod inner;
pub mod ledger;
pub mod operations;
mod pairs;
pub mod port;
pub mod rain;
pub mod replacing;
mod reuse;
mod runs;
pub mod scan;
pub mod select;
pub mod under_way;
mod undo;
mod word_lines;

pub use commands::{Erase, Program, Read};
pub use counters::{CAUSE_NAMES, CAUSES, Cause, IoCounters};
pub use gates::Gates;
pub use gates::NO_WAITER;
use inner::Inner;
use ledger::Ledger;
pub use operations::{Operation, OperationKind, Plan};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::{FileGroup, Geometry};
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::{Buffers, Data};
use palimpsest_flash::units::Nanos;
use port::{HostPort, Piece};
pub use runs::{Copies, WholePage};

/// Something that closes when the operations that signal it have ended. Stale gates count as closed.
// One number: two that were stored one by one are slow to load together, and every operation has its gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The generation, and below it the slot.
    bits: u64,
}

palimpsest_flash::state!(Gate { bits });

impl Default for Gate {
    fn default() -> Self {
        Gate::NONE
    }
}

impl Gate {
    /// No gate: nothing to wait for.
    pub const NONE: Gate = Gate { bits: u32::MAX as u64 };

    /// The gate that has `slot` in this generation.
    #[inline]
    pub fn new(slot: u32, generation: u32) -> Gate {
        Gate { bits: u64::from(generation) << 32 | u64::from(slot) }
    }

    /// Its place among the gates of a run.
    #[inline]
    pub fn slot(self) -> u32 {
        self.bits as u32
    }

    /// How many gates had the slot before it.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.bits >> 32) as u32
    }

    /// Whether this is no gate.
    #[inline]
    pub fn is_none(self) -> bool {
        self.slot() == u32::MAX
    }
}

/// The request that is served, and when.
pub struct Present {
    pub now: Nanos,
    /// Closes when the request completes; in a write that the write buffer acknowledges, when its programs have ended.
    pub gate: Gate,
    /// Of a write of a file system that the write buffer acknowledges: the gate that its programs signal.
    pub stored: Gate,
    /// Additions of the host to the command.
    pub directives: Directives,
    /// The inner request that is served.
    inner: Inner,
    /// Subpages of the write buffer that the request takes.
    pub buffer_taken: u32,
    /// When the host link has brought what the request writes.
    pub data_at: Nanos,
    /// Bytes that the request asks for and no read brings yet.
    pub link_left: u64,
}

/// Operations that wait or run at a die.
#[derive(Clone, Copy, Default)]
pub struct DieLoad {
    pub operations: u32,
    /// Reads among them.
    pub reads: u32,
}

/// What a layer gets with each call: flash, the plan, the data of the request, and the load of the dies.
pub struct Io {
    /// Flash. Layers read its state ([`Io::nand`]); only the commands change it.
    pub nand: Nand,
    pub plan: Plan,
    pub present: Present,
    pub host: HostPort,
    /// One entry a die.
    pub dies: Vec<DieLoad>,
    pub counters: IoCounters,
    /// The file groups of the files, by owner; empty where the workload has no names.
    pub file_groups: Vec<FileGroup>,
    /// What a checked run writes down of the plan.
    pub ledger: Option<Box<Ledger>>,
    /// What a power cut takes back; `None` where none is to come in a timed run.
    pub undo: Option<Box<undo::PlanUndo>>,
    /// Added to the time by which the age of data counts.
    pub data_age: Nanos,
    /// Checkpoints of the layer's tables.
    checkpoints: Option<Box<checkpoint::Checkpoints>>,
    /// Copies of pages, where a program can corrupt others.
    guard: Option<Box<pairs::PairGuard>>,
    /// Parity across dies.
    rain: Option<Box<rain::Rain>>,
    /// Whether pages are programmed and copied many at once where nothing can fail (`runs`). The result is the same; off to show that.
    pub in_runs: bool,
}

palimpsest_flash::state!(Io { nand, plan, host, counters } parts { ledger, guard } built { present, dies, file_groups, undo, data_age, checkpoints, rain, in_runs });

impl Io {
    /// Flash `nand` for a run that is timed, or only counted.
    pub fn new(mut nand: Nand, timed: bool) -> Self {
        let guard = pairs::PairGuard::new(&mut nand);
        let dies = nand.physical().dies() as usize;
        let rain = nand.has_stripes().then(Box::default);
        Io {
            host: HostPort::new(nand.payload(), nand.geometry().subpage_bytes),
            nand,
            plan: Plan { timed, ..Plan::default() },
            present: Present {
                now: 0,
                gate: Gate::NONE,
                stored: Gate::NONE,
                directives: Directives::default(),
                inner: Inner::NONE,
                buffer_taken: 0,
                data_at: 0,
                link_left: 0,
            },
            dies: vec![DieLoad::default(); dies],
            counters: IoCounters::default(),
            file_groups: Vec::new(),
            ledger: None,
            undo: None,
            data_age: 0,
            checkpoints: None,
            guard,
            rain,
            in_runs: true,
        }
    }

    /// Flash, read-only.
    #[inline]
    pub fn nand(&self) -> &Nand {
        &self.nand
    }

    /// Operations and transfers by cause.
    pub fn counters(&self) -> &IoCounters {
        &self.counters
    }

    /// Cuts the power during flash operation number `operation`, or never: see [`Nand::set_power_cut_at`].
    pub fn set_power_cut_at(&mut self, operation: Option<u64>) {
        self.nand.set_power_cut_at(operation);
    }

    /// Shape of the drive.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    /// Simulated time of the present call.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.present.now
    }

    /// Operations that wait or run at `die`.
    #[inline]
    pub fn load(&self, die: u32) -> u32 {
        if self.rain.is_some() {
            return self.dies_of(die).iter().map(|die| die.operations).sum();
        }
        self.dies[die as usize].operations
    }

    /// Reads that wait or run at `die`.
    #[inline]
    pub fn reading(&self, die: u32) -> u32 {
        if self.rain.is_some() {
            return self.dies_of(die).iter().map(|die| die.reads).sum();
        }
        self.dies[die as usize].reads
    }
}

/// The request that is served.
impl Io {
    /// The gate whose closing completes the present request; [`Gate::NONE`] in background work.
    #[inline]
    pub fn request(&self) -> Gate {
        self.present.gate
    }

    /// The gate that programs of a file system's write signal if the write buffer acknowledges the write; else none.
    #[inline]
    pub fn stored(&self) -> Gate {
        self.present.stored
    }

    /// The file, volume or tenant of the present request; 0 if the workload names none.
    #[inline]
    pub fn owner(&self) -> u32 {
        self.present.directives.owner
    }

    /// The groups of that file.
    pub fn file_group(&self) -> FileGroup {
        self.file_groups.get(self.owner() as usize).copied().unwrap_or_default()
    }

    /// The present request takes `subpages` of the write buffer, until programs free them.
    #[inline]
    pub fn take_buffer(&mut self, subpages: u32) {
        self.present.buffer_taken += subpages;
    }

    /// Whether contents matter at all. Without, [`Self::written`] and [`Self::deliver`] do nothing, and may be left out.
    #[inline]
    pub fn has_contents(&self) -> bool {
        self.host.has_contents()
    }

    /// Sectors of a subpage.
    #[inline]
    pub fn sectors_per_subpage(&self) -> u32 {
        self.host.sectors_per_subpage()
    }

    /// The content of a subpage after the present write put `piece` over `old`: what it held, [`Data::ZERO`] if it was never
    /// written.
    #[inline]
    pub fn written(&mut self, piece: Piece, old: Data) -> Data {
        if self.host.has_contents() || self.ledger.is_some() { self.merged(piece, old) } else { Data::ZERO }
    }

    #[inline(never)]
    fn merged(&mut self, piece: Piece, old: Data) -> Data {
        let data = self.host.written(self.nand.buffers(), piece, old);
        match &mut self.ledger {
            Some(ledger) if !self.host.is_inner() => ledger.written(piece.lsn, old, data, self.present.data_at),
            _ => data,
        }
    }

    /// Hands logical subpage `lsn` to the host.
    #[inline]
    pub fn deliver(&mut self, lsn: u32, data: Data) {
        self.host.deliver(lsn, data);
    }

    /// Logical subpages `first` to `end`, as the layer numbers them, need not be stored any more. For whoever trims them.
    pub fn forget(&mut self, first: u32, end: u32) {
        if let Some(ledger) = &mut self.ledger {
            ledger.forget(first, end, self.nand.operations());
        }
    }

    /// The host reads `subpages` that it never wrote: they are zeros, and no flash is read.
    #[inline]
    pub fn count_unwritten(&mut self, subpages: u32) {
        self.counters.unwritten_subpages += u64::from(subpages);
    }

    /// The host reads `subpages` that an open page holds: no flash is read.
    #[inline]
    pub fn count_buffered(&mut self, subpages: u32) {
        self.counters.memory_reads[Cause::Host as usize] += u64::from(subpages);
    }

    /// The host's data, read-only.
    pub fn host(&self) -> &HostPort {
        &self.host
    }

    /// The host's end of the link, for whoever plays the host.
    pub fn host_mut(&mut self) -> &mut HostPort {
        &mut self.host
    }
}

/// Memory of the controller.
impl Io {
    /// Content of physical subpage `psn` (its page times the subpages of a page, plus its place there), after
    /// [`Self::read`]. Lives until the end of the request, unless pinned.
    #[inline]
    pub fn load_subpage(&mut self, psn: u32) -> Data {
        let data = self.nand.load(psn);
        match &mut self.ledger {
            Some(ledger) => ledger.load(psn, data),
            None => data,
        }
    }

    /// As [`Self::load_subpage`], of a page that [`Self::reprogram`] programs next: that checks when it was read.
    pub fn load_cells(&mut self, psn: u32) -> Data {
        self.nand.load(psn)
    }

    /// Bytes of the layer's own in physical subpage `psn`, after [`Self::read`]; none where none were programmed.
    #[inline]
    pub fn own(&self, psn: u32) -> &[u8] {
        self.nand.own(psn).unwrap_or_default()
    }

    /// The layer found the place of logical subpages `first` to `end` in its own bytes in physical subpage `psn`: reads of them for the host
    /// follow the read of that.
    #[inline]
    pub fn found(&mut self, first: u32, end: u32, psn: u32) {
        if let Some(ledger) = &mut self.ledger {
            (first..end).for_each(|lsn| ledger.found(lsn, psn));
        }
    }

    /// Keeps `data` in memory beyond the present request.
    #[inline]
    pub fn pin(&mut self, data: Data) {
        self.nand.buffers().pin(data);
        if let Some(ledger) = &mut self.ledger {
            ledger.keep(data);
        }
    }

    /// Takes back one [`Self::pin`].
    #[inline]
    pub fn unpin(&mut self, data: Data) {
        self.nand.buffers().unpin(data);
    }

    /// Puts a copy of the bytes of one subpage into memory, where contents are bytes: records of the layer's own.
    pub fn keep(&mut self, bytes: &[u8]) -> Data {
        self.nand.buffers().keep(bytes)
    }

    /// As [`Self::keep`], of bytes that were made of `from`: they are there when all of it is, and are another form of the
    /// content of the first.
    pub fn keep_derived(&mut self, bytes: &[u8], from: &[Data]) -> Data {
        let lost = from.contains(&Data::LOST);
        let data = if lost { Data::LOST } else { self.nand.buffers().keep(bytes) };
        match &mut self.ledger {
            Some(ledger) => ledger.derived(data, from),
            None => data,
        }
    }

    /// The bytes of `data`; `None` for zeros.
    pub fn bytes_of(&self, data: Data) -> Option<&[u8]> {
        self.nand.buffered(data)
    }

    /// All of it, for whoever plays the host.
    pub fn buffers(&mut self) -> &mut Buffers {
        self.nand.buffers()
    }
}

/// Gates.
impl Io {
    /// A new gate, for `signal` of the operations that it waits for and `after` of those that follow them. It
    /// closes when all that signal it have ended; one without a signal stays open, and operations that follow it never start:
    /// make a gate only for operations that signal it. [`Gate::NONE`] in counted runs.
    #[inline]
    pub fn gate(&mut self) -> Gate {
        if self.plan.timed { self.plan.gates.open() } else { Gate::NONE }
    }

    /// Whether `gate` has not closed yet.
    #[inline]
    pub fn is_open(&self, gate: Gate) -> bool {
        self.plan.gates.is_open(gate)
    }

    /// `later` also waits for `earlier`, unless that has closed already.
    pub fn link(&mut self, earlier: Gate, later: Gate) {
        if self.plan.timed && self.plan.gates.is_open(earlier) && !later.is_none() {
            if self.ledger.as_ref().is_some_and(|ledger| ledger.mutates()) && !self.plan.gates.is_open(later) {
                return;
            }
            self.plan.gates.expect(later);
            self.plan.links.push((earlier, later));
        }
    }

    /// A gate that closes with those of `gates` that are open; none where all have closed.
    pub fn all_of(&mut self, gates: &[Gate]) -> Gate {
        let mut open = gates.iter().copied().filter(|&gate| self.plan.gates.is_open(gate));
        match (open.next(), open.next()) {
            (None, _) => Gate::NONE,
            (Some(gate), None) => gate,
            _ => {
                let all = self.gate();
                gates.iter().for_each(|&gate| self.link(gate, all));
                all
            }
        }
    }

    /// `gate`, which is open or none, also waits for the moment `at`.
    pub fn delay(&mut self, gate: Gate, at: Nanos) {
        if self.plan.timed && !gate.is_none() {
            self.plan.gates.expect(gate);
            self.plan.delays.push((gate, at));
        }
    }

    /// Erases from now on follow `gate`, too: what was trimmed must be there until then.
    pub fn barrier(&mut self, gate: Gate) {
        self.plan.barrier = gate;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin_barrier();
        }
    }

    /// What is planned from now on was sent together, as command group `group`; 0: each alone.
    pub fn set_group(&mut self, group: u16) {
        self.plan.group = group;
    }

    /// What is planned from now on is a step of collection that can wait until dies have nothing else to do, or not.
    #[inline]
    pub fn set_step(&mut self, step: bool) {
        self.plan.step = step;
    }

    /// Operations that are planned from now on get their energy, of what flash takes from now on.
    pub fn meter(&mut self) {
        self.plan.metered = Some(self.nand.counters().energy());
    }

    /// `gate`, if something signals it by now; else none, and the gate is no more.
    pub fn used(&mut self, gate: Gate) -> Gate {
        if !self.plan.gates.is_open(gate) || self.plan.gates.slots[gate.slot() as usize].remaining > 0 {
            return gate;
        }
        self.plan.gates.close(gate);
        Gate::NONE
    }
}
