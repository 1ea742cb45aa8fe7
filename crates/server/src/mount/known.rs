//! Inodes that the kernel knows, and what it keeps of them: names, attributes, pages.
//!
//! Where changes were lost that were not committed, what it keeps may be of them, and it is made to forget that: by a thread of its own, as
//! the kernel waits there for requests that it has sent. Names go by themselves, in a second. Ignored: pages that a program has
//! changed by a mapping and that were not written yet: the kernel writes them first.

use fuser::Notifier;
use palimpsest_lab::host::fs::ROOT;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often the kernel has looked up each inode that it knows.
#[derive(Default)]
pub struct Known(Mutex<BTreeMap<u32, u64>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, but for the root.
    pub fn inodes(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// The kernel has looked `ino` up.
    pub fn meet(&self, ino: u32) {
        *self.lock().entry(ino).or_default() += 1;
    }

    /// The kernel forgets so many of these; whether it knew `ino`, and knows it no more.
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

    /// Each time that `lost` says so the kernel forgets what it keeps of all of them; until no one can say so any more.
    pub fn forget_contents(&self, kernel: &Notifier, lost: &Receiver<()>, say: &dyn Fn(&str)) {
        for () in lost {
            for ino in std::iter::once(ROOT).chain(self.inodes()) {
                match kernel.inval_inode(u64::from(ino), 0, 0) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        say(&format!("{error}; the kernel may show what is lost"));
                        break;
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_known_until_all_of_its_lookups_are_forgotten() {
        let known = Known::default();
        (0..3).for_each(|_| known.meet(7));
        known.meet(9);
        assert_eq!((known.forget(7, 2), known.inodes()), (false, vec![7, 9]));
        assert_eq!((known.forget(7, 5), known.inodes()), (true, vec![9]));
        assert!(!known.forget(7, 1), "once");
    }
}
