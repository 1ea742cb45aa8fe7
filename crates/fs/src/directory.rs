//! Directories: files whose pages hold names and inode numbers.
//!
//! A page holds entries one after the other, each an inode number (4 bytes), the length of the name (2) and the name; a
//! length of 0 ends them. No entry crosses a page. Memory holds all names of a directory, in order.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an entry beside the name.
const ENTRY_BYTES: usize = 6;
/// Longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// A directory in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// Inode number of each name, and the page of the entry.
    names: BTreeMap<Box<[u8]>, (u32, u32)>,
    /// Bytes used in each page.
    taken: Vec<usize>,
    /// First page for the search for room.
    roomy: u32,
    /// Pages that differ from their copy on the device.
    pub dirty: BTreeSet<u32>,
    pub parent: u32,
}

palimpsest_flash::state!(Directory { names, taken, roomy, dirty, parent });

impl Directory {
    pub fn get(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).map(|&(ino, _)| ino)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.names.iter().map(|(name, &(ino, _))| (&**name, ino))
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn pages(&self) -> u32 {
        self.taken.len() as u32
    }

    /// Adds `name`, a new name, to a page with room or to a new page.
    pub fn insert(&mut self, name: &[u8], ino: u32, page_bytes: usize) {
        let needs = ENTRY_BYTES + name.len();
        let fits = |&page: &u32| self.taken[page as usize] + needs <= page_bytes;
        let page = (self.roomy..self.pages()).find(fits).unwrap_or(self.pages());
        if page == self.pages() {
            self.taken.push(0);
        }
        self.roomy = self.roomy.max(page.saturating_sub(1));
        self.taken[page as usize] += needs;
        self.names.insert(name.into(), (ino, page));
        self.dirty.insert(page);
    }

    pub fn remove(&mut self, name: &[u8]) {
        if let Some((_, page)) = self.names.remove(name) {
            self.taken[page as usize] -= ENTRY_BYTES + name.len();
            self.roomy = self.roomy.min(page);
            self.dirty.insert(page);
        }
    }

    pub fn encode(&self, pages: &BTreeSet<u32>, page_bytes: usize) -> BTreeMap<u32, Vec<u8>> {
        let mut encoded: BTreeMap<u32, Vec<u8>> = pages.iter().map(|&page| (page, Vec::new())).collect();
        for (name, &(ino, page)) in &self.names {
            if let Some(bytes) = encoded.get_mut(&page) {
                bytes.extend_from_slice(&ino.to_le_bytes());
                bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
                bytes.extend_from_slice(name);
            }
        }
        encoded.values_mut().for_each(|bytes| bytes.resize(page_bytes, 0));
        encoded
    }

    /// Adds the entries of page `page`; false if the bytes are malformed.
    pub fn decode(&mut self, page: u32, bytes: &[u8]) -> bool {
        if self.taken.len() <= page as usize {
            self.taken.resize(page as usize + 1, 0);
        }
        let mut rest = bytes;
        while rest.len() > ENTRY_BYTES {
            let length = usize::from(u16::from_le_bytes([rest[4], rest[5]]));
            if length == 0 {
                break;
            }
            let Some(name) = rest.get(ENTRY_BYTES..ENTRY_BYTES + length) else { return false };
            let ino = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
            self.names.insert(name.into(), (ino, page));
            rest = &rest[ENTRY_BYTES + length..];
        }
        self.taken[page as usize] = bytes.len() - rest.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_as_they_were() {
        let mut directory = Directory::default();
        for number in 0..200 {
            directory.insert(format!("file {number}").as_bytes(), number, 512);
        }
        (0..200).step_by(3).for_each(|number| directory.remove(format!("file {number}").as_bytes()));
        directory.insert(&[0xff; LONGEST_NAME], 7, 512);
        let mut again = Directory::default();
        for (page, bytes) in directory.encode(&(0..directory.pages()).collect(), 512) {
            assert_eq!(bytes.len(), 512);
            assert!(again.decode(page, &bytes));
        }
        assert_eq!((&again.names, &again.taken), (&directory.names, &directory.taken));
    }
}
