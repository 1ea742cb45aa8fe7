//! Words of inodes for the user of the file system, and the room that is left.

use super::device::{Device, NO_PAGE};
use super::inode::ATTRIBUTES;
use super::log::Record;
use super::{Done, FileSystem};

/// Words of an inode without a meaning here: modes, owners and times.
pub const WORDS: usize = ATTRIBUTES;

impl FileSystem {
    /// The words of `ino` without a meaning here.
    pub fn words(&self, ino: u32) -> Done<&[u32; WORDS]> {
        self.inode(ino).map(|inode| inode.words[..WORDS].try_into().expect("the words of its user"))
    }

    /// Sets words of `ino`, each with its place, in one commit.
    pub fn set_words(&mut self, device: &mut dyn Device, ino: u32, changes: &[(usize, u32)]) -> Done<()> {
        self.inode(ino)?;
        self.make_room(device, 8)?;
        for &(place, value) in changes {
            assert!(place < WORDS, "a word of an inode");
            self.set_word(ino, place, value);
        }
        Ok(())
    }

    pub(super) fn set_word(&mut self, ino: u32, place: usize, value: u32) {
        if std::mem::replace(&mut self.inode_mut(ino).words[place], value) != value {
            self.touch(ino);
            self.record(Record::Word { ino, place: place as u32, value });
        }
    }

    /// Pages left for files and metadata; a commit may free more.
    pub fn room(&self) -> u64 {
        let taken = self.taken();
        (Self::capacity(self.shape) - taken as i64).max(0) as u64
    }

    /// Pages of files and metadata after a commit, and reserved pages.
    pub fn taken(&self) -> u64 {
        self.allocator.valid_pages() + self.pending + self.reserved.taken(self.width)
    }

    /// The first page of `ino` from `page` on that is no hole.
    pub fn next_page(&self, ino: u32, page: u32) -> Done<Option<u32>> {
        Ok(self.inode(ino)?.pages(self.width).map(|(at, _)| at).find(|&at| at >= page))
    }

    /// The first page of `ino` from `page` on that is a hole.
    pub fn next_hole(&self, ino: u32, page: u32) -> Done<u32> {
        let (mut hole, inode) = (page, self.inode(ino)?);
        while hole < self.most_pages() && inode.pointer(hole, self.width) != NO_PAGE {
            hole += 1;
        }
        Ok(hole)
    }

    /// Inodes in use.
    pub fn inodes(&self) -> u64 {
        (self.inodes.len() - self.unused.len()) as u64
    }

    /// Pages of `ino` that are no holes, or reserved.
    pub fn pages_of(&self, ino: u32) -> Done<u64> {
        let held: u64 = self.inode(ino)?.channels.iter().map(|&pages| u64::from(pages)).sum();
        Ok(held + self.reserved.pages_of(ino))
    }
}
