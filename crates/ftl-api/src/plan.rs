//! A layer's access to flash: each call changes cells at once and records the operations that the engine times.
//!
//! Each call changes flash (through [`Nand`], which refuses operations that the part forbids). In timed runs the call
//! also appends one operation to the plan. The layer names the gate that an operation must follow ([`Gate`]). Programs
//! and erases of one block keep their order without gates, and a read returns the content at the time of planning. This
//! module has no clock, queue or random source: the drive sets `now` and the load of the dies before each call.

pub mod arrival;
pub mod checkpoint;
mod commands;
pub mod counters;
mod flash;
mod gates;
pub mod inner;
pub mod ledger;
pub mod operations;
pub mod owners;
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

use crate::zones::ZoneError;
use arrival::Arrival;
pub use checkpoint::CheckpointIo;
pub use commands::{Erase, Program, Read};
pub use counters::{CAUSE_NAMES, CAUSES, Cause, IoCounters};
pub use gates::Gates;
pub use gates::NO_WAITER;
pub use inner::FileSystemIo;
use inner::Inner;
use ledger::Ledger;
pub use operations::{Operation, OperationKind, Plan};
pub use pairs::PairedIo;
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::{Extent, FileGroup, Geometry};
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::{Buffers, Data};
use palimpsest_flash::units::Nanos;
use port::{HostPort, Piece};
pub use rain::ParityIo;
pub use reuse::CodedIo;
pub use runs::{Copies, SliceIo};
pub use scan::RecoveryIo;
pub use undo::PowerIo;

/// A gate closes when all operations that signal it have ended. Operations and requests wait for gates. A stale gate
/// counts as closed.
// One number, because every operation copies gates, and loading two fields that were just stored separately is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The generation in the upper half, the slot in the lower.
    bits: u64,
}

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

    /// Index among the gates of a run.
    #[inline]
    pub fn slot(self) -> u32 {
        self.bits as u32
    }

    /// Number of gates that used the slot before.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.bits >> 32) as u32
    }

    /// True for [`Gate::NONE`].
    #[inline]
    pub fn is_none(self) -> bool {
        self.slot() == u32::MAX
    }
}

/// The present request, and the time.
pub struct Present {
    pub now: Nanos,
    /// Closes when the request completes. For a write that the write buffer acknowledges: when its programs have ended.
    pub gate: Gate,
    /// For a write of a file system that the write buffer acknowledges: the gate that its programs must signal.
    pub stored: Gate,
    /// Directives of the command: of the host's, with changes by a file system.
    pub directives: Directives,
    inner: Inner,
    /// Subpages of the write buffer that the request takes. Programs must free them ([`Program::frees`]).
    pub buffer_taken: u32,
    /// Subpages of the write buffer that the request frees, because it drops their data.
    pub buffer_freed: u32,
    /// Why a zoned drive refused the request, without effect.
    pub refused: Option<ZoneError>,
    /// The sectors of the request; for a Zone Append those that the drive chose.
    pub placed: Extent,
    /// The arrival of the last write.
    pub arrival: Arrival,
    /// Bytes of the request that no read has put on the host link yet.
    pub link_left: u64,
}

/// Operations that wait or run at a die.
#[derive(Clone, Copy, Default)]
pub struct DieLoad {
    pub operations: u32,
    /// Reads among `operations`.
    pub reads: u32,
}

/// The interface of a layer in each call: flash, the plan, the data of the request, and the load of the dies.
///
/// Every command changes cells and counters at once. In timed runs the command also plans an operation, whose end may
/// signal a gate. A layer must read each subpage whose content it loads, in the same call. A layer must name in `after`
/// every gate that an operation depends on. Flash may change only by these commands.
///
/// A layer needs only the functions of the type itself. Other callers name their side: logs and slices ([`SliceIo`]),
/// codes and own bytes ([`CodedIo`]), parity ([`ParityIo`]), recovery ([`RecoveryIo`], [`PairedIo`]), checkpoints
/// ([`CheckpointIo`]), power cuts ([`PowerIo`]), and file systems ([`FileSystemIo`]).
pub struct Io {
    /// Flash. Layers may read the state ([`Io::nand`]); only commands may change it.
    pub nand: Nand,
    pub plan: Plan,
    pub present: Present,
    pub host: HostPort,
    /// One entry per die.
    pub dies: Vec<DieLoad>,
    pub counters: IoCounters,
    /// The counters at the start of the measurement, without operations that a power cut rolled back since.
    pub counters_before: IoCounters,
    /// File groups by owner; empty if the workload names no files.
    pub file_groups: Vec<FileGroup>,
    /// Records of a checked run; see [`ledger`].
    pub ledger: Option<Box<Ledger>>,
    /// Log for the rollback at a power cut; `None` unless a power cut is scheduled in a timed run.
    pub undo: Option<Box<undo::PlanUndo>>,
    /// Tenants behind the data; `None` without several.
    pub owners: Option<Box<owners::Owners>>,
    /// The end of each namespace with dies of its own, in logical pages and in dies; empty if tenants share the dies.
    pub sets: Vec<(u32, u32)>,
    /// Added to the present time for the age of data.
    pub data_age: Nanos,
    /// Checkpoints of the layer's tables.
    checkpoints: Option<Box<checkpoint::Checkpoints>>,
    /// Copies of pages, if a program of the part can corrupt other pages.
    guard: Option<Box<pairs::PairGuard>>,
    /// Parity across dies.
    rain: Option<Box<rain::Rain>>,
}

palimpsest_flash::state!(Io { nand, plan, host, counters } parts { ledger, guard } built {
    present, dies, counters_before, file_groups, undo, owners, sets, data_age, checkpoints, rain
});

impl Io {
    /// An interface to `nand`, for a timed or a counted run.
    pub fn new(mut nand: Nand, timed: bool) -> Self {
        let guard = pairs::PairGuard::new(&mut nand);
        let dies = nand.physical().dies() as usize;
        let rain = nand.has_stripes().then(|| Box::new(rain::Rain::new(nand.geometry())));
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
                buffer_freed: 0,
                refused: None,
                placed: Extent { sector: 0, sectors: 0 },
                arrival: Arrival::default(),
                link_left: 0,
            },
            dies: vec![DieLoad::default(); dies],
            counters: IoCounters::default(),
            counters_before: IoCounters::default(),
            file_groups: Vec::new(),
            ledger: None,
            undo: None,
            owners: None,
            sets: Vec::new(),
            data_age: 0,
            checkpoints: None,
            guard,
            rain,
        }
    }

    /// Flash, read-only.
    #[inline]
    pub fn nand(&self) -> &Nand {
        &self.nand
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
}

/// The present request.
impl Io {
    /// The gate of the present request; [`Gate::NONE`] in background work. Operations that the request must wait for
    /// must signal it.
    #[inline]
    pub fn request(&self) -> Gate {
        self.present.gate
    }

    /// The gate that programs of the present write must signal: none in a layer whose open pages are `protected`,
    /// unless the write has FUA.
    #[inline]
    pub fn program_signal(&self, protected: bool) -> Gate {
        if protected && !self.present.directives.fua { Gate::NONE } else { self.request() }
    }

    /// Directives of the present request.
    #[inline]
    pub fn directives(&self) -> Directives {
        self.present.directives
    }

    /// Returns the content of a subpage after the present write of `piece`. `old` must be the content before,
    /// [`Data::ZERO`] if never written.
    #[inline]
    pub fn written(&mut self, piece: Piece, old: Data) -> Data {
        if self.host.has_contents() || self.ledger.is_some() { self.merged(piece, old) } else { Data::ZERO }
    }

    #[inline(never)]
    fn merged(&mut self, piece: Piece, old: Data) -> Data {
        let data = self.host.written(self.nand.buffers(), piece, old);
        match &mut self.ledger {
            Some(ledger) if !self.host.is_inner() => {
                let arrives = self.present.arrival.of_page([piece.lsn].into_iter()).last;
                ledger.written(piece.lsn, old, data, arrives)
            }
            _ => data,
        }
    }

    /// Delivers logical subpage `lsn` to the host.
    #[inline]
    pub fn deliver(&mut self, lsn: u32, data: Data) {
        self.host.deliver(lsn, data);
    }

    /// Counts `subpages` that the host reads but never wrote: they are zeros without a flash read.
    #[inline]
    pub fn count_unwritten(&mut self, subpages: u32) {
        self.counters.unwritten_subpages += u64::from(subpages);
    }

    /// Counts `subpages` that the host reads from an open page, without a flash read.
    #[inline]
    pub fn count_buffered(&mut self, subpages: u32) {
        self.counters.memory_reads[Cause::Host as usize] += u64::from(subpages);
    }
}

/// Memory of the controller.
impl Io {
    /// Content of physical subpage `psn` (page times subpages per page, plus the index in the page). A [`Self::read`]
    /// of the subpage must be planned in the same call. The content lives until the end of the request, unless pinned.
    #[inline]
    pub fn load_subpage(&mut self, psn: u32) -> Data {
        let data = self.nand.load(psn);
        match &mut self.ledger {
            Some(ledger) => ledger.load(psn, data),
            None => data,
        }
    }

    /// Keeps `data` in memory beyond the present request. Each pin needs one [`Self::unpin`].
    #[inline]
    pub fn pin(&mut self, data: Data) {
        self.nand.buffers().pin(data);
        if let Some(ledger) = &mut self.ledger {
            ledger.keep(data);
        }
    }

    /// Undoes one [`Self::pin`].
    #[inline]
    pub fn unpin(&mut self, data: Data) {
        self.nand.buffers().unpin(data);
    }

    /// All buffers, for callers that act as the host.
    pub fn buffers(&mut self) -> &mut Buffers {
        self.nand.buffers()
    }
}

/// Gates.
impl Io {
    /// Opens a gate: operations to wait for name it as `signal`, and operations that follow them as `after`. The gate
    /// closes when all operations that signal it have ended. A gate without a signal never closes, and operations that
    /// follow it never start: a layer must open gates only for operations that signal them. Returns [`Gate::NONE`] in
    /// counted runs.
    #[inline]
    pub fn gate(&mut self) -> Gate {
        if self.plan.timed { self.plan.gates.open() } else { Gate::NONE }
    }

    /// True if `gate` has not closed yet.
    #[inline]
    pub fn is_open(&self, gate: Gate) -> bool {
        self.plan.gates.is_open(gate)
    }

    /// Makes `later` also wait for `earlier`, unless `earlier` has closed. `later` must be open or none.
    pub fn link(&mut self, earlier: Gate, later: Gate) {
        if self.plan.timed && self.plan.gates.is_open(earlier) && !later.is_none() {
            if self.ledger.as_ref().is_some_and(|ledger| ledger.mutates()) && !self.plan.gates.is_open(later) {
                return;
            }
            self.plan.gates.expect(later);
            self.plan.links.push((earlier, later));
        }
    }

    /// A gate that closes when all of `gates` have closed; none if they have already.
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

    /// Returns `gate` if any operation signals it; otherwise releases the gate and returns [`Gate::NONE`].
    pub fn used(&mut self, gate: Gate) -> Gate {
        if !self.plan.gates.is_open(gate) || self.plan.gates.slots[gate.slot() as usize].remaining > 0 {
            return gate;
        }
        self.plan.gates.close(gate);
        Gate::NONE
    }
}
