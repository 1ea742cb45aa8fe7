//! Inodes that the kernel knows, and the kernel's cache of names, attributes and pages.
//!
//! After a loss of uncommitted changes the kernel's cache may show them, and must be dropped. A separate thread does
//! that, because the kernel waits for other requests meanwhile. Names expire within a second. Ignored: mapped pages
//! that were not written back, which the kernel writes first.

use fuser::{INodeNo, Notifier};
use palimpsest_lab::host::fs::ROOT;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lookups of each inode by the kernel.
#[derive(Default)]
pub struct Known(Mutex<BTreeMap<u32, u64>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All known inodes except the root.
    pub fn inodes(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// Counts a lookup of `ino`.
    pub fn meet(&self, ino: u32) {
        *self.lock().entry(ino).or_default() += 1;
    }

    /// Takes back `times` lookups of `ino`; returns whether that were the last.
    pub fn forget(&self, ino: u32, times: u64) -> bool {
        let mut known = self.lock();
        let Some(left) = known.get_mut(&ino) else { return false };
        *left = left.saturating_sub(times);
        let is_gone = *left == 0;
        if is_gone {
            known.remove(&ino);
        }
        is_gone
    }

    /// Drops the kernel's cache of all inodes at each message of `lost`, until the senders are gone.
    pub fn forget_contents(&self, kernel: &Notifier, lost: &Receiver<()>, say: &dyn Fn(&str)) {
        for () in lost {
            for ino in std::iter::once(ROOT).chain(self.inodes()) {
                if let Err(error) = kernel.inval_inode(INodeNo(ino.into()), 0, 0) {
                    say(&format!("{error}; programs may read lost data from the kernel's cache"));
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
