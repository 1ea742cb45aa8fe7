//! The log of changes: a commit that writes the changes since the previous commit instead of the tree.
//!
//! A changed pointer takes [`RECORD_BYTES`] in the log; the tree would take the leaf and the inode's page of every
//! changed file. A commit writes changed pages of directories and the pages of the log for its records, waits for a
//! barrier, writes one *commit record* after the checkpoint in its block, and waits for another. The commit record
//! holds the addresses of these pages and, if there is room, records. Only then blocks and pages are trimmed. A mount
//! reads the newest checkpoint with the tree, and applies the log after that; the pages of that tree and of the log
//! stay valid until the next checkpoint.
//!
//! The tree is written if the log costs as much, if the tree or the log would take too much of the free space, and if
//! the block of the checkpoint is full.
//!
//! Records are applied in order, on a tree that may be newer than the first of them (collection moves pages of the
//! tree): the last record of a pointer decides, so the outcome is the same.

use super::allocator::Role;
use super::commit::{fingerprint, sum};
use super::device::{Device, NO_PAGE, Shape};
use super::inode::{FileType, Inode, WORDS};
use super::repair::Losses;
use super::{Done, Fault, FileSystem, INODE_FILE};
use palimpsest_flash::state::{Loaded, Reader, State};
use std::collections::{BTreeMap, BTreeSet};

const RECORD_BYTES: usize = 12;
/// First bytes of a commit record.
pub(super) const MAGIC: u64 = 0x7061_6c69_6d70_6c67;
/// Offsets of the fields of a commit record; addresses follow, then records; the last eight bytes are a checksum.
const AT_SEQUENCE: usize = 8;
const AT_SHAPE: usize = 16;
const AT_BASE: usize = 24;
const AT_PAGES: usize = 32;
const AT_RECORDS: usize = 36;
const AT_ADDRESSES: usize = 40;
const SUM_BYTES: usize = 8;
/// The log takes at most 1 / `SHARE` of the device's pages, or [`LEAST_PAGES`].
const SHARE: u64 = 256;
const LEAST_PAGES: u64 = 16;
/// The upper bits of the first word of a record are its kind, the others an inode number.
const KIND_SHIFT: u32 = 29;
/// Upper bound of inode numbers.
pub(super) const MOST_INODES: u32 = 1 << KIND_SHIFT;
/// In the third word of [`Record::Inode`]: a directory.
const IS_DIRECTORY: u32 = 1 << 31;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// Page `page` of the inode is at `to`, or became a hole.
    Page { ino: u32, page: u32, to: u32 },
    /// Leaf `leaf` of the inode is at `to`, or was dropped.
    Leaf { ino: u32, leaf: u32, to: u32 },
    /// The page of pointers to leaves of the inode is at `to`, or was dropped.
    Root { ino: u32, to: u32 },
    /// The inode exists, with this type and size.
    Inode { ino: u32, file_type: FileType, size: u64 },
    /// The inode was removed.
    Removed { ino: u32 },
    /// A word of the inode has this value.
    Word { ino: u32, place: u32, value: u32 },
}

impl Record {
    fn ino(self) -> u32 {
        match self {
            Record::Page { ino, .. }
            | Record::Leaf { ino, .. }
            | Record::Root { ino, .. }
            | Record::Inode { ino, .. }
            | Record::Removed { ino }
            | Record::Word { ino, .. } => ino,
        }
    }

    fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, one, two) = match self {
            Record::Page { page, to, .. } => (0, page, to),
            Record::Leaf { leaf, to, .. } => (1, leaf, to),
            Record::Root { to, .. } => (2, to, 0),
            Record::Inode { file_type, size, .. } => {
                let directory = if file_type == FileType::Directory { IS_DIRECTORY } else { 0 };
                (3, size as u32, (size >> 32) as u32 | directory)
            }
            Record::Removed { .. } => (4, 0, 0),
            Record::Word { place, value, .. } => (5, place, value),
        };
        let mut bytes = [0; RECORD_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip([kind << KIND_SHIFT | self.ino(), one, two]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Record> {
        let (first, one, two) = (word(bytes, 0), word(bytes, 4), word(bytes, 8));
        let ino = first & (MOST_INODES - 1);
        Some(match first >> KIND_SHIFT {
            0 => Record::Page { ino, page: one, to: two },
            1 => Record::Leaf { ino, leaf: one, to: two },
            2 => Record::Root { ino, to: one },
            3 => {
                let file_type = if two & IS_DIRECTORY == 0 { FileType::File } else { FileType::Directory };
                Record::Inode { ino, file_type, size: u64::from(two & !IS_DIRECTORY) << 32 | u64::from(one) }
            }
            4 => Record::Removed { ino },
            5 => Record::Word { ino, place: one, value: two },
            _ => return None,
        })
    }
}

impl Default for Record {
    fn default() -> Self {
        Record::Removed { ino: 0 }
    }
}

impl State for Record {
    fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        *self = Record::decode(from.take(RECORD_BYTES)?)?;
        Some(())
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The capacity of pages of `page_bytes` bytes.
#[derive(Clone, Copy, Default)]
struct Layout {
    page_bytes: usize,
}

impl Layout {
    /// Records of a page of the log.
    fn per_page(self) -> usize {
        self.page_bytes / RECORD_BYTES
    }

    /// Records in the commit record beside the addresses of `pages` pages; `None` if the addresses do not fit.
    fn inline(self, pages: usize) -> Option<usize> {
        let free = self.page_bytes.checked_sub(AT_ADDRESSES + SUM_BYTES + 4 * pages)?;
        Some(free / RECORD_BYTES)
    }

    /// Pages of the log for `records` records beside the commit record; `None` if they do not fit.
    fn pages_for(self, records: usize) -> Option<usize> {
        let mut pages = records.saturating_sub(self.inline(0)?).div_ceil(self.per_page());
        while self.inline(pages)? + pages * self.per_page() < records {
            pages += 1;
        }
        Some(pages)
    }
}

/// The log in memory.
#[derive(Default)]
pub(super) struct Log {
    layout: Layout,
    /// Changes since the last commit, in order.
    records: Vec<Record>,
    /// Pages of the log since the last checkpoint.
    pub(super) pages: Vec<u32>,
    /// Most pages of the log.
    most_pages: u64,
    /// Pages of the tree that collection wants moved, by inode and packed role.
    renewed: BTreeSet<(u32, u32)>,
    /// Number of the commit that wrote the last checkpoint.
    base: u64,
    /// Whether the next commit must write the tree, because the records were not kept.
    needs_tree: bool,
    /// Whether every commit writes the tree.
    is_off: bool,
}

palimpsest_flash::state!(Log { records, pages, renewed, base, needs_tree } built { layout, most_pages, is_off });

impl Log {
    pub(super) fn new(shape: Shape) -> Self {
        Log {
            layout: Layout { page_bytes: shape.page_bytes as usize },
            most_pages: (u64::from(shape.pages()) / SHARE).max(LEAST_PAGES),
            needs_tree: true,
            ..Log::default()
        }
    }

    /// Adds a record. Drops all records if they exceed the tree, which takes `tree_pages` pages.
    #[inline]
    pub(super) fn push(&mut self, record: Record, tree_pages: u64) {
        if self.needs_tree {
            return;
        }
        self.records.push(record);
        if self.records.len() as u64 > (tree_pages + 2) * self.layout.per_page() as u64 {
            self.want_tree();
        }
    }

    /// Makes the next commit write the tree.
    pub(super) fn want_tree(&mut self) {
        self.needs_tree = true;
        self.records = Vec::new();
        self.renewed.clear();
    }

    /// Makes every later commit write the tree.
    pub(super) fn turn_off(&mut self) {
        self.is_off = true;
        self.want_tree();
    }

    /// Makes the next commit move a page of the tree.
    pub(super) fn renew(&mut self, ino: u32, role: Role) {
        match role {
            _ if self.needs_tree => {}
            Role::Log(_) => self.want_tree(),
            role => _ = self.renewed.insert((ino, role.pack())),
        }
    }

    /// Continues the log of a mount, after checkpoint `base`.
    pub(super) fn resume(&mut self, base: u64, pages: Vec<u32>) {
        self.base = base;
        self.pages.extend(pages);
        self.needs_tree = self.is_off;
    }

    /// Restarts the log after the tree of commit `sequence`; returns the obsolete pages of the log.
    pub(super) fn restart(&mut self, sequence: u64) -> Vec<u32> {
        self.records.clear();
        self.renewed.clear();
        self.base = sequence;
        self.needs_tree = self.is_off;
        std::mem::take(&mut self.pages)
    }
}

struct CommitRecord {
    pages: Vec<u32>,
    /// All records, and those in the commit record itself.
    count: usize,
    records: Vec<Record>,
}

impl CommitRecord {
    fn encode(shape: Shape, base: u64, sequence: u64, pages: &[u32], count: usize, records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(shape.page_bytes as usize);
        for part in [MAGIC, sequence, fingerprint(shape), base] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        for part in [pages.len() as u32, count as u32].into_iter().chain(pages.iter().copied()) {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        records.iter().for_each(|record| bytes.extend_from_slice(&record.encode()));
        bytes.resize(shape.page_bytes as usize - SUM_BYTES, 0);
        let check = sum(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The record of commit `sequence` after checkpoint `base` in `bytes`, if present.
    fn decode(bytes: &[u8], shape: Shape, base: u64, sequence: u64) -> Option<CommitRecord> {
        let end = bytes.len() - SUM_BYTES;
        let of_this = long(bytes, 0) == MAGIC
            && long(bytes, AT_SEQUENCE) == sequence
            && long(bytes, AT_SHAPE) == fingerprint(shape)
            && long(bytes, AT_BASE) == base
            && long(bytes, end) == sum(&bytes[..end]);
        if !of_this {
            return None;
        }
        let layout = Layout { page_bytes: bytes.len() };
        let (pages, count) = (word(bytes, AT_PAGES) as usize, word(bytes, AT_RECORDS) as usize);
        let inline = layout.inline(pages)?.min(count);
        let addresses = (0..pages).map(|index| word(bytes, AT_ADDRESSES + 4 * index)).collect();
        let records = decode_records(&bytes[AT_ADDRESSES + 4 * pages..], inline)?;
        Some(CommitRecord { pages: addresses, count, records })
    }
}

fn decode_records(bytes: &[u8], count: usize) -> Option<Vec<Record>> {
    bytes.chunks_exact(RECORD_BYTES).take(count).map(Record::decode).collect()
}

impl FileSystem {
    /// Whether the next commit writes the tree; otherwise the log suffices.
    pub(super) fn is_tree_due(&self) -> bool {
        self.logged_pages(0, 0).is_none_or(|pages| pages > self.pending)
    }

    /// Pages of the log and of directories that the next commit would write with `records` more, and `waiting` more
    /// changed pages of the tree; `None` if the tree must be written.
    pub(super) fn logged_pages(&self, records: u64, waiting: u64) -> Option<u64> {
        let (log, block) = (&self.log, u64::from(self.shape.pages_per_block));
        let entries: u64 = self.directories.values().map(|directory| directory.dirty.len() as u64).sum();
        // Moved pages of directories and of the tree add a record each.
        let moved = entries + log.renewed.len() as u64;
        let pages = log.layout.pages_for(log.records.len() + (moved + records) as usize)? as u64;
        let fits = !log.needs_tree
            && self.anchor_next < self.shape.pages_per_block
            && log.pages.len() as u64 + pages <= log.most_pages
            && self.pending + waiting <= (self.thresholds.start / 2).max(2 * block);
        fits.then_some(pages + moved)
    }

    /// Makes all changes durable by the log, or by the tree after all.
    pub(super) fn write_log(&mut self, device: &mut dyn Device) -> Done<()> {
        let changed: Vec<u32> =
            self.directories.iter().filter(|(_, each)| !each.dirty.is_empty()).map(|(&ino, _)| ino).collect();
        for ino in changed {
            self.pending -= 3 * self.write_entries(device, ino)?;
        }
        for (ino, role) in std::mem::take(&mut self.log.renewed) {
            self.move_metadata(device, ino, Role::unpack(role))?;
        }
        if self.log.needs_tree {
            // These writes made the log longer than the tree.
            return self.write_tree(device);
        }
        let records = std::mem::take(&mut self.log.records);
        let layout = self.log.layout;
        let count = layout.pages_for(records.len()).expect("records that were seen to fit");
        let (inline, rest) = records.split_at(layout.inline(count).expect("addresses that fit").min(records.len()));
        let mut pages = Vec::with_capacity(count);
        for part in rest.chunks(layout.per_page()) {
            let page = self.write_metadata(device, |filesystem| {
                let mut bytes: Vec<u8> = part.iter().flat_map(|record| record.encode()).collect();
                bytes.resize(filesystem.shape.page_bytes as usize, 0);
                bytes
            })?;
            self.allocator.own(page, INODE_FILE, Role::Log((self.log.pages.len() + pages.len()) as u32));
            pages.push(page);
        }
        let record = CommitRecord::encode(self.shape, self.log.base, self.sequence + 1, &pages, records.len(), inline);
        self.log.pages.append(&mut pages);
        self.write_anchor(device, &record)?;
        self.counters.logged += 1;
        Ok(())
    }

    /// Moves a page of the tree that collection wants moved.
    fn move_metadata(&mut self, device: &mut dyn Device, ino: u32, role: Role) -> Done<()> {
        let Ok(inode) = self.inode(ino) else { return Ok(()) };
        match role {
            Role::Leaf(index) => {
                let is_placed = |leaf: &super::inode::Leaf| leaf.home != NO_PAGE;
                if inode.leaves.get(index as usize).is_some_and(|leaf| leaf.as_ref().is_some_and(is_placed)) {
                    let to = self.write_leaf(device, ino, index as usize)?;
                    self.pending -= 1;
                    self.record(Record::Leaf { ino, leaf: index, to });
                }
            }
            Role::Root if inode.root != NO_PAGE => {
                let to = self.write_root(device, ino)?;
                // Leaves that were not written since are in the log.
                self.inode_mut(ino).root_dirty = true;
                self.record(Record::Root { ino, to });
            }
            Role::DataPage(page) if ino == INODE_FILE && inode.pointer(page, self.width) != NO_PAGE => {
                let to = self.write_metadata(device, |filesystem| filesystem.encode_inodes(page))?;
                self.point(INODE_FILE, page, to);
            }
            // Pages of directories are written with the other changed ones.
            _ => {}
        }
        Ok(())
    }

    #[inline]
    pub(super) fn record(&mut self, record: Record) {
        self.log.push(record, self.pending);
    }

    /// Records the type and size of `ino`.
    pub(super) fn record_inode(&mut self, ino: u32) {
        let inode = self.inodes[ino as usize].as_ref().expect("an inode that exists");
        let (file_type, size) = (inode.file_type, inode.size);
        self.record(Record::Inode { ino, file_type, size });
    }
}

/// The log after a checkpoint, as a mount finds it.
#[derive(Default)]
pub(super) struct Replay {
    records: Vec<Record>,
    pub pages: Vec<u32>,
    pub commits: u64,
    /// Removed inodes, which are not read from the tree.
    removed: BTreeSet<u32>,
    /// Places of leaves and roots that were moved or dropped since the checkpoint.
    leaves: BTreeMap<(u32, u32), u32>,
    roots: BTreeMap<u32, u32>,
}

impl Replay {
    /// Reads the log after the checkpoint of commit `base`, which the readable pages `records` follow.
    pub(super) fn read<'a>(
        device: &mut dyn Device,
        shape: Shape,
        base: u64,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Done<Replay> {
        let (mut replay, mut commits, mut all) = (Replay::default(), Vec::new(), Vec::new());
        for bytes in records {
            let sequence = base + replay.commits + 1;
            // A torn record does not count; the next commit may follow.
            let Some(found) = CommitRecord::decode(bytes, shape, base, sequence) else { continue };
            for &page in &found.pages {
                all.push(match super::commit::read_metadata(device, page) {
                    Ok(None) => return Err(Fault::Unreadable),
                    Err(Fault::Halt(halt)) => return Err(halt.into()),
                    other => other,
                });
            }
            commits.push(found);
            replay.commits += 1;
        }
        // A file system that begins again may have reused pages of the log before an unreadable one.
        let mut pages = all.into_iter();
        commits.into_iter().try_for_each(|found| replay.add(found, &mut pages))?;
        replay.resolve();
        Ok(replay)
    }

    fn add(&mut self, found: CommitRecord, pages: &mut impl Iterator<Item = Done<Option<Vec<u8>>>>) -> Done<()> {
        let corrupt = Fault::Corrupt("a page of the log has other contents");
        let mut left = found.count - found.records.len();
        self.records.extend(found.records);
        for bytes in pages.take(found.pages.len()) {
            let bytes = bytes?.unwrap_or_default();
            let count = left.min(bytes.len() / RECORD_BYTES);
            let Some(records) = decode_records(&bytes, count) else { return Err(corrupt) };
            self.records.extend(records);
            left -= count;
        }
        self.pages.extend(found.pages);
        if left == 0 { Ok(()) } else { Err(corrupt) }
    }

    /// Drops records before the last removal of an inode, and finds the places of leaves and roots.
    fn resolve(&mut self) {
        let mut last = BTreeMap::new();
        for (index, record) in self.records.iter().enumerate() {
            if let Record::Removed { ino } = record {
                last.insert(*ino, index);
            }
        }
        let mut index = 0;
        self.records.retain(|record| {
            index += 1;
            last.get(&record.ino()).is_none_or(|&removed| index > removed + 1)
        });
        self.removed = last.into_keys().collect();
        for record in &self.records {
            match *record {
                Record::Leaf { ino, leaf, to } => _ = self.leaves.insert((ino, leaf), to),
                Record::Root { ino, to } => _ = self.roots.insert(ino, to),
                _ => {}
            }
        }
    }

    /// Whether the inode in the tree was removed, whatever replaced it.
    pub(super) fn is_removed(&self, ino: u32) -> bool {
        self.removed.contains(&ino)
    }

    /// The place of the root of `ino`, which is at `root` in the tree.
    pub(super) fn root(&self, ino: u32, root: u32) -> u32 {
        self.roots.get(&ino).copied().unwrap_or(root)
    }

    /// Updates the places of the leaves of `ino` in the tree to the present ones.
    pub(super) fn place_leaves(&self, ino: u32, homes: &mut Vec<u32>) {
        for (&(_, leaf), &to) in self.leaves.range((ino, 0)..=(ino, u32::MAX)) {
            if homes.len() <= leaf as usize {
                homes.resize(leaf as usize + 1, NO_PAGE);
            }
            homes[leaf as usize] = to;
        }
    }

    /// Applies the changes of the inode file, or of all other inodes that are not `lost`.
    pub(super) fn apply(&self, filesystem: &mut FileSystem, inode_file: bool, lost: &Losses) -> Done<()> {
        for &record in self.records.iter().filter(|record| (record.ino() == INODE_FILE) == inode_file) {
            if lost.holds(filesystem, record.ino()) && !self.is_removed(record.ino()) {
                continue;
            }
            match record {
                Record::Page { ino, page, to } => {
                    if filesystem.inode(ino).is_err() || page >= filesystem.most_pages() {
                        return Err(Fault::Corrupt("the log changes a page that cannot be"));
                    }
                    filesystem.set_pointer(ino, page, to);
                }
                Record::Inode { ino, file_type, size } => {
                    if filesystem.inode(ino).is_err() {
                        filesystem.insert_inode(ino, Inode::new(file_type, filesystem.shape.channels));
                    }
                    filesystem.inode_mut(ino).size = size;
                    filesystem.touch(ino);
                }
                Record::Word { ino, place, value } => {
                    if filesystem.inode(ino).is_err() || place as usize >= WORDS {
                        return Err(Fault::Corrupt("the log changes a word that cannot be"));
                    }
                    filesystem.inode_mut(ino).words[place as usize] = value;
                    filesystem.touch(ino);
                }
                // The owner of the moved page differs from its copy in the tree.
                Record::Leaf { ino, leaf, .. } if filesystem.inode(ino).is_ok() => {
                    filesystem.touch(ino);
                    filesystem.inode_mut(ino).root_dirty |= leaf > 0;
                    filesystem.pending += 1;
                }
                Record::Root { ino, .. } if filesystem.inode(ino).is_ok() => filesystem.touch(ino),
                Record::Leaf { .. } | Record::Root { .. } | Record::Removed { .. } => {}
            }
        }
        self.removed.iter().filter(|_| !inode_file).for_each(|&ino| filesystem.touch_record(ino));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let size = (77 << 32) + 5;
        let records = [
            Record::Page { ino: MOST_INODES - 1, page: 3, to: NO_PAGE },
            Record::Leaf { ino: 1, leaf: 9, to: 4 },
            Record::Root { ino: 0, to: 8 },
            Record::Inode { ino: 7, file_type: FileType::Directory, size },
            Record::Inode { ino: 7, file_type: FileType::File, size },
            Record::Removed { ino: 2 },
            Record::Word { ino: 9, place: 13, value: u32::MAX },
        ];
        for record in records {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    /// A mount takes a commit record only if each bit is as written, after the checkpoint and commit that it names.
    #[test]
    fn a_commit_record_counts_only_whole() {
        let shape = Shape { channels: 2, lanes: 1, blocks_per_channel: 4, page_bytes: 512, ..Shape::default() };
        let records = [Record::Page { ino: 3, page: 4, to: 5 }, Record::Removed { ino: 2 }];
        let bytes = CommitRecord::encode(shape, 6, 7, &[11, 12], 2, &records);
        let found = CommitRecord::decode(&bytes, shape, 6, 7).expect("the record as written");
        assert_eq!((found.pages, found.count, found.records), (vec![11, 12], 2, records.to_vec()));
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(CommitRecord::decode(&changed, shape, 6, 7).is_none(), "bit {bit}");
        }
        let other = Shape { channels: 1, ..shape };
        for (shape, base, sequence) in [(other, 6, 7), (shape, 5, 7), (shape, 6, 8)] {
            assert!(CommitRecord::decode(&bytes, shape, base, sequence).is_none());
        }
    }

    #[test]
    fn pages_hold_the_records_and_not_one_page_more() {
        for page_bytes in [512, 4096, 8192, 16384] {
            let layout = Layout { page_bytes };
            for records in 0..5000 {
                let Some(pages) = layout.pages_for(records) else { continue };
                let room = |pages: usize| layout.inline(pages).unwrap() + pages * layout.per_page();
                assert!(room(pages) >= records && (pages == 0 || room(pages - 1) < records), "{page_bytes} {records}");
            }
        }
        assert_eq!(Layout { page_bytes: 512 }.pages_for(1_000_000), None);
    }
}
