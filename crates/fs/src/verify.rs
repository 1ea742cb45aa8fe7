//! Checks of the whole file system against itself and against its device. Slow: for tests and the end of a run.

use super::device::NO_PAGE;
use super::inode::Kind;
use super::space::Part;
use super::{Fault, FileSystem, INODE_FILE, ROOT};

impl FileSystem {
    /// Every page that is pointed to is valid and belongs to who points to it, and no other page is; every inode but the inode
    /// file's and the root's has one name; counts agree, with the pages `written` of each block, too.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&self, written: impl Fn(u32) -> u32) -> Result<(), String> {
        self.space.check(written)?;
        let mut all = self.empty_space();
        for (ino, inode) in
            self.inodes.iter().enumerate().filter_map(|(ino, inode)| Some((ino as u32, inode.as_ref()?)))
        {
            let mut channels = vec![0; self.shape.channels as usize];
            for (page, pointer) in inode.pages(self.width) {
                all.own(pointer, ino, Part::Page(page));
                channels[self.shape.channel(pointer) as usize] += 1;
            }
            for (index, leaf) in inode.leaves.iter().enumerate() {
                let Some(leaf) = leaf else { continue };
                let used = leaf.pointers.iter().filter(|&&pointer| pointer != NO_PAGE).count();
                if used != leaf.used as usize || used == 0 || (leaf.home == NO_PAGE && !leaf.dirty) {
                    return Err(format!("leaf {index} of inode {ino} counts {} of {used} pointers", leaf.used));
                }
                if leaf.home != NO_PAGE {
                    all.own(leaf.home, ino, Part::Leaf(index as u32));
                }
            }
            if inode.root != NO_PAGE {
                all.own(inode.root, ino, Part::Root);
            }
            if channels != inode.channels {
                return Err(format!("inode {ino} counts {:?} pages in its channels, not {channels:?}", inode.channels));
            }
        }
        let differs = (0..self.shape.pages()).find(|&page| all.owner(page) != self.space.owner(page));
        match differs {
            Some(page) => {
                Err(format!("page {page} belongs to {:?}, not {:?}", all.owner(page), self.space.owner(page)))
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
                let (kind, _) =
                    self.stat(ino).map_err(|_| format!("{name:?} names inode {ino}, which does not exist"))?;
                named[ino as usize] += 1;
                if kind == Kind::Directory && named[ino as usize] == 1 {
                    queue.push(ino);
                }
            }
        }
        let wrong = (0..self.inodes.len()).find(|&ino| named[ino] != u32::from(self.inodes[ino].is_some()));
        match wrong {
            Some(ino) => Err(format!("inode {ino} has {} names", named[ino])),
            None => Ok(()),
        }
    }
}
