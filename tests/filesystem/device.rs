//! A device in memory that refuses the operations that flash refuses, loses data as a power cut may, and cuts the power
//! at a given operation.

use palimpsest_lab::command::Lifetime;
use palimpsest_lab::host::fs::device::{Device, Load, Purpose, Shape};
use palimpsest_lab::nand::data::Data;
use palimpsest_lab::nand::{Flash, Halt};
use palimpsest_lab::rng::Rng;
use std::collections::BTreeMap;

/// Contents of a page.
#[derive(Clone, PartialEq)]
enum Page {
    Free,
    Torn,
    /// Written, and uncorrectable.
    Lost,
    Bytes(Box<[u8]>),
}

#[derive(Clone)]
pub struct Memory {
    shape: Shape,
    pages: Vec<Page>,
    written: Vec<u32>,
    /// Pages of blocks before their trim, which a cut may undo until the block is written again.
    before_trim: Vec<Option<Vec<Page>>>,
    /// Pages before their trim, which a cut may undo until their block is trimmed or they are written again.
    discarded: BTreeMap<u32, Page>,
    held: Vec<Box<[u8]>>,
    /// Operations so far, and the one at which the power is cut.
    pub operations: u64,
    pub cut_at: u64,
    /// The read after which the page is uncorrectable.
    pub lost_after: u64,
    pub rng: Rng,
    pub trims: Vec<u64>,
    /// Whether reads are under way in each channel.
    pub reading: Vec<bool>,
    /// Pages trimmed so far.
    pub discards: u64,
    /// Blocks finished so far.
    pub finished: u64,
    /// The hint of file pages that are written now.
    pub hint: Lifetime,
}

impl Memory {
    pub fn new(shape: Shape, seed: u64) -> Self {
        Memory {
            pages: vec![Page::Free; shape.pages() as usize],
            written: vec![0; shape.blocks() as usize],
            before_trim: vec![None; shape.blocks() as usize],
            discarded: BTreeMap::new(),
            held: Vec::new(),
            operations: 0,
            cut_at: u64::MAX,
            lost_after: u64::MAX,
            rng: Rng::new(seed, 0xdef),
            trims: vec![0; shape.channels as usize],
            reading: vec![false; shape.channels as usize],
            discards: 0,
            finished: 0,
            hint: Lifetime::Unknown,
            shape,
        }
    }

    /// Pages of `block` up to the last written one.
    fn frontier(&self, block: u32) -> u32 {
        let first = (block * self.shape.pages_per_block) as usize;
        let pages = &self.pages[first..first + self.shape.pages_per_block as usize];
        pages.iter().rposition(|page| *page != Page::Free).map_or(0, |last| last as u32 + 1)
    }

    /// Blocks that are written in part.
    fn active(&self) -> u32 {
        (0..self.shape.blocks())
            .filter(|&block| (1..self.shape.pages_per_block).contains(&self.frontier(block)))
            .count() as u32
    }

    fn begin(&mut self) -> bool {
        self.operations += 1;
        self.operations == self.cut_at
    }

    /// Runs `act` without power cuts; operations of `act` do not count.
    pub fn without_cuts<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let (operations, cut_at) = (self.operations, std::mem::replace(&mut self.cut_at, u64::MAX));
        let done = act(self);
        (self.operations, self.cut_at) = (operations, cut_at);
        done
    }

    /// Makes one of `share` written pages uncorrectable; returns their number.
    pub fn lose(&mut self, share: u64) -> u64 {
        let mut lost = 0;
        for page in &mut self.pages {
            if matches!(page, Page::Bytes(_)) && self.rng.below(share) == 0 {
                *page = Page::Lost;
                lost += 1;
            }
        }
        lost
    }

    /// Makes the first page of `block` uncorrectable, if written.
    pub fn lose_first(&mut self, block: u32) {
        let page = &mut self.pages[(block * self.shape.pages_per_block) as usize];
        if matches!(page, Page::Bytes(_)) {
            *page = Page::Lost;
        }
    }

    /// Sets the next page of each block to the page that a mount finds.
    pub fn mounted(&mut self) {
        for block in 0..self.shape.blocks() {
            self.written[block as usize] = self.frontier(block);
        }
    }

    /// Restores the power, and undoes some trims of blocks and pages that were not written since.
    pub fn power_cycle(&mut self) {
        self.cut_at = u64::MAX;
        for (page, content) in std::mem::take(&mut self.discarded) {
            if self.rng.below(2) == 0 {
                self.pages[page as usize] = content;
            }
        }
        for block in 0..self.shape.blocks() {
            if let Some(pages) = self.before_trim[block as usize].take()
                && self.rng.below(2) == 0
            {
                let first = (block * self.shape.pages_per_block) as usize;
                self.pages[first..first + pages.len()].clone_from_slice(&pages);
            }
        }
    }
}

impl Device for Memory {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn write(&mut self, page: u32, contents: &[Data], _purpose: Purpose) -> Flash<()> {
        let cut = self.begin();
        let (block, at) = (page / self.shape.pages_per_block, page % self.shape.pages_per_block);
        assert_eq!(at, self.written[block as usize], "pages of a block are written in order, each once");
        assert_eq!(contents.len(), self.shape.subpages_per_page as usize);
        let most = self.shape.most_active;
        assert!(at > 0 || most == 0 || self.active() < most, "at most {most} blocks are written in part");
        self.before_trim[block as usize] = None;
        self.discarded.remove(&page);
        self.written[block as usize] += 1;
        self.pages[page as usize] = match self.bytes(contents) {
            _ if cut => Page::Torn,
            Some(bytes) => Page::Bytes(bytes.into()),
            None => Page::Lost,
        };
        if cut { Err(Halt::PowerCut) } else { Ok(()) }
    }

    fn read(&mut self, page: u32, _purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool> {
        if self.begin() {
            return Err(Halt::PowerCut);
        }
        *contents = match &self.pages[page as usize] {
            Page::Free | Page::Torn => return Ok(false),
            Page::Lost => vec![Data::LOST; self.shape.subpages_per_page as usize],
            Page::Bytes(bytes) => {
                let bytes = bytes.to_vec();
                self.hold(&bytes)
            }
        };
        if self.operations == self.lost_after {
            self.pages[page as usize] = Page::Lost;
        }
        Ok(true)
    }

    fn copy(&mut self, from: u32, to: u32) -> Flash<()> {
        let mut contents = Vec::new();
        assert!(self.read(from, Purpose::Data, &mut contents)?, "a valid page was written");
        self.write(to, &contents, Purpose::Data)
    }

    fn barrier(&mut self) -> Flash<()> {
        Ok(())
    }

    fn trim(&mut self, block: u32) -> Flash<()> {
        let cut = self.begin();
        let first = (block * self.shape.pages_per_block) as usize;
        let range = first..first + self.shape.pages_per_block as usize;
        if cut && self.rng.below(2) == 0 {
            return Err(Halt::PowerCut);
        }
        self.before_trim[block as usize] = Some(self.pages[range.clone()].to_vec());
        self.discarded.retain(|&page, _| !range.contains(&(page as usize)));
        self.pages[range].fill(Page::Free);
        self.written[block as usize] = 0;
        self.trims[self.shape.channel_of_block(block) as usize] += 1;
        if cut { Err(Halt::PowerCut) } else { Ok(()) }
    }

    fn finish(&mut self, block: u32) -> Flash<()> {
        assert!(self.shape.most_active > 0 && self.frontier(block) > 0, "block {block} is written in part");
        let width = self.shape.page_bytes as usize;
        for at in self.frontier(block)..self.shape.pages_per_block {
            if self.begin() {
                return Err(Halt::PowerCut);
            }
            self.pages[(block * self.shape.pages_per_block + at) as usize] = Page::Bytes(vec![0; width].into());
            self.written[block as usize] = at + 1;
        }
        self.before_trim[block as usize] = None;
        self.finished += 1;
        Ok(())
    }

    fn discard(&mut self, page: u32, pages: u32) -> Flash<()> {
        for page in page..page + pages {
            if self.begin() {
                return Err(Halt::PowerCut);
            }
            let content = std::mem::replace(&mut self.pages[page as usize], Page::Free);
            assert!(content != Page::Free, "page {page} is discarded once, and was written");
            self.discarded.insert(page, content);
            self.discards += 1;
        }
        Ok(())
    }

    fn set_hint(&mut self, hint: Lifetime) {
        self.hint = hint;
    }

    /// Trimmed pages at the end of a block do not count.
    fn written(&self, block: u32) -> u32 {
        self.frontier(block)
    }

    fn hold(&mut self, bytes: &[u8]) -> Vec<Data> {
        assert_eq!(bytes.len(), self.shape.page_bytes as usize);
        let width = bytes.len() / self.shape.subpages_per_page as usize;
        let mut held = Vec::new();
        for subpage in bytes.chunks_exact(width) {
            held.push(Data::new(self.held.len() as u64));
            self.held.push(subpage.into());
        }
        held
    }

    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>> {
        let of = |data: &Data| self.held.get(data.value as usize).map(|bytes| &bytes[..]);
        Some(contents.iter().map(of).collect::<Option<Vec<_>>>()?.concat())
    }

    fn load(&self, channel: u32) -> Load {
        Load { reading: self.reading[channel as usize], ..Load::default() }
    }

    fn wear(&self, channel: u32) -> u64 {
        self.trims[channel as usize]
    }
}
