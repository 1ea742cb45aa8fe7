//! A request within a request: from a file system to the layer below it.
//!
//! The layer serves it as a request of the host, except for its data and their arrival, its cause, the gate that it signals, and
//! its hint. Operations that a layer does for the host count under the cause of the inner request; a page with units of several
//! counts under that of the last.

use super::{Cause, Gate, Io};
use palimpsest_flash::nand::data::Data;

/// The expected lifetime of a write, set by a file system above the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Unknown.
    None,
    /// Metadata of a file system, which the next commit rewrites.
    Metadata,
    /// Pages that the collection of a file system moves: they outlived their block.
    Moved,
    /// Until about this many pages of files have been written.
    Lifetime(u64),
}

/// The context of an inner request.
#[derive(Debug, Clone, Copy)]
pub struct Inner {
    /// Its cause.
    pub cause: Cause,
    /// Its data has arrived, and its reads may start, when this gate closes.
    pub after: Gate,
    /// The gate of the request: see [`Io::request`].
    pub signal: Gate,
    /// The hint of its writes.
    pub hint: Hint,
}

impl Inner {
    /// No inner request: the host's own.
    pub const NONE: Inner = Inner { cause: Cause::Host, after: Gate::NONE, signal: Gate::NONE, hint: Hint::None };
}

impl Io {
    /// Does `act` as the inner request `inner`.
    pub fn serve_inner<T>(&mut self, inner: Inner, act: impl FnOnce(&mut Io) -> T) -> T {
        let request = std::mem::replace(&mut self.present.gate, inner.signal);
        let outer = std::mem::replace(&mut self.present.inner, inner);
        let done = act(self);
        (self.present.gate, self.present.inner) = (request, outer);
        done
    }

    /// As [`Self::serve_inner`], for a write: `contents` are what logical subpages hold, from subpage `first` on.
    pub fn serve_inner_write<T>(
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

    /// As [`Self::serve_inner`], for a read, whose contents are put into `contents` in the order of logical subpages instead of
    /// going to the host; nothing where there are no contents.
    pub fn serve_inner_read<T>(&mut self, inner: Inner, contents: &mut Vec<Data>, act: impl FnOnce(&mut Io) -> T) -> T {
        let before = self.host.take_delivered();
        let done = self.serve_inner(inner, act);
        let mut delivered = self.host.take_delivered();
        self.host.redeliver(before);
        delivered.sort_unstable_by_key(|&(lsn, _)| lsn);
        contents.extend(delivered.into_iter().map(|(_, data)| data));
        done
    }

    /// The gate that closes when what the present request brings has arrived, or when it may read; none for the host's own.
    #[inline]
    pub fn arrival(&self) -> Gate {
        self.present.inner.after
    }

    /// The hint of the present request.
    #[inline]
    pub fn hint(&self) -> Hint {
        self.present.inner.hint
    }

    /// Whether what is done for `cause` now brings data of the host, and not of a layer above.
    #[inline]
    pub fn is_from_host(&self, cause: Cause) -> bool {
        cause == Cause::Host && self.present.inner.cause == Cause::Host
    }

    /// The cause under which what is done for `cause` counts.
    #[inline]
    pub(super) fn counted_as(&self, cause: Cause) -> Cause {
        if cause == Cause::Host { self.present.inner.cause } else { cause }
    }
}
