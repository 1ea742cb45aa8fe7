//! Open files and directories.

use fuser::FileType;
use std::collections::BTreeMap;

/// An entry of a directory: inode number, type, name.
pub type Entry = (u64, FileType, Vec<u8>);

struct Handle {
    /// Generation of the inode.
    generation: u64,
    /// Losses of changes that the program knows of.
    losses: u64,
    /// Entries of a directory at the last read from the beginning.
    entries: Vec<Entry>,
}

/// All open files and directories, by handle.
#[derive(Default)]
pub struct Handles {
    open: BTreeMap<u64, Handle>,
    next: u64,
    losses: u64,
}

impl Handles {
    /// Adds a handle; returns the number.
    pub fn enter(&mut self, generation: u64) -> u64 {
        self.next += 1;
        self.open.insert(self.next, Handle { generation, losses: self.losses, entries: Vec::new() });
        self.next
    }

    /// Closes `handle`.
    pub fn leave(&mut self, handle: u64) {
        self.open.remove(&handle);
    }

    pub fn generation(&self, handle: u64) -> Option<u64> {
        self.open.get(&handle).map(|handle| handle.generation)
    }

    /// Sets the number of losses so far; returns true for a change.
    pub fn note(&mut self, losses: u64) -> bool {
        std::mem::replace(&mut self.losses, losses) != losses
    }

    /// Whether changes were lost since the last call for `handle`.
    pub fn has_lost(&mut self, handle: u64) -> bool {
        let now = self.losses;
        self.open.get_mut(&handle).is_some_and(|handle| std::mem::replace(&mut handle.losses, now) != now)
    }

    /// Sets the entries of the directory of `handle`.
    pub fn set_entries(&mut self, handle: u64, entries: Vec<Entry>) {
        if let Some(handle) = self.open.get_mut(&handle) {
            handle.entries = entries;
        }
    }

    pub fn entries(&self, handle: u64) -> Option<&[Entry]> {
        self.open.get(&handle).map(|handle| &handle.entries[..])
    }
}
