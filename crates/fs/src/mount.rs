//! Format and mount. A mount reads the newest checkpoint and the tree below it, and applies the [log](super::log) after
//! that checkpoint.
//!
//! Every page of the tree and of the log is valid; other written pages are invalid, whatever their state before a power
//! cut.

use super::allocator::{PageAllocator, Role};
use super::commit::{Checkpoint, read_metadata};
use super::device::{Device, NO_PAGE, Purpose, Shape};
use super::inode::{ATTRIBUTES, FileType, INODE_BYTES, Inode, LINKS, Leaf};
use super::log::Replay;
use super::schemes::Scheme;
use super::{Done, Fault, FileSystem, INODE_FILE, ROOT, Thresholds};

const NO_INODE: &str = "a name leads to no inode";

fn pointers(bytes: &[u8]) -> Box<[u32]> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes"))).collect()
}

/// The newest checkpoint, with the anchor and the page there. Reads all checkpoints: after an undone trim older ones
/// follow newer ones.
fn newest(device: &mut dyn Device, shape: Shape) -> Done<Option<(Checkpoint, usize, u32)>> {
    let mut best: Option<(Checkpoint, usize, u32)> = None;
    for (index, block) in FileSystem::anchors(shape).into_iter().enumerate() {
        let first = block * shape.pages_per_block;
        for page in (first..first + device.written(block)).rev() {
            let mut contents = Vec::new();
            if !device.read(page, Purpose::Metadata, &mut contents)? {
                continue;
            }
            let found = device.bytes(&contents).and_then(|bytes| Checkpoint::decode(&bytes, shape));
            let Some(found) = found else { continue };
            if best.as_ref().is_none_or(|(best, ..)| found.sequence > best.sequence) {
                best = Some((found, index, page - first));
            }
        }
    }
    Ok(best)
}

impl FileSystem {
    /// Makes an empty file system on `device`.
    pub fn format(device: &mut dyn Device, thresholds: Thresholds, scheme: &'static Scheme) -> Done<FileSystem> {
        let shape = device.shape();
        let mut filesystem = FileSystem::new(shape, thresholds, scheme);
        // A power cut may undo trims: earlier checkpoints, and the logs after them, must have lower numbers.
        filesystem.sequence =
            newest(device, shape)?.map_or(0, |(checkpoint, ..)| checkpoint.sequence + u64::from(shape.pages_per_block));
        for block in (0..shape.blocks()).filter(|&block| device.written(block) > 0).collect::<Vec<_>>() {
            device.trim(block)?;
        }
        filesystem.allocator.adopt(|_| 0);
        filesystem.insert_inode(ROOT, Inode::new(FileType::Directory, shape.channels));
        filesystem.touch(ROOT);
        filesystem.commit(device)?;
        Ok(filesystem)
    }

    /// Mounts the file system on `device`, as of the last commit.
    ///
    /// # Errors
    /// [`Fault::NotFormatted`], [`Fault::Corrupt`], and errors of flash.
    pub fn mount(device: &mut dyn Device, thresholds: Thresholds, scheme: &'static Scheme) -> Done<FileSystem> {
        let shape = device.shape();
        let (checkpoint, anchor, at) = newest(device, shape)?.ok_or(Fault::NotFormatted)?;
        let replay = Replay::read(device, shape, checkpoint.sequence, Self::anchors(shape)[anchor], at)?;
        let mut filesystem = FileSystem::new(shape, thresholds, scheme);
        filesystem.sequence = checkpoint.sequence + replay.commits;
        filesystem.anchor = anchor;
        filesystem.anchor_next = device.written(Self::anchors(shape)[anchor]);
        filesystem.inodes[INODE_FILE as usize] = Some(checkpoint.inode_file);
        filesystem.read_leaves(device, INODE_FILE, checkpoint.single, &replay)?;
        replay.apply(&mut filesystem, true)?;
        let pages: Vec<(u32, u32)> = filesystem.inode(INODE_FILE)?.pages(filesystem.width).collect();
        for (page, pointer) in pages {
            let bytes = read_metadata(device, pointer)?;
            for (index, record) in bytes.chunks_exact(INODE_BYTES).enumerate() {
                let ino = page * filesystem.inodes_per_page() + index as u32;
                if let Some((inode, single)) = Inode::decode(record, shape.channels).filter(|_| !replay.is_removed(ino))
                {
                    filesystem.insert_inode(ino, inode);
                    filesystem.read_leaves(device, ino, single, &replay)?;
                }
            }
        }
        replay.apply(&mut filesystem, false)?;
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
        filesystem.allocator.adopt(|block| device.written(block).max(valid[block as usize]));
        // The leftovers of an interrupted commit make room for the next.
        filesystem.trim_empty(device)?;
        filesystem.has_changed = false;
        filesystem.free_nameless(device)?;
        Ok(filesystem)
    }

    /// Finds the parents of directories, and frees inodes that were nameless but open when the power failed.
    fn free_nameless(&mut self, device: &mut dyn Device) -> Done<()> {
        let mut names = vec![0; self.inodes.len()];
        let entries: Vec<(u32, u32)> = self
            .directories
            .iter()
            .flat_map(|(&parent, directory)| directory.iter().map(move |(_, ino)| (parent, ino)))
            .collect();
        for (parent, ino) in entries {
            if let Some(directory) = self.directories.get_mut(&ino) {
                directory.parent = parent;
            }
            *names.get_mut(ino as usize).ok_or(Fault::Corrupt(NO_INODE))? += 1;
        }
        for ino in ROOT..self.inodes.len() as u32 {
            let at = self.inode(ino).map_or(0, |inode| inode.words[ATTRIBUTES]);
            if at != 0 {
                let is_file = at > ROOT && self.file(at).is_ok();
                *names.get_mut(at as usize).filter(|_| is_file).ok_or(Fault::Corrupt(NO_INODE))? += 1;
            }
        }
        for ino in ROOT + 1..names.len() as u32 {
            let links = self.inode(ino).map_or(0, |inode| inode.words[LINKS] + 1);
            match names[ino as usize] {
                named if named == links => {}
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

    /// Reads the leaves of `ino` from their places in the log.
    fn read_leaves(&mut self, device: &mut dyn Device, ino: u32, single: u32, replay: &Replay) -> Done<()> {
        let root = replay.root(ino, self.inode(ino)?.root);
        let mut homes = vec![single];
        if root != NO_PAGE {
            homes.extend(pointers(&read_metadata(device, root)?));
        }
        replay.place_leaves(ino, &mut homes);
        while homes.last() == Some(&NO_PAGE) {
            homes.pop();
        }
        let mut leaves = Vec::with_capacity(homes.len());
        for home in homes {
            leaves.push(match home {
                NO_PAGE => None,
                home => {
                    let pointers = pointers(&read_metadata(device, home)?);
                    let used = pointers.iter().filter(|&&pointer| pointer != NO_PAGE).count() as u32;
                    Some(Leaf { pointers, used, home, dirty: false })
                }
            });
        }
        let inode = self.inode_mut(ino);
        (inode.leaves, inode.root) = (leaves, root);
        Ok(())
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
            if !directory.decode(page, &read_metadata(device, pointer)?) {
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
