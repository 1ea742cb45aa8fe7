//! Room: garbage collection in the file system (co-design paper, Sec. III-A), and how much must stay free.
//!
//! When less than a threshold is free, each write cleans one logical block until the gain is reached: valid pages of files move
//! to the updating blocks of their channel, records are written anew by the next commit, and after that the block is trimmed.
//! Commits are shared by several blocks. Apart from the thresholds there is always room for a commit and for one more collection.
//!
//! Channels are kept even: one that has less free space than another by 1/32 of its blocks gets pages in turn only, and what is
//! moved out of it goes to the one with the most; so does one that has worn more than another by an erase a block, while there
//! is any other, and what is moved out of it goes to the least worn that has room. (Free space alone does not keep wear even:
//! fairness by file puts what is overwritten back into its channel, hot pages and all.)

use super::device::Device;
use super::space::Part;
use super::{Done, Fault, FileSystem, INODE_FILE};

/// Blocks cleaned before a commit lets them be trimmed.
const BLOCKS_PER_COMMIT: u32 = 16;
/// Erases a block by which a channel may have worn more than another.
const WEAR_SPREAD: u64 = 1;
/// Share of its blocks by which a channel may have less free space than another.
const FREE_SPREAD: u32 = 32;

impl FileSystem {
    /// Whether `pages` more may be taken.
    pub(super) fn admit(&mut self, device: &mut dyn Device, pages: u64) -> Done<()> {
        let fits = |filesystem: &Self| {
            let taken = filesystem.space.valid_pages() + filesystem.pending + pages;
            taken as i64 <= Self::capacity(filesystem.shape)
        };
        if !fits(self) {
            // Records that wait for a commit count twice.
            self.commit(device)?;
        }
        if fits(self) { Ok(()) } else { Err(Fault::Full) }
    }

    /// Whether updating blocks of metadata may be opened in every channel.
    pub(super) fn has_plenty(&self) -> bool {
        let blocks = u64::from(self.shape.channels) * u64::from(self.shape.pages_per_block);
        self.space.free_pages() > 4 * self.critical() + blocks
    }

    /// Makes sure that `pages` can be written, and a commit behind them.
    pub(super) fn make_room(&mut self, device: &mut dyn Device, pages: u64) -> Done<()> {
        // Each round cleans a block or trims one; one that never gains anything ends.
        for _ in 0..4 * self.shape.blocks() + 4 {
            if self.space.free_pages() >= pages + self.pending + self.critical() {
                return Ok(());
            }
            if self.uncommitted > 0 || self.space.has_empty() {
                self.commit(device)?;
            } else if !self.collect(device)? {
                return Err(Fault::Full);
            }
        }
        Err(Fault::Full)
    }

    /// The part of a collection under way that a write does.
    pub(super) fn collect_in_turn(&mut self, device: &mut dyn Device) -> Done<()> {
        let free = self.space.free_pages();
        if free < self.thresholds.start {
            self.collecting = true;
        }
        if !self.collecting {
            return Ok(());
        }
        if free < self.pending + 2 * self.critical() {
            // What is left is for when there is no choice, and for the commits that give blocks back.
            return if self.uncommitted > 0 { self.commit(device) } else { Ok(()) };
        }
        self.collecting = free < self.thresholds.start + self.thresholds.gain && self.collect(device)?;
        if self.uncommitted >= BLOCKS_PER_COMMIT || !self.collecting {
            self.commit(device)?;
        }
        Ok(())
    }

    /// Cleans one block, which the next commit trims. False where none would gain anything.
    fn collect(&mut self, device: &mut dyn Device) -> Done<bool> {
        let Some(victim) = self.space.victim() else { return Ok(false) };
        let valid = u64::from(self.space.valid_in(victim));
        if self.space.free_pages() < self.pending + 5 * valid + 2 {
            return Ok(false);
        }
        let home = self.shape.channel_of_block(victim);
        let channel = self.destination(device, home);
        let first = victim * self.shape.pages_per_block;
        for page in first..first + self.shape.pages_per_block {
            let Some(owner) = self.space.owner(page) else { continue };
            match Part::unpack(owner.part) {
                Part::Page(at) if self.is_data(owner.ino) => {
                    let to = self.space.allocate(channel).ok_or(Fault::Full)?;
                    device.copy(page, to)?;
                    self.counters.moved_pages += 1;
                    self.point(owner.ino, at, to);
                }
                part => self.renew(owner.ino, part),
            }
        }
        self.space.promise(victim);
        self.uncommitted += 1;
        self.counters.collected += 1;
        Ok(true)
    }

    fn is_data(&self, ino: u32) -> bool {
        ino != INODE_FILE && !self.directories.contains_key(&ino)
    }

    /// Where pages of `home` move to.
    fn destination(&self, device: &dyn Device, home: u32) -> u32 {
        let below = self.crowded_below();
        if device.wear(home) > self.worn_above(device) {
            let roomy = (0..self.shape.channels).filter(|&channel| !self.is_crowded(channel, below));
            return roomy.min_by_key(|&channel| device.wear(channel)).unwrap_or(home);
        }
        if self.is_crowded(home, below) { self.expects_most() } else { home }
    }

    /// Erases above which a channel has worn so much more than another that it should get fewer pages for now.
    fn worn_above(&self, device: &dyn Device) -> u64 {
        let least = (0..self.shape.channels).map(|channel| device.wear(channel)).min().unwrap_or(0);
        least + WEAR_SPREAD * u64::from(self.shape.blocks_per_channel)
    }

    /// The channels that should get pages only in turn for now: those with too little free space, and, while another is left,
    /// those that have worn too much.
    pub(super) fn avoided(&self, device: &dyn Device) -> Vec<bool> {
        let (below, above) = (self.crowded_below(), self.worn_above(device));
        let crowded: Vec<bool> = (0..self.shape.channels).map(|channel| self.is_crowded(channel, below)).collect();
        let worn = |(channel, crowded): (u32, &bool)| *crowded || device.wear(channel) > above;
        let both: Vec<bool> = (0..).zip(&crowded).map(worn).collect();
        if both.iter().all(|&avoided| avoided) { crowded } else { both }
    }

    /// The channel that will have the most free pages after the next commit.
    fn expects_most(&self) -> u32 {
        let expected = |channel: u32| (self.space.expected_in(channel), u32::MAX - channel);
        (0..self.shape.channels).max_by_key(|&channel| expected(channel)).unwrap_or(0)
    }

    /// Free pages below which a channel has so much less free space than another that it should get fewer pages for now.
    fn crowded_below(&self) -> u64 {
        let blocks = (self.shape.blocks_per_channel / FREE_SPREAD).max(1);
        let allowed = u64::from(blocks) * u64::from(self.shape.pages_per_block);
        self.space.expected_in(self.expects_most()).saturating_sub(allowed)
    }

    /// Whether `channel` is, where that is `below`.
    fn is_crowded(&self, channel: u32, below: u64) -> bool {
        self.space.expected_in(channel) < below
    }

    /// The next commit writes this record anew.
    fn renew(&mut self, ino: u32, part: Part) {
        self.touch(ino);
        match part {
            Part::Page(page) if ino == INODE_FILE => {
                self.pending += 3 * u64::from(self.dirty_inode_pages.insert(page));
            }
            Part::Page(page) => {
                let directory = self.directories.get_mut(&ino).expect("a directory");
                self.pending += 3 * u64::from(directory.dirty.insert(page));
            }
            Part::Leaf(index) => {
                let inode = self.inode_mut(ino);
                if let Some(leaf) = inode.leaves[index as usize].as_mut() {
                    leaf.dirty = true;
                }
                inode.root_dirty |= index > 0;
                self.pending += 2;
            }
            Part::Root => {
                self.inode_mut(ino).root_dirty = true;
                self.pending += 1;
            }
        }
    }
}
