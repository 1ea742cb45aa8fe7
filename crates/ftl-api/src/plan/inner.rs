//! A request within a request: from a file system to the layer below.
//!
//! The layer serves an inner request like a host request, with other data, arrival, cause, gate and lifetime, and
//! without FUA. The file system's own data, moved data included, has no placement and no owner of the host: both are
//! those of the present command. Operations that a layer plans for the host count under the cause of the inner request.
//! A page with units of several inner requests counts under the cause of the last.

use super::{Cause, Gate, Io, Present};
use palimpsest_flash::command::{Directives, Lifetime};
use palimpsest_flash::geometry::FileGroup;
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

/// The side of an [`Io`] for file systems, which serve their commands by a layer below.
pub trait FileSystemIo {
    /// The cause of reads for the present command: the host, or read-ahead.
    fn cause_of_command(&self) -> Cause;

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
    fn cause_of_command(&self) -> Cause {
        self.counted_as(Cause::Host)
    }

    fn serve_inner<T>(&mut self, inner: Inner, act: impl FnOnce(&mut Io) -> T) -> T {
        let (gate, outer, directives) = (self.present.gate, self.present.inner, self.present.directives);
        let placed = inner.cause == Cause::Host && directives.placed;
        let (placement, owner) = match inner.cause {
            Cause::Host => (directives.placement, directives.owner),
            _ => (0, 0),
        };
        (self.present.gate, self.present.inner) = (inner.signal, inner);
        self.present.directives =
            Directives { lifetime: inner.lifetime, placement, placed, owner, fua: false, ..directives };
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

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::Nand;
    use palimpsest_flash::nand::data::Payload;
    use palimpsest_flash::nand::part::samples::slc;

    /// A write of the host that starts a collection, and the directives that the layer below sees for each cause.
    #[test]
    fn moved_pages_have_no_owner_of_the_host() {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let mut io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
        let host = Directives { owner: 7, placement: 3, placed: true, fua: true, ..Directives::NONE };
        io.present.directives = host;
        let mut seen = |cause| io.serve_inner(Inner { cause, ..Inner::NONE }, |io| io.directives());
        assert_eq!(seen(Cause::Host), Directives { fua: false, ..host });
        for cause in [Cause::Gc, Cause::Metadata] {
            assert_eq!(seen(cause), Directives::NONE, "{cause:?}");
        }
        assert_eq!(io.present.directives, host);
    }
}
