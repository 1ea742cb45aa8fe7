//! Uncorrectable reads of metadata at a mount: the result is a whole file system with fewer files.
//!
//! While mounted, the file system reads no metadata, so a loss appears at the next mount. An unreadable page of
//! pointers loses the file, an unreadable page of inodes all files there, an unreadable page of a directory the names
//! there. A file that lost the name becomes `#INODE` in the root directory, and names without a file are removed. The
//! next commit writes the whole tree ([`FileSystem::repair`]), and unreadable pages stay until then. Without the last
//! commit nothing is left ([`Fault::Unreadable`]), because blocks that this commit freed may hold other data by now.
//!
//! Ignored: second copies of metadata, and a search for pages without a pointer.

use super::device::Device;
use super::inode::{ATTRIBUTES, FileType, Inode, LINKS};
use super::{Done, Fault, FileSystem, INODE_FILE, NO_PAGE, ROOT};
use std::collections::BTreeSet;
use std::ops::Range;

const NO_INODE: &str = "a name leads to no inode";

/// Inodes that a mount could not read.
#[derive(Default)]
pub(super) struct Losses {
    /// Inodes whose pointers are unreadable.
    pub inodes: BTreeSet<u32>,
    /// Unreadable pages of the inode file.
    pub pages: BTreeSet<u32>,
    /// Pages of the inode file whose pointers are unreadable.
    pub leaves: Vec<Range<u32>>,
}

impl Losses {
    /// Whether `ino` is lost, if the inode existed.
    pub(super) fn holds(&self, filesystem: &FileSystem, ino: u32) -> bool {
        let page = ino / filesystem.inodes_per_page();
        let has_pointer = || {
            filesystem.inodes[INODE_FILE as usize]
                .as_ref()
                .is_some_and(|inode| inode.pointer(page, filesystem.width) != NO_PAGE)
        };
        ino != INODE_FILE
            && (self.inodes.contains(&ino)
                || self.pages.contains(&page)
                || (self.leaves.iter().any(|leaf| leaf.contains(&page)) && !has_pointer()))
    }
}

impl FileSystem {
    /// Removes the inodes `lost`, and marks their records as changed.
    pub(super) fn mark_lost(&mut self, lost: &Losses) {
        if !lost.leaves.is_empty() {
            self.touch(INODE_FILE);
            self.pending += 1;
        }
        for &page in &lost.pages {
            self.touch_record((page * self.inodes_per_page()).max(ROOT));
        }
        for &ino in &lost.inodes {
            self.directories.remove(&ino);
            self.touch_record(ino);
            self.inodes[ino as usize] = None;
            self.unused.insert(ino);
        }
        if self.counters.unreadable > 0 && !self.directories.contains_key(&ROOT) {
            self.insert_inode(ROOT, Inode::new(FileType::Directory, self.shape.channels));
            self.touch(ROOT);
        }
    }

    /// Commits the changes of a mount that could not read all metadata.
    pub fn repair(&mut self, device: &mut dyn Device) -> Done<()> {
        self.make_room(device, 0)?;
        self.commit_tree(device)
    }

    /// Finds the parents of directories, and frees inodes that were nameless but open when the power failed.
    pub(super) fn free_nameless(&mut self, device: &mut dyn Device) -> Done<()> {
        let mut names = vec![0; self.inodes.len()];
        let entries: Vec<(u32, Vec<u8>, u32)> = self
            .directories
            .iter()
            .flat_map(|(&parent, directory)| directory.iter().map(move |(name, ino)| (parent, name.to_vec(), ino)))
            .collect();
        let has_losses = self.counters.unreadable > 0;
        for (parent, name, ino) in entries {
            if let Some(directory) = self.directories.get_mut(&ino) {
                directory.parent = parent;
            }
            if has_losses && self.inode(ino).is_err() {
                self.change_entries(parent, |directory| directory.remove(&name));
                continue;
            }
            *names.get_mut(ino as usize).ok_or(Fault::Corrupt(NO_INODE))? += 1;
        }
        for ino in ROOT..self.inodes.len() as u32 {
            let at = self.inode(ino).map_or(0, |inode| inode.words[ATTRIBUTES]);
            let is_file = at > ROOT && self.file(at).is_ok();
            if at != 0 && !is_file && has_losses {
                self.set_word(ino, ATTRIBUTES, 0);
            } else if at != 0 {
                *names.get_mut(at as usize).filter(|_| is_file).ok_or(Fault::Corrupt(NO_INODE))? += 1;
            }
        }
        for ino in ROOT + 1..names.len() as u32 {
            let links = self.inode(ino).map_or(0, |inode| inode.words[LINKS] + 1);
            match names[ino as usize] {
                named if named == links => {}
                named if has_losses => self.name_again(ino, named),
                0 if links == 1 => {
                    self.make_room(device, 8)?;
                    // Frees the attributes, too.
                    let at = self.inode(ino)?.words[ATTRIBUTES];
                    self.discard(ino);
                    names[at as usize] = 0;
                }
                _ => return Err(Fault::Corrupt("an inode counts other names than there are")),
            }
        }
        if has_losses {
            self.log.want_tree();
            self.has_changed = true;
        }
        Ok(())
    }

    /// Makes `ino` count the `named` names that are left; without any, adds one in the root directory.
    fn name_again(&mut self, ino: u32, named: u32) {
        self.set_word(ino, LINKS, named.saturating_sub(1));
        if named == 0 {
            let mut name = format!("#{ino}");
            while self.lookup(ROOT, &name).is_ok() {
                name.push('#');
            }
            self.insert_entry(ROOT, name.as_bytes(), ino);
        }
    }
}
