//! Passes over the blocks of a part with a code of cells: an emptied block is written again, as the next generation of the code,
//! and erased after the last one.
//!
//! The first program of a pass follows what an erase would: the copies of what the block held, and what replaced it. Until then
//! flash still has what the passes before left, and after a power cut the newest copy of a unit wins wherever it lies. For a unit that
//! was trimmed that might be in a block which was free, and cleaning counts on that space. So a free block that is not erased
//! never has the newest copy of a unit that is unmapped: the next pass over a block that trims touched begins at once, with a page that
//! stores nothing (a mark), or it is erased; older copies go before newer ones.
//! Ignored: that a word line could be written again while its neighbours hold valid units.

use super::Log;
use super::blocks::BlockState;
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::{Flash, Nand, Outcome, PADDING, TORN};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Program};

/// What a log knows of passes.
pub(super) struct Passes {
    /// Passes over a block between two erases: 1 where the part has no code of cells.
    pub most: u32,
    /// For each block that is free and not erased the gate that closes when all is safe that moved out of it.
    moved: Vec<Gate>,
    /// For each plane the gate that closes when its last block with trimmed data is erased or marked.
    dropped: Vec<Gate>,
    /// The most blocks of a plane that may have lost a page to a mark: an eighth of what is spare.
    most_marks: u32,
    /// Whether any unit was trimmed.
    pub trims: bool,
    /// Whether a unit was trimmed whose newest copy on flash may be in a free block.
    pub suspect: bool,
}

palimpsest_flash::state!(Passes { moved, dropped, trims, suspect } built { most, most_marks });

impl Passes {
    /// For a log of `units`, of which a page holds `units_per_page`.
    pub fn new(nand: &Nand, units: u32, units_per_page: u32) -> Self {
        let most = nand.part().code.map_or(1, |code| code.0.generations());
        let sized = |count: u32| vec![Gate::NONE; if most > 1 { count as usize } else { 0 }];
        let (moved, dropped) = (sized(nand.geometry().blocks()), sized(nand.geometry().planes()));
        let spare = nand.geometry().pages().saturating_sub(u64::from(units.div_ceil(units_per_page)));
        let most_marks = (spare / u64::from(8 * nand.geometry().planes())) as u32;
        Passes { most, moved, dropped, most_marks, trims: false, suspect: false }
    }

    /// The power is back: nothing is under way, and what can be read is mapped.
    pub fn forget(&mut self) {
        self.moved.fill(Gate::NONE);
        self.dropped.fill(Gate::NONE);
        (self.trims, self.suspect) = (false, false);
    }
}

impl<M: Map> Log<M> {
    /// The generation that page `ppn`, the next of its block, is programmed as, and the gate that the program follows beside `after`.
    #[inline(always)]
    pub(super) fn pass_of(&mut self, io: &mut Io, ppn: u32, after: Gate) -> (u32, Gate) {
        if self.passes.most == 1 { (0, after) } else { self.pass_of_many(io, ppn, after) }
    }

    #[inline(never)]
    fn pass_of_many(&mut self, io: &mut Io, ppn: u32, after: Gate) -> (u32, Gate) {
        let (block, page) = io.nand().split(ppn);
        let (pass, dropped) =
            (io.nand().pass(block), self.passes.dropped[io.geometry().plane_of_block(block) as usize]);
        if page >= io.nand().next_page(block) {
            return (pass, io.all_of(&[after, dropped]));
        }
        let moved = self.passes.moved[block as usize];
        (pass + 1, io.all_of(&[after, moved, dropped]))
    }

    /// Frees `victim`, which is empty, for another pass if it may have one; else returns the gate that its erase follows, and that
    /// which it signals. What it held is safe when the gate `moved` closes.
    ///
    /// Programs of the plane follow the erase of a block with trimmed data, or its mark: were they before it, a power cut in between
    /// could find the last page taken that collection has for what comes back.
    pub(super) fn free_unerased(&mut self, io: &mut Io, victim: u32, moved: Gate) -> Flash<Option<(Gate, Gate)>> {
        if self.passes.most == 1 {
            return Ok(Some((moved, Gate::NONE)));
        }
        let plane = io.geometry().plane_of_block(victim);
        let again = io.nand().pass(victim) + 1 < self.passes.most;
        if self.holds_trimmed(io.nand(), victim) {
            let older = self.drop_trimmed(io)?;
            let (after, dropped) = (io.all_of(&[moved, older]), self.drop_gate(io));
            self.passes.dropped[plane as usize] = dropped;
            return if self.mark(io, victim, after, dropped)? { Ok(None) } else { Ok(Some((after, dropped))) };
        }
        if !again {
            return Ok(Some((moved, Gate::NONE)));
        }
        self.passes.moved[victim as usize] = moved;
        self.counters.rewritten += 1;
        self.frontiers.set_marked(plane, victim, false);
        self.frontiers.release(plane, victim);
        Ok(None)
    }

    /// A gate for what programs wait for, where a power cut loses anything at all.
    fn drop_gate(&self, io: &mut Io) -> Gate {
        if self.open.protected { Gate::NONE } else { io.gate() }
    }

    /// Begins the next pass over the victim `block` with a page that stores nothing, after the gate `after`, so that what the passes
    /// before left is gone, and frees it. False where it has no pass left, or the pages that such marks take must be kept: where blocks have
    /// one page, all of them.
    fn mark(&mut self, io: &mut Io, block: u32, after: Gate, signal: Gate) -> Flash<bool> {
        let (plane, pass) = (io.geometry().plane_of_block(block), io.nand().pass(block));
        let was = u32::from(self.frontiers.is_marked(block));
        if pass + 1 >= self.passes.most {
            return Ok(false);
        }
        if self.shape.pages_per_block == 1 || self.frontiers.marks[plane as usize] - was >= self.passes.most_marks {
            self.counters.erased_early += 1;
            return Ok(false);
        }
        let subpages = self.image.logical.len();
        let (logical, data) = (vec![PADDING; subpages], vec![Data::ZERO; subpages]);
        let program = Program {
            generation: pass + 1,
            padding: subpages as u32,
            after,
            signal,
            ..Program::new(block * self.shape.pages_per_block, &logical, &data, Cause::Gc)
        };
        if io.program(program)? == Outcome::Failed {
            self.counters.retired += 1;
            self.frontiers.blocks.retire(block);
            return Ok(true);
        }
        self.counters.rewritten += 1;
        self.passes.moved[block as usize] = Gate::NONE;
        self.frontiers.set_marked(plane, block, true);
        self.frontiers.release(plane, block);
        Ok(true)
    }

    /// After a power cut: whether the present pass over `block`, which is open, began with a page that stores nothing.
    pub(super) fn find_mark(&mut self, nand: &Nand, plane: u32, block: u32) {
        let first = nand.logical_of(block * self.shape.pages_per_block);
        if self.passes.most > 1 && nand.pass(block) > 0 && first.iter().all(|&logical| logical >= TORN) {
            self.frontiers.set_marked(plane, block, true);
        }
    }

    /// Whether `block` holds a copy of a unit that is unmapped now.
    fn holds_trimmed(&self, nand: &Nand, block: u32) -> bool {
        self.passes.trims && self.units_on(nand, block).any(|unit| self.map.locate(unit) == UNMAPPED)
    }

    /// Units of which the present pass over `block` has left a readable copy.
    fn units_on(&self, nand: &Nand, block: u32) -> impl Iterator<Item = u32> {
        let units = block * self.shape.units_per_block..(block + 1) * self.shape.units_per_block;
        units.filter_map(|physical| self.shape.unit_at(nand, physical))
    }

    /// Whether `block` is free and holds what a pass has left.
    fn waits_for_pass(&self, nand: &Nand, block: u32) -> bool {
        let free = self.frontiers.blocks.state(block) == BlockState::Free;
        free && nand.next_page(block) > 0 && !self.frontiers.is_marked(block)
    }

    /// Marks or erases the free blocks that hold copies of units that are unmapped; the gate closes when that is done.
    fn drop_trimmed(&mut self, io: &mut Io) -> Flash<Gate> {
        let mut dropped = Gate::NONE;
        for block in 0..io.geometry().blocks() {
            if !self.waits_for_pass(io.nand(), block) || !self.holds_trimmed(io.nand(), block) {
                continue;
            }
            if dropped.is_none() {
                dropped = io.gate();
            }
            self.frontiers.take_free(io.geometry().plane_of_block(block), block);
            let moved = self.passes.moved[block as usize];
            if !self.mark(io, block, moved, dropped)? {
                self.erase_now(io, block, moved, dropped)?;
            }
        }
        Ok(dropped)
    }

    /// After trims: free blocks lose the copies that a power cut would bring back.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    pub fn settle_trims(&mut self, io: &mut Io) -> Flash<()> {
        if std::mem::take(&mut self.passes.suspect) {
            self.drop_trimmed(io)?;
        }
        Ok(())
    }

    /// After a power cut: whether `block`, which is written to its end, is as good as free.
    pub(super) fn may_have_pass(&self, nand: &Nand, block: u32) -> bool {
        nand.pass(block) + 1 < self.passes.most && self.frontiers.blocks.valid_count(block) == 0
    }

    /// Checks that free blocks are erased, or can have a pass and nothing in them would come back after a power cut.
    ///
    /// # Errors
    /// What does not agree.
    pub(super) fn check_passes(&self, nand: &Nand) -> Result<(), String> {
        if self.passes.most == 1 {
            return Ok(());
        }
        let blocks = 0..nand.geometry().blocks();
        if let Some(block) =
            blocks.clone().find(|&block| self.waits_for_pass(nand, block) && nand.pass(block) + 1 >= self.passes.most)
        {
            return Err(format!("block {block} is free after its last pass, and not erased"));
        }
        if nand.payload() == Payload::None {
            return Ok(());
        }
        let width = self.shape.unit_subpages;
        let mut newest = vec![(0, 0); self.map.units() as usize];
        for block in blocks.filter(|&block| !nand.is_torn(block)) {
            for physical in block * self.shape.units_per_block..(block + 1) * self.shape.units_per_block {
                let Some(unit) = self.shape.unit_at(nand, physical) else { continue };
                let copy = &mut newest[unit as usize];
                *copy = (nand.sequence(physical * width), block).max(*copy);
            }
        }
        for (unit, (sequence, block)) in (0..).zip(newest) {
            if sequence > 0 && self.map.locate(unit) == UNMAPPED && self.waits_for_pass(nand, block) {
                return Err(format!(
                    "unit {unit} is unmapped, and a power cut would find it in block {block}, which is free"
                ));
            }
        }
        Ok(())
    }
}
