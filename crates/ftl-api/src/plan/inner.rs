//! A request within a request: what a file system hands down to the layer below it.
//!
//! The layer serves it as it serves the host; what is different, it is told here: whose data it is and when that arrives, why
//! the request is made, whom to tell, and how long what is written will live. Operations that a layer does for the host are
//! counted under the cause of the inner request; a page that gathers parts of several counts under that of the last of them.

use super::{Cause, Gate, Io};
use palimpsest_flash::nand::data::Data;

/// How long something that is written will be current, as far as somebody above the layer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Nobody knows.
    Unknown,
    /// Records of a file system, which the next commit writes anew.
    Metadata,
    /// What the collection of a file system moves: it has lived longer than what stood beside it.
    Moved,
    /// Until about this many pages of files have been written.
    Pages(u64),
}

/// What an inner request is about.
#[derive(Debug, Clone, Copy)]
pub struct Inner {
    /// Why it is made.
    pub cause: Cause,
    /// What it writes has arrived, and what it reads may be read, when this gate closes.
    pub after: Gate,
    /// Stands for the request: see [`Io::request`].
    pub signal: Gate,
    /// How long what it writes will live.
    pub life: Life,
}

impl Inner {
    /// No inner request: the host's own.
    pub const NONE: Inner = Inner { cause: Cause::Host, after: Gate::NONE, signal: Gate::NONE, life: Life::Unknown };
}

impl Io {
    /// Does `act` as the inner request `inner`.
    pub fn hand_down<T>(&mut self, inner: Inner, act: impl FnOnce(&mut Io) -> T) -> T {
        let request = std::mem::replace(&mut self.present.gate, inner.signal);
        let outer = std::mem::replace(&mut self.present.inner, inner);
        let done = act(self);
        (self.present.gate, self.present.inner) = (request, outer);
        done
    }

    /// As [`Self::hand_down`], for a write: `contents` are what logical subpages hold, from subpage `first` on.
    pub fn hand_down_write<T>(
        &mut self,
        inner: Inner,
        first: u32,
        contents: &[Data],
        act: impl FnOnce(&mut Io) -> T,
    ) -> T {
        self.host.bring_subpages(first, contents);
        let done = self.hand_down(inner, act);
        self.host.bring_subpages(0, &[]);
        done
    }

    /// As [`Self::hand_down`], for a read, whose contents are put into `contents` in the order of logical subpages instead of
    /// going to the host; nothing where there are no contents.
    pub fn hand_down_read<T>(&mut self, inner: Inner, contents: &mut Vec<Data>, act: impl FnOnce(&mut Io) -> T) -> T {
        let before = self.host.take_delivered();
        let done = self.hand_down(inner, act);
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

    /// How long what the present request writes will live.
    #[inline]
    pub fn life(&self) -> Life {
        self.present.inner.life
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
