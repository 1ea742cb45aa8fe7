//! Word lines under a code of cells: the generation of each last program, and the levels of the cells.
//!
//! A page of such a part is a word line ([`super::part::Part::coded`]). Every payload counts generations, because a
//! controller knows them from the levels. If contents are bytes, levels are stored, each program is decoded again, and
//! no level may fall. A block with one bit a cell is programmed once; its contents are stored as levels of the first
//! generation. Ignored: errors, and drift of levels.
//!
//! `generations`, `data` and `image` use each other: contents, levels and generations are stored in an image, and an
//! image stores them by their own types.

use super::cells::Coded;
use super::data::{Data, Payload};
use super::rules::{self, GenerationView, Rule};
use super::{Flash, Nand, Outcome, Own, SubpageMask};
use crate::geometry::Geometry;
use std::ops::Range;

/// Kinds of programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Programs free cells.
    First,
    /// Programs any cells, from 1 to 0 only.
    Over,
    /// Raises levels to this generation of the part's code.
    Generation(u32),
}

/// The generations of all pages.
pub(super) struct Generations {
    code: Option<Coded>,
    /// Generation of each page's last program; empty without a code.
    of_page: Vec<u8>,
    /// Levels of each page's cells, if contents are bytes; `None` if erased.
    levels: Vec<Option<Box<[u8]>>>,
}

// Levels are stored with bytes only.
crate::state!(Generations { of_page } built { code, levels });

/// Saved generations of consecutive pages.
pub(super) struct SavedGenerations {
    of_page: Box<[u8]>,
    levels: Box<[Option<Box<[u8]>>]>,
}

impl Generations {
    pub fn new(code: Option<Coded>, payload: Payload, geometry: &Geometry) -> Self {
        let sized = |wanted: bool| if wanted { geometry.pages() as usize } else { 0 };
        Generations {
            of_page: vec![0; sized(code.is_some())],
            levels: vec![None; sized(code.is_some() && payload == Payload::Bytes)],
            code,
        }
    }

    /// The generation of page `ppn`; 0 without a code.
    pub fn of(&self, ppn: u32) -> u8 {
        self.of_page.get(ppn as usize).copied().unwrap_or(0)
    }

    /// Restores the generation of page `ppn` from an image.
    pub fn found(&mut self, ppn: u32, generation: u8) {
        if let Some(page) = self.of_page.get_mut(ppn as usize) {
            *page = generation;
        }
    }

    /// Drops the levels, because an image stores them.
    pub fn drop_levels(&mut self) {
        self.levels = Vec::new();
    }

    /// Generations of the code; 1 without one.
    pub fn most(&self) -> u32 {
        self.code.map_or(1, |Coded(code)| code.generations())
    }

    pub fn erase(&mut self, pages: Range<u32>) {
        let pages = pages.start as usize..pages.end as usize;
        if let Some(erased) = self.of_page.get_mut(pages.clone()) {
            erased.fill(0);
        }
        if let Some(erased) = self.levels.get_mut(pages) {
            erased.fill(None);
        }
    }

    pub fn save(&self, pages: Range<u32>) -> SavedGenerations {
        let pages = pages.start as usize..pages.end as usize;
        SavedGenerations {
            of_page: self.of_page.get(pages.clone()).unwrap_or_default().into(),
            levels: self.levels.get(pages).unwrap_or_default().into(),
        }
    }

    pub fn restore(&mut self, pages: Range<u32>, saved: SavedGenerations) {
        let first = pages.start as usize;
        self.of_page.iter_mut().skip(first).zip(saved.of_page).for_each(|(page, saved)| *page = saved);
        self.levels.iter_mut().skip(first).zip(saved.levels).for_each(|(page, saved)| *page = saved);
    }
}

impl Nand {
    /// The highest generation of a page of `block` since its erase; 0 without a code of cells.
    #[inline]
    pub fn pass(&self, block: u32) -> u32 {
        u32::from(self.blocks[block as usize].pass)
    }

    /// The generation of the last program of page `ppn`; `None` if erased, or without a code of cells.
    pub fn generation(&self, ppn: u32) -> Option<u32> {
        let programmed = self.programs[ppn as usize] > 0;
        self.generations.of_page.get(ppn as usize).filter(|_| programmed).map(|&generation| generation.into())
    }

    /// Whether page `ppn` holds data of an earlier pass over its block.
    #[inline]
    pub fn is_of_earlier_pass(&self, ppn: u32) -> bool {
        let generation = self.generations.of_page.get(ppn as usize);
        generation.is_some_and(|&generation| generation < self.blocks[self.split(ppn).0 as usize].pass)
    }

    /// Whether the part has a code of cells, so that blocks may hold data of an earlier pass.
    #[inline]
    pub fn has_passes(&self) -> bool {
        !self.generations.of_page.is_empty()
    }

    /// The levels of the cells of page `ppn`, if contents are bytes and the page is programmed.
    pub fn levels(&self, ppn: u32) -> Option<&[u8]> {
        self.generations.levels.get(ppn as usize)?.as_deref()
    }

    /// Checks a program of page `ppn` as `generation` of the part's code.
    ///
    /// # Errors
    /// The broken rule.
    pub fn probe_generation(&self, ppn: u32, generation: u32) -> Result<(), Rule> {
        let Coded(code) = self.generations.code.expect("a part with a code of cells");
        let (block, page) = self.split(ppn);
        let state = &self.blocks[block as usize];
        let of_pass = generation == u32::from(state.pass) && page < state.next_page;
        let behind = of_pass && state.gaps && self.is_left_out(block, page);
        rules::check_generation(&GenerationView {
            bad: state.bad,
            torn: state.torn,
            generations: if state.single { 1 } else { code.generations() },
            generation,
            before: self.generation(ppn),
            pass: state.pass.into(),
            page,
            next_page: if behind { page } else { state.next_page },
        })
    }

    /// Programs all of page `ppn`, a word line, as `generation` of the part's code. `logical` and `data` have one entry
    /// a subpage.
    ///
    /// # Errors
    /// As [`Self::program`].
    pub fn program_generation(
        &mut self,
        ppn: u32,
        generation: u32,
        logical: &[u32],
        data: &[Data],
        own: Own<'_>,
    ) -> Flash<Outcome> {
        let written = self.widths.all_subpages;
        self.change_cells(ppn, written, logical, data, own, Change::Generation(generation))
    }

    /// The levels of the cells of page `ppn` as `generation` with `data`, or `None` if no levels are stored. The error
    /// is the broken rule.
    pub(super) fn raised(
        &self,
        ppn: u32,
        generation: u32,
        written: SubpageMask,
        data: &[Data],
    ) -> Result<Option<Box<[u8]>>, Rule> {
        assert_eq!(written, self.widths.all_subpages, "a word line is programmed in one shot");
        self.probe_generation(ppn, generation)?;
        if self.generations.levels.is_empty() && self.payload.image.is_none() {
            return Ok(None);
        }
        let Coded(code) = self.generations.code.expect("a part with a code of cells");
        let size = self.geometry.subpage_bytes as usize;
        let mut message = Vec::with_capacity(size * data.len());
        for &subpage in data {
            match self.payload.buffered(subpage) {
                Some(bytes) => message.extend_from_slice(bytes),
                None => message.resize(message.len() + size, 0),
            }
        }
        let cells = (message.len() * 8).div_ceil(code.data_bits() as usize);
        let kept = match &self.payload.image {
            Some(image) if self.programs[ppn as usize] > 0 => image.levels(ppn, cells),
            _ => None,
        };
        let before = self.levels(ppn).or(kept.as_deref());
        let mut levels: Box<[u8]> = before.map_or_else(|| vec![0; cells].into(), Box::from);
        code.write(&mut levels, generation, &message);
        if before.is_some_and(|before| before.iter().zip(&levels).any(|(before, after)| before > after)) {
            return Err(Rule::GenerationPassed);
        }
        let mut back = vec![0; message.len()];
        code.read(&levels, 0, &mut back);
        assert!(back == message, "{} stores what is written", code.name());
        Ok(Some(levels))
    }

    /// Raises the cells of page `ppn` to `levels` of `generation`. A later generation than the block's begins a pass.
    pub(super) fn enter_generation(&mut self, ppn: u32, generation: u32, levels: Option<Box<[u8]>>) {
        let block = self.split(ppn).0;
        if let (Some(levels), Some(page)) = (levels, self.generations.levels.get_mut(ppn as usize)) {
            *page = Some(levels);
        }
        self.generations.of_page[ppn as usize] = generation as u8;
        let state = &mut self.blocks[block as usize];
        if generation > u32::from(state.pass) {
            (state.pass, state.next_page, state.gaps) = (generation as u8, 0, false);
        }
    }
}
