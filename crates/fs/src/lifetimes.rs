//! Expected lifetimes of file pages, in file pages written: the hint that the file system attaches to each write.
//!
//! Beyond the papers ("hot data identification in file system to help FTL design", future work of the co-design paper).
//! The estimate is the mean of an exponential distribution from censored samples: the total lifetime of all pages of a
//! file so far, divided by the number of invalidations (overwrites, truncations, deletions). So a page that is never
//! written again makes its file cold without an invalidation. A new file starts with the mean of its file groups (files
//! of the directory, and files of the suffix), which weighs as one invalidation until the file has [`ENOUGH`]; without
//! such a mean it starts with the mean of all files. A history is halved whenever it reaches [`WINDOW`] invalidations.
//!
//! In the host's memory, 32 bytes a file; lost at a power cut, after which lifetimes of valid pages start at the mount.

use palimpsest_flash::command::Lifetime;
use palimpsest_flash::geometry::FileGroup;
use std::collections::BTreeMap;

/// Invalidations of a file after which its groups no longer count.
const ENOUGH: u64 = 8;
/// Invalidations after which a history is halved.
const WINDOW: u64 = 128;

/// Lifetimes of a set of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct History {
    /// Valid pages, and the time up to which `total_lifetime` counts.
    valid: u64,
    since: u64,
    /// Sum of the lifetimes of all pages so far, and the number of invalidated ones.
    total_lifetime: u64,
    invalidations: u64,
}

palimpsest_flash::state!(History { valid, since, total_lifetime, invalidations });

impl History {
    fn at(self, now: u64) -> Self {
        History { since: now, total_lifetime: self.total_lifetime + self.valid * (now - self.since), ..self }
    }

    fn programmed(&mut self, now: u64) {
        *self = self.at(now);
        self.valid += 1;
    }

    fn invalidated(&mut self, now: u64) {
        *self = self.at(now);
        self.valid = self.valid.saturating_sub(1);
        self.invalidations += 1;
        if self.invalidations >= WINDOW {
            (self.total_lifetime, self.invalidations) = (self.total_lifetime / 2, self.invalidations / 2);
        }
    }

    /// Mean lifetime; `None` before the first invalidation.
    fn mean(self, now: u64) -> Option<u64> {
        self.at(now).total_lifetime.checked_div(self.invalidations)
    }
}

/// Histories of all files and groups.
#[derive(Debug, Clone, Default)]
pub(super) struct Lifetimes {
    /// Pages of files written so far.
    now: u64,
    /// By inode.
    files: Vec<(History, FileGroup)>,
    directories: BTreeMap<u64, History>,
    suffixes: BTreeMap<u64, History>,
    all: History,
}

palimpsest_flash::state!(Lifetimes { now, files, directories, suffixes, all });

impl Lifetimes {
    /// Starts the history of the file `ino` in `group`.
    pub fn begin(&mut self, ino: u32, group: FileGroup) {
        if self.files.len() <= ino as usize {
            self.files.resize(ino as usize + 1, <(History, FileGroup)>::default());
        }
        self.files[ino as usize] = (History::default(), group);
    }

    fn each(&mut self, ino: u32, change: impl Fn(&mut History, u64)) {
        if self.files.len() <= ino as usize {
            self.begin(ino, FileGroup::default());
        }
        let (now, (file, group)) = (self.now, &mut self.files[ino as usize]);
        change(file, now);
        change(&mut self.all, now);
        for (histories, key) in [(&mut self.directories, group.directory), (&mut self.suffixes, group.suffix)] {
            if key != 0 {
                change(histories.entry(key).or_default(), now);
            }
        }
    }

    /// Counts a written page of the file `ino`.
    pub fn programmed(&mut self, ino: u32) {
        self.now += 1;
        self.each(ino, History::programmed);
    }

    /// Counts an invalidated page of the file `ino`.
    pub fn invalidated(&mut self, ino: u32) {
        self.each(ino, History::invalidated);
    }

    /// Expected lifetime of pages of the file `ino` that are written now.
    pub fn expect(&self, ino: u32) -> Lifetime {
        let (file, group) = self.files.get(ino as usize).copied().unwrap_or_default();
        let of = |histories: &BTreeMap<u64, History>, key: u64| {
            let history = histories.get(&key).copied().unwrap_or_default().at(self.now);
            (history.total_lifetime, history.invalidations)
        };
        let (directory, suffix) = (of(&self.directories, group.directory), of(&self.suffixes, group.suffix));
        let alike = (directory.0 + suffix.0).checked_div(directory.1 + suffix.1);
        let own = file.at(self.now);
        if own.invalidations >= ENOUGH {
            return Lifetime::of_pages(own.total_lifetime / own.invalidations);
        }
        let Some(before) = alike.or_else(|| self.all.mean(self.now)) else { return Lifetime::Unknown };
        Lifetime::of_pages((own.total_lifetime + before) / (own.invalidations + 1))
    }
}

#[cfg(test)]
mod tests;
