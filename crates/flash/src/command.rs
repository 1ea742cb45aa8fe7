//! A command of the host to a drive, unbroken from the workload to the translation layer.
//!
//! Directives add to operation and extent. The workload sets them, and each has a reader: file systems and volumes read
//! the owner, the controller the queue, classifiers of streams placement, lifetime and owner, the write buffer FUA.
//! Ignored: namespaces, and priorities, because no queue of the drive serves one request before an older one.

use crate::geometry::{Extent, RequestKind};

/// The extent of a flush.
const NOWHERE: Extent = Extent { sector: 0, sectors: 0 };

/// The expected lifetime of written data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// Unknown.
    #[default]
    Unknown,
    /// Metadata of a file system, rewritten by the next commit.
    Metadata,
    /// Pages that the collection of a file system moves, because they outlived their block.
    Moved,
    /// In pages written. Only the order of lifetimes counts.
    Pages(u32),
}

impl Lifetime {
    /// A lifetime of `pages` pages, at most [`u32::MAX`].
    pub fn of_pages(pages: u64) -> Lifetime {
        Lifetime::Pages(pages.min(u32::MAX.into()) as u32)
    }
}

/// An action on the zone of a command's first sector (NVMe Zoned Namespace Command Set).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZoneAction {
    /// None: writes name their sectors, and a trim of whole zones resets them.
    #[default]
    None,
    /// Zone Append: a write whose sectors the drive chooses, at the write pointer of the zone.
    Append,
    /// Zone Management Send, Open Zone; the command is a trim of the zone, as for the actions below.
    Open,
    /// Open Zone with a Zone Random Write Area (ZRWA Allocation).
    OpenRandom,
    /// Commit Zone: commits the random write area up to the end of the command's extent.
    Commit,
    /// Close Zone.
    Close,
    /// Finish Zone.
    Finish,
    /// Offline Zone.
    Offline,
}

/// Names of the actions in traces.
pub const ZONE_ACTIONS: [(&str, ZoneAction); 7] = [
    ("append", ZoneAction::Append),
    ("open", ZoneAction::Open),
    ("open-zrwa", ZoneAction::OpenRandom),
    ("commit", ZoneAction::Commit),
    ("close", ZoneAction::Close),
    ("finish", ZoneAction::Finish),
    ("offline", ZoneAction::Offline),
];

impl ZoneAction {
    /// True for the actions that program data: Commit Zone and Finish Zone.
    pub fn programs(self) -> bool {
        matches!(self, ZoneAction::Commit | ZoneAction::Finish)
    }

    /// True for the actions of Zone Management Send.
    pub fn manages(self) -> bool {
        !matches!(self, ZoneAction::None | ZoneAction::Append)
    }
}

/// Additions of the host to a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Directives {
    /// The file, volume or tenant that the workload names, by the workload's numbers; 0: none.
    pub owner: u32,
    /// The submission queue of the command.
    pub queue: u32,
    /// The expected lifetime of the data of a write.
    pub lifetime: Lifetime,
    /// The placement identifier of a write (NVMe Flexible Data Placement); 0: the default handle.
    pub placement: u16,
    /// True if the write names `placement`; otherwise the drive chooses the reclaim group.
    pub placed: bool,
    /// Reclaim Unit Handle Update (NVMe I/O Management Send): the handle of `placement` refers to an empty reclaim unit
    /// afterwards. The command is a flush.
    pub updates: bool,
    /// Force unit access: a write must be programmed before the acknowledgement.
    pub fua: bool,
    /// The action on a zone; only zoned drives accept another than none.
    pub zone: ZoneAction,
    /// The class of a write, if a policy outside of the drive classifies requests ahead; else 0.
    pub class: u8,
}

impl Directives {
    /// No directives.
    pub const NONE: Directives = Directives {
        owner: 0,
        queue: 0,
        lifetime: Lifetime::Unknown,
        placement: 0,
        placed: false,
        updates: false,
        fua: false,
        zone: ZoneAction::None,
        class: 0,
    };
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
        Command { kind, extent, directives: Directives::NONE }
    }

    /// A flush of all earlier writes.
    pub const FLUSH: Command = Command::new(RequestKind::Flush, NOWHERE);

    /// An update of the reclaim unit handle of `placement`.
    #[must_use]
    pub const fn update(placement: u16) -> Command {
        Command::FLUSH.with(Directives { placement, placed: true, updates: true, ..Directives::NONE })
    }

    /// The command with these directives.
    #[inline]
    #[must_use]
    pub const fn with(self, directives: Directives) -> Command {
        Command { directives, ..self }
    }

    /// The command, a write, programmed before the acknowledgement if `fua`.
    #[inline]
    #[must_use]
    pub const fn with_fua(self, fua: bool) -> Command {
        Command { directives: Directives { fua, ..self.directives }, ..self }
    }

    /// The command with an action on its zone.
    #[inline]
    #[must_use]
    pub const fn on_zone(self, zone: ZoneAction) -> Command {
        Command { directives: Directives { zone, ..self.directives }, ..self }
    }

    /// The command of this owner.
    #[inline]
    #[must_use]
    pub const fn of(self, owner: u32) -> Command {
        Command { directives: Directives { owner, ..self.directives }, ..self }
    }
}
