//! Consistency checks of the whole file system and the device. Slow: for tests and the end of a run.

use super::allocator::Role;
use super::device::NO_PAGE;
use super::inode::{ATTRIBUTES, FileType, LINKS};
use super::{Fault, FileSystem, INODE_FILE, ROOT};

impl FileSystem {
    /// Checks that a page is valid if and only if a pointer leads to it, and belongs to that inode; that every inode
    /// has the counted number of names; and that counts agree, also with the `written` pages of each block.
    ///
    /// # Errors
    /// The disagreement.
    pub fn check(&self, written: impl Fn(u32) -> u32) -> Result<(), String> {
        self.allocator.check(written)?;
        let mut all = self.empty_allocator();
        for (index, &page) in self.log.pages.iter().enumerate() {
            all.own(page, INODE_FILE, Role::Log(index as u32));
        }
        for (ino, inode) in
            self.inodes.iter().enumerate().filter_map(|(ino, inode)| Some((ino as u32, inode.as_ref()?)))
        {
            let mut channels = vec![0; self.shape.channels as usize];
            // Not a loop, which would take a third longer: a loop tests the part of the chain for each entry.
            inode.pages(self.width).for_each(|(page, pointer)| {
                all.own(pointer, ino, Role::DataPage(page));
                channels[self.shape.channel(pointer) as usize] += 1;
            });
            for (index, leaf) in inode.leaves.iter().enumerate() {
                let Some(leaf) = leaf else { continue };
                let used = leaf.pointers.iter().filter(|&&pointer| pointer != NO_PAGE).count();
                if used != leaf.used as usize || used == 0 || (leaf.home == NO_PAGE && !leaf.dirty) {
                    return Err(format!("leaf {index} of inode {ino} counts {} of {used} pointers", leaf.used));
                }
                if leaf.home != NO_PAGE {
                    all.own(leaf.home, ino, Role::Leaf(index as u32));
                }
            }
            if inode.root != NO_PAGE {
                all.own(inode.root, ino, Role::Root);
            }
            if channels != inode.channels {
                return Err(format!("inode {ino} counts {:?} pages in its channels, not {channels:?}", inode.channels));
            }
        }
        match self.allocator.other_owner(&all) {
            Some(page) => {
                Err(format!("page {page} belongs to {:?}, not {:?}", all.owner(page), self.allocator.owner(page)))
            }
            None => self.check_names(),
        }
    }

    fn check_names(&self) -> Result<(), String> {
        let mut named = vec![0u32; self.inodes.len()];
        named[ROOT as usize] = 1;
        named[INODE_FILE as usize] = 1;
        let mut queue = vec![ROOT];
        while let Some(directory) = queue.pop() {
            let names = self.list(directory).map_err(|fault: Fault| format!("inode {directory}: {fault:?}"))?;
            for (name, ino) in names {
                let (file_type, _) = self
                    .stat(ino)
                    .map_err(|_| format!("{} names inode {ino}, which does not exist", name.escape_ascii()))?;
                named[ino as usize] += 1;
                if file_type == FileType::Directory && named[ino as usize] == 1 {
                    queue.push(ino);
                }
            }
        }
        for inode in self.inodes.iter().flatten().filter(|inode| inode.words[ATTRIBUTES] != 0) {
            named[inode.words[ATTRIBUTES] as usize] += 1;
        }
        let names = |ino: &usize| match &self.inodes[*ino] {
            Some(inode) => inode.words[LINKS] + u32::from(!self.orphans.contains(&(*ino as u32))),
            None => 0,
        };
        let wrong = (0..self.inodes.len()).find(|ino| named[*ino] != names(ino));
        match wrong {
            Some(ino) => Err(format!("inode {ino} has {} names", named[ino])),
            None => Ok(()),
        }
    }
}
