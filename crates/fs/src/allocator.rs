//! The logical address space: the state of every page (the first tier, FTLPA, of the co-design paper), and the
//! allocation of pages.
//!
//! A page is free, valid or invalid: two bits each, which are not stored, because a mount derives them from the
//! pointers. Memory holds the owner of each page and the next free page of each block, whose pages are allocated
//! strictly ascending. Each lane of a channel (a plane) has one updating block. Pages of a channel go to the lanes in
//! turn, so that a request reaches several dies and planes.
//!
//! Metadata have their own updating block in each channel (the paper is silent): each commit invalidates the metadata
//! of the previous one, so these blocks become free as a whole. On a device that limits the blocks written in part
//! ([`Shape::most_updating`]) fewer lanes, or channels, have an updating block at a time.

use super::candidates::Candidates;
use super::device::{NO_PAGE, Shape};
use palimpsest_flash::prefetch::prefetch;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NO_BLOCK: u32 = u32::MAX;
/// Inode number of a page without an owner.
pub const NO_INODE: u32 = u32::MAX;

/// Status of a logical page (Fig. 3 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not written since the trim of the block.
    Free,
    /// A pointer leads to the page.
    Valid,
    /// Written, without a pointer that leads to the page.
    Invalid,
}

/// The inode of a page, and the role of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// [`NO_INODE`] if no pointer leads to the page.
    pub ino: u32,
    /// A packed [`Role`].
    pub role: u32,
}

palimpsest_flash::state!(Owner { ino, role });

const NO_OWNER: Owner = Owner { ino: NO_INODE, role: 0 };

/// The role of a page in its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The page of the file with this number.
    DataPage(u32),
    Leaf(u32),
    /// The page of pointers to leaves.
    Root,
    /// The page of the log with this number, which belongs to the inode file.
    Log(u32),
}

const LEAF: u32 = 1 << 30;
const ROOT: u32 = 1 << 31;
const LOG: u32 = ROOT | LEAF;

impl Role {
    pub fn pack(self) -> u32 {
        match self {
            Role::DataPage(page) => page,
            Role::Leaf(leaf) => LEAF | leaf,
            Role::Root => ROOT,
            Role::Log(page) => LOG | page,
        }
    }

    pub fn unpack(packed: u32) -> Self {
        match packed {
            ROOT => Role::Root,
            packed if packed & LOG == LOG => Role::Log(packed & !LOG),
            packed if packed & LEAF != 0 => Role::Leaf(packed & !LEAF),
            page => Role::DataPage(page),
        }
    }
}

/// The state of all logical pages.
#[derive(Default)]
pub struct PageAllocator {
    shape: Shape,
    owners: Vec<Owner>,
    next: Vec<u32>,
    valid: Vec<u32>,
    /// Candidates for cleaning in each channel: fully written blocks with valid and invalid pages.
    candidates: Vec<Candidates>,
    /// Free blocks of each lane, in order of their trims.
    free: Vec<VecDeque<u32>>,
    /// The updating block of each lane.
    open: Vec<u32>,
    /// The updating block of metadata in each channel. Its pages do not count as free.
    metadata: Vec<u32>,
    /// The next lane of each channel.
    turn: Vec<u32>,
    free_pages: Vec<u64>,
    /// Pages of each channel that the next commit frees: all of the blocks cleaned since the last one.
    promised: Vec<u64>,
    valid_pages: u64,
    /// Fully written blocks without valid pages.
    empty: BTreeSet<u32>,
    /// Pages invalidated since the last [`Self::take_freed`]; `None` if single pages are not trimmed.
    freed: Option<Vec<u32>>,
    /// Blocks of checkpoints.
    anchors: [u32; 2],
    /// A block that is not ranked for now.
    cleaning: u32,
    /// Cleaned blocks that are not ranked before the next commit, which moves their metadata.
    aside: BTreeSet<u32>,
    /// Updating blocks that a mount found, with their written pages then: the last may be torn.
    found: BTreeMap<u32, u32>,
}

palimpsest_flash::state!(PageAllocator {
    next, valid, free, open, metadata, turn, free_pages, promised, valid_pages, empty, freed, found
} parts { owners, candidates } built { shape, anchors, cleaning, aside });

impl PageAllocator {
    /// All pages are free, except in the two `anchors`, which are never allocated.
    pub fn new(shape: Shape, anchors: [u32; 2]) -> Self {
        PageAllocator {
            owners: vec![NO_OWNER; shape.pages() as usize],
            next: vec![0; shape.blocks() as usize],
            valid: vec![0; shape.blocks() as usize],
            candidates: vec![Candidates::new(shape.blocks_per_channel); shape.channels as usize],
            free: vec![VecDeque::new(); (shape.channels * shape.lanes) as usize],
            open: vec![NO_BLOCK; (shape.channels * shape.lanes) as usize],
            metadata: vec![NO_BLOCK; shape.channels as usize],
            turn: vec![0; shape.channels as usize],
            free_pages: vec![0; shape.channels as usize],
            promised: vec![0; shape.channels as usize],
            anchors,
            cleaning: NO_BLOCK,
            shape,
            ..PageAllocator::default()
        }
    }

    /// Sets the `written` pages of each block, once every owner is set. The partly written block of a lane becomes the
    /// updating block; among several, the one with the fewest written pages. Returns the others, which get no more
    /// pages.
    pub fn adopt(&mut self, written: impl Fn(u32) -> u32) -> Vec<u32> {
        let (mut begun, mut left) = (Vec::new(), Vec::new());
        let anchors = self.anchors;
        for block in (0..self.shape.blocks()).filter(|block| !anchors.contains(block)) {
            self.next[block as usize] = written(block);
            match (self.next[block as usize], self.valid[block as usize]) {
                (0, _) => self.give(block),
                (_, 0) => _ = self.empty.insert(block),
                (next, _) if next < self.shape.pages_per_block => begun.push((next, block)),
                _ => self.rank(block),
            }
        }
        begun.sort_unstable();
        for (next, block) in begun {
            let lane = self.shape.lane(block) as usize;
            if self.open[lane] == NO_BLOCK && self.may_open(self.shape.channel_of_block(block)) {
                self.open[lane] = block;
                self.found.insert(block, next);
                let left = u64::from(self.shape.pages_per_block - next);
                self.free_pages[self.shape.channel_of_block(block) as usize] += left;
            } else {
                self.next[block as usize] = self.shape.pages_per_block;
                self.rank(block);
                left.push(block);
            }
        }
        left
    }

    /// Begins to move the valid pages of `block`, which is no candidate before [`Self::promise`].
    pub fn clean(&mut self, block: u32) {
        self.cleaning = block;
    }

    /// Updates `block` among the candidates after a change of its written or valid pages.
    fn rank(&mut self, block: u32) {
        if block == self.cleaning || self.aside.contains(&block) {
            return;
        }
        let (next, valid) = (self.next[block as usize], self.valid[block as usize]);
        let can = next == self.shape.pages_per_block && valid > 0 && valid < next && !self.anchors.contains(&block);
        let (channel, index) = (block / self.shape.blocks_per_channel, block % self.shape.blocks_per_channel);
        self.candidates[channel as usize].set(index, can.then_some(valid));
    }

    fn give(&mut self, block: u32) {
        self.free[self.shape.lane(block) as usize].push_back(block);
        self.free_pages[self.shape.channel_of_block(block) as usize] += u64::from(self.shape.pages_per_block);
    }

    pub fn status(&self, page: u32) -> Status {
        match self.owners[page as usize] {
            NO_OWNER
                if page % self.shape.pages_per_block >= self.next[(page / self.shape.pages_per_block) as usize] =>
            {
                Status::Free
            }
            NO_OWNER => Status::Invalid,
            _ => Status::Valid,
        }
    }

    /// Prefetches the owner of `page`, which will be invalidated soon.
    #[inline]
    pub fn prefetch_owner(&self, page: u32) {
        prefetch(&self.owners, page as usize);
    }

    pub fn owner(&self, page: u32) -> Option<Owner> {
        let owner = self.owners[page as usize];
        (owner.ino != NO_INODE).then_some(owner)
    }

    /// The first page that has another owner in `other`, an allocator of the same file system.
    pub fn other_owner(&self, other: &PageAllocator) -> Option<u32> {
        let pages = self.owners.iter().zip(&other.owners);
        pages.enumerate().find_map(|(page, (owner, others))| (owner != others).then_some(page as u32))
    }

    pub fn free_pages(&self) -> u64 {
        self.free_pages.iter().sum()
    }

    pub fn free_in(&self, channel: u32) -> u64 {
        self.free_pages[channel as usize]
    }

    pub fn valid_pages(&self) -> u64 {
        self.valid_pages
    }

    /// The channel with the most free pages.
    pub fn roomiest(&self) -> u32 {
        let channels = 0..self.shape.channels;
        channels.max_by_key(|&channel| (self.free_in(channel), u32::MAX - channel)).unwrap_or(0)
    }

    /// Allocates the next page of `channel`, or of the roomiest channel if `channel` is full; `None` if all are.
    pub fn allocate(&mut self, channel: u32) -> Option<u32> {
        let channel = if self.free_in(channel) > 0 { channel } else { self.roomiest() };
        if self.free_in(channel) == 0 {
            return None;
        }
        for step in 0..self.shape.lanes {
            let place = (self.turn[channel as usize] + step) % self.shape.lanes;
            let lane = (channel * self.shape.lanes + place) as usize;
            if self.open[lane] == NO_BLOCK {
                match self.free[lane].front() {
                    Some(&block) if self.may_open(channel) => self.open[lane] = block,
                    _ => continue,
                }
                self.free[lane].pop_front();
            }
            self.turn[channel as usize] = (place + 1) % self.shape.lanes;
            self.free_pages[channel as usize] -= 1;
            return Some(self.take_next(lane));
        }
        unreachable!("a channel with free pages has a lane with one")
    }

    /// Whether `channel` may have one more updating block.
    fn may_open(&self, channel: u32) -> bool {
        let (most, lanes) = (self.shape.most_updating().0, self.shape.lanes);
        let open = &self.open[(channel * lanes) as usize..((channel + 1) * lanes) as usize];
        most >= lanes || open.iter().filter(|&&block| block != NO_BLOCK).count() < most as usize
    }

    /// Allocates a page for metadata: in the metadata block of `channel` (opened only with `plenty` of room), else in
    /// any metadata block, else as for files.
    pub fn allocate_metadata(&mut self, channel: u32, plenty: bool) -> Option<u32> {
        let any = self.metadata.iter().position(|&block| block != NO_BLOCK);
        let open = self.metadata.iter().filter(|&&block| block != NO_BLOCK).count() as u32;
        let plenty = plenty && open < self.shape.most_updating().1;
        let place = match any {
            Some(any) if self.metadata[channel as usize] == NO_BLOCK && !plenty => any,
            _ => channel as usize,
        };
        if self.metadata[place] == NO_BLOCK && !self.open_metadata(place as u32) {
            return self.allocate(channel);
        }
        let (block, page) = self.advance(self.metadata[place]);
        if self.next[block as usize] == self.shape.pages_per_block {
            self.metadata[place] = NO_BLOCK;
        }
        Some(page)
    }

    /// Opens a metadata block in `channel`, from the lane with the most free blocks.
    fn open_metadata(&mut self, channel: u32) -> bool {
        let lanes = channel * self.shape.lanes..(channel + 1) * self.shape.lanes;
        let most = lanes.max_by_key(|&lane| (self.free[lane as usize].len(), u32::MAX - lane));
        let Some(block) = most.and_then(|lane| self.free[lane as usize].pop_front()) else { return false };
        self.free_pages[channel as usize] -= u64::from(self.shape.pages_per_block);
        self.metadata[channel as usize] = block;
        true
    }

    fn take_next(&mut self, lane: usize) -> u32 {
        let (block, page) = self.advance(self.open[lane]);
        if self.next[block as usize] == self.shape.pages_per_block {
            self.open[lane] = NO_BLOCK;
        }
        page
    }

    /// Allocates the next page of `block`, an updating block.
    fn advance(&mut self, block: u32) -> (u32, u32) {
        let next = &mut self.next[block as usize];
        let page = block * self.shape.pages_per_block + *next;
        *next += 1;
        if *next == self.shape.pages_per_block {
            if self.valid[block as usize] == 0 {
                self.empty.insert(block);
            }
            self.rank(block);
        }
        (block, page)
    }

    /// Makes `page` valid, with the owner `ino`.
    pub fn own(&mut self, page: u32, ino: u32, role: Role) {
        let block = (page / self.shape.pages_per_block) as usize;
        debug_assert_eq!(self.owners[page as usize], NO_OWNER);
        self.owners[page as usize] = Owner { ino, role: role.pack() };
        self.valid[block] += 1;
        self.valid_pages += 1;
        if self.next[block] == self.shape.pages_per_block {
            self.empty.remove(&(block as u32));
            self.rank(block as u32);
        }
    }

    pub fn disown(&mut self, page: u32) {
        if page == NO_PAGE {
            return;
        }
        let block = page / self.shape.pages_per_block;
        debug_assert_ne!(self.owners[page as usize], NO_OWNER);
        self.owners[page as usize] = NO_OWNER;
        if let Some(freed) = &mut self.freed {
            freed.push(page);
        }
        self.valid[block as usize] -= 1;
        self.valid_pages -= 1;
        if self.next[block as usize] == self.shape.pages_per_block {
            if self.valid[block as usize] == 0 {
                self.empty.insert(block);
            }
            self.rank(block);
        }
    }

    /// Free pages of `channel` after the next commit.
    pub fn expected_in(&self, channel: u32) -> u64 {
        self.free_in(channel) + self.promised[channel as usize]
    }

    /// Ends the cleaning of `block`, whose pages the next commit frees.
    pub fn promise(&mut self, block: u32) {
        self.cleaning = NO_BLOCK;
        self.rank(block);
        self.promised[self.shape.channel_of_block(block) as usize] += u64::from(self.shape.pages_per_block);
    }

    /// Bars the cleaned `block`, which may still hold valid metadata, until [`Self::recall`].
    pub fn set_aside(&mut self, block: u32) {
        let (channel, index) = (block / self.shape.blocks_per_channel, block % self.shape.blocks_per_channel);
        self.candidates[channel as usize].set(index, None);
        self.aside.insert(block);
    }

    /// Makes barred blocks candidates again.
    pub fn recall(&mut self) {
        std::mem::take(&mut self.aside).into_iter().for_each(|block| self.rank(block));
    }

    /// Makes [`Self::take_freed`] list pages invalidated from now on.
    pub fn note_freed(&mut self) {
        self.freed = Some(Vec::new());
    }

    /// Runs of pages invalidated since the last call, as first page and count, without the blocks that
    /// [`Self::take_empty`] lists.
    pub fn take_freed(&mut self) -> Vec<(u32, u32)> {
        let mut freed = self.freed.as_mut().map(std::mem::take).unwrap_or_default();
        freed.sort_unstable();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for page in freed.into_iter().filter(|page| !self.empty.contains(&(page / self.shape.pages_per_block))) {
            match runs.last_mut() {
                Some((first, pages)) if *first + *pages == page => *pages += 1,
                _ => runs.push((page, 1)),
            }
        }
        runs
    }

    /// Takes the written blocks without valid pages; the caller must trim each and call [`Self::trimmed`].
    pub fn take_empty(&mut self) -> BTreeSet<u32> {
        self.promised.fill(0);
        std::mem::take(&mut self.empty)
    }

    pub fn has_empty(&self) -> bool {
        !self.empty.is_empty()
    }

    /// Makes the trimmed `block` free.
    pub fn trimmed(&mut self, block: u32) {
        self.next[block as usize] = 0;
        self.found.remove(&block);
        self.give(block);
    }

    /// The block to clean. Among blocks whose valid pages exceed the fewest by at most an eighth of a block, the one in
    /// the channel with the least free space, so that channels stay even.
    pub fn victim(&self) -> Option<u32> {
        let best = |channel: u32| {
            let (valid, index) = self.candidates[channel as usize].fewest()?;
            Some((self.expected_in(channel), valid, channel * self.shape.blocks_per_channel + index))
        };
        let candidates = (0..self.shape.channels).filter_map(best);
        let fewest = candidates.clone().map(|(_, valid, _)| valid).min()?;
        let near = candidates.filter(|&(_, valid, _)| valid <= fewest + self.shape.pages_per_block / 8);
        near.min().map(|(_, _, block)| block)
    }

    pub fn valid_in(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }

    /// Checks the tables against each other and against the `written` pages of each block.
    ///
    /// # Errors
    /// The disagreement.
    pub fn check(&self, written: impl Fn(u32) -> u32) -> Result<(), String> {
        let per_block = self.shape.pages_per_block;
        let mut free = vec![0u64; self.shape.channels as usize];
        for block in (0..self.shape.blocks()).filter(|block| !self.anchors.contains(block)) {
            let pages = &self.owners[(block * per_block) as usize..((block + 1) * per_block) as usize];
            let valid = pages.iter().filter(|owner| owner.ino != NO_INODE).count() as u32;
            if valid != self.valid_in(block) {
                return Err(format!("logical block {block} counts {} of {valid} valid pages", self.valid_in(block)));
            }
            let (next, lane) = (self.next[block as usize], self.shape.lane(block) as usize);
            let is_free = self.free[lane].contains(&block);
            if (is_free && next > 0)
                // The last pages of a block may have been discarded.
                || (self.freed.is_none()
                    && (self.open[lane] == block || self.metadata.contains(&block))
                    && next != written(block)
                    && !self.lost_torn(block, written(block)))
                || written(block) > next
            {
                return Err(format!("logical block {block} has {} pages written, not {next}", written(block)));
            }
            if is_free || self.open[lane] == block {
                free[self.shape.channel_of_block(block) as usize] += u64::from(per_block - next);
            }
        }
        if free != self.free_pages {
            return Err(format!("channels count {:?} free pages, not {free:?}", self.free_pages));
        }
        self.check_candidates()
    }

    /// Whether `block` is unwritten since the mount, and the pages beyond the layer's `written` ones are invalid: torn
    /// pages, which a layer that moves the block drops.
    fn lost_torn(&self, block: u32, written: u32) -> bool {
        let (first, next) = (block * self.shape.pages_per_block, self.next[block as usize]);
        self.found.get(&block) == Some(&next) && (written..next).all(|page| self.owner(first + page).is_none())
    }

    /// Checks the next victims against a scan of every block.
    fn check_candidates(&self) -> Result<(), String> {
        let per_block = self.shape.pages_per_block;
        for channel in 0..self.shape.channels {
            let first = channel * self.shape.blocks_per_channel;
            let valid = |index: u32| {
                let (block, valid) = (first + index, self.valid_in(first + index));
                let written = self.next[block as usize] == per_block && !self.anchors.contains(&block);
                (written && valid > 0 && valid < per_block).then_some((valid, index))
            };
            let (fewest, found) = (
                (0..self.shape.blocks_per_channel).filter_map(valid).min(),
                self.candidates[channel as usize].fewest(),
            );
            if found != fewest {
                return Err(format!("channel {channel} would clean {found:?} (valid pages, block), not {fewest:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
