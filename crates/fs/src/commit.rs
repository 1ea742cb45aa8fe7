//! Commits: all changes go to new places, by the [log](super::log) or with the tree, from leaves to root; one page
//! makes them valid.
//!
//! Order for the tree: pages of directories, then leaves and roots of inodes, then pages of the inode file, then the
//! leaves and root of the inode file; a barrier; the checkpoint, which holds the inode of the inode file; a barrier;
//! the trims. Checkpoints, each followed by commit records of the log, fill two blocks in turn: a block is trimmed
//! before its first checkpoint, while the other holds the newest.
//!
//! `commit` and `log` use each other: a block of checkpoints has records of both, and both read pages of metadata.

use super::allocator::Role;
use super::device::{Device, NO_PAGE, Purpose, Shape};
use super::inode::{INODE_BYTES, Inode};
use super::{Done, Fault, FileSystem, INODE_FILE};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::rng::mix;
use std::collections::BTreeMap;

/// First bytes of a checkpoint.
const MAGIC: u64 = 0x7061_6c69_6d70_6673;
/// Offsets of the fields of a checkpoint.
const AT_SEQUENCE: usize = 8;
const AT_SHAPE: usize = 16;
const AT_INODE: usize = 24;
const AT_SUM: usize = AT_INODE + INODE_BYTES;

pub(super) struct Checkpoint {
    pub sequence: u64,
    pub inode_file: Inode,
    /// Page of the single indirect leaf of the inode file.
    pub single: u32,
}

pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    words.fold(MAGIC, |sum, word| mix(sum.rotate_left(7) ^ word))
}

/// A hash of the shape: a mount refuses a file system of another shape.
pub(super) fn fingerprint(shape: Shape) -> u64 {
    let Shape { channels, lanes, blocks_per_channel, pages_per_block, page_bytes, .. } = shape;
    let parts = [channels, lanes, blocks_per_channel, pages_per_block, page_bytes];
    parts.into_iter().fold(MAGIC, |all, part| mix(all.rotate_left(9) ^ u64::from(part)))
}

impl Checkpoint {
    /// The checkpoint in `bytes`, if there is one for `shape`.
    pub(super) fn decode(bytes: &[u8], shape: Shape) -> Option<Checkpoint> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if word(0) != MAGIC || word(AT_SHAPE) != fingerprint(shape) || word(AT_SUM) != sum(&bytes[..AT_SUM]) {
            return None;
        }
        let (inode_file, single) = Inode::decode(&bytes[AT_INODE..AT_SUM], shape.channels)?;
        Some(Checkpoint { sequence: word(AT_SEQUENCE), inode_file, single })
    }

    fn encode(shape: Shape, sequence: u64, inode_file: &Inode) -> Vec<u8> {
        let mut bytes = vec![0; shape.page_bytes as usize];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[AT_SEQUENCE..AT_SHAPE].copy_from_slice(&sequence.to_le_bytes());
        bytes[AT_SHAPE..AT_INODE].copy_from_slice(&fingerprint(shape).to_le_bytes());
        inode_file.encode(&mut bytes[AT_INODE..AT_SUM]);
        let check = sum(&bytes[..AT_SUM]);
        bytes[AT_SUM..AT_SUM + 8].copy_from_slice(&check.to_le_bytes());
        bytes
    }
}

/// Reads `page`, which must be a page of bytes; `None` if the read is uncorrectable.
pub(super) fn read_metadata(device: &mut dyn Device, page: u32) -> Done<Option<Vec<u8>>> {
    let mut contents = Vec::new();
    if page >= device.shape().pages() || !device.read(page, Purpose::Metadata, &mut contents)? {
        return Err(Fault::Corrupt("a pointer leads to a page that was not written"));
    }
    if contents.contains(&Data::LOST) {
        return Ok(None);
    }
    device.bytes(&contents).map(Some).ok_or(Fault::Corrupt("a page of metadata has other contents"))
}

/// Number of the commit that wrote `bytes` to a block of checkpoints; 0 for other bytes.
fn number(bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    if [MAGIC, super::log::MAGIC].contains(&word(0)) { word(AT_SEQUENCE) } else { 0 }
}

/// The two blocks of checkpoints, as read.
#[derive(Default)]
pub(super) struct Anchors {
    /// The newest checkpoint, with the anchor and the page there.
    pub newest: Option<(Checkpoint, usize, u32)>,
    /// The highest number of a commit.
    pub highest: u64,
    /// The first and the last unreadable page of each.
    unreadable: [Option<(u32, u32)>; 2],
    /// Whether all pages of each are written.
    pub is_full: [bool; 2],
    /// The readable pages of each, the last first. A second read could fail.
    pages: [Vec<(u32, Vec<u8>)>; 2],
}

impl Anchors {
    /// Reads all pages: after an undone trim older ones follow newer ones.
    pub(super) fn read(device: &mut dyn Device, shape: Shape) -> Done<Anchors> {
        let mut anchors = Anchors::default();
        for (index, block) in FileSystem::anchors(shape).into_iter().enumerate() {
            let first = block * shape.pages_per_block;
            anchors.is_full[index] = device.written(block) == shape.pages_per_block;
            for page in (first..first + device.written(block)).rev() {
                let mut contents = Vec::new();
                if !device.read(page, Purpose::Metadata, &mut contents)? {
                    continue;
                }
                if contents.contains(&Data::LOST) {
                    let at = page - first;
                    anchors.unreadable[index] = Some((at, anchors.unreadable[index].map_or(at, |(_, last)| last)));
                    continue;
                }
                let Some(bytes) = device.bytes(&contents) else { continue };
                anchors.highest = anchors.highest.max(number(&bytes));
                let found = Checkpoint::decode(&bytes, shape);
                anchors.pages[index].push((page - first, bytes));
                let Some(found) = found else { continue };
                if anchors.newest.as_ref().is_none_or(|(best, ..)| found.sequence > best.sequence) {
                    anchors.newest = Some((found, index, page - first));
                }
            }
        }
        Ok(anchors)
    }

    /// The readable pages after page `at` of anchor `index`.
    pub(super) fn after(&self, index: usize, at: u32) -> impl Iterator<Item = &[u8]> {
        self.pages[index].iter().rev().filter(move |(page, _)| *page > at).map(|(_, bytes)| &bytes[..])
    }

    /// Whether there were commits.
    pub(super) fn is_used(&self) -> bool {
        self.highest > 0 || self.unreadable != [None; 2]
    }

    /// Whether the first page of anchor `index` is unreadable.
    pub(super) fn misses_first(&self, index: usize) -> bool {
        self.unreadable[index].is_some_and(|(first, _)| first == 0)
    }

    /// Whether an unreadable page may hold a commit newer than all readable ones. Older states of the file system lead
    /// to pages that were trimmed since.
    pub(super) fn miss_commit(&self) -> bool {
        let Some((_, anchor, at)) = &self.newest else { return self.unreadable != [None; 2] };
        self.unreadable[*anchor].is_some_and(|(_, last)| last > *at)
            || (self.is_full[*anchor] && self.misses_first(1 - anchor))
    }
}

fn pointers(shape: Shape, pointers: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut bytes = vec![u8::MAX; shape.page_bytes as usize];
    for (place, pointer) in bytes.chunks_exact_mut(4).zip(pointers) {
        place.copy_from_slice(&pointer.to_le_bytes());
    }
    bytes
}

impl FileSystem {
    /// Writes the page of metadata that `encode` makes; returns the address.
    pub(super) fn write_metadata(
        &mut self,
        device: &mut dyn Device,
        encode: impl FnOnce(&Self) -> Vec<u8>,
    ) -> Done<u32> {
        let to = self.allocator.allocate_metadata(self.metadata_turn, self.has_plenty()).ok_or(Fault::Full)?;
        self.metadata_turn = (self.metadata_turn + 1) % self.shape.channels;
        let contents = match device.anything() {
            Some(contents) => contents,
            None => device.hold(&encode(self)),
        };
        device.write(to, &contents, Purpose::Metadata)?;
        self.counters.metadata_pages += 1;
        Ok(to)
    }

    /// Makes the present tree the one that a mount finds; trims pages and blocks that left it.
    pub(super) fn commit(&mut self, device: &mut dyn Device) -> Done<()> {
        if self.has_changed || self.sequence == 0 {
            if self.is_tree_due() {
                self.write_tree(device)?;
            } else if let Err(fault) = self.write_log(device) {
                // The records are gone.
                self.log.want_tree();
                return Err(fault);
            }
            self.has_changed = false;
            self.uncommitted = 0;
            self.sequence += 1;
            self.counters.commits += 1;
            for (first, pages) in self.allocator.take_freed() {
                device.discard(first, pages)?;
            }
        }
        self.trim_empty(device)
    }

    /// Trims the written blocks without valid pages, which no mount can need any more.
    pub(super) fn trim_empty(&mut self, device: &mut dyn Device) -> Done<()> {
        for block in self.allocator.take_empty() {
            device.trim(block)?;
            self.allocator.trimmed(block);
            self.counters.trimmed += 1;
        }
        Ok(())
    }

    /// Commits with the tree, whatever the log would cost; no page waits for a commit afterwards.
    pub(super) fn commit_tree(&mut self, device: &mut dyn Device) -> Done<()> {
        if self.pending > 0 || !self.log.pages.is_empty() {
            self.log.want_tree();
            self.has_changed = true;
        }
        self.commit(device)
    }

    pub(super) fn write_tree(&mut self, device: &mut dyn Device) -> Done<()> {
        let dirty: Vec<u32> = self.dirty.iter().copied().filter(|&ino| ino != INODE_FILE).collect();
        for ino in dirty {
            self.write_entries(device, ino)?;
            self.write_pointers(device, ino)?;
        }
        for page in std::mem::take(&mut self.dirty_inode_pages) {
            if self.inodes_in(page).any(|(_, inode)| inode.is_some()) {
                let to = self.write_metadata(device, |filesystem| filesystem.encode_inodes(page))?;
                self.point(INODE_FILE, page, to);
            } else if self.inode(INODE_FILE)?.pointer(page, self.width) != NO_PAGE {
                self.point(INODE_FILE, page, NO_PAGE);
            }
        }
        self.write_pointers(device, INODE_FILE)?;
        let checkpoint = Checkpoint::encode(self.shape, self.sequence + 1, self.inode(INODE_FILE)?);
        self.write_anchor(device, &checkpoint)?;
        for page in self.log.restart(self.sequence + 1) {
            self.allocator.disown(page);
        }
        for ino in std::mem::take(&mut self.dirty) {
            self.inode_mut(ino).dirty = false;
        }
        self.pending = 0;
        Ok(())
    }

    /// Writes the changed pages of directory `ino`; returns their number.
    pub(super) fn write_entries(&mut self, device: &mut dyn Device, ino: u32) -> Done<u64> {
        let page_bytes = self.shape.page_bytes as usize;
        let Some(directory) = self.directories.get_mut(&ino) else { return Ok(0) };
        let dirty = std::mem::take(&mut directory.dirty);
        let written = dirty.len() as u64;
        // Encoding walks all names.
        let mut encoded =
            if device.anything().is_some() { BTreeMap::new() } else { directory.encode(&dirty, page_bytes) };
        for page in dirty {
            let to = self.write_metadata(device, |_| encoded.remove(&page).unwrap_or_default())?;
            self.point(ino, page, to);
        }
        Ok(written)
    }

    fn write_pointers(&mut self, device: &mut dyn Device, ino: u32) -> Done<()> {
        for index in 0..self.inode(ino)?.leaves.len() {
            if self.inode(ino)?.leaves[index].as_ref().is_some_and(|leaf| leaf.dirty) {
                self.write_leaf(device, ino, index)?;
            }
        }
        let inode = self.inode(ino)?;
        if inode.root_dirty && inode.leaves.len() > 1 {
            self.write_root(device, ino)?;
        }
        Ok(())
    }

    /// Writes leaf `index` of `ino`, which must exist; returns the page.
    pub(super) fn write_leaf(&mut self, device: &mut dyn Device, ino: u32, index: usize) -> Done<u32> {
        let shape = self.shape;
        let to = self.write_metadata(device, |filesystem| {
            let inode = filesystem.inodes[ino as usize].as_ref();
            let leaf = inode.and_then(|inode| inode.leaves[index].as_ref()).expect("the leaf that is written");
            pointers(shape, leaf.pointers.iter().copied())
        })?;
        self.allocator.own(to, ino, Role::Leaf(index as u32));
        let leaf = self.inode_mut(ino).leaves[index].as_mut().expect("the leaf that was written");
        leaf.dirty = false;
        let old = std::mem::replace(&mut leaf.home, to);
        self.allocator.disown(old);
        Ok(to)
    }

    /// Writes the page of pointers to the leaves of `ino`; returns the address.
    pub(super) fn write_root(&mut self, device: &mut dyn Device, ino: u32) -> Done<u32> {
        let shape = self.shape;
        let to = self.write_metadata(device, |filesystem| {
            let inode = filesystem.inodes[ino as usize].as_ref().expect("the inode that is written");
            let homes = inode.leaves[1..].iter().map(|leaf| leaf.as_ref().map_or(NO_PAGE, |leaf| leaf.home));
            pointers(shape, homes)
        })?;
        self.allocator.own(to, ino, Role::Root);
        let inode = self.inode_mut(ino);
        inode.root_dirty = false;
        let old = std::mem::replace(&mut inode.root, to);
        self.allocator.disown(old);
        Ok(to)
    }

    /// The slots of page `page` of the inode file, with their inodes, except the inode of the inode file, which is in
    /// the checkpoint.
    fn inodes_in(&self, page: u32) -> impl Iterator<Item = (usize, Option<&Inode>)> {
        let first = (page * self.inodes_per_page()) as usize;
        (0..self.inodes_per_page() as usize).map(move |index| {
            let own = first + index == INODE_FILE as usize;
            (index, self.inodes.get(first + index).and_then(Option::as_ref).filter(|_| !own))
        })
    }

    pub(super) fn encode_inodes(&self, page: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.shape.page_bytes as usize];
        for (index, inode) in self.inodes_in(page) {
            if let Some(inode) = inode {
                inode.encode(&mut bytes[index * INODE_BYTES..][..INODE_BYTES]);
            }
        }
        bytes
    }

    /// Empties anchor `index`, which holds no commit that counts, and writes a readable first page there.
    pub(super) fn begin_anchor(&mut self, device: &mut dyn Device, index: usize) -> Done<()> {
        let block = Self::anchors(self.shape)[index];
        device.trim(block)?;
        let nothing = device.hold(&vec![0; self.shape.page_bytes as usize]);
        device.write(block * self.shape.pages_per_block, &nothing, Purpose::Metadata)?;
        self.counters.metadata_pages += 1;
        Ok(device.barrier()?)
    }

    /// Writes `bytes` to the next page of the blocks of checkpoints, between two barriers.
    pub(super) fn write_anchor(&mut self, device: &mut dyn Device, bytes: &[u8]) -> Done<()> {
        let anchors = Self::anchors(self.shape);
        if self.anchor_next == self.shape.pages_per_block {
            self.anchor = 1 - self.anchor;
            self.anchor_next = 0;
            device.trim(anchors[self.anchor])?;
        }
        let contents = device.hold(bytes);
        device.barrier()?;
        device.write(
            anchors[self.anchor] * self.shape.pages_per_block + self.anchor_next,
            &contents,
            Purpose::Metadata,
        )?;
        device.barrier()?;
        self.anchor_next += 1;
        self.counters.metadata_pages += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
