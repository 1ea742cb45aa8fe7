//! Chooses the page of a write: the plane by the allocation policy, then the next page at the frontier. A frontier is
//! the open block of a stream in a plane, programmed in order.
//!
//! Moved data stays in the plane, or goes to the planes of the die in turn (`ftl.moved_to = die`). The frontiers are
//! then at the same page address, as multi-plane programs require.

use super::Shape;
use super::blocks::{BlockState, Blocks, NO_BLOCK, sort_by_last_write};
use super::fixed::Fixed;
use super::frontier::{CLOSED, Frontier};
use super::left_out::LeftOut;
use super::rotation::Rotation;
use super::settings::{LogSettings, Moved, WearLeveling};
use super::single::Single;
use palimpsest_flash::nand::{Flash, Halt, Nand, Outcome};
use palimpsest_ftl_api::plan::{Erase, Io};

/// Free blocks of each plane that only cleaning may take.
const RESERVE: u32 = 1;

/// The blocks of a log, and the open ones.
pub(crate) struct Frontiers {
    pub blocks: Blocks,
    pub rotation: Rotation,
    /// Free pages of each plane: in free blocks and at the frontiers.
    pub free_pages: Vec<u32>,
    /// Streams of the host and of moved data; a stream of the map may follow.
    data_streams: u32,
    /// True if moved data goes to blocks of the host.
    shares: bool,
    /// Planes of a die that moved data goes to in turn; 1: moved data stays in the plane.
    turns: u32,
    dies: u32,
    /// The last stream that opened each block, if moved data keeps a class or streams are handles. The out-of-band area
    /// records the stream, so the stream is known after a power cut.
    stream_of_block: Vec<u8>,
    /// True if moved data keeps the class and returns to the blocks of the host's stream.
    pub keeps_class: bool,
    /// Frontiers of a plane.
    streams: u32,
    /// Streams from here on lend pages to streams without a block: if a power cut left no block to clean into, moved
    /// data takes the last pages of the map's block.
    lenders: u32,
    /// Frontier of each stream in each plane: index plane x streams + stream.
    open: Vec<Frontier>,
    pages_per_block: u32,
    units_per_block: u32,
    /// True if the least worn free block is opened next.
    level: bool,
    /// Blocks that the layer reserves; the log never uses them. Empty if none.
    reserved: Vec<bool>,
    /// Blocks whose present pass began with a page that stores nothing, and the number per plane; empty without a code
    /// of cells.
    marked: Vec<bool>,
    pub marks: Vec<u32>,
    /// Blocks with one bit a cell.
    pub single: Single,
    /// The fixed share of these, outside the log's blocks.
    pub fixed: Fixed,
    /// Pages of open blocks that a power cut left out; none in a saved state.
    left_out: LeftOut,
}

palimpsest_flash::state!(Frontiers {
    blocks, rotation, free_pages, stream_of_block, marked, marks, single, fixed
} parts { open } built {
    data_streams, shares, keeps_class, turns, dies, streams, lenders, pages_per_block, units_per_block, level, reserved,
    left_out
});

impl Frontiers {
    /// Constructs frontiers without open blocks; `own` streams follow the streams of data, and a full drive holds
    /// `stored` pages.
    pub fn new(io: &Io, settings: &LogSettings, shape: Shape, own: u32, stored: u32, reserved: Vec<bool>) -> Self {
        let geometry = io.geometry();
        let streams = settings.data_streams() + own;
        let mut blocks = Blocks::new(geometry, shape.units_per_block, |block| {
            io.nand().is_bad(block) || reserved.get(block as usize).is_some_and(|&reserved| reserved)
        });
        let (bits, level) = (io.nand().part().stored_bits(), settings.wear_leveling != WearLeveling::None);
        let fixed = Fixed::new(settings, geometry, bits, level, &mut blocks);
        Frontiers {
            rotation: Rotation::new(settings.allocation, settings.dies_in_turn(), geometry)
                .over_sets(&io.sets)
                .by(&settings.placement),
            free_pages: (0..geometry.planes()).map(|plane| blocks.free_count(plane) * shape.pages_per_block).collect(),
            data_streams: settings.data_streams(),
            shares: settings.moved != Moved::Together,
            turns: if settings.moves_to_die() { geometry.planes_per_die } else { 1 },
            dies: geometry.dies(),
            stream_of_block: vec![0; if settings.moved == Moved::Class { geometry.blocks() as usize } else { 0 }],
            keeps_class: settings.moved == Moved::Class,
            streams,
            lenders: settings.data_streams(),
            open: vec![CLOSED; (geometry.planes() * streams) as usize],
            pages_per_block: shape.pages_per_block,
            units_per_block: shape.units_per_block,
            level,
            marked: vec![false; if io.nand().part().code.is_some() { geometry.blocks() as usize } else { 0 }],
            marks: vec![0; geometry.planes() as usize],
            blocks,
            reserved,
            single: Single::new(settings, geometry, bits, stored),
            fixed,
            left_out: LeftOut::default(),
        }
    }

    /// The plane to try first for address `page` of `stream`.
    #[inline]
    pub fn first_plane(&mut self, io: &Io, stream: u32, page: u32) -> u32 {
        self.rotation.first(io, (stream, page), |plane| self.free_pages[plane as usize])
    }

    /// The stream of data moved out of `block`.
    #[inline]
    pub fn moved_stream(&self, block: u32) -> u32 {
        if self.keeps_class { self.stream_of(block).min(self.data_streams - 1) } else { self.data_streams - 1 }
    }

    /// Notes from now on which stream opened each block.
    pub fn track_streams(&mut self, blocks: u32) {
        self.stream_of_block.resize(blocks as usize, 0);
    }

    /// The last stream that opened `block`, if streams are noted.
    #[inline]
    pub fn stream_of(&self, block: u32) -> u32 {
        self.stream_of_block.get(block as usize).map_or(0, |&stream| stream.into())
    }

    /// Streams of data.
    #[inline]
    pub fn data_streams(&self) -> u32 {
        self.data_streams
    }

    /// The stream of data that only cleaning writes to, if any.
    pub fn cleaning_stream(&self) -> Option<u32> {
        (self.data_streams > 1 && !self.shares).then(|| self.data_streams - 1)
    }

    /// The stream of the map's units.
    #[inline]
    pub fn own_stream(&self) -> u32 {
        self.data_streams
    }

    #[inline]
    pub fn planes(&self) -> u32 {
        self.free_pages.len() as u32
    }

    #[inline]
    fn index(&self, plane: u32, stream: u32) -> usize {
        (plane * self.streams + stream) as usize
    }

    #[inline]
    pub fn is_reserved(&self, block: u32) -> bool {
        self.reserved.get(block as usize).is_some_and(|&reserved| reserved)
    }

    #[inline]
    pub fn is_open(&self, plane: u32, stream: u32) -> bool {
        self.open[self.index(plane, stream)].block != NO_BLOCK
    }

    /// Pages left at the frontier of `stream` in `plane`.
    #[inline]
    pub fn pages_left(&self, plane: u32, stream: u32) -> u32 {
        match self.open[self.index(plane, stream)] {
            Frontier { block: NO_BLOCK, .. } => 0,
            Frontier { block, next_page } => self.single.pages_of(block) - next_page + self.left_out.count(block),
        }
    }

    /// Pages of open blocks that data moved to `stream` in `plane` may take.
    pub fn pages_for(&self, plane: u32, stream: u32) -> u32 {
        let lent = (self.lenders..self.data_streams).filter(|&lender| lender != stream);
        self.pages_left(plane, stream) + lent.map(|lender| self.pages_left(plane, lender)).sum::<u32>()
    }

    /// True if `stream` may take a page of `plane` and leave the reserve of cleaning.
    #[inline]
    pub fn has_space(&self, plane: u32, stream: u32) -> bool {
        let opens = !self.is_open(plane, stream);
        self.blocks.free_count(plane) >= RESERVE + u32::from(opens)
    }

    /// True if `stream` has a block of `plane` that cleaning cannot use.
    pub fn has_block_of_its_own(&self, plane: u32, stream: u32) -> bool {
        self.is_open(plane, stream) && self.cleaning_stream().is_some() && stream < self.data_streams
    }

    /// True if cleaning has no free block in `plane`, and `stream` has pages there that it lends.
    pub fn cleaning_may_borrow(&self, plane: u32, stream: u32) -> bool {
        stream >= self.lenders && self.blocks.free_count(plane) == 0 && self.has_block_of_its_own(plane, stream)
    }

    /// True if moved data stays in the plane.
    #[inline]
    pub fn moves_stay(&self) -> bool {
        self.turns == 1
    }

    /// The planes that data moved out of blocks of `plane` goes to in turn.
    #[inline]
    pub fn planes_beside(&self, plane: u32) -> impl Iterator<Item = u32> + use<> {
        let (first, dies) = if self.turns == 1 { (plane, 1) } else { (plane % self.dies, self.dies) };
        (0..self.turns).map(move |turn| first + turn * dies)
    }

    /// The plane for the next page of `stream` moved out of `plane`: the plane of the die with room whose frontier is
    /// behind. Frontiers less than half a block apart meet this way, and then take turns.
    #[cold]
    fn next_in_turn(&self, plane: u32, stream: u32) -> u32 {
        let page_of = |plane: u32| match self.open[self.index(plane, stream)] {
            CLOSED => 0,
            Frontier { next_page, .. } => next_page,
        };
        let half = self.pages_per_block / 2;
        let has_room = |plane: &u32| self.is_open(*plane, stream) || self.blocks.free_count(*plane) > 0;
        let behind = self.planes_beside(plane).filter(has_room).reduce(|first, other| {
            let ahead = (self.pages_per_block + page_of(first) - page_of(other)) % self.pages_per_block;
            if (1..=half).contains(&ahead) { other } else { first }
        });
        behind.unwrap_or(plane)
    }

    /// Takes the next page of `stream` for `plane`. Moved data may get a page of another plane of the die, and if
    /// `plane` is full, the page comes from another plane.
    #[inline]
    pub fn take_page(&mut self, io: &Io, plane: u32, stream: u32) -> Flash<u32> {
        if self.fixed.is_used()
            && stream + 1 < self.data_streams
            && let Some(ppn) = self.fixed.take_page(io.nand(), plane)
        {
            return Ok(ppn);
        }
        let in_turn = self.turns > 1 && stream + 1 == self.data_streams;
        let plane = if in_turn { self.next_in_turn(plane, stream) } else { plane };
        match self.take_page_in(io, plane, stream) {
            Some(ppn) => Ok(ppn),
            None => self.take_page_elsewhere(io, plane, stream),
        }
    }

    /// Takes the next page of `stream` in `plane`, or of a stream that lends pages; `None` if no page is left.
    #[inline]
    pub fn take_page_in(&mut self, io: &Io, plane: u32, stream: u32) -> Option<u32> {
        let index = self.index(plane, stream);
        self.drop_lost(io, plane, index);
        if self.open[index].block == NO_BLOCK && !self.open_block(io, plane, stream) {
            let lender = self.lender(plane)?;
            return self.take_page_in(io, plane, lender);
        }
        let frontier = &mut self.open[index];
        let block = frontier.block;
        let page = self.left_out.take(block).unwrap_or_else(|| {
            frontier.next_page += 1;
            frontier.next_page - 1
        });
        self.free_pages[plane as usize] -= 1;
        self.close_full(index);
        Some(block * self.pages_per_block + page)
    }

    /// The first open stream of `plane` whose pages other streams may take.
    fn lender(&self, plane: u32) -> Option<u32> {
        (self.lenders..self.streams).find(|&stream| self.is_open(plane, stream))
    }

    /// Lets every stream take pages of the others when no free block is left.
    pub fn lend_all(mut self) -> Self {
        self.lenders = 0;
        self
    }

    /// Closes frontier number `index` if no page is left.
    #[inline]
    fn close_full(&mut self, index: usize) {
        let Frontier { block, next_page } = self.open[index];
        if next_page == self.single.pages_of(block) && self.left_out.count(block) == 0 {
            self.open[index].block = NO_BLOCK;
            self.blocks.close(block);
        }
    }

    /// Drops left-out pages of frontier number `index`, in `plane`, that can no longer be programmed.
    #[inline]
    fn drop_lost(&mut self, io: &Io, plane: u32, index: usize) {
        let lost = self.left_out.drop_lost(io.nand(), self.open[index].block);
        if lost > 0 {
            self.free_pages[plane as usize] -= lost;
            self.close_full(index);
        }
    }

    #[cold]
    fn take_page_elsewhere(&mut self, io: &Io, plane: u32, stream: u32) -> Flash<u32> {
        let most_free = (0..self.planes()).filter(|&other| other != plane).max_by_key(|&other| {
            let at_frontier = self.is_open(other, stream) || self.lender(other).is_some();
            (self.blocks.free_count(other) + u32::from(at_frontier), u32::MAX - other)
        });
        most_free.and_then(|other| self.take_page_in(io, other, stream)).ok_or(Halt::NoSpace)
    }

    /// The open block of `stream` in `plane` and the next page, if the next page of the stream comes from there.
    pub fn frontier(&self, plane: u32, stream: u32) -> Option<(u32, u32)> {
        let Frontier { block, next_page } = self.open[self.index(plane, stream)];
        let elsewhere = self.turns > 1 && stream + 1 == self.data_streams;
        (block != NO_BLOCK && !elsewhere && self.left_out.count(block) == 0).then_some((block, next_page))
    }

    /// Takes `pages` pages at the frontier of `stream` in `plane`, which must have more.
    pub fn take_pages(&mut self, plane: u32, stream: u32, pages: u32) {
        let index = self.index(plane, stream);
        self.open[index].next_page += pages;
        self.free_pages[plane as usize] -= pages;
    }

    /// Opens a free block of `plane` for `stream`. False if none is free.
    pub fn open_block(&mut self, io: &Io, plane: u32, stream: u32) -> bool {
        let (nand, level) = (io.nand(), self.level);
        let cached = stream + 1 < self.data_streams && !self.keeps_class && self.caches_next(nand, plane);
        let erased = cached.then(|| self.erased(nand, plane)).flatten();
        erased.iter().for_each(|&block| self.blocks.open_this(block));
        let opened = erased.or_else(|| self.blocks.open(plane, |block| if level { nand.erases(block) } else { 0 }));
        let index = self.index(plane, stream);
        let next_page = opened.map_or(0, |block| self.first_page(block));
        self.open[index] = Frontier { block: opened.unwrap_or(NO_BLOCK), next_page };
        self.note_stream(opened, stream);
        if let Some(block) = opened.filter(|_| cached) {
            self.free_pages[plane as usize] -= self.single.begin(plane, block);
        }
        opened.is_some()
    }

    /// True if the next block that the host opens in `plane` holds one bit a cell.
    fn caches_next(&self, nand: &Nand, plane: u32) -> bool {
        let free = self.blocks.free_count(plane);
        free > 0 && self.single.takes(plane, free - 1) && (!nand.has_passes() || self.erased(nand, plane).is_some())
    }

    /// Under a code of cells: the least worn free block of `plane` without data of an earlier pass.
    fn erased(&self, nand: &Nand, plane: u32) -> Option<u32> {
        if !nand.has_passes() {
            return None;
        }
        let free = self.blocks.free_of(plane).iter().filter(|&block| nand.next_page(block) == 0);
        free.min_by_key(|&block| nand.erases(block))
    }

    /// True if the dynamic share of the fast cache provides the next page of the host's `stream` in `plane`, apart from
    /// the fixed share.
    pub fn takes_dynamic(&self, nand: &Nand, plane: u32, stream: u32) -> bool {
        match self.open[self.index(plane, stream)].block {
            NO_BLOCK => self.caches_next(nand, plane),
            block => self.single.holds(block),
        }
    }

    #[inline]
    fn note_stream(&mut self, block: Option<u32>, stream: u32) {
        if let Some(block) = block
            && let Some(noted) = self.stream_of_block.get_mut(block as usize)
        {
            *noted = stream as u8;
        }
    }

    /// Makes the failed block `block` of `plane`, open or closed, a victim.
    pub fn drop_block(&mut self, plane: u32, block: u32) {
        if self.fixed.holds(block) {
            self.fixed.drop_block(plane, block);
            return;
        }
        if self.blocks.state(block) == BlockState::Closed {
            self.blocks.take_victim(block);
            return;
        }
        self.blocks.abandon(block);
        for stream in 0..self.streams {
            if self.open[self.index(plane, stream)].block == block {
                self.set_down(plane, stream);
            }
        }
    }

    /// Takes the block of `stream` in `plane` out of the frontiers, with all pages left.
    pub fn set_down(&mut self, plane: u32, stream: u32) {
        let index = self.index(plane, stream);
        self.free_pages[plane as usize] -= self.pages_left(plane, stream);
        let block = std::mem::replace(&mut self.open[index], CLOSED).block;
        self.left_out.forget(block);
    }

    /// Closes the partly written block of `stream` in `plane`. False if the stream has none.
    pub fn close_early(&mut self, io: &Io, plane: u32, stream: u32) -> bool {
        let (block, index) = (self.open[self.index(plane, stream)].block, self.index(plane, stream));
        if block == NO_BLOCK || io.nand().next_page(block) == 0 {
            return false;
        }
        self.free_pages[plane as usize] -= self.pages_left(plane, stream);
        self.open[index] = CLOSED;
        self.left_out.forget(block);
        self.blocks.close(block);
        true
    }

    /// Closes every frontier of `plane`, full or not.
    pub fn close_all(&mut self, plane: u32) {
        for stream in 0..self.streams {
            let index = self.index(plane, stream);
            let open = std::mem::replace(&mut self.open[index], CLOSED);
            if open.block != NO_BLOCK {
                self.left_out.forget(open.block);
                self.blocks.close(open.block);
            }
        }
    }

    /// Makes a free block of `plane` a victim.
    pub fn take_free(&mut self, plane: u32, block: u32) {
        self.blocks.open_this(block);
        self.blocks.abandon(block);
        self.free_pages[plane as usize] -= self.pages_per_block - self.first_page(block);
    }

    /// Frees the victim `block` of `plane`, which is erased or ready for another pass.
    pub fn release(&mut self, plane: u32, block: u32) {
        if self.fixed.holds(block) {
            self.fixed.release(plane, block);
            return;
        }
        self.blocks.release(block);
        self.single.end(plane, block);
        self.free_pages[plane as usize] += self.pages_per_block - self.first_page(block);
    }

    /// The first page of the free block `block` that can store data.
    #[inline]
    fn first_page(&self, block: u32) -> u32 {
        u32::from(self.is_marked(block))
    }

    /// True if the present pass over `block` began with a page that stores nothing.
    #[inline]
    pub fn is_marked(&self, block: u32) -> bool {
        self.marked.get(block as usize).is_some_and(|&marked| marked)
    }

    /// Records whether the next pass over the victim `block` of `plane` begins with a page that stores nothing.
    pub fn set_marked(&mut self, plane: u32, block: u32, marked: bool) {
        if let Some(was) = self.marked.get_mut(block as usize) {
            self.marks[plane as usize] += u32::from(marked);
            self.marks[plane as usize] -= u32::from(*was);
            *was = marked;
        }
    }

    /// Pages of free blocks of `plane` that are programmed and store nothing.
    pub fn lost_in_free(&self, plane: u32) -> u32 {
        match self.marks[plane as usize] {
            0 => 0,
            _ => self.blocks.free_of(plane).iter().map(|block| self.first_page(block)).sum(),
        }
    }

    /// Erases a victim, and frees or retires the block.
    pub fn erase(&mut self, io: &mut Io, erase: Erase) -> Flash<Outcome> {
        let (block, plane) = (erase.block, io.geometry().plane_of_block(erase.block));
        let outcome = io.erase(erase)?;
        match outcome {
            Outcome::Done => {
                self.set_marked(plane, block, false);
                self.release(plane, block);
            }
            Outcome::Failed => self.retire(plane, block),
        }
        Ok(outcome)
    }

    /// The least worn closed block of `plane`, if the spread of erases exceeds `threshold`.
    pub fn least_worn(&self, nand: &Nand, plane: u32, threshold: u32) -> Option<u32> {
        self.blocks.least_worn(plane, threshold, |block| nand.erases(block))
    }

    /// Retires the victim `block` of `plane`.
    pub fn retire(&mut self, plane: u32, block: u32) {
        self.blocks.retire(block);
        if !self.fixed.holds(block) {
            self.single.end(plane, block);
        }
    }

    /// After a power cut: forgets all states of blocks.
    pub fn forget(&mut self, io: &Io) {
        self.open.fill(CLOSED);
        self.left_out.forget_all();
        self.single.forget();
        self.free_pages.fill(0);
        self.marked.fill(false);
        self.marks.fill(0);
        let reserved = std::mem::take(&mut self.reserved);
        self.blocks = Blocks::new(io.geometry(), self.units_per_block, |block| {
            reserved.get(block as usize).is_some_and(|&reserved| reserved)
        });
        self.reserved = reserved;
        self.fixed.forget(io.geometry().planes(), &mut self.blocks);
    }

    /// After a power cut: adopts `block`, of no failed die, as an open block. False if the block is free.
    pub fn adopt(&mut self, nand: &Nand, block: u32) -> bool {
        let (plane, fixed) = (nand.geometry().plane_of_block(block), self.fixed.holds(block));
        if nand.next_page(block) == 0 && !nand.is_bad(block) {
            self.free_pages[plane as usize] += if fixed { 0 } else { self.pages_per_block };
            return false;
        }
        if fixed {
            self.fixed.drop_block(plane, block);
            return true;
        }
        self.blocks.open_this(block);
        if nand.is_single(block) {
            self.single.found(plane, block);
        }
        true
    }

    /// After a power cut: returns the written blocks `cached` to the fixed share of the fast cache.
    pub fn resume_cached(&mut self, nand: &Nand, mut cached: Vec<u32>) {
        sort_by_last_write(nand, &mut cached);
        for block in cached {
            // Blocks of a failed die are not written again.
            let next_page = if nand.is_dead(block) { u32::MAX } else { nand.next_page(block) };
            self.fixed.resume(nand.geometry().plane_of_block(block), block, next_page);
        }
    }

    /// The first closed block of `plane` in the dynamic share of the fast cache.
    pub fn oldest_single(&self, plane: u32) -> Option<u32> {
        let some = self.single.count(plane) > 0;
        let cached = self.blocks.closed(plane).iter().copied().filter(|&block| some && self.single.holds(block));
        cached.min_by_key(|&block| self.blocks.closed_at(block))
    }

    /// After a power cut: adopts the open block `block`, written up to `next_page` except `left_out` (last page first).
    /// The block becomes the frontier of the first of `streams` without one in `plane`. Else the block is closed, also
    /// if a die failed after the block was found to have pages left. True if the block is a frontier.
    pub fn resume(
        &mut self,
        plane: u32,
        block: u32,
        (next_page, left_out): (u32, Vec<u32>),
        mut streams: impl Iterator<Item = u32>,
    ) -> bool {
        let has_pages = next_page < self.single.pages_of(block) || !left_out.is_empty();
        let Some(stream) = streams.find(|&stream| has_pages && !self.is_open(plane, stream)) else {
            self.blocks.close(block);
            return false;
        };
        let index = self.index(plane, stream);
        self.open[index] = Frontier { block, next_page };
        self.note_stream(Some(block), stream);
        self.left_out.found(block, left_out);
        self.free_pages[plane as usize] += self.pages_left(plane, stream);
        true
    }

    /// Checks the counts of free pages, and every block.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&mut self) -> Result<(), String> {
        self.blocks.check()?;
        self.fixed.check(&self.blocks)?;
        for plane in 0..self.planes() {
            let at_frontiers: u32 = (0..self.streams).map(|stream| self.pages_left(plane, stream)).sum();
            let whole = self.blocks.free_count(plane) * self.pages_per_block;
            let expected = whole - self.lost_in_free(plane) + at_frontiers;
            let counted = self.free_pages[plane as usize];
            if counted != expected {
                return Err(format!("plane {plane} counts {counted} free pages, not {expected}"));
            }
        }
        Ok(())
    }
}
