//! A command of the host to a drive, unbroken from the workload to the translation layer.
//!
//! Directives add to operation and extent; a layer or the controller reads the directives that it supports. Ignored:
//! namespaces and priorities.

use crate::geometry::{Extent, RequestKind};

/// The extent of a flush.
const NOWHERE: Extent = Extent { sector: 0, sectors: 0 };

/// Additions of the host to a command; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Directives {
    /// The file, volume or tenant that the workload names, by the workload's numbers; 0: none.
    pub owner: u32,
    /// The submission queue of the command.
    pub queue: u32,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub kind: RequestKind,
    /// Sectors; a flush has none.
    pub extent: Extent,
    /// Additions of the host.
    pub directives: Directives,
}

impl Command {
    /// `kind` on `extent`, without directives.
    #[inline]
    pub const fn new(kind: RequestKind, extent: Extent) -> Command {
        Command { kind, extent, directives: Directives { owner: 0, queue: 0 } }
    }

    /// A flush of all earlier writes.
    pub const FLUSH: Command = Command::new(RequestKind::Flush, NOWHERE);

    /// The command with these directives.
    #[inline]
    #[must_use]
    pub const fn with(self, directives: Directives) -> Command {
        Command { directives, ..self }
    }
}
