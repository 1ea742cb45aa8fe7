//! Format and mount. A mount reads the newest checkpoint and the tree below it, and applies the [log](super::log) after
//! that checkpoint.
//!
//! Every page of the tree and of the log is valid; other written pages are invalid, whatever their state before a power
//! cut. [`super::repair`] states the result of uncorrectable reads.

use super::allocator::{PageAllocator, Role};
use super::commit::{Anchors, read_metadata};
use super::device::{Device, NO_PAGE, Purpose};
use super::inode::{DIRECT, FileType, INODE_BYTES, Inode, Leaf};
use super::log::Replay;
use super::repair::Losses;
use super::schemes::Scheme;
use super::{Done, Fault, FileSystem, INODE_FILE, ROOT, Thresholds};
use palimpsest_flash::nand::data::Data;
use std::ops::Range;

fn pointers(bytes: &[u8]) -> Box<[u32]> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes"))).collect()
}

/// Trims a block if none is free. Unless the blocks of checkpoints `miss` a commit, unreadable pages of the log stay
/// while a block without such pages can go. If there is none, a power cut before the first commit may bring back an
/// older commit.
fn free_block(device: &mut dyn Device, miss: bool) -> Done<()> {
    let (shape, mut contents) = (device.shape(), Vec::new());
    let mut blocks = (0..shape.blocks()).filter(|block| !FileSystem::anchors(shape).contains(block));
    if blocks.clone().any(|block| device.written(block) == 0) {
        return Ok(());
    }
    for block in blocks.clone() {
        let (first, mut may_go) = (block * shape.pages_per_block, true);
        for page in first..first + device.written(block) {
            contents.clear();
            may_go &= miss || !(device.read(page, Purpose::Metadata, &mut contents)? && contents.contains(&Data::LOST));
        }
        if may_go {
            return Ok(device.trim(block)?);
        }
    }
    blocks.next().map_or(Ok(()), |block| Ok(device.trim(block)?))
}

/// Finishes the blocks that are written in part, except blocks of checkpoints, where the device limits such blocks.
fn finish_begun(device: &mut dyn Device) -> Done<()> {
    let shape = device.shape();
    for block in (0..shape.blocks()).filter(|block| !FileSystem::anchors(shape).contains(block)) {
        if shape.most_active > 0 && (1..shape.pages_per_block).contains(&device.written(block)) {
            device.finish(block)?;
        }
    }
    Ok(())
}

impl FileSystem {
    /// Makes an empty file system on `device`. Blocks are trimmed after the first commit, which follows all earlier
    /// ones in the blocks of checkpoints: until then a mount finds, or misses, the same commit as before.
    pub fn format(device: &mut dyn Device, thresholds: Thresholds, scheme: &'static Scheme) -> Done<FileSystem> {
        let shape = device.shape();
        let mut filesystem = FileSystem::new(shape, thresholds, scheme);
        let (anchors, blocks) = (Anchors::read(device, shape)?, Self::anchors(shape));
        if anchors.is_used() {
            // A power cut may undo trims: earlier commits, which may be unreadable, must have lower numbers.
            filesystem.sequence = anchors.highest + 2 * u64::from(shape.pages_per_block);
        }
        let newest = anchors.newest.as_ref().map_or(0, |(_, anchor, _)| *anchor);
        let is_other = anchors.is_full[newest] && anchors.misses_first(1 - newest);
        filesystem.anchor = if is_other { 1 - newest } else { newest };
        filesystem.anchor_next = device.written(blocks[filesystem.anchor]);
        free_block(device, anchors.miss_commit())?;
        finish_begun(device)?;
        filesystem.allocator.adopt(|block| device.written(block));
        filesystem.insert_inode(ROOT, Inode::new(FileType::Directory, shape.channels));
        filesystem.touch(ROOT);
        filesystem.commit(device)?;
        Ok(filesystem)
    }

    /// Mounts the file system on `device`, as of the last commit.
    ///
    /// # Errors
    /// [`Fault::NotFormatted`], [`Fault::Unreadable`], [`Fault::Corrupt`], and errors of flash.
    pub fn mount(device: &mut dyn Device, thresholds: Thresholds, scheme: &'static Scheme) -> Done<FileSystem> {
        let shape = device.shape();
        let mut anchors = Anchors::read(device, shape)?;
        if anchors.miss_commit() {
            return Err(Fault::Unreadable);
        }
        let is_doubtful = anchors.newest.as_ref().is_some_and(|(_, anchor, _)| anchors.misses_first(1 - anchor));
        let (checkpoint, anchor, at) = anchors.newest.take().ok_or(Fault::NotFormatted)?;
        let mut filesystem = FileSystem::new(shape, thresholds, scheme);
        filesystem.anchor = anchor;
        filesystem.anchor_next = device.written(Self::anchors(shape)[anchor]);
        if is_doubtful {
            finish_begun(device)?;
            // When this anchor is full, an unreadable first page of the other must be that of a commit.
            filesystem.begin_anchor(device, 1 - anchor)?;
        }
        let replay = Replay::read(device, shape, checkpoint.sequence, anchors.after(anchor, at))?;
        filesystem.sequence = checkpoint.sequence + replay.commits;
        filesystem.inodes[INODE_FILE as usize] = Some(checkpoint.inode_file);
        let mut lost = Losses {
            leaves: filesystem.read_leaves(device, INODE_FILE, checkpoint.single, &replay)?,
            ..Losses::default()
        };
        replay.apply(&mut filesystem, true, &lost)?;
        filesystem.read_inodes(device, &replay, &mut lost)?;
        replay.apply(&mut filesystem, false, &lost)?;
        filesystem.mark_lost(&lost);
        filesystem.log.resume(checkpoint.sequence, replay.pages);
        for (index, &page) in filesystem.log.pages.iter().enumerate() {
            filesystem.allocator.own(page, INODE_FILE, Role::Log(index as u32));
        }
        for ino in 0..filesystem.inodes.len() as u32 {
            if filesystem.inode(ino).is_ok() {
                filesystem.own_pages(ino)?;
                filesystem.read_directory(device, ino)?;
            }
        }
        if !filesystem.directories.contains_key(&ROOT) {
            return Err(Fault::Corrupt("there is no root directory"));
        }
        let per_block = shape.pages_per_block;
        let valid: Vec<u32> = (0..shape.blocks())
            .map(|block| match filesystem.allocator.valid_in(block) {
                0 => 0,
                _ => (0..per_block)
                    .rfind(|at| filesystem.allocator.owner(block * per_block + at).is_some())
                    .map_or(0, |at| at + 1),
            })
            .collect();
        let left = filesystem.allocator.adopt(|block| device.written(block).max(valid[block as usize]));
        // The leftovers of an interrupted commit make room for the next.
        filesystem.trim_empty(device)?;
        for block in left.into_iter().filter(|_| shape.most_active > 0) {
            device.finish(block)?;
        }
        filesystem.has_changed = false;
        filesystem.free_nameless(device)?;
        Ok(filesystem)
    }

    /// Reads the inodes of the tree, without the removed ones.
    fn read_inodes(&mut self, device: &mut dyn Device, replay: &Replay, lost: &mut Losses) -> Done<()> {
        let pages: Vec<(u32, u32)> = self.inode(INODE_FILE)?.pages(self.width).collect();
        for (page, pointer) in pages {
            let Some(bytes) = read_metadata(device, pointer)? else {
                self.counters.unreadable += 1;
                lost.pages.insert(page);
                continue;
            };
            for (index, record) in bytes.chunks_exact(INODE_BYTES).enumerate() {
                let ino = page * self.inodes_per_page() + index as u32;
                let found = Inode::decode(record, self.shape.channels).filter(|_| !replay.is_removed(ino));
                if let Some((inode, single)) = found {
                    self.insert_inode(ino, inode);
                    if !self.read_leaves(device, ino, single, replay)?.is_empty() {
                        lost.inodes.insert(ino);
                    }
                }
            }
        }
        Ok(())
    }

    /// Trims written pages without an owner, which a power cut may have brought back, because the layer needs the
    /// space. For file systems that trim single pages.
    pub fn trim_unowned(&mut self, device: &mut dyn Device) -> Done<()> {
        let (anchors, per_block) = (Self::anchors(self.shape), self.shape.pages_per_block);
        for block in (0..self.shape.blocks()).filter(|block| !anchors.contains(block)) {
            let first = block * per_block;
            let written: Vec<u32> = (first..first + device.written(block)).collect();
            let is_owned = |page: &u32| self.allocator.owner(*page).is_some();
            for run in written.chunk_by(|one, other| is_owned(one) == is_owned(other)) {
                if !is_owned(&run[0]) {
                    device.discard(run[0], run.len() as u32)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the leaves of `ino` from their places in the log. Returns the pages whose pointers are unreadable. In that
    /// case pages of pointers stay valid as pages of the log, because a mount before the next commit reads them again.
    fn read_leaves(
        &mut self,
        device: &mut dyn Device,
        ino: u32,
        single: u32,
        replay: &Replay,
    ) -> Done<Vec<Range<u32>>> {
        let mut root = replay.root(ino, self.inode(ino)?.root);
        let (mut homes, mut lost, mut kept) = (vec![single], Vec::new(), Vec::new());
        if root != NO_PAGE {
            match read_metadata(device, root)? {
                Some(bytes) => homes.extend(pointers(&bytes)),
                None => {
                    lost.push(DIRECT + self.width..self.most_pages());
                    kept.push(std::mem::replace(&mut root, NO_PAGE));
                }
            }
        }
        replay.place_leaves(ino, &mut homes);
        while homes.last() == Some(&NO_PAGE) {
            homes.pop();
        }
        let (mut leaves, mut others) = (Vec::with_capacity(homes.len()), Vec::new());
        for (index, home) in homes.into_iter().enumerate() {
            let bytes = if home == NO_PAGE { None } else { read_metadata(device, home)? };
            if home != NO_PAGE && bytes.is_none() {
                let first = DIRECT + index as u32 * self.width;
                lost.push(first..first + self.width);
                kept.push(home);
            } else if ino != INODE_FILE {
                others.push(home);
            }
            leaves.push(bytes.map(|bytes| {
                let pointers = pointers(&bytes);
                let used = pointers.iter().filter(|&&pointer| pointer != NO_PAGE).count() as u32;
                Leaf { pointers, used, home, dirty: false }
            }));
        }
        self.counters.unreadable += lost.len() as u64;
        if !lost.is_empty() {
            others.push(root);
            kept.extend(others.into_iter().filter(|&page| page != NO_PAGE && ino != INODE_FILE));
        }
        self.log.pages.extend(kept);
        let inode = self.inode_mut(ino);
        (inode.leaves, inode.root) = (leaves, root);
        inode.root_dirty |= !lost.is_empty();
        Ok(lost)
    }

    /// Makes all pages of `ino` valid, and drops leaves that the log emptied.
    fn own_pages(&mut self, ino: u32) -> Done<()> {
        let inode = self.inode_mut(ino);
        for leaf in &mut inode.leaves {
            leaf.take_if(|leaf| leaf.used == 0);
        }
        while inode.leaves.last().is_some_and(Option::is_none) {
            inode.leaves.pop();
        }
        if inode.leaves.len() <= 1 {
            (inode.root, inode.root_dirty) = (NO_PAGE, false);
        }
        let mut owned = vec![(inode.root, Role::Root)];
        let homes = inode.leaves.iter().enumerate();
        owned.extend(homes.filter_map(|(at, leaf)| Some((leaf.as_ref()?.home, Role::Leaf(at as u32)))));
        owned.extend(self.inode(ino)?.pages(self.width).map(|(page, pointer)| (pointer, Role::DataPage(page))));
        for (page, role) in owned.into_iter().filter(|&(page, _)| page != NO_PAGE) {
            if page >= self.shape.pages() || self.allocator.owner(page).is_some() {
                return Err(Fault::Corrupt("two pointers lead to one page, or one leads nowhere"));
            }
            self.allocator.own(page, ino, role);
            if matches!(role, Role::DataPage(_)) {
                let channel = self.shape.channel(page);
                self.inode_mut(ino).channels[channel as usize] += 1;
            }
        }
        Ok(())
    }

    fn read_directory(&mut self, device: &mut dyn Device, ino: u32) -> Done<()> {
        let Some(mut directory) = self.directories.remove(&ino) else { return Ok(()) };
        let pages: Vec<(u32, u32)> = self.inode(ino)?.pages(self.width).collect();
        for (page, pointer) in pages {
            let Some(bytes) = read_metadata(device, pointer)? else {
                self.counters.unreadable += 1;
                self.point(ino, page, NO_PAGE);
                self.allocator.own(pointer, INODE_FILE, Role::Log(self.log.pages.len() as u32));
                self.log.pages.push(pointer);
                continue;
            };
            if !directory.decode(page, &bytes) {
                return Err(Fault::Corrupt("a page of a directory has other contents"));
            }
        }
        self.directories.insert(ino, directory);
        Ok(())
    }

    /// An allocator of the same shape without valid pages, for checks.
    pub(super) fn empty_allocator(&self) -> PageAllocator {
        PageAllocator::new(self.shape, Self::anchors(self.shape))
    }
}
