//! A NAND part: its geometry below the block, its rules, its timings and its energies, as plain data.
//!
//! Every part comes from a preset in `presets/parts/` that names its datasheet or paper. The rules are values here, and
//! [`super::rules`] alone enforces them. Ignored: variation between chips, and variation between pages of a block other
//! than low and high, and layers (`errors/growth.rs`).

use super::cells::{CellCode, Coded};
use super::wear::WearTable;
use super::{SubpageMask, WordMask, mask_of};
use crate::keys::value::LONGEST_OPERATION;
use crate::keys::{Reader, Rule, SHARE, Value, ValueType};
use crate::units::{self, Nanos, Picojoules, Rate, SECTOR_BYTES};
use crate::words;

const PAGE: ValueType = ValueType::Bytes { min: 512, max: 16 << 20 };
const ANY_NUMBER: ValueType = ValueType::Count { min: 1, max: u32::MAX as u64 };

const WHOLE_SECTORS: Rule = Rule {
    holds: |value| matches!(value, Value::Bytes(bytes) if bytes.is_multiple_of(SECTOR_BYTES)),
    expected: "a subpage must be a whole number of sectors of 512 bytes",
};
const OPERATION: Rule = Rule {
    holds: |value| matches!(value, Value::Time(time) if *time <= LONGEST_OPERATION),
    expected: "an operation of flash takes at most 2s",
};

// Readers of times: of blocks with one bit a cell, and of retries.
const DYNAMIC_CACHE: Reader = Reader::ANY.needs(&["ftl.slc_cache > 0"]);
const FIXED_CACHE: Reader = Reader::ANY.needs(&["ftl.slc_fixed > 0"]);
const FAULTY_READS: Reader = Reader::ANY.needs(&["faults.read_fail > 0"]);
const ECC: Reader = Reader::ANY.needs(&["ecc.strength > 0"]);

words! {
    /// Bits a cell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum CellKind {
        /// One bit.
        Slc = "slc",
        /// Two bits; pages come in low and high pairs.
        Mlc = "mlc",
        /// Three bits, one-shot programmed.
        Tlc = "tlc",
        /// Four bits, one-shot programmed.
        Qlc = "qlc",
    }
}

words! {
    /// The order in which the pages of a block may be programmed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ProgramOrder {
        /// First programs in ascending page order; a page may be partially programmed again only before any later page
        /// of the block. Required by datasheets of SLC parts since about 2006, and of all MLC and TLC parts.
        Strict = "strict",
        /// First programs in ascending page order; free subpages of earlier pages may be programmed at any time (the
        /// MGA paper).
        Ascending = "ascending",
        /// Any order (small-block SLC).
        Any = "any",
        /// The low-low-high order (LLH paper, Sec. 3.2): low pages ascending in a first round; then, pair by pair, the
        /// low page may be re-programmed (1 to 0 only) and its high page programmed once. The standard order, low and
        /// high ascending as page numbers run, remains allowed.
        LowLowHigh = "low-low-high",
        /// Like low-low-high, but a low page may be re-programmed after its high page. No part that the LLH paper
        /// measured can do this (Fig. 2a); an ideal one, with a higher voltage, could (Sec. 3.2).
        LowHighLow = "low-high-low",
    }
}

impl ProgramOrder {
    /// Whether low and high pages are ordered separately.
    #[inline]
    pub fn pairs(self) -> bool {
        matches!(self, ProgramOrder::LowLowHigh | ProgramOrder::LowHighLow)
    }
}

words! {
    /// Read commands of a part.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ReadMode {
        /// Senses the whole page and transfers the whole page.
        Page = "page",
        /// Senses the whole page and transfers the wanted code words only.
        Dma = "dma",
        /// Senses and transfers the wanted code words only (SPREAD paper, Sec. III).
        Spread = "spread",
    }
}

words! {
    /// Sets of code words that one read in `spread` mode may name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum SpreadReach {
        /// Any set: the command carries a bitmap (SPREAD paper, Sec. III-A, Fig. 3b).
        Any = "any",
        /// One run: the command carries an offset and a length (Fig. 3a).
        Run = "run",
    }
}

/// A read command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadCommand {
    /// The mode.
    pub mode: ReadMode,
    /// Code words that are sensed in `spread` mode; the other modes sense the page.
    pub words: WordMask,
}

impl ReadCommand {
    /// A read of the whole page.
    pub const PAGE: ReadCommand = ReadCommand { mode: ReadMode::Page, words: 0 };
}

crate::keys! {
    /// A NAND part: rules, array times and energies. After [`Part::shot`] or [`Part::coded`] a page here is a word
    /// line, and a shot programs `pages_per_program` pages of the word line.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Part;

    /// The keys of a part before those of its wear.
    group pub SHAPE_AND_TIMES {
        /// bits a cell; pages of mlc come in low and high pairs
        pub cell: CellKind = "part.cell", CellKind::KIND, required;
        /// data bytes of a page
        pub page_bytes: u32 = "part.page_size", PAGE, required;
        /// unit of partial programs and of fine maps
        pub subpage_bytes: u32 = "part.subpage_size", PAGE, "4KiB", rules[WHOLE_SECTORS];
        /// spare bytes of a page; codes of second writes use some
        pub spare_bytes: u32 = "part.spare_size", Bytes { min: 0, max: 16 << 20 }, "0B";
        /// pages of a block
        pub pages_per_block: u32 = "part.pages_per_block", Count { min: 1, max: 65_536 }, required;
        /// pages of a word line that one program writes: 1, or all of tlc (3) or qlc (4), in one shot of part.t_program
        /// and part.e_program
        pub pages_per_program: u32 = "part.pages_per_program", Count { min: 1, max: 4 }, "1";
        /// pages of the next word line that a die takes in while it programs one, with part.pages_per_program above 1
        /// and sim.cache_register
        pub cache_pages: u32 = "part.cache_pages", Count { min: 1, max: 4 }, "1",
            needs["part.pages_per_program > 1", "sim.cache_register = true"];
        /// programs of a page between two erases, re-programs included
        pub nop: u32 = "part.nop", ANY_NUMBER, "1";
        /// order of programs within a block
        pub order: ProgramOrder = "part.order", ProgramOrder::KIND, "strict";
        /// sensing a page (low page where pages are paired)
        pub t_read: Nanos = "part.t_read", Time, required, rules[OPERATION];
        /// sensing a high page
        pub t_read_high: Nanos = "part.t_read_high", Time, (as "part.t_read"), rules[OPERATION];
        /// sensing the pages of a word line of tlc (3) or qlc (4), in the order of programs; none: part.t_read for all;
        /// a part.t_read set later is their mean, and their ratios stay
        pub t_read_types: Vec<Nanos> = "part.t_read_types", Times, "[]";
        /// sensing a page of a block that holds one bit a cell
        pub t_read_slc: Nanos = "part.t_read_slc", Time, (as "part.t_read"), rules[OPERATION],
            read_by[DYNAMIC_CACHE, FIXED_CACHE], needs["ftl.read = page|dma"];
        /// programming such a page
        pub t_program_slc: Nanos = "part.t_program_slc", Time, (as "part.t_program"), rules[OPERATION],
            read_by[DYNAMIC_CACHE, FIXED_CACHE];
        /// programming a page (low page where pages are paired)
        pub t_program: Nanos = "part.t_program", Time, required, rules[OPERATION];
        /// programming a high page
        pub t_program_high: Nanos = "part.t_program_high", Time, (as "part.t_program"), rules[OPERATION];
        /// erasing a block
        pub t_erase: Nanos = "part.t_erase", Time, required, rules[OPERATION];
        /// command and address on the bus, before any operation
        pub t_command: Nanos = "part.t_command", Time, "0ns", rules[OPERATION];
        /// transfer rate between controller and die
        pub bus_rate: units::Rate = "part.bus_rate", Rate, required;
        /// extra time of a read whose first attempt fails; of a spread read as much less as its sensing
        pub t_read_retry: Nanos = "part.t_read_retry", Time, (as "part.t_read"), rules[OPERATION],
            read_by[FAULTY_READS, ECC];
        /// from the suspend command until the die can read
        pub t_suspend: Nanos = "part.t_suspend", Time, "0ns", rules[OPERATION],
            needs["sim.suspend = erase|program-erase"];
        /// the same, of an erase
        pub t_suspend_erase: Nanos = "part.t_suspend_erase", Time, (as "part.t_suspend"), rules[OPERATION],
            needs["sim.suspend = erase|program-erase"];
        /// from the resume command until the operation continues
        pub t_resume: Nanos = "part.t_resume", Time, "0ns", rules[OPERATION],
            needs["sim.suspend = erase|program-erase"];
        /// ECC code word, the grain of dma and spread reads
        pub word_bytes: u32 = "part.word_size", Bytes { min: 1, max: 16 << 20 }, "2KiB";
        /// sensing 1, 2, ... words in spread mode; none: no such command
        pub t_read_words: Vec<Nanos> = "part.t_read_words", Times, "[]", needs["ftl.read = spread"];
        /// transferring 1, 2, ... words; none: part.bus_rate decides
        pub t_dma_words: Vec<Nanos> = "part.t_dma_words", Times, "[]";
        /// words that one spread read may name: any, or one run of adjacent words
        pub spread_reach: SpreadReach = "part.spread_reach", SpreadReach::KIND, "any";
        /// erases that a block is rated for
        pub endurance: u32 = "part.endurance", ANY_NUMBER, "3000";
        /// the same of a block of mlc, tlc or qlc that always holds one bit a cell (ftl.slc_fixed)
        pub endurance_slc: u32 = "part.endurance_slc", ANY_NUMBER, "30000", needs["ftl.slc_fixed > 0"];
        /// standard deviation of the erases that single blocks endure, as a share of part.endurance
        pub endurance_deviation: f64 = "part.endurance_deviation", SHARE, "0%";
    }

    /// The keys of a part after those of its wear.
    group pub CORRUPTION_AND_ENERGIES {
        /// whether a program that fails or is cut off corrupts the other pages of its word line; they are copied
        /// before, into blocks kept for it
        pub pair_corruption: bool = "part.pair_corruption", Flag, "false";
        /// energy of sensing a page (low page)
        pub e_read: Picojoules = "part.e_read", Energy, "0J";
        /// energy of sensing a high page
        pub e_read_high: Picojoules = "part.e_read_high", Energy, (as "part.e_read"), needs["part.cell = mlc"];
        /// energy of sensing 1, 2, ... words in spread mode; none: as for the page
        pub e_read_words: Vec<Picojoules> = "part.e_read_words", Energies, "[]", needs["ftl.read = spread"];
        /// energy of programming a page (low page)
        pub e_program: Picojoules = "part.e_program", Energy, "0J";
        /// energy of programming a high page
        pub e_program_high: Picojoules = "part.e_program_high", Energy, (as "part.e_program"), needs["part.cell = mlc"];
        /// energy of programming a low page again
        pub e_reprogram: Picojoules = "part.e_reprogram", Energy, (as "part.e_program");
        /// energy of erasing a block
        pub e_erase: Picojoules = "part.e_erase", Energy, "0J";
        /// energy of the first program of a low page where low pages are programmed first
        pub e_program_low_first: Picojoules = "part.e_program_low_first", Energy, (as "part.e_program");
        /// energy of programming a high page where low pages were programmed first
        pub e_program_high_second: Picojoules = "part.e_program_high_second", Energy, (as "part.e_program_high");
        /// energy of erasing a block whose low pages were programmed again
        pub e_erase_reused: Picojoules = "part.e_erase_reused", Energy, (as "part.e_erase");
    }

    with settings {
        /// Name of the preset.
        pub name: String = String::new();
        /// Growth of the bit error rate, and the wear of programming low pages again.
        pub wear: WearTable = WearTable::new(settings);
        /// The code of the cells, if any: a page here is then a word line ([`Part::coded`]).
        pub code: Option<Coded> = None;
        /// Pages of a program that cross the bus one by one: those of a word line that is programmed in one shot.
        pub loads: u8 = 1;
    }
}

impl CellKind {
    /// Bits of a cell: pages of a word line.
    pub fn bits(self) -> u32 {
        match self {
            CellKind::Slc => 1,
            CellKind::Mlc => 2,
            CellKind::Tlc => 3,
            CellKind::Qlc => 4,
        }
    }
}

impl Part {
    /// The part under `code`, as given or after [`Self::shot`]: the layer's page is a word line. All N pages of the
    /// word line are programmed together, again for each generation, and they store k pages.
    ///
    /// The levels cross the bus, N pages for k. Sensing, and programs of any generation, take the times and energies of
    /// the N pages in sequence, or of one shot, because the few levels that a generation raises are not assumed to be
    /// faster. A page in a block of single bits is k word lines, programmed and sensed in sequence. Other read commands
    /// and their tables are dropped. Wear still counts erases, because no cell gets more charge between two erases than
    /// the highest level has. `None` if the part has no such cells, or no whole word lines.
    pub fn coded(&self, code: &'static dyn CellCode) -> Option<Part> {
        let (stored, pages) = (code.data_bits(), code.cell_bits());
        let (at_once, lines) = (self.pages_per_program, self.pages_per_block * self.pages_per_program / pages);
        if self.cell.bits() != pages || lines * pages != self.pages_per_block * at_once {
            return None;
        }
        let (time, energy) = (Nanos::from(pages), Picojoules::from(pages));
        let shots = pages / at_once;
        let (program, program_energy) = (self.t_program * Nanos::from(shots), self.e_program * Picojoules::from(shots));
        let sensing = match &self.t_read_types[..] {
            [] => self.t_read * time,
            types => types.iter().sum(),
        };
        Some(Part {
            page_bytes: self.page_bytes / at_once * stored,
            spare_bytes: self.spare_bytes / at_once * stored,
            pages_per_block: lines,
            pages_per_program: 1,
            nop: code.generations(),
            order: ProgramOrder::Strict,
            t_read: sensing,
            t_read_high: sensing,
            t_read_types: Vec::new(),
            t_read_slc: self.t_read_slc * Nanos::from(stored),
            t_program_slc: self.t_program_slc * Nanos::from(stored),
            t_program: program,
            t_program_high: program,
            t_read_retry: self.t_read_retry * time,
            bus_rate: Rate(self.bus_rate.0 * u64::from(stored) / u64::from(pages)),
            t_read_words: Vec::new(),
            t_dma_words: Vec::new(),
            e_read: self.e_read * energy,
            e_read_high: self.e_read * energy,
            e_read_words: Vec::new(),
            e_program: program_energy,
            e_program_high: program_energy,
            e_reprogram: program_energy,
            e_program_low_first: program_energy,
            e_program_high_second: program_energy,
            code: Some(Coded(code)),
            ..self.clone()
        })
    }

    /// The part with word lines programmed in one shot: the layer's page is a word line. All of its `pages` pages are
    /// programmed together, once, in the unchanged `t_program` and with the unchanged `e_program`.
    ///
    /// A read senses single pages as before, only those with wanted data. In a block of single bits a page here is as
    /// many word lines, programmed in sequence. `None` if the cells have another number of bits, pages come in low and
    /// high pairs, or there are no whole word lines.
    pub fn shot(&self, pages: u32) -> Option<Part> {
        let fits = self.cell.bits() == pages && !self.paired() && self.pages_per_block.is_multiple_of(pages);
        fits.then(|| Part {
            page_bytes: self.page_bytes * pages,
            spare_bytes: self.spare_bytes * pages,
            pages_per_block: self.pages_per_block / pages,
            pages_per_program: pages,
            loads: pages as u8,
            ..self.clone()
        })
    }

    /// Bits that a cell stores: under a code fewer than the levels allow. A block with one bit a cell has so many
    /// times fewer pages.
    #[inline]
    pub fn stored_bits(&self) -> u32 {
        self.code.map_or(self.cell.bits(), |Coded(code)| code.data_bits())
    }

    /// Bytes at the rate of the bus for `bytes` of a page. The rate of a part with a code counts the levels of all bits
    /// of a cell, and a block of single bits (`single`) has none to send.
    #[inline]
    pub fn bytes_on_bus(&self, bytes: u32, single: bool) -> u32 {
        match self.code {
            Some(Coded(code)) if single => bytes * code.data_bits() / code.cell_bits(),
            _ => bytes,
        }
    }

    /// Bytes that a read senses: a page, or one page of a word line that is programmed in one shot.
    #[inline]
    pub fn sensed_bytes(&self) -> u32 {
        match self.pages_per_program {
            1 => self.page_bytes,
            pages => self.page_bytes / pages,
        }
    }

    /// Subpages that a read senses.
    #[inline]
    pub fn sensed_subpages(&self) -> u32 {
        self.sensed_bytes() / self.subpage_bytes
    }

    /// Subpages of a page.
    #[inline]
    pub fn subpages_per_page(&self) -> u32 {
        self.page_bytes / self.subpage_bytes
    }

    /// Code words of a page.
    #[inline]
    pub fn words_per_page(&self) -> u32 {
        self.page_bytes.div_ceil(self.word_bytes)
    }

    /// The code words that hold `subpages`.
    pub fn words_of_subpages(&self, subpages: SubpageMask) -> WordMask {
        spanned(subpages, self.subpage_bytes, self.word_bytes, self.page_bytes)
    }

    /// The subpages of which `words` hold any byte.
    pub fn subpages_of_words(&self, words: WordMask) -> SubpageMask {
        spanned(words, self.word_bytes, self.subpage_bytes, self.page_bytes)
    }

    /// Sensing time of `page`; in a word line that is programmed in one shot, of the page with subpage `subpage`.
    #[inline]
    pub fn sensing_time(&self, page: u32, subpage: u32) -> Nanos {
        match self.t_read_types.len() {
            0 if self.is_high(page) => self.t_read_high,
            0 => self.t_read,
            _ if self.pages_per_program > 1 => self.t_read_types[(subpage / self.sensed_subpages()) as usize],
            types => self.t_read_types[page as usize % types],
        }
    }

    /// Time in the array of a program of `page`, with all bits of a cell.
    #[inline]
    pub fn programming_time(&self, page: u32) -> Nanos {
        if self.is_high(page) { self.t_program_high } else { self.t_program }
    }

    /// Energy of `command` on `page` of a block.
    #[inline]
    pub fn read_energy(&self, page: u32, command: ReadCommand) -> Picojoules {
        let whole = if self.is_high(page) { self.e_read_high } else { self.e_read };
        match command.mode {
            ReadMode::Spread if !self.e_read_words.is_empty() => {
                self.e_read_words[(command.words.count_ones() - 1) as usize]
            }
            _ => whole,
        }
    }

    /// Whether reads, programs and erases have energies. A part without them has no figure of energy or power.
    pub fn has_energies(&self) -> bool {
        [self.e_read, self.e_program, self.e_erase].iter().all(|&energy| energy > 0)
    }

    /// Extra time of a retry in `mode` of a read that senses for `sensing`. A spread read senses only its code words
    /// again, so the time scales with the first attempt.
    #[inline]
    pub fn retry_time(&self, mode: ReadMode, sensing: Nanos) -> Nanos {
        match mode {
            ReadMode::Spread if self.t_read > 0 => self.t_read_retry * sensing / self.t_read,
            _ => self.t_read_retry,
        }
    }

    /// Whether pages come in low and high pairs.
    #[inline]
    pub fn paired(&self) -> bool {
        self.cell == CellKind::Mlc
    }

    /// Whether a failed or interrupted program corrupts the other pages of its word line; never if they are programmed
    /// together.
    #[inline]
    pub fn shares_word_lines(&self) -> bool {
        self.pair_corruption && self.cell.bits() > 1 && self.code.is_none() && self.pages_per_program == 1
    }

    /// Blocks of each plane that the controller reserves for copies of pages of incomplete word lines, if a failed or
    /// interrupted program corrupts the others. One block is for pages that are read from copies. The rest must hold
    /// the copies of two such programs and spoiled pages of copies, at least two blocks, because the copies of a
    /// program may continue in the next block.
    pub fn kept_blocks(&self) -> u32 {
        let bits = self.cell.bits();
        match self.shares_word_lines() {
            true => 1 + (2 * (bits - 1) + 4).div_ceil(self.pages_of_copies()).max(2),
            false => 0,
        }
    }

    /// Word lines of a block; a page is a word line if the cells are coded or programmed in one shot.
    pub fn word_lines(&self) -> u32 {
        let is_whole = self.code.is_some() || self.pages_per_program > 1;
        self.pages_per_block.div_ceil(if is_whole { 1 } else { self.cell.bits() })
    }

    /// Pages of a reserved block, which holds one bit a cell.
    pub fn pages_of_copies(&self) -> u32 {
        (self.pages_per_block / self.cell.bits()).max(1)
    }

    /// Whether low pages may be programmed again with a write-once-memory code.
    #[inline]
    pub fn reusable(&self) -> bool {
        self.order.pairs() && self.paired() && self.nop >= 2
    }

    /// Whether `page` of a block is a high page. Page numbers follow the standard order of programs: low 0, low 1, high
    /// 0, low 2, high 1, ...
    #[inline]
    pub fn is_high(&self, page: u32) -> bool {
        self.paired() && ((page >= 2 && page.is_multiple_of(2)) || page + 1 == self.pages_per_block)
    }

    /// The other page of the pair of `page`; `page` itself if pages are not paired.
    #[inline]
    pub fn partner(&self, page: u32) -> u32 {
        let last = self.pages_per_block - 1;
        match (self.paired(), self.is_high(page), page) {
            (false, _, _) => page,
            (true, true, 1 | 2) => 0,
            (true, true, _) if page == last => last - 2,
            (true, true, _) => page - 3,
            (true, false, 0) => last.min(2),
            (true, false, _) => last.min(page + 3),
        }
    }
}

/// Pieces of `to` bytes that overlap the pieces `mask` of `from` bytes, in a page of `page` bytes.
fn spanned(mask: u64, from: u32, to: u32, page: u32) -> u64 {
    let (mut pieces, mut rest) = (0, mask);
    while rest != 0 {
        let begin = rest.trailing_zeros() * from;
        rest &= rest - 1;
        let end = (begin + from).min(page);
        pieces |= mask_of(begin / to, end.div_ceil(to));
    }
    pieces
}

/// Parts for tests.
#[doc(hidden)]
pub mod samples {
    use super::*;

    /// An SLC part for tests: 4 KiB pages of one subpage, 8 pages a block.
    pub fn slc() -> Part {
        Part {
            name: "test-slc".into(),
            cell: CellKind::Slc,
            page_bytes: 4096,
            subpage_bytes: 4096,
            spare_bytes: 128,
            pages_per_block: 8,
            pages_per_program: 1,
            cache_pages: 1,
            nop: 1,
            order: ProgramOrder::Strict,
            t_read: 25_000,
            t_read_slc: 25_000,
            t_program_slc: 200_000,
            t_read_types: Vec::new(),
            t_read_high: 25_000,
            t_program: 200_000,
            t_program_high: 200_000,
            t_erase: 1_500_000,
            t_command: 100,
            bus_rate: Rate(40_000_000),
            t_read_retry: 50_000,
            t_suspend: 5_000,
            t_suspend_erase: 5_000,
            t_resume: 5_000,
            word_bytes: 1024,
            t_read_words: Vec::new(),
            t_dma_words: Vec::new(),
            spread_reach: SpreadReach::Any,
            endurance: 100_000,
            endurance_slc: 100_000,
            endurance_deviation: 0.0,
            wear: WearTable::default(),
            pair_corruption: false,
            e_read: 2_000_000,
            e_read_high: 2_000_000,
            e_read_words: Vec::new(),
            e_program: 16_000_000,
            e_program_high: 16_000_000,
            e_reprogram: 16_000_000,
            e_erase: 120_000_000,
            e_program_low_first: 16_000_000,
            e_program_high_second: 16_000_000,
            e_erase_reused: 120_000_000,
            code: None,
            loads: 1,
        }
    }
}

#[cfg(test)]
mod tests;
