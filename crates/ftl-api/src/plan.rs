//! The flash that a translation layer is handed: it acts on cells at once and writes down what the engine has to time.
//!
//! Each call changes flash (through [`Nand`], which refuses what the part forbids) and, in timed runs, appends one
//! operation to the plan of the present request. The layer says what an operation must follow ([`Gate`]); that operations
//! on one block keep their order needs no saying. There is no clock, queue or source of random numbers behind it; `now`
//! and the load of the dies are values that the device sets before each call.

pub mod counters;
mod gates;
pub mod inner;
pub mod port;
mod reuse;
pub mod select;

pub use counters::{CAUSE_NAMES, CAUSES, Cause, IoCounters};
use inner::Inner;
use palimpsest_flash::geometry::FileGroup;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::part::{Part, ReadCommand, ReadMode};
use palimpsest_flash::nand::{Flash, Nand, Outcome, SubpageMask, WordMask};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use select::ReadPolicy;

pub use gates::Gates;
pub use gates::NO_WAITER;

/// Something that closes when the operations that signal it have ended. Stale gates count as closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    pub slot: u32,
    pub generation: u32,
}

impl Gate {
    /// No gate: nothing to wait for, nobody to tell.
    pub const NONE: Gate = Gate { slot: u32::MAX, generation: 0 };

    /// Whether this is no gate.
    #[inline]
    pub fn is_none(self) -> bool {
        self.slot == u32::MAX
    }
}

/// Kind of a planned operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OperationKind {
    /// Sense a page and transfer out.
    Read,
    /// Transfer in and program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// One flash operation as the engine sees it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// Why.
    pub cause: Cause,
    /// Page within the block.
    pub page: u16,
    /// Block of the drive.
    pub block: u32,
    /// Bytes over the bus of the channel.
    pub bytes: u32,
    /// Bytes over the host link, of a read for the host.
    pub link_bytes: u32,
    /// Time in the array.
    pub array: u32,
    /// Starts after this gate has closed.
    pub after: Gate,
    /// Tells this gate when it has ended.
    pub signal: Gate,
    /// Subpages of the write buffer that are free when it has ended.
    pub frees: u32,
}

/// What a layer is handed with each call.
pub struct Io {
    /// Flash. Layers read from it; only the calls below change it.
    pub nand: Nand,
    pub plan: Vec<Operation>,
    pub gates: Gates,
    /// Pairs (gate, request gate): the second also waits for the first.
    pub links: Vec<(Gate, Gate)>,
    pub counters: IoCounters,
    /// Whether a plan is wanted; without one only cells and counters change.
    pub timed: bool,
    pub now: Nanos,
    pub load: Vec<u32>,
    pub request: Gate,
    /// Subpages that cross the host link at the least.
    pub transfer_subpages: u32,
    /// Subpages of the write buffer taken by the present request.
    pub buffer_taken: u32,
    pub host: port::HostPort,
    /// File or stream that the workload names with the present request; 0 where it names none.
    pub stream: u32,
    /// What names say of the files that `stream` may name, by that number; empty where the workload has no names.
    pub kin: Vec<FileGroup>,
    /// The inner request that is served.
    inner: Inner,
    /// Reads waiting or running at each die.
    pub reading: Vec<u32>,
    /// Gates that also wait for a moment.
    pub delays: Vec<(Gate, Nanos)>,
}

impl Io {
    /// Flash `nand` for a run that is timed, or only counted.
    pub fn new(nand: Nand, timed: bool) -> Self {
        let dies = nand.geometry().dies() as usize;
        let host = port::HostPort::new(nand.payload(), nand.geometry().subpage_bytes);
        Io {
            nand,
            plan: Vec::new(),
            gates: Gates::default(),
            links: Vec::new(),
            counters: IoCounters::default(),
            timed,
            now: 0,
            load: vec![0; dies],
            request: Gate::NONE,
            transfer_subpages: 1,
            buffer_taken: 0,
            host,
            stream: 0,
            kin: Vec::new(),
            inner: Inner::NONE,
            reading: vec![0; dies],
            delays: Vec::new(),
        }
    }

    /// Flash, to look at.
    #[inline]
    pub fn nand(&self) -> &Nand {
        &self.nand
    }

    /// What was done for which cause, and what it moved.
    pub fn counters(&self) -> &IoCounters {
        &self.counters
    }

    /// Lets the power fail during flash operation number `operation`, or never: see [`Nand::set_power_cut_at`].
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
        self.now
    }

    /// Operations waiting or running at `die`.
    #[inline]
    pub fn load(&self, die: u32) -> u32 {
        self.load[die as usize]
    }

    /// Reads waiting or running at `die`.
    #[inline]
    pub fn reading(&self, die: u32) -> u32 {
        self.reading[die as usize]
    }

    /// The file or stream that the workload names with the present request; 0 where it names none.
    #[inline]
    pub fn stream(&self) -> u32 {
        self.stream
    }

    /// What the name of that file says.
    pub fn kin(&self) -> FileGroup {
        self.kin.get(self.stream as usize).copied().unwrap_or_default()
    }

    /// `gate`, which is open or none, also waits for the moment `at`.
    pub fn delay(&mut self, gate: Gate, at: Nanos) {
        if self.timed && !gate.is_none() {
            self.gates.expect(gate);
            self.delays.push((gate, at));
        }
    }

    /// The gate whose closing completes the present request; [`Gate::NONE`] when nobody waits.
    #[inline]
    pub fn request(&self) -> Gate {
        self.request
    }

    /// A new gate, to be given as `signal` to the operations that it stands for and as `after` to those that follow them. It
    /// closes when all that signal it have ended; one that nothing ever signals stays open, and what follows it never starts:
    /// make a gate only where something will signal it. [`Gate::NONE`] in counted runs.
    #[inline]
    pub fn gate(&mut self) -> Gate {
        if self.timed { self.gates.open() } else { Gate::NONE }
    }

    /// Whether `gate` has not closed yet.
    #[inline]
    pub fn is_open(&self, gate: Gate) -> bool {
        self.gates.is_open(gate)
    }

    /// The present request takes `subpages` of the write buffer, until programs say that they are free.
    #[inline]
    pub fn take_buffer(&mut self, subpages: u32) {
        self.buffer_taken += subpages;
    }

    /// The host reads `subpages` that it never wrote: they are zeros, and no flash is read.
    #[inline]
    pub fn count_unwritten(&mut self, subpages: u32) {
        self.counters.unwritten_subpages += u64::from(subpages);
    }

    /// `later` also waits for `earlier`, unless that has closed already.
    pub fn link(&mut self, earlier: Gate, later: Gate) {
        if self.timed && self.gates.is_open(earlier) && !later.is_none() {
            self.gates.expect(later);
            self.links.push((earlier, later));
        }
    }

    /// Reads the subpages `wanted` of page `ppn`. `words` says which code words of them are needed (0 = all), which only the
    /// reads `dma` and `spread` profit from. `policy` says with which command; one command does, unless the part's can name
    /// but one run of words ([`select`]). Starts after the gate `after` has closed; `signal` learns of its end. The content is
    /// at once at [`Io::load_subpage`], whenever the operation is timed to end.
    ///
    /// # Errors
    /// See [`Nand::read`].
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one flash command has this many parts")]
    pub fn read(
        &mut self,
        ppn: u32,
        wanted: SubpageMask,
        words: WordMask,
        policy: ReadPolicy,
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        if policy.mode == ReadMode::Page {
            let part = self.nand.part();
            let wanted_bytes = match words {
                0 if part.subpage_bytes >= part.word_bytes => wanted.count_ones() * part.subpage_bytes,
                0 => words_of_subpages(part, wanted).count_ones() * part.word_bytes,
                words => words.count_ones() * part.word_bytes,
            };
            let (whole, wanted_bytes) = (part.page_bytes, wanted_bytes.min(part.page_bytes));
            return self.sense(ppn, wanted, ReadCommand::PAGE, [whole, whole, wanted_bytes], cause, after, signal);
        }
        let part = self.nand.part();
        let words = if words == 0 { words_of_subpages(part, wanted) } else { words };
        if select::one_command(part, policy.mode, words) {
            let command = ReadCommand { mode: policy.mode, words };
            return self.read_words(ppn, wanted, words, command, cause, after, signal);
        }
        for command in select::commands(part, policy, words) {
            let part = self.nand.part();
            // What lies in two words is read by two commands, and crosses the host link with the last.
            let subpages = subpages_of_words(part, command.words & words) & wanted;
            let behind = subpages_of_words(part, words & !(u64::MAX >> command.words.leading_zeros()));
            self.read_words(ppn, subpages & !behind, command.words & words, command, cause, after, signal)?;
        }
        Ok(())
    }

    /// One command of a mode that transfers the code words `words` only.
    #[expect(clippy::too_many_arguments, reason = "one flash command has this many parts")]
    fn read_words(
        &mut self,
        ppn: u32,
        wanted: SubpageMask,
        words: WordMask,
        command: ReadCommand,
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        let part = self.nand.part();
        let moved = words.count_ones() * part.word_bytes;
        let sensed = match command.mode {
            ReadMode::Spread => command.words.count_ones() * part.word_bytes,
            _ => part.page_bytes,
        };
        self.sense(ppn, wanted, command, [sensed, moved, moved], cause, after, signal)
    }

    /// One read command, and the bytes that it senses, moves, and is wanted for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one flash command has this many parts")]
    fn sense(
        &mut self,
        ppn: u32,
        subpages: SubpageMask,
        command: ReadCommand,
        [sensed, moved, wanted]: [u32; 3],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        let retry = self.nand.read(ppn, subpages, command)?;
        let cause = self.counted_as(cause);
        let counters = &mut self.counters;
        counters.reads[cause as usize] += 1;
        counters.bus_bytes += u64::from(moved);
        counters.sensed[cause as usize] += u64::from(sensed);
        counters.wanted[cause as usize] += u64::from(wanted);
        if self.timed {
            let (part, page) = (self.nand.part(), self.nand.split(ppn).1);
            let array = match command.mode {
                ReadMode::Spread => part.t_read_words[(command.words.count_ones() - 1) as usize],
                _ if part.is_high(page) => part.t_read_high,
                _ => part.t_read,
            };
            let array = array + if retry { part.t_read_retry } else { 0 };
            self.push(OperationKind::Read, cause, ppn, moved, array, after, signal, 0);
            let subpages = subpages.count_ones().next_multiple_of(self.transfer_subpages);
            let link_bytes = subpages * self.nand.part().subpage_bytes;
            self.plan.last_mut().expect("an operation was pushed").link_bytes = link_bytes;
        }
        Ok(())
    }

    /// The code words that hold `sectors` sectors of a physical page from its sector `first` on.
    #[inline]
    pub fn words_of(&self, first: u32, sectors: u32) -> WordMask {
        let word = self.nand.part().word_bytes;
        let (begin, end) = (first * SECTOR_BYTES as u32, (first + sectors) * SECTOR_BYTES as u32);
        mask_of(begin / word, end.div_ceil(word))
    }

    /// The code words that hold `subpages` of a page.
    #[inline]
    pub fn words_of_subpages(&self, subpages: SubpageMask) -> WordMask {
        words_of_subpages(self.nand.part(), subpages)
    }

    /// Content of physical subpage `psn` (its page times the subpages of a page, plus its place there), after
    /// [`Self::read`]. Lives until the end of the request, unless pinned in the buffers of [`Self::host`].
    #[inline]
    pub fn load_subpage(&mut self, psn: u32) -> Data {
        self.nand.load(psn)
    }

    /// Programs `page` into `ppn`, after the gate `after`; `signal` learns of its end. [`Outcome::Failed`] leaves the block
    /// bad and the subpages unreadable: program them again in another block.
    ///
    /// # Errors
    /// See [`Nand::program`].
    #[inline]
    pub fn program(
        &mut self,
        ppn: u32,
        page: &PageImage<'_>,
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<Outcome> {
        let outcome = self.nand.program(ppn, page.written, page.logical, page.data)?;
        self.programmed(ppn, page, outcome, cause, after, signal);
        Ok(outcome)
    }

    #[inline]
    fn programmed(
        &mut self,
        ppn: u32,
        page: &PageImage<'_>,
        outcome: Outcome,
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) {
        let cause = self.counted_as(cause);
        let part = self.nand.part();
        let padding = page.padding * part.subpage_bytes;
        let bytes = page.written.count_ones() * part.subpage_bytes;
        let moved = page.transferred * part.subpage_bytes;
        let counters = &mut self.counters;
        counters.programs[cause as usize] += 1;
        counters.data_bytes += u64::from(bytes - padding);
        counters.padding_bytes += u64::from(padding);
        counters.bus_bytes += u64::from(moved);
        if self.timed {
            let high = part.is_high(self.nand.split(ppn).1);
            let array = if high { part.t_program_high } else { part.t_program };
            // A program that failed is repeated, and what it writes stays in the buffer until then.
            let frees = if outcome == Outcome::Done { page.frees } else { 0 };
            self.push(OperationKind::Program, cause, ppn, moved, array, after, signal, frees);
        }
    }

    /// Erases `block`, after the gate `after`, which should be that of the programs that moved its data elsewhere.
    /// [`Outcome::Failed`] leaves it bad.
    ///
    /// # Errors
    /// See [`Nand::erase`].
    pub fn erase(&mut self, block: u32, cause: Cause, after: Gate, signal: Gate) -> Flash<Outcome> {
        let outcome = self.nand.erase(block)?;
        self.counters.erases += 1;
        if self.timed {
            let array = self.nand.part().t_erase;
            let ppn = block * self.nand.geometry().pages_per_block;
            self.push(OperationKind::Erase, cause, ppn, 0, array, after, signal, 0);
        }
        Ok(outcome)
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the fields of an operation, in one place")]
    fn push(
        &mut self,
        kind: OperationKind,
        cause: Cause,
        ppn: u32,
        bytes: u32,
        array: Nanos,
        after: Gate,
        signal: Gate,
        frees: u32,
    ) {
        let (block, page) = self.nand.split(ppn);
        self.gates.expect(signal);
        self.plan.push(Operation {
            kind,
            cause,
            page: page as u16,
            block,
            bytes,
            link_bytes: 0,
            array: array as u32,
            after,
            signal,
            frees,
        });
    }

    /// The host's side of the present request: what it writes, and where what it reads is delivered.
    #[inline]
    pub fn host(&mut self) -> (&mut port::HostPort, &mut palimpsest_flash::nand::data::Buffers) {
        (&mut self.host, self.nand.buffers())
    }
}

/// Bits `begin` to `end`, the latter excluded; there is one at least, and 64 at most.
#[inline]
fn mask_of(begin: u32, end: u32) -> u64 {
    (u64::MAX << begin) & (u64::MAX >> (64 - end))
}

/// The code words that hold `subpages`.
fn words_of_subpages(part: &Part, subpages: SubpageMask) -> WordMask {
    let (mut words, mut rest) = (0, subpages);
    while rest != 0 {
        let begin = rest.trailing_zeros() * part.subpage_bytes;
        rest &= rest - 1;
        words |= mask_of(begin / part.word_bytes, (begin + part.subpage_bytes).div_ceil(part.word_bytes));
    }
    words
}

/// The subpages of which `words` hold a part.
fn subpages_of_words(part: &Part, mut words: WordMask) -> SubpageMask {
    let mut subpages = 0;
    while words != 0 {
        let begin = words.trailing_zeros() * part.word_bytes;
        words &= words - 1;
        let end = (begin + part.word_bytes).min(part.page_bytes);
        subpages |= mask_of(begin / part.subpage_bytes, end.div_ceil(part.subpage_bytes));
    }
    subpages
}

/// What a program writes into one page.
pub struct PageImage<'a> {
    /// Subpages written, padding included.
    pub written: SubpageMask,
    /// Logical subpage that stands in each subpage of the page, for the out-of-band area; [`palimpsest_flash::nand::PADDING`] for
    /// padding. Recovery sees these numbers and nothing else.
    pub logical: &'a [u32],
    /// Content of each subpage of the page.
    pub data: &'a [Data],
    /// Subpages among `written` that are padding.
    pub padding: u32,
    /// Subpages that cross the bus (the controller's page buffer fills the rest of the page with ones).
    pub transferred: u32,
    /// Subpages of the write buffer that are free when the program has ended; 0 in layers that are not buffered.
    pub frees: u32,
}
