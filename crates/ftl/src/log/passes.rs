//! Passes over the blocks of a part with a code of cells. An emptied block is written again, as the next generation of
//! the code, and erased after the last pass. A block of the fast cache is erased after its only pass.
//!
//! The first program of a pass follows the gates of an erase: copies and replacements of the block's data. Until then
//! flash still holds data of earlier passes, and after a power cut the newest copy of a unit wins wherever it is. For a
//! trimmed unit, that copy might be in a free block, whose space cleaning relies on. So a free block that is not erased
//! must never hold the newest copy of an unmapped unit. If trims touched a block, the next pass begins at once, with a
//! page that stores nothing (a mark), or the block is erased. Older copies must be dropped before newer ones.
//!
//! Ignored: writing a word line again while neighbours hold valid units.

use super::Log;
use super::blocks::BlockState;
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::{Flash, Nand, Outcome, PADDING, TORN};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Program};

pub(super) struct Passes {
    /// Passes over a block between two erases: 1 without a code of cells.
    pub most: u32,
    /// Per block that is free and not erased: closes when all data moved out is safe.
    moved: Vec<Gate>,
    /// Per plane: closes when the last block with trimmed data is erased or marked.
    dropped: Vec<Gate>,
    /// The most blocks of a plane that may lose a page to a mark: an eighth of the spare ones.
    most_marks: u32,
    /// True if any unit was trimmed.
    pub trims: bool,
    /// True if a free block may hold the newest copy of a trimmed unit.
    pub suspect: bool,
}

palimpsest_flash::state!(Passes { moved, dropped, trims, suspect } built { most, most_marks });

impl Passes {
    /// For a log of `units` units, `units_per_page` per page.
    pub fn new(nand: &Nand, units: u32, units_per_page: u32) -> Self {
        let most = nand.part().code.map_or(1, |code| code.0.generations());
        let sized = |count: u32| vec![Gate::NONE; if most > 1 { count as usize } else { 0 }];
        let (moved, dropped) = (sized(nand.geometry().blocks()), sized(nand.geometry().planes()));
        let spare = nand.geometry().pages().saturating_sub(u64::from(units.div_ceil(units_per_page)));
        let most_marks = (spare / u64::from(8 * nand.geometry().planes())) as u32;
        Passes { most, moved, dropped, most_marks, trims: false, suspect: false }
    }

    /// After a power cut: no pass is under way, and every readable unit is mapped.
    pub fn forget(&mut self) {
        self.moved.fill(Gate::NONE);
        self.dropped.fill(Gate::NONE);
        (self.trims, self.suspect) = (false, false);
    }
}

impl<M: Map> Log<M> {
    /// The generation for page `ppn`, the next of the block, and the gate that the program must follow in addition to
    /// `after`.
    #[inline(always)]
    pub(super) fn pass_of(&mut self, io: &mut Io, ppn: u32, after: Gate) -> (u32, Gate) {
        if self.passes.most == 1 { (0, after) } else { self.pass_of_many(io, ppn, after) }
    }

    #[inline(never)]
    fn pass_of_many(&mut self, io: &mut Io, ppn: u32, after: Gate) -> (u32, Gate) {
        let (block, page) = io.nand().split(ppn);
        let (pass, dropped) =
            (io.nand().pass(block), self.passes.dropped[io.geometry().plane_of_block(block) as usize]);
        // A power cut leaves out other pages of a superblock, never the first of a pass.
        if page > 0 || io.nand().next_page(block) == 0 {
            return (pass, io.all_of(&[after, dropped]));
        }
        let moved = self.passes.moved[block as usize];
        (pass + 1, io.all_of(&[after, moved, dropped]))
    }

    /// Frees `victim`, which is empty, for another pass if allowed. Else returns the gates that the erase must follow
    /// and signal. Data of the victim is safe when the gate `moved` closes.
    ///
    /// Programs of the plane must follow the erase or mark of a block with trimmed data. Else a power cut in between
    /// could leave collection without pages for the restored data.
    pub(super) fn free_unerased(&mut self, io: &mut Io, victim: u32, moved: Gate) -> Flash<Option<(Gate, Gate)>> {
        if self.passes.most == 1 {
            return Ok(Some((moved, Gate::NONE)));
        }
        let plane = io.geometry().plane_of_block(victim);
        if self.holds_trimmed(io.nand(), victim) {
            let older = self.drop_trimmed(io)?;
            let (after, dropped) = (io.all_of(&[moved, older]), self.drop_gate(io));
            self.passes.dropped[plane as usize] = dropped;
            return if self.mark(io, victim, after, dropped)? { Ok(None) } else { Ok(Some((after, dropped))) };
        }
        if !self.has_pass_left(io.nand(), victim) {
            return Ok(Some((moved, Gate::NONE)));
        }
        self.passes.moved[victim as usize] = moved;
        self.counters.rewritten += 1;
        self.frontiers.set_marked(plane, victim, false);
        self.frontiers.release(plane, victim);
        Ok(None)
    }

    /// A gate for programs to wait for, if a power cut can lose data.
    fn drop_gate(&self, io: &mut Io) -> Gate {
        if self.open.protected { Gate::NONE } else { io.gate() }
    }

    /// Begins the next pass over the victim `block` with a page that stores nothing, and frees the block. The program
    /// follows the gate `after` and drops the data of earlier passes. False if no pass is left, or too many pages would
    /// be lost to marks: with blocks of one page, all.
    fn mark(&mut self, io: &mut Io, block: u32, after: Gate, signal: Gate) -> Flash<bool> {
        let (plane, pass) = (io.geometry().plane_of_block(block), io.nand().pass(block));
        let was = u32::from(self.frontiers.is_marked(block));
        if !self.has_pass_left(io.nand(), block) {
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

    /// After a power cut: records whether the present pass over the open block `block` began with a page that stores
    /// nothing.
    pub(super) fn find_mark(&mut self, nand: &Nand, plane: u32, block: u32) {
        let first = nand.logical_of(block * self.shape.pages_per_block);
        if self.passes.most > 1 && nand.pass(block) > 0 && first.iter().all(|&logical| logical >= TORN) {
            self.frontiers.set_marked(plane, block, true);
        }
    }

    /// True if `block` holds a copy of an unmapped unit.
    fn holds_trimmed(&self, nand: &Nand, block: u32) -> bool {
        self.passes.trims && self.units_on(nand, block).any(|unit| self.map.locate(unit) == UNMAPPED)
    }

    /// Units with a readable copy from the present pass over `block`.
    fn units_on(&self, nand: &Nand, block: u32) -> impl Iterator<Item = u32> {
        let units = block * self.shape.units_per_block..(block + 1) * self.shape.units_per_block;
        units.filter_map(|physical| self.shape.unit_at(nand, physical))
    }

    /// True if `block` is free and still holds data of a pass.
    fn waits_for_pass(&self, nand: &Nand, block: u32) -> bool {
        let free = self.frontiers.blocks.state(block) == BlockState::Free;
        free && nand.next_page(block) > 0 && !self.frontiers.is_marked(block)
    }

    /// Marks or erases the free blocks with copies of unmapped units. The gate closes when that is done.
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

    /// After trims: drops copies in free blocks that a power cut would restore.
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

    /// After a power cut: true if `block`, fully written, may be freed for another pass.
    pub(super) fn may_have_pass(&self, nand: &Nand, block: u32) -> bool {
        self.has_pass_left(nand, block) && self.frontiers.blocks.valid_count(block) == 0
    }

    /// True if `block`, which is not erased, may be written again without an erase.
    fn has_pass_left(&self, nand: &Nand, block: u32) -> bool {
        !nand.is_single(block) && nand.pass(block) + 1 < self.passes.most
    }

    /// Checks that free blocks are erased, or may have a pass and hold no data that a power cut would restore.
    ///
    /// # Errors
    /// The first inconsistency.
    pub(super) fn check_passes(&self, nand: &Nand) -> Result<(), String> {
        if self.passes.most == 1 {
            return Ok(());
        }
        let blocks = 0..nand.geometry().blocks();
        if let Some(block) =
            blocks.clone().find(|&block| self.waits_for_pass(nand, block) && !self.has_pass_left(nand, block))
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
