//! Copies of pages whose word line is not full, for parts where a failed or interrupted program corrupts the other
//! pages of its word line (`part.pair_corruption`). With the copies every layer survives that.
//!
//! Before a program, the controller reads the written pages of the same word line and programs them into a reserved
//! block, one bit a cell. The program must follow these copies. Each plane has its own reserved blocks
//! ([`Part::kept_blocks`]), written in turn. A reserved block is erased only after the programs that relied on its
//! copies have ended. Copies that still replace a corrupted page ([`Nand::rescue`]) are copied again before that erase.
//! After a power cut the controller finds copies by their out-of-band areas.
//!
//! Layers need no code for this: reserved blocks look bad to them, and a corrupted page reads as before. A layer may
//! report during recovery which pages it needs ([`Io::keep_copies`]); it should also move the blocks of such pages when
//! they are due for refresh, because repeated cuts would otherwise leave no room for copies. The operations count as
//! metadata, and the copied subpages as data. Ignored: that a layer may know before a cut which pages need no copy, and
//! copies by parity.
//!
//! [`Part::kept_blocks`]: palimpsest_flash::nand::part::Part::kept_blocks
//! [`Nand::rescue`]: palimpsest_flash::nand::Nand::rescue

use super::checkpoint::first_program;
use super::ledger::Over;
use super::{Cause, CheckpointIo, Erase, Gate, Io, Program, Read};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Nand, Outcome, PADDING, SubpageMask};
use std::collections::{BTreeMap, BTreeSet};

/// The copies of all pages.
pub struct PairGuard {
    /// The reserved blocks of each plane.
    planes: Vec<Vec<Kept>>,
    /// Copied pages, with their copies.
    copied: BTreeMap<u32, Copied>,
    /// Pages of a reserved block that copies may use.
    pages: u32,
    /// Number of the reserved block begun last.
    begun: u64,
}

palimpsest_flash::state!(PairGuard { copied, begun } parts { planes } built { pages });

/// A reserved block.
#[derive(Default)]
struct Kept {
    block: u32,
    /// Closes when the programs that rely on the copies have ended.
    users: Gate,
    begun: u64,
}

palimpsest_flash::state!(Kept { block, users, begun });

/// A copied page.
#[derive(Clone, Copy, Default)]
struct Copied {
    to: u32,
    /// Program count of the page, and erase count of its block, when it was copied.
    state: (u32, u32),
    /// Closes when the copy is programmed.
    done: Gate,
}

palimpsest_flash::state!(Copied { to, state, done });

impl PairGuard {
    /// Reserves the last good blocks of each plane of the new `nand`; `None` if the part needs none.
    pub fn new(nand: &mut Nand) -> Option<Box<Self>> {
        let kept = nand.part().kept_blocks() as usize;
        let (planes, blocks) = (nand.geometry().planes(), nand.geometry().blocks_per_plane);
        let of_plane = |nand: &Nand, plane: u32| -> Vec<Kept> {
            let good = (plane * blocks..(plane + 1) * blocks).rev().filter(|&block| !nand.is_bad(block));
            good.take(kept).map(|block| Kept { block, users: Gate::NONE, begun: 0 }).collect()
        };
        let planes: Vec<_> = (0..if kept == 0 { 0 } else { planes }).map(|plane| of_plane(nand, plane)).collect();
        planes.iter().flatten().for_each(|kept| nand.keep_block(kept.block));
        let pages = nand.part().pages_of_copies();
        let guard = PairGuard { planes, copied: BTreeMap::new(), pages, begun: 0 };
        (kept > 0).then(|| Box::new(guard))
    }
}

/// The side of an [`Io`] that restores pages which an interrupted program of the paired page corrupted.
pub trait PairedIo {
    /// Finds the copies of corrupted pages after a power cut, then voids trimmed data. Must be called before a layer
    /// recovers.
    fn restore_pages(&mut self);

    /// Gives up copies of corrupted pages without valid data; `holds_valid` says whether a page holds any. May be
    /// called only when the layer has located its valid data again and no move is under way. Copies that identify a
    /// block for checkpoints stay.
    fn keep_copies(&mut self, holds_valid: impl Fn(u32) -> bool);
}

impl PairedIo for Io {
    fn restore_pages(&mut self) {
        self.find_copies();
        self.nand.void_trimmed();
    }

    fn keep_copies(&mut self, holds_valid: impl Fn(u32) -> bool) {
        let has_checkpoints = self.checkpoint_figures().is_some();
        for ppn in self.nand.rescued().into_iter().filter(|&ppn| !holds_valid(ppn)) {
            let (block, page) = self.nand.split(ppn);
            if !has_checkpoints || first_program(&self.nand, block).0 != page {
                self.nand.give_up(ppn);
            }
        }
    }
}

impl Io {
    /// Copies the other pages of the word line and returns `program`, changed to follow the copies.
    #[cold]
    pub(super) fn copy_mates<'a>(&mut self, program: Program<'a>) -> Flash<Program<'a>> {
        let mates: Vec<(u32, SubpageMask)> = match program.single {
            true => Vec::new(),
            false => self.nand.mates(program.ppn).map(|mate| (mate, self.nand.worth_copying(mate))).collect(),
        };
        if mates.iter().all(|&(_, worth)| worth == 0) {
            return Ok(program);
        }
        let done = self.gate();
        let mut copies = None;
        // If every full block holds a copy of this word line, one is erased all the same, and its copies are made
        // again.
        for _ in 0..=self.guard().planes[0].len() {
            copies = self.copies_of(&mates)?;
            if copies.is_some() {
                break;
            }
        }
        let copies = copies.ok_or(Halt::NoSpace)?;
        let gates: Vec<Gate> = [program.after].into_iter().chain(copies.iter().map(|copied| copied.done)).collect();
        let relied: Vec<u32> = copies.iter().map(|copied| self.nand.split(copied.to).0).collect();
        for block in relied {
            self.rely_on(block, done);
        }
        self.link(done, program.signal);
        Ok(Program { after: self.all_of(&gates), signal: done, ..program })
    }

    /// Returns the copies of `mates`, and makes missing ones. Returns `None` if a new copy erased the block of another.
    fn copies_of(&mut self, mates: &[(u32, SubpageMask)]) -> Flash<Option<Vec<Copied>>> {
        let (mut copies, mut relied) = (Vec::new(), Vec::new());
        for &(mate, worth) in mates.iter().filter(|&&(_, worth)| worth != 0) {
            let state = self.state_of(mate);
            let known = self.guard().copied.get(&mate).copied().filter(|copied| copied.state == state);
            let copied = match known {
                Some(copied) => copied,
                None => {
                    let (to, done) = self.copy_to_kept(mate, worth, &relied)?;
                    let copied = Copied { to, state, done };
                    self.guard().copied.insert(mate, copied);
                    copied
                }
            };
            relied.push(self.nand.split(copied.to).0);
            copies.push((mate, copied));
        }
        let are_there = copies.iter().all(|(mate, _)| self.guard().copied.contains_key(mate));
        Ok(are_there.then(|| copies.into_iter().map(|(_, copied)| copied).collect()))
    }

    /// Redirects reads of the pages that the failed program of page `ppn` corrupted to their copies.
    #[cold]
    pub(super) fn rescue_mates(&mut self, ppn: u32) {
        for mate in self.nand.mates(ppn) {
            if let Some(copied) = self.guard().copied.get(&mate).copied() {
                self.nand.rescue(mate, copied.to);
            }
        }
    }

    /// The page to read in place of page `ppn`, and the gate that the read must also follow.
    pub(super) fn redirected(&mut self, ppn: u32) -> (u32, Gate) {
        let copy = self.nand.copy_of(ppn);
        let follows = if copy == ppn { None } else { self.guard().copied.get(&ppn).map(|copied| copied.done) };
        (copy, follows.unwrap_or_default())
    }

    fn find_copies(&mut self) {
        let Some(guard) = &mut self.guard else { return };
        guard.copied.clear();
        let kept: Vec<u32> = guard.planes.iter().flatten().map(|kept| kept.block).collect();
        guard.planes.iter_mut().flatten().for_each(|kept| kept.users = Gate::NONE);
        self.nand.forget_rescued();
        let pages = self.geometry().pages_per_block;
        for copy in kept.into_iter().flat_map(|block| block * pages..(block + 1) * pages) {
            if let Some(ppn) = self.nand.copied(copy) {
                self.nand.rescue(ppn, copy);
            }
        }
        self.nand.note_rescued();
    }

    fn guard(&mut self) -> &mut PairGuard {
        self.guard.as_mut().expect("a part whose pages corrupt each other")
    }

    /// Program count of page `ppn`, and erase count of its block.
    fn state_of(&self, ppn: u32) -> (u32, u32) {
        (self.nand.programs(ppn), self.nand.erases(self.nand.split(ppn).0))
    }

    /// Keeps the copies in `block` until `done` has closed.
    fn rely_on(&mut self, block: u32, done: Gate) {
        let plane = self.geometry().plane_of_block(block) as usize;
        let at = self.guard().planes[plane].iter().position(|kept| kept.block == block).expect("a kept block");
        let users = self.guard().planes[plane][at].users;
        if self.is_open(users) {
            self.link(done, users);
        } else if self.is_open(done) {
            let users = self.gate();
            self.link(done, users);
            self.guard().planes[plane][at].users = users;
        }
    }

    /// Must be called before the erase of `block`: copies that replace its pages may be erased only after it. Returns
    /// the gate that the erase must signal in place of `signal`.
    #[cold]
    pub(super) fn erase_before_copies(&mut self, block: u32, signal: Gate) -> Gate {
        let homes = self.pages_of(block).map(|ppn| self.nand.split(self.nand.copy_of(ppn)).0);
        let homes: BTreeSet<u32> = homes.filter(|&home| home != block).collect();
        if homes.is_empty() {
            return signal;
        }
        let done = self.gate();
        self.link(done, signal);
        homes.into_iter().for_each(|home| self.rely_on(home, done));
        done
    }

    /// Copies the subpages `worth` of page `from`. Returns the copy, and the gate that closes when it is programmed.
    /// Blocks in `relied` are erased only if no other makes room.
    fn copy_to_kept(&mut self, from: u32, worth: SubpageMask, relied: &[u32]) -> Flash<(u32, Gate)> {
        let plane = self.geometry().plane_of_block(self.nand.split(from).0);
        let arrived = self.gate();
        self.read_to_copy(Read { signal: arrived, ..Read::new(from, worth, Cause::Metadata) })?;
        loop {
            let to = self.place_for_copy(plane, relied)?;
            if let Some(done) = self.program_copy(from, to, worth, arrived)? {
                return Ok((to, done));
            }
        }
    }

    /// Reads a page to copy, hidden from the layer's ledger.
    fn read_to_copy(&mut self, read: Read) -> Flash<()> {
        self.ledger.iter_mut().for_each(|ledger| ledger.copying = true);
        let done = self.read(read);
        self.ledger.iter_mut().for_each(|ledger| ledger.copying = false);
        done
    }

    /// Programs a copy; `None` if the program fails.
    fn program_copy(&mut self, from: u32, to: u32, worth: SubpageMask, arrived: Gate) -> Flash<Option<Gate>> {
        let done = self.gate();
        self.time_program(to, worth);
        let outcome = self.nand.copy_page(from, to, worth)?;
        let width = self.geometry().subpages_per_page as usize;
        let (logical, data) = (vec![PADDING; width], vec![Data::ZERO; width]);
        let program = Program {
            written: worth,
            transferred: worth.count_ones(),
            single: true,
            after: arrived,
            signal: done,
            ..Program::new(to, &logical, &data, Cause::Metadata)
        };
        self.programmed(&program, outcome, Over::Erased);
        Ok((outcome == Outcome::Done).then_some(done))
    }

    /// A page of `plane` for a copy.
    fn place_for_copy(&mut self, plane: u32, relied: &[u32]) -> Flash<u32> {
        let (pages, per_block) = (self.guard().pages, self.geometry().pages_per_block);
        let kept = self.guard.iter().flat_map(|guard| &guard.planes[plane as usize]);
        let good = kept.map(|kept| kept.block).filter(|&block| !self.nand.has_failed(block));
        let written = |block: u32| if self.nand.is_torn(block) { pages } else { self.nand.next_page(block) };
        let begun = good.clone().find(|&block| (1..pages).contains(&written(block)));
        if let Some(block) = begun {
            return Ok(block * per_block + self.nand.next_page(block));
        }
        let erased = good.clone().filter(|&block| written(block) == 0).collect::<Vec<_>>();
        // The last erased block is reserved for copies that replace corrupted pages.
        if erased.len() > 1 {
            return Ok(self.begin_copies(plane, erased[0]));
        }
        let moved = |io: &Io, block: u32| io.nand.rescued_to(block * per_block..(block + 1) * per_block);
        let full: Vec<u32> = good.filter(|&block| written(block) >= pages).collect();
        // A block of which every copy is still in use gains nothing. Copies in use need an erased block, which a cut
        // before the erase of the last victim has used up.
        let gains = |kept: usize| (kept as u32) < if erased.is_empty() { 1 } else { pages };
        let worth = |block| {
            let kept = moved(self, block).len();
            (!gains(kept), relied.contains(&block), kept, self.begun_at(plane, block), block)
        };
        let Some((_, _, kept, _, victim)) = full.into_iter().map(worth).min() else { return Err(Halt::NoSpace) };
        if kept > 0 {
            let &[room] = &erased[..] else { return Err(Halt::NoSpace) };
            if !gains(kept) {
                return Err(Halt::NoSpace);
            }
            self.begin_copies(plane, room);
            for (_, copy) in moved(self, victim) {
                self.copy_on(copy, room)?;
            }
        }
        self.erase_kept(plane, victim)?;
        self.place_for_copy(plane, relied)
    }

    /// Copies a copy into the block `room`.
    fn copy_on(&mut self, copy: u32, room: u32) -> Flash<()> {
        let to = room * self.geometry().pages_per_block + self.nand.next_page(room);
        let cells = (0..).zip(self.nand.logical_of(copy));
        let worth = cells.filter(|(_, cell)| **cell == PADDING).fold(0, |mask, (index, _)| mask | 1 << index);
        let arrived = self.gate();
        self.read_to_copy(Read { signal: arrived, ..Read::new(copy, worth, Cause::Metadata) })?;
        let done = self.program_copy(copy, to, worth, arrived)?.ok_or(Halt::NoSpace)?;
        if let Some(ppn) = self.nand.copied(to) {
            let state = self.state_of(ppn);
            self.guard().copied.insert(ppn, Copied { to, state, done });
        }
        self.rely_on(self.nand.split(copy).0, done);
        Ok(())
    }

    fn begun_at(&self, plane: u32, block: u32) -> u64 {
        let mut of_plane = self.guard.iter().flat_map(|guard| &guard.planes[plane as usize]);
        of_plane.find(|kept| kept.block == block).map_or(0, |kept| kept.begun)
    }

    /// Begins the erased block `block` and returns its first page.
    fn begin_copies(&mut self, plane: u32, block: u32) -> u32 {
        let guard = self.guard();
        guard.begun += 1;
        let begun = guard.begun;
        guard.planes[plane as usize].iter_mut().filter(|kept| kept.block == block).for_each(|kept| kept.begun = begun);
        block * self.geometry().pages_per_block
    }

    /// Erases `block` after the programs that relied on its copies. No copy in the block may be in use.
    fn erase_kept(&mut self, plane: u32, block: u32) -> Flash<()> {
        let per_block = self.geometry().pages_per_block;
        let copies = block * per_block..(block + 1) * per_block;
        let guard = self.guard();
        guard.copied.retain(|_, copied| !copies.contains(&copied.to));
        let kept = guard.planes[plane as usize].iter_mut().find(|kept| kept.block == block).expect("a kept block");
        let after = std::mem::take(&mut kept.users);
        let _ = self.erase(Erase { after, ..Erase::new(block, Cause::Metadata) })?;
        Ok(())
    }
}
