//! A request within a request: from a file system to the layer below; and the read-ahead of the controller, which sees
//! the requests to the layer that addresses flash.
//!
//! The layer serves an inner request like a host request, with other data, arrival, cause, gate and lifetime, and
//! without FUA. The file system's own data has no placement of the host. Operations that a layer plans for the host
//! count under the cause of the inner request. A page with units of several inner requests counts under the cause of
//! the last.

use super::{Cause, Gate, Io, Present};
use palimpsest_flash::command::{Directives, Lifetime};
use palimpsest_flash::geometry::{Extent, FileGroup};
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;

/// The context of an inner request.
#[derive(Debug, Clone, Copy)]
pub struct Inner {
    /// The cause under which operations count.
    pub cause: Cause,
    /// When this gate closes, the data has arrived and reads may start.
    pub after: Gate,
    /// The gate of the request: see [`Io::request`].
    pub signal: Gate,
    /// The expected lifetime of the writes.
    pub lifetime: Lifetime,
}

impl Inner {
    /// A request of the host.
    pub const NONE: Inner =
        Inner { cause: Cause::Host, after: Gate::NONE, signal: Gate::NONE, lifetime: Lifetime::Unknown };
}

/// Results of read-ahead since it was enabled, in subpages unless stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadAheadFigures {
    /// Read ahead.
    pub read: u64,
    /// Served from the buffer.
    pub hit: u64,
    /// Read ahead, and dropped before a request read them.
    pub wasted: u64,
    /// Largest number of pages in the buffer.
    pub pages_peak: u64,
}

/// A layer's read of an extent.
pub type ReadLayer<'a> = &'a mut dyn FnMut(&mut Io, Extent) -> Flash<()>;

/// The read-ahead of the drive. Extents are addresses of the layer that addresses flash.
pub trait ReadAhead: Send {
    /// Serves the read of `extent` from the buffer, and missing parts by `layer`.
    ///
    /// # Errors
    /// Errors of `layer`.
    fn read(&mut self, io: &mut Io, extent: Extent, layer: ReadLayer<'_>) -> Flash<()>;

    /// Drops the logical subpages from `first` to `end`, which change.
    fn forget(&mut self, io: &mut Io, first: u32, end: u32);

    /// Empties the buffer and ends all streams.
    fn clear(&mut self, io: &mut Io);

    /// Transfers over the host link since the last call: the gate to follow, the gate to signal, and bytes.
    fn take_crossings(&mut self) -> Vec<(Gate, Gate, u64)>;

    fn figures(&self) -> ReadAheadFigures;
}

/// The side of an [`Io`] for file systems, which serve their commands by a layer below.
pub trait FileSystemIo {
    /// Reads `extent` by `layer`, through the read-ahead if there is one. Reads of `layer` itself never read ahead.
    ///
    /// # Errors
    /// Errors of `layer`.
    fn read_through(&mut self, extent: Extent, layer: ReadLayer<'_>) -> Flash<()>;

    /// Drops the logical subpages from `first` to `end`, which change, from the buffer of the read-ahead.
    fn forget_ahead(&mut self, first: u32, end: u32);

    /// Runs `act` as the inner request `inner`.
    fn serve_inner<T>(&mut self, inner: Inner, act: impl FnOnce(&mut Io) -> T) -> T;

    /// As [`Self::serve_inner`], for a write of `contents` to the logical subpages from `first` on.
    fn serve_inner_write<T>(
        &mut self,
        inner: Inner,
        first: u32,
        contents: &[Data],
        act: impl FnOnce(&mut Io) -> T,
    ) -> T;

    /// As [`Self::serve_inner`], for a read. Appends the contents to `contents` in the order of logical subpages,
    /// instead of delivering them to the host. Appends nothing in runs without contents.
    fn serve_inner_read<T>(&mut self, inner: Inner, contents: &mut Vec<Data>, act: impl FnOnce(&mut Io) -> T) -> T;

    /// Reads that wait or run at `die`.
    fn reading(&self, die: u32) -> u32;

    /// The groups of the file that is the owner of the present request.
    fn file_group(&self) -> FileGroup;

    /// Makes all later erases and programs over data follow `gate`, because trimmed data must survive until then.
    fn barrier(&mut self, gate: Gate);

    /// Declares that logical subpages `first` to `end`, as the layer numbers them, need not be stored any more. A
    /// caller that trims them must call this.
    fn forget(&mut self, first: u32, end: u32);
}

impl FileSystemIo for Io {
    fn read_through(&mut self, extent: Extent, layer: ReadLayer<'_>) -> Flash<()> {
        let Some(mut ahead) = self.read_ahead.take() else { return layer(self, extent) };
        let done = ahead.read(self, extent, layer);
        self.read_ahead = Some(ahead);
        done
    }

    #[inline]
    fn forget_ahead(&mut self, first: u32, end: u32) {
        if let Some(mut ahead) = self.read_ahead.take() {
            ahead.forget(self, first, end);
            self.read_ahead = Some(ahead);
        }
    }

    fn serve_inner<T>(&mut self, inner: Inner, act: impl FnOnce(&mut Io) -> T) -> T {
        let (gate, outer, directives) = (self.present.gate, self.present.inner, self.present.directives);
        let placed = inner.cause == Cause::Host && directives.placed;
        let placement = if inner.cause == Cause::Host { directives.placement } else { 0 };
        (self.present.gate, self.present.inner) = (inner.signal, inner);
        self.present.directives = Directives { lifetime: inner.lifetime, placement, placed, fua: false, ..directives };
        let done = act(self);
        (self.present.gate, self.present.inner, self.present.directives) = (gate, outer, directives);
        done
    }

    fn serve_inner_write<T>(
        &mut self,
        inner: Inner,
        first: u32,
        contents: &[Data],
        act: impl FnOnce(&mut Io) -> T,
    ) -> T {
        self.host.bring_subpages(first, contents);
        let done = self.serve_inner(inner, act);
        self.host.bring_subpages(0, &[]);
        done
    }

    fn serve_inner_read<T>(&mut self, inner: Inner, contents: &mut Vec<Data>, act: impl FnOnce(&mut Io) -> T) -> T {
        let before = self.host.take_delivered();
        let done = self.serve_inner(inner, act);
        let mut delivered = self.host.take_delivered();
        self.host.redeliver(before);
        delivered.sort_unstable_by_key(|&(lsn, _)| lsn);
        contents.extend(delivered.into_iter().map(|(_, data)| data));
        done
    }

    #[inline]
    fn reading(&self, die: u32) -> u32 {
        if self.rain.is_some() {
            return self.dies_of(die).iter().map(|die| die.reads).sum();
        }
        self.dies[die as usize].reads
    }

    fn file_group(&self) -> FileGroup {
        self.file_groups.get(self.present.directives.owner as usize).copied().unwrap_or_default()
    }

    fn barrier(&mut self, gate: Gate) {
        self.plan.barrier = gate;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin_barrier();
        }
    }

    fn forget(&mut self, first: u32, end: u32) {
        if let Some(ledger) = &mut self.ledger {
            ledger.forget(first, end, self.nand.operations());
        }
    }
}

impl Io {
    /// The gate after which the data of the present request has arrived and its reads may start; none for host
    /// requests.
    #[inline]
    pub fn arrival(&self) -> Gate {
        self.present.inner.after
    }

    /// The cause under which an operation for `cause` counts.
    #[inline]
    pub(super) fn counted_as(&self, cause: Cause) -> Cause {
        if cause == Cause::Host { self.present.inner.cause } else { cause }
    }
}

impl Present {
    /// True if operations for `cause` now store data of the host, not of a layer above.
    #[inline]
    pub fn is_from_host(&self, cause: Cause) -> bool {
        cause == Cause::Host && self.inner.cause == Cause::Host
    }
}
