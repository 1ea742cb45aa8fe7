//! The co-designed file system: page-granular out-of-place update above a device that maps blocks. The file system
//! chooses the channel of each page. Source: co-design paper (Qiu et al.), Sec. III; docs/systems.md, "codesign".
//!
//! Inodes have direct, single and double indirect pointers to logical pages (STLPA), and every logical page has a state
//! (FTLPA). A [scheme](schemes) chooses the channel of a write, whose updating block is filled strictly ascending. An
//! overwrite invalidates the old page, allocates a new one, updates the pointer and writes the page, one command a
//! page. Garbage collection runs below 5 % of free space until 10 % more is free: a step moves the valid pages of the
//! logical block with the fewest, and trims the block.
//!
//! **Durability.** The paper is silent; this is a copy-on-write tree. A valid page is never overwritten: pages of
//! files, pointers, directories and inodes go to new places. A *commit* ends with one page: a checkpoint that holds the
//! inode of the inode file, the root of the tree, or a commit record of the [`log`] of changes. Blocks are trimmed only
//! after the commit that makes all their pages invalid. So a power cut at any operation leaves the whole tree of the
//! last commit; [`FileSystem::sync`] commits.
//!
//! Sans-I/O: a [`Device`] reads and writes. Trace replay drives it ([`replay`]); tests run it in memory.
//!
//! A file may have several names, and an open file outlives the last one. Modes, owners and times are [words](WORDS) of
//! an inode without a meaning here, as are [extended attributes](extended). The host's memory holds all metadata.
//!
//! Operations return [`Fault::NotFound`] for a missing name or inode, [`Fault::NotDirectory`] and
//! [`Fault::IsDirectory`] for the wrong type, [`Fault::Full`] without room, and errors of flash as [`Fault::Halt`]; `#
//! Errors` sections name further faults only.

mod allocator;
mod bytes;
mod candidates;
mod collect;
mod commit;
pub mod device;
mod directory;
pub mod extended;
pub mod imbalance;
mod inode;
pub mod layers;
mod lifetimes;
mod link;
mod log;
mod mount;
mod names;
mod placing;
mod repair;
pub mod replay;
mod reserved;
pub mod schemes;
pub mod settings;
mod store;
mod verify;
mod words;
mod writing;
mod zoned;

pub use allocator::Status;
use allocator::{PageAllocator, Role};
use collect::ALWAYS_FREE;
use device::{Device, NO_PAGE, Shape};
use directory::Directory;
pub use directory::LONGEST_NAME;
pub use inode::FileType;
use inode::{Inode, Leaf, Place, most_pages, place};
use lifetimes::Lifetimes;
use log::{Log, Record};
use palimpsest_flash::geometry::FileGroup;
use palimpsest_flash::nand::Halt;
use palimpsest_flash::prefetch::prefetch;
use placing::Placing;
use reserved::Reserved;
use schemes::{Rules, Scheme};
use std::collections::{BTreeMap, BTreeSet};
pub use words::WORDS;

/// The inode file, whose pages hold all other inodes.
const INODE_FILE: u32 = 0;
/// The root directory.
pub const ROOT: u32 = 1;

/// Why an operation of the file system failed.
#[derive(Debug)]
pub enum Fault {
    /// Flash stopped; after a power cut the file system must be mounted again.
    Halt(Halt),
    Full,
    /// No such name, or no such inode.
    NotFound,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    /// The file would exceed the reach of pointers.
    TooLarge,
    /// The name is empty, longer than [`LONGEST_NAME`] bytes or a page, or holds a slash or a zero; or a directory
    /// would move into itself.
    Invalid,
    Unsupported,
    /// The device holds no file system of this shape.
    NotFormatted,
    /// An uncorrectable read of a file; of a mount: of the last commit, so that no whole tree is left.
    Unreadable,
    /// The device holds malformed contents.
    Corrupt(&'static str),
}

impl From<Halt> for Fault {
    fn from(halt: Halt) -> Self {
        Fault::Halt(halt)
    }
}

pub type Done<T> = Result<T, Fault>;

/// When collection starts and stops, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// Collection starts below as many free pages.
    pub start: u64,
    /// Collection stops when as many more are free.
    pub gain: u64,
}

/// Counters of the file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub collected: u64,
    pub trimmed: u64,
    /// Pages of files moved by collection.
    pub moved_pages: u64,
    /// Pages of files written.
    pub data_pages: u64,
    /// Pages of metadata written, checkpoints among them.
    pub metadata_pages: u64,
    pub commits: u64,
    /// Commits by the log, without the tree.
    pub logged: u64,
    /// Pages of metadata that a mount could not read.
    pub unreadable: u64,
}

palimpsest_flash::state!(Counters {
    collected,
    trimmed,
    moved_pages,
    data_pages,
    metadata_pages,
    commits,
    logged,
    unreadable
});

impl Counters {
    /// The sum with the counters of an earlier mount.
    pub fn after(self, before: Counters) -> Counters {
        Counters {
            collected: before.collected + self.collected,
            trimmed: before.trimmed + self.trimmed,
            moved_pages: before.moved_pages + self.moved_pages,
            data_pages: before.data_pages + self.data_pages,
            metadata_pages: before.metadata_pages + self.metadata_pages,
            commits: before.commits + self.commits,
            logged: before.logged + self.logged,
            unreadable: before.unreadable + self.unreadable,
        }
    }
}

/// A mounted file system.
#[derive(Default)]
pub struct FileSystem {
    shape: Shape,
    /// Pointers of a page.
    width: u32,
    thresholds: Thresholds,
    scheme: &'static Scheme,
    rules: Rules,
    /// The next channel in turn, for data and for metadata.
    turn: u32,
    /// Whether the address of a page on the disk names its turn.
    turns_by_address: bool,
    metadata_turn: u32,
    issued: Vec<u64>,
    allocator: PageAllocator,
    inodes: Vec<Option<Inode>>,
    /// Free inode numbers below the length of `inodes`.
    unused: BTreeSet<u32>,
    directories: BTreeMap<u32, Directory>,
    /// Inodes that differ from their copy on the device.
    dirty: BTreeSet<u32>,
    /// Pages of the inode file that differ from their copy on the device.
    dirty_inode_pages: BTreeSet<u32>,
    /// Upper bound of the pages that a commit would write now.
    pending: u64,
    /// Number of the last commit.
    sequence: u64,
    /// The anchor of that commit, and the number of written pages there.
    anchor: usize,
    anchor_next: u32,
    collecting: bool,
    log: Log,
    has_changed: bool,
    /// Blocks cleaned since the last commit.
    uncommitted: u32,
    counters: Counters,
    /// Lifetimes of pages of files, if the layer below takes hints.
    lifetimes: Option<Lifetimes>,
    placing: Placing,
    /// Inodes that outlive their last name, and those without one.
    pins: BTreeSet<u32>,
    orphans: BTreeSet<u32>,
    reserved: Reserved,
}

// Schemes have no state.
palimpsest_flash::state!(FileSystem {
    turn, metadata_turn, issued, allocator, inodes, unused, directories, dirty, dirty_inode_pages, pending, sequence,
    anchor, anchor_next,
    collecting, log, has_changed, uncommitted, counters
} parts { lifetimes } built {
    shape, width, thresholds, scheme, rules, turns_by_address, placing, pins, orphans, reserved
});

impl FileSystem {
    fn new(shape: Shape, thresholds: Thresholds, scheme: &'static Scheme) -> Self {
        assert!(shape.page_bytes >= 512 && shape.blocks_per_channel >= 2, "a shape that the file system can use");
        FileSystem {
            shape,
            width: shape.page_bytes / 4,
            thresholds,
            turns_by_address: scheme.turns_by_address,
            scheme,
            issued: vec![0; shape.channels as usize],
            allocator: PageAllocator::new(shape, Self::anchors(shape)),
            inodes: vec![Some(Inode::new(FileType::File, shape.channels))],
            log: Log::new(shape),
            ..FileSystem::default()
        }
    }

    /// The two blocks that hold checkpoints, in turn; on different channels if there are several.
    fn anchors(shape: Shape) -> [u32; 2] {
        [0, if shape.channels > 1 { shape.blocks_per_channel } else { 1 }]
    }

    /// Pages that never hold files: the updating block of a lane may be partly written, and a collection needs room for
    /// the pages that it moves and for the next commit.
    fn reserve(shape: Shape) -> u64 {
        u64::from(shape.channels * (shape.lanes + 1) + ALWAYS_FREE) * u64::from(shape.pages_per_block)
    }

    /// Pages for files and metadata on a device of `shape`; negative for too small ones.
    pub fn capacity(shape: Shape) -> i64 {
        i64::from(shape.pages()) - 2 * i64::from(shape.pages_per_block) - Self::reserve(shape) as i64
    }

    /// Pages that a collection may need at once: the valid pages of a block, a leaf, a root and two pages of the inode
    /// file for each, and an updating block of metadata.
    fn critical(&self) -> u64 {
        7 * u64::from(self.shape.pages_per_block) + 4
    }

    /// Trims single pages, too, after the commit that freed them. Pages that a power cut brings back are trimmed by
    /// [`Self::trim_unowned`], or with their block.
    pub fn enable_page_trims(&mut self) {
        self.allocator.note_freed();
    }

    /// Makes the address on the disk name the turn of each file page, whatever the scheme says.
    pub fn turn_by_address(&mut self) {
        self.turns_by_address = true;
    }

    /// Makes the schemes follow `rules`.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Makes every commit write the tree, as if there were no log.
    pub fn disable_log(&mut self) {
        self.log.turn_off();
    }

    /// Makes every write of a file page carry a hint: the expected lifetime.
    pub fn enable_hints(&mut self) {
        let mut lifetimes = Lifetimes::default();
        for (ino, inode) in self.inodes.iter().enumerate().skip(ROOT as usize) {
            if let Some(inode) = inode.as_ref().filter(|inode| inode.file_type == FileType::File) {
                inode.pages(self.width).for_each(|_| lifetimes.programmed(ino as u32));
            }
        }
        self.lifetimes = Some(lifetimes);
    }

    /// Sets the file group of `ino`, a new file.
    pub fn set_group(&mut self, ino: u32, group: FileGroup) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.begin(ino, group);
        }
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Counters since the mount.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of the last commit.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a commit would change anything.
    pub fn is_dirty(&self) -> bool {
        self.has_changed
    }

    pub fn status(&self, page: u32) -> Status {
        self.allocator.status(page)
    }

    pub fn free_in(&self, channel: u32) -> u64 {
        self.allocator.free_in(channel)
    }

    /// Bytes of the table of page states, at two bits a page.
    pub fn status_bytes(&self) -> u64 {
        u64::from(self.shape.pages()).div_ceil(4)
    }

    /// The logical pages of every file.
    pub fn files(&self) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        let inodes = self.inodes.iter().skip(ROOT as usize).flatten().filter(|inode| inode.file_type == FileType::File);
        inodes.map(|inode| inode.pages(self.width).map(|(_, pointer)| pointer))
    }

    fn inode(&self, ino: u32) -> Done<&Inode> {
        self.inodes.get(ino as usize).and_then(Option::as_ref).ok_or(Fault::NotFound)
    }

    fn inode_mut(&mut self, ino: u32) -> &mut Inode {
        self.inodes[ino as usize].as_mut().expect("an inode that exists")
    }

    fn file(&self, ino: u32) -> Done<&Inode> {
        let inode = self.inode(ino)?;
        if inode.file_type == FileType::File && ino != INODE_FILE { Ok(inode) } else { Err(Fault::IsDirectory) }
    }

    /// Type and length in bytes of `ino`.
    pub fn stat(&self, ino: u32) -> Done<(FileType, u64)> {
        self.inode(ino).map(|inode| (inode.file_type, inode.size))
    }

    /// The logical page that holds page `page` of the file `ino`; `None` for a hole.
    pub fn locate(&self, ino: u32, page: u32) -> Done<Option<u32>> {
        let pointer = self.file(ino)?.pointer(page, self.width);
        Ok((pointer != NO_PAGE).then_some(pointer))
    }

    /// Prefetches the pointer of page `page` of `ino`.
    #[inline]
    pub fn prefetch_pointer(&self, ino: u32, page: u32) {
        if let (Place::Leaf(leaf, index), Some(Some(inode))) = (place(page, self.width), self.inodes.get(ino as usize))
            && let Some(Some(leaf)) = inode.leaves.get(leaf)
        {
            prefetch(&leaf.pointers, index);
        }
    }

    /// Pages of the largest file.
    pub fn most_pages(&self) -> u32 {
        most_pages(self.width)
    }

    /// Marks the record of `ino` as changed.
    fn touch(&mut self, ino: u32) {
        self.has_changed = true;
        if !std::mem::replace(&mut self.inode_mut(ino).dirty, true) {
            self.dirty.insert(ino);
            self.touch_record(ino);
        }
    }

    /// Marks the page of the inode file that holds `ino` as changed.
    fn touch_record(&mut self, ino: u32) {
        self.has_changed = true;
        if ino != INODE_FILE && self.dirty_inode_pages.insert(ino / self.inodes_per_page()) {
            self.pending += 3;
        }
    }

    fn inodes_per_page(&self) -> u32 {
        self.shape.page_bytes / inode::INODE_BYTES as u32
    }

    /// Sets the pointer of page `page` of `ino`, and invalidates the old page.
    fn point(&mut self, ino: u32, page: u32, to: u32) {
        let old = self.set_pointer(ino, page, to);
        let shape = self.shape;
        let inode = self.inode_mut(ino);
        if old != NO_PAGE {
            inode.channels[shape.channel(old) as usize] -= 1;
        }
        let is_data = inode.file_type == FileType::File && ino != INODE_FILE;
        if let (Some(lifetimes), true, NO_PAGE) = (&mut self.lifetimes, is_data && old != NO_PAGE, to) {
            lifetimes.invalidated(ino);
        }
        if to != NO_PAGE {
            self.inode_mut(ino).channels[shape.channel(to) as usize] += 1;
            self.allocator.own(to, ino, Role::DataPage(page));
        }
        self.allocator.disown(old);
        self.record(Record::Page { ino, page, to });
        self.prune(ino, page);
    }

    /// Sets the pointer of page `page` of `ino`, and marks the leaf or inode as changed; returns the old pointer.
    fn set_pointer(&mut self, ino: u32, page: u32, to: u32) -> u32 {
        let width = self.width;
        self.touch(ino);
        let inode = self.inodes[ino as usize].as_mut().expect("an inode that exists");
        let mut dirtied = 0;
        let old = match place(page, width) {
            Place::Direct(index) => std::mem::replace(&mut inode.direct[index], to),
            Place::Leaf(leaf, index) => {
                if inode.leaves.len() <= leaf {
                    inode.leaves.resize(leaf + 1, None);
                }
                let entry = inode.leaves[leaf].get_or_insert_with(|| Leaf {
                    pointers: vec![NO_PAGE; width as usize].into(),
                    used: 0,
                    home: NO_PAGE,
                    dirty: false,
                });
                dirtied += u64::from(!std::mem::replace(&mut entry.dirty, true));
                if leaf > 0 {
                    dirtied += u64::from(!std::mem::replace(&mut inode.root_dirty, true));
                }
                let old = std::mem::replace(&mut entry.pointers[index], to);
                entry.used = entry.used + u32::from(to != NO_PAGE) - u32::from(old != NO_PAGE);
                old
            }
        };
        self.pending += dirtied;
        old
    }

    /// Drops the leaf of `page` if all its pointers are holes, and the root without further leaves.
    fn prune(&mut self, ino: u32, page: u32) {
        let Place::Leaf(leaf, _) = place(page, self.width) else { return };
        let inode = self.inodes[ino as usize].as_mut().expect("an inode that exists");
        if inode.leaves[leaf].as_ref().is_none_or(|leaf| leaf.used > 0) {
            return;
        }
        let home = inode.leaves[leaf].take().map_or(NO_PAGE, |leaf| leaf.home);
        while inode.leaves.last().is_some_and(Option::is_none) {
            inode.leaves.pop();
        }
        let mut root = NO_PAGE;
        if inode.leaves.len() <= 1 {
            root = std::mem::replace(&mut inode.root, NO_PAGE);
            inode.root_dirty = false;
        }
        self.allocator.disown(home);
        self.allocator.disown(root);
        if home != NO_PAGE {
            self.record(Record::Leaf { ino, leaf: leaf as u32, to: NO_PAGE });
        }
        if root != NO_PAGE {
            self.record(Record::Root { ino, to: NO_PAGE });
        }
    }

    /// Whether the pages that a channel gets of a write of `pages` pages are one command group.
    pub fn groups_pages(&self, pages: u32) -> bool {
        pages > self.scheme.groups_above
    }

    /// Counts `pages` file pages read from `channel` as issued to that channel.
    pub fn note_read(&mut self, channel: u32, pages: u32) {
        self.issued[channel as usize] += u64::from(pages);
    }

    /// Makes all changes durable.
    pub fn sync(&mut self, device: &mut dyn Device) -> Done<()> {
        self.commit(device)
    }
}
