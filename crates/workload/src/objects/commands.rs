//! The commands of a cache that wait for the run, and the places of the cache's parts.

use crate::request::{Command, Directives, Extent, RequestKind};
use std::collections::VecDeque;

/// The owner of the reads of gets. Part `n` of the cache owns its other commands by the number `n + 1`.
pub const OWNER_OF_GETS: u32 = 0;

/// Commands that discard data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trims {
    /// None, as in CacheLib.
    None,
    /// Of deleted objects: the pages that they fill, and emptied buckets.
    Deletes,
    /// Also of evicted regions.
    All,
}

/// The place of a part of the cache.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// First sector.
    pub sector: u64,
    /// Owner of commands other than reads of gets.
    pub owner: u32,
    /// Placement handle of writes; `None`: they name none.
    pub handle: Option<u16>,
}

/// Commands that wait for the run.
#[derive(Default)]
pub struct Commands {
    queue: VecDeque<Command>,
}

impl Commands {
    /// Adds a command of the part at `place` on sectors of the part.
    pub fn push(&mut self, place: Place, kind: RequestKind, sector: u64, sectors: u64) {
        let extent = Extent { sector: place.sector + sector, sectors: sectors as u32 };
        let handle = place.handle.filter(|_| kind == RequestKind::Write);
        self.queue.push_back(Command::new(kind, extent).with(Directives {
            owner: place.owner,
            placement: handle.unwrap_or(0),
            placed: handle.is_some(),
            ..Directives::NONE
        }));
    }

    /// Adds the read of a get.
    pub fn read_for_get(&mut self, place: Place, sector: u64, sectors: u64) {
        self.push(Place { owner: OWNER_OF_GETS, ..place }, RequestKind::Read, sector, sectors);
    }

    /// The next command.
    pub fn next(&mut self) -> Option<Command> {
        self.queue.pop_front()
    }
}
