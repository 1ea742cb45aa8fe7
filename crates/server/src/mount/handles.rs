//! What programs have open: files and directories.

use fuser::FileType;
use std::collections::BTreeMap;

/// A name of a directory, with its number and type.
pub type Entry = (u64, FileType, Vec<u8>);

struct Handle {
    /// Generation of its inode.
    generation: u64,
    /// How often changes were lost when that was last reported to it.
    losses: u64,
    /// Of a directory: what was in it when it was last read from its beginning.
    entries: Vec<Entry>,
}

/// Everything that is open, by its handle.
#[derive(Default)]
pub struct Handles {
    open: BTreeMap<u64, Handle>,
    next: u64,
    losses: u64,
}

impl Handles {
    /// A program has opened something; returns its handle.
    pub fn enter(&mut self, generation: u64) -> u64 {
        self.next += 1;
        self.open.insert(self.next, Handle { generation, losses: self.losses, entries: Vec::new() });
        self.next
    }

    /// It is closed.
    pub fn leave(&mut self, handle: u64) {
        self.open.remove(&handle);
    }

    /// The generation of the inode of `handle`.
    pub fn generation(&self, handle: u64) -> Option<u64> {
        self.open.get(&handle).map(|handle| handle.generation)
    }

    /// Changes were lost so often so far: returns whether that is news.
    pub fn note(&mut self, losses: u64) -> bool {
        std::mem::replace(&mut self.losses, losses) != losses
    }

    /// Whether changes were lost since that was last reported to the program that has `handle`; now it is.
    pub fn has_lost(&mut self, handle: u64) -> bool {
        let now = self.losses;
        self.open.get_mut(&handle).is_some_and(|handle| std::mem::replace(&mut handle.losses, now) != now)
    }

    /// The directory of `handle` is read from its beginning.
    pub fn set_entries(&mut self, handle: u64, entries: Vec<Entry>) {
        if let Some(handle) = self.open.get_mut(&handle) {
            handle.entries = entries;
        }
    }

    /// What was in the directory of `handle` then.
    pub fn entries(&self, handle: u64) -> Option<&[Entry]> {
        self.open.get(&handle).map(|handle| &handle.entries[..])
    }
}
