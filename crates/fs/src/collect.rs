//! Garbage collection in the file system (co-design paper, Sec. III-A), and the free space for collection.
//!
//! Below the threshold of free pages each write cleans one logical block until the gain is reached: valid pages of
//! files move to the updating blocks of their channel, the next commit rewrites metadata, and then the block is
//! trimmed. Several blocks share a commit. Beside the thresholds there is always room for a commit and for one more
//! collection.
//!
//! Channels stay even. A channel with less free space than another by 1/32 of the blocks gets pages only in turn, and
//! valid pages move to the channel with the most free space. A channel more worn than another by an erase a block
//! also gets pages only in turn, while there is another, and valid pages move to the least worn channel with room.
//! (Even free space does not imply even wear: fairness by file puts overwritten pages back into their channel, hot ones
//! too.)

use super::allocator::{Owner, Role};
use super::device::{Device, Shape};
use super::{Done, Fault, FileSystem, INODE_FILE, Thresholds};

/// Blocks cleaned before a commit and their trims.
const BLOCKS_PER_COMMIT: u32 = 16;
/// Blocks of [`FileSystem::reserve`] that a full drive has free, whatever its updating blocks hold.
pub(super) const ALWAYS_FREE: u32 = 12;
/// Share of the space without valid pages that collection may want free. The rest is for invalid pages, because victims
/// without them yield nothing.
const REACHABLE: f64 = 0.75;
/// Commits in a row without a gain before several blocks share a commit.
const MOST_VAIN: u32 = 8;
/// Erases a block by which a channel may be more worn than another.
const WEAR_SPREAD: u64 = 1;
/// Fraction of the blocks by which a channel may have less free space than another: 1 / this.
const FREE_SPREAD: u32 = 32;

impl Thresholds {
    /// The thresholds that a full drive can reach, whose spare space beyond the reserve is `spare` pages. The gain
    /// shrinks first, to the blocks of a commit, because collection below a small start has no room to share commits.
    pub(super) fn reachable(self, shape: Shape, spare: u64) -> Thresholds {
        let block = u64::from(shape.pages_per_block);
        let most = (REACHABLE * (u64::from(ALWAYS_FREE) * block + spare) as f64) as u64;
        let least_gain = (u64::from(BLOCKS_PER_COMMIT) * block).min(most / 2);
        let gain = self.gain.min(most.saturating_sub(self.start).max(least_gain));
        Thresholds { start: self.start.min(most - gain), gain }
    }
}

impl FileSystem {
    /// Refuses `pages` more valid pages beyond the capacity.
    pub(super) fn admit(&mut self, device: &mut dyn Device, pages: u64) -> Done<()> {
        let fits = |filesystem: &Self| {
            let taken = filesystem.taken() + pages;
            taken as i64 <= Self::capacity(filesystem.shape)
        };
        if !fits(self) {
            // Metadata that wait for a commit count twice, and the log counts, too.
            self.commit_tree(device)?;
        }
        if fits(self) { Ok(()) } else { Err(Fault::Full) }
    }

    /// Whether updating blocks of metadata may be opened in every channel.
    pub(super) fn has_plenty(&self) -> bool {
        let blocks = u64::from(self.shape.channels) * u64::from(self.shape.pages_per_block);
        self.allocator.free_pages() > 4 * self.critical() + blocks
    }

    /// Makes room for `pages` pages and for a commit after them.
    pub(super) fn make_room(&mut self, device: &mut dyn Device, pages: u64) -> Done<()> {
        let mut most = self.allocator.free_pages();
        let mut vain = 0;
        // Each round cleans a block or trims one; rounds without gain end.
        for _ in 0..4 * self.shape.blocks() + 4 {
            if self.has_room(pages) {
                return Ok(());
            }
            if vain >= MOST_VAIN {
                let done = self.make_room_by_many(device, pages);
                self.allocator.recall();
                return done;
            }
            if self.uncommitted > 0 || self.allocator.has_empty() {
                self.commit(device)?;
                let free = self.allocator.free_pages();
                vain = if free > most { 0 } else { vain + 1 };
                most = most.max(free);
            } else if !self.collect(device)? {
                self.commit_the_rest(device)?;
            }
        }
        Err(Fault::Full)
    }

    fn has_room(&self, pages: u64) -> bool {
        self.allocator.free_pages() >= pages + self.pending + self.critical()
    }

    /// As [`Self::make_room`], if a commit takes all pages that one block frees: as many blocks share a commit as fit.
    /// Successive power cuts may leave no other way.
    fn make_room_by_many(&mut self, device: &mut dyn Device, pages: u64) -> Done<()> {
        for _ in 0..4 * self.shape.blocks() + 4 {
            if self.has_room(pages) {
                return Ok(());
            }
            let victim = if self.uncommitted < BLOCKS_PER_COMMIT { self.allocator.victim() } else { None };
            if let Some(victim) = victim
                && self.collect(device)?
            {
                self.allocator.set_aside(victim);
            } else if self.uncommitted > 0 || self.allocator.has_empty() {
                self.commit(device)?;
                self.allocator.recall();
            } else {
                self.commit_the_rest(device)?;
            }
        }
        Err(Fault::Full)
    }

    /// No block yields a gain: a commit of the tree, without the log, may free more.
    fn commit_the_rest(&mut self, device: &mut dyn Device) -> Done<()> {
        if self.pending == 0 && self.log.pages.is_empty() {
            return Err(Fault::Full);
        }
        self.commit_tree(device)
    }

    /// One step of collection, done by a write.
    pub(super) fn collect_in_turn(&mut self, device: &mut dyn Device) -> Done<()> {
        let free = self.allocator.free_pages();
        if free < self.thresholds.start {
            self.collecting = true;
        }
        if !self.collecting {
            return Ok(());
        }
        if free < self.pending + 2 * self.critical() {
            // The rest is reserved for `make_room`, and for the commits that free blocks.
            return if self.uncommitted > 0 { self.commit(device) } else { Ok(()) };
        }
        self.collecting = free < self.thresholds.start + self.thresholds.gain && self.collect(device)?;
        if self.uncommitted >= BLOCKS_PER_COMMIT || !self.collecting {
            self.commit(device)?;
        }
        Ok(())
    }

    /// Cleans one block, which the next commit trims; false if no block yields a gain.
    fn collect(&mut self, device: &mut dyn Device) -> Done<bool> {
        let Some(victim) = self.allocator.victim() else { return Ok(false) };
        let valid = u64::from(self.allocator.valid_in(victim));
        let free = self.allocator.free_pages();
        if free < self.pending + 5 * valid + 2 && free < self.least_room(victim) {
            return Ok(false);
        }
        let home = self.shape.channel_of_block(victim);
        let channel = self.destination(device, home);
        let first = victim * self.shape.pages_per_block;
        let pages = first..first + self.shape.pages_per_block;
        for Owner { ino, role } in pages.clone().filter_map(|page| self.allocator.owner(page)) {
            if let Role::DataPage(page) = Role::unpack(role) {
                self.prefetch_pointer(ino, page);
            }
        }
        self.allocator.clean(victim);
        for page in pages {
            let Some(owner) = self.allocator.owner(page) else { continue };
            match Role::unpack(owner.role) {
                Role::DataPage(at) if self.is_data(owner.ino) => {
                    let to = self.allocator.allocate(channel).ok_or(Fault::Full)?;
                    device.copy(page, to)?;
                    self.counters.moved_pages += 1;
                    self.point(owner.ino, at, to);
                }
                role => self.renew(owner.ino, role),
            }
        }
        self.allocator.promise(victim);
        self.uncommitted += 1;
        self.counters.collected += 1;
        Ok(true)
    }

    /// Upper bound of the pages for the collection of `victim` and the commit after it. Successive power cuts may leave
    /// no more, because each wastes the pages of its commit.
    fn least_room(&self, victim: u32) -> u64 {
        let first = victim * self.shape.pages_per_block;
        let (mut moved, mut renewed, mut has_log) = (0, 0, false);
        for owner in (first..first + self.shape.pages_per_block).filter_map(|page| self.allocator.owner(page)) {
            match Role::unpack(owner.role) {
                Role::DataPage(_) if self.is_data(owner.ino) => moved += 1,
                Role::Log(_) => has_log = true,
                _ => renewed += 1,
            }
        }
        // A moved page of a file dirties at most four pages of the tree, a moved page of the tree three.
        let waiting = 4 * moved + 3 * renewed;
        let tree = self.pending + moved + waiting + 2;
        // Without its pages the log cannot commit.
        let logged = if has_log { None } else { self.logged_pages(moved + renewed, waiting) };
        logged.map_or(tree, |pages| tree.min(moved + renewed + pages + 1))
    }

    fn is_data(&self, ino: u32) -> bool {
        ino != INODE_FILE && !self.directories.contains_key(&ino)
    }

    /// The channel to which pages of `home` move.
    fn destination(&self, device: &dyn Device, home: u32) -> u32 {
        let below = self.crowded_below();
        if device.wear(home) > self.worn_above(device) {
            let roomy = (0..self.shape.channels).filter(|&channel| !self.is_crowded(channel, below));
            return roomy.min_by_key(|&channel| device.wear(channel)).unwrap_or(home);
        }
        if self.is_crowded(home, below) { self.expects_most() } else { home }
    }

    /// Erases above which a channel is too worn to get more than its turn.
    fn worn_above(&self, device: &dyn Device) -> u64 {
        let least = (0..self.shape.channels).map(|channel| device.wear(channel)).min().unwrap_or(0);
        least + WEAR_SPREAD * u64::from(self.shape.blocks_per_channel)
    }

    /// The channels that get pages only in turn: crowded ones and, while another is left, worn ones.
    pub(super) fn avoided(&self, device: &dyn Device, avoided: &mut Vec<bool>) {
        let (below, above) = (self.crowded_below(), self.worn_above(device));
        let crowded = |channel| self.is_crowded(channel, below);
        avoided.clear();
        avoided.extend((0..self.shape.channels).map(|channel| crowded(channel) || device.wear(channel) > above));
        if avoided.iter().all(|&avoided| avoided) {
            avoided.clear();
            avoided.extend((0..self.shape.channels).map(crowded));
        }
    }

    fn expects_most(&self) -> u32 {
        let expected = |channel: u32| (self.allocator.expected_in(channel), u32::MAX - channel);
        (0..self.shape.channels).max_by_key(|&channel| expected(channel)).unwrap_or(0)
    }

    /// Expected free pages below which a channel is crowded.
    fn crowded_below(&self) -> u64 {
        let blocks = (self.shape.blocks_per_channel / FREE_SPREAD).max(1);
        let allowed = u64::from(blocks) * u64::from(self.shape.pages_per_block);
        self.allocator.expected_in(self.expects_most()).saturating_sub(allowed)
    }

    fn is_crowded(&self, channel: u32, below: u64) -> bool {
        self.allocator.expected_in(channel) < below
    }

    /// Marks a page of metadata for the next commit.
    fn renew(&mut self, ino: u32, role: Role) {
        self.log.renew(ino, role);
        self.touch(ino);
        match role {
            Role::Log(_) => {}
            Role::DataPage(page) if ino == INODE_FILE => {
                self.pending += 3 * u64::from(self.dirty_inode_pages.insert(page));
            }
            Role::DataPage(page) => {
                let directory = self.directories.get_mut(&ino).expect("a directory");
                self.pending += 3 * u64::from(directory.dirty.insert(page));
            }
            Role::Leaf(index) => {
                let inode = self.inode_mut(ino);
                if let Some(leaf) = inode.leaves[index as usize].as_mut() {
                    leaf.dirty = true;
                }
                inode.root_dirty |= index > 0;
                self.pending += 2;
            }
            Role::Root => {
                self.inode_mut(ino).root_dirty = true;
                self.pending += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        channels: 8,
        lanes: 4,
        blocks_per_channel: 448,
        pages_per_block: 256,
        subpages_per_page: 1,
        page_bytes: 4096,
        most_active: 0,
    };

    /// With 188 spare blocks a full drive may want 150 blocks free: three quarters of the spare ones and of 12.
    #[test]
    fn a_full_drive_reaches_the_start_before_the_gain() {
        let reached = |start: u64, gain: u64| {
            let Thresholds { start, gain } =
                Thresholds { start: start * 256, gain: gain * 256 }.reachable(SHAPE, 188 * 256);
            (start / 256, gain / 256)
        };
        assert_eq!(reached(50, 100), (50, 100));
        assert_eq!(reached(0, 400), (0, 150));
        assert_eq!(reached(50, 400), (50, 100));
        assert_eq!(reached(140, 400), (134, 16));
        assert_eq!(reached(400, 400), (134, 16));
        assert_eq!(reached(400, 3), (147, 3));
    }

    #[test]
    fn less_spare_space_never_raises_a_threshold() {
        let asked = Thresholds { start: 40_000, gain: 90_000 };
        let mut before = asked;
        for spare in (0..200_000).rev().step_by(777) {
            let Thresholds { start, gain } = asked.reachable(SHAPE, spare);
            assert!(start + gain <= 12 * 256 + spare, "{spare}: a full drive cannot reach {start} + {gain}");
            assert!(start <= before.start && gain <= before.gain, "{spare}");
            assert!(start == asked.start || start >= gain, "{spare}: {start} {gain}");
            before = Thresholds { start, gain };
        }
    }
}
