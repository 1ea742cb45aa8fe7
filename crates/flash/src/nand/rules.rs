//! The rules of flash, by part: order of programs, programs between erases, pairs of pages.
//!
//! Pure functions of the state of a block; only [`super::Nand`] calls them, before each change of cells. Checked
//! elsewhere: cells change from 1 to 0 only ([`super::data`]), and plain programs write free subpages only ([`super`]).
//! Ignored: recommendations of data sheets that no part enforces.

use super::SubpageMask;
use super::part::{Part, ProgramOrder, ReadCommand, ReadMode, SpreadReach};
use std::fmt;

/// A rule that an operation breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A read of a subpage that was not written since the erase.
    ReadUnwritten,
    /// A read of a subpage whose program failed or was interrupted.
    ReadTorn,
    /// A read in `spread` mode on a part without this command.
    NoSpread,
    /// A read in `spread` mode of several runs of code words, on a part whose command carries one run.
    ScatteredWords,
    /// The block is marked bad.
    BadBlock,
    /// The last erase of the block was cut off.
    TornErase,
    /// A page would be programmed before an earlier page of its block.
    PageOrder,
    /// A page would be programmed again although a later page of its block was programmed.
    ReprogramOrder,
    /// A page would be programmed more often than its part allows between two erases (NOP).
    TooManyPrograms,
    /// Cells that hold data would be programmed again without a write-once-memory code: 0 cannot become 1.
    OneToZero,
    /// A high page would be programmed before its low page.
    HighBeforeLow,
    /// A low page would be programmed again after its high page: the low-high-low scheme, in which two state
    /// transitions fail on every chip that the LLH paper measured (Fig. 2a).
    LowAfterHigh,
    /// A high page would be programmed again: the low-high-high scheme, in which two state transitions fail (Fig. 2b).
    HighTwice,
    /// Some pages of a word line would be programmed without the others, although one shot programs all.
    PartOfWordLine,
    /// One command would sense several pages of a word line.
    PagesTogether,
    /// A word line would be programmed as a generation that its cells or its block have reached already: some level
    /// would have to fall.
    GenerationPassed,
    /// A word line would be programmed as a generation beyond its code.
    NoGeneration,
    /// A layer said that the data of a block is elsewhere, and the block still holds data.
    NotRelocated,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::ReadUnwritten => "a read of a subpage that was not written since the erase",
            Rule::ReadTorn => "a read of a subpage whose program failed or was cut off",
            Rule::NoSpread => "a spread read of a part without that command (part.t_read_words)",
            Rule::ScatteredWords => {
                "a spread read of several runs of code words, where the command carries one \
                 (part.spread_reach = \"run\")"
            }
            Rule::BadBlock => "a program or erase of a bad block",
            Rule::TornErase => "a program in a block whose last erase was cut off",
            Rule::PageOrder => "a first program of a page before an earlier page of its block (part.order)",
            Rule::ReprogramOrder => {
                "a second program of a page after a later page of its block (part.order = \"strict\")"
            }
            Rule::TooManyPrograms => "more programs of a page between two erases than part.nop",
            Rule::OneToZero => "a program of cells that already hold data (0 cannot become 1 without an erase)",
            Rule::HighBeforeLow => "a program of a high page before its low page",
            Rule::LowAfterHigh => {
                "a second program of a low page after its high page: in the low-high-low scheme ER does not reach P3 \
                 and P1 does not reach P2, as the voltage of a low program is too low"
            }
            Rule::HighTwice => {
                "a second program of a high page: in the low-high-high scheme P3 cannot reach P2, as V_th would have \
                 to fall, and P1 goes to P2 by itself, which corrupts the low page"
            }
            Rule::PartOfWordLine => {
                "a program of a part of a word line, whose pages are programmed in one shot (part.pages_per_program)"
            }
            Rule::PagesTogether => "a read of several pages of a word line by one command (part.pages_per_program)",
            Rule::GenerationPassed => {
                "a program of a word line as a generation that its cells or its block have come to (a level cannot \
                 fall without an erase)"
            }
            Rule::NoGeneration => {
                "a program of a word line as a generation that its code does not have (the cells are at their \
                 highest levels)"
            }
            Rule::NotRelocated => "relocate returned true, and the block still holds valid data",
        })
    }
}

impl super::Nand {
    /// The halt of a drive whose layer said that the data of `block` is elsewhere, although the block holds data.
    pub fn not_relocated(&self, block: u32) -> super::Halt {
        self.refuse(Rule::NotRelocated, block, 0)
    }
}

/// A refused operation, with the earlier operations on its block.
#[derive(Debug)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// The block.
    pub block: u32,
    /// The page within the block.
    pub page: u32,
    /// Number of the operation in the run.
    pub operation: u64,
    /// The last operations on the block, oldest first.
    pub history: Vec<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} on block {}, page {}: {}", self.operation, self.block, self.page, self.rule)?;
        write!(f, "; before it: {}", if self.history.is_empty() { "nothing".into() } else { self.history.join(", ") })
    }
}

/// Checks that the part supports `command`.
///
/// # Errors
/// The broken rule.
#[inline]
pub fn check_read(part: &Part, command: ReadCommand) -> Result<(), Rule> {
    if command.mode != ReadMode::Spread {
        return Ok(());
    }
    let fits = command.words != 0 && command.words >> (part.words_per_page() - 1) <= 1;
    assert!(fits, "a spread read names words of the page");
    if part.t_read_words.is_empty() {
        return Err(Rule::NoSpread);
    }
    let run = command.words >> command.words.trailing_zeros();
    if part.spread_reach == SpreadReach::Run && run & run.wrapping_add(1) != 0 {
        return Err(Rule::ScatteredWords);
    }
    Ok(())
}

/// Checks that one command can sense all of `wanted`: they must be in one page of a word line.
///
/// # Errors
/// The broken rule.
pub fn check_sensed(part: &Part, wanted: SubpageMask) -> Result<(), Rule> {
    let page = |subpage: u32| subpage / part.sensed_subpages();
    let one = wanted == 0 || page(wanted.trailing_zeros()) == page(63 - wanted.leading_zeros());
    if one { Ok(()) } else { Err(Rule::PagesTogether) }
}

/// The state that a rule reads.
#[derive(Clone, Copy)]
pub struct PageView<'a> {
    /// The part.
    pub part: &'a Part,
    /// Whether the block is marked bad.
    pub bad: bool,
    /// Whether the last erase of the block was cut off.
    pub torn: bool,
    /// The page to program.
    pub page: u32,
    /// First page not reached by programs.
    pub next_page: u32,
    /// Programs of every page of the block since its erase.
    pub programs: &'a [u8],
    /// Dies whose pages take turns in the block: those of a superblock, or 1.
    pub dies: u32,
    /// Progress of low and high pages on the die of the page, if pages are paired.
    pub reached: Reached,
}

/// The first low page and the first high page of a die's block not reached by programs, as page numbers of the die.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// No low page from this number on is programmed.
    pub low: u32,
    /// No high page from this number on is programmed.
    pub high: u32,
}

crate::state!(Reached { low, high });

impl Reached {
    /// Notes a program of `page`.
    #[inline]
    pub fn note(&mut self, page: u32, high: bool) {
        let reached = if high { &mut self.high } else { &mut self.low };
        *reached = (page + 1).max(*reached);
    }

    /// Whether the low pages are further ahead of the high pages than in the standard order: the block is programmed
    /// low pages first.
    #[inline]
    pub fn low_first(self) -> bool {
        // Before high page k (page 2k + 2), the standard order has programmed low pages up to k + 1 (page 2k + 1).
        let standard = if self.high == 0 { 2 } else { self.high + 1 };
        self.low > standard
    }
}

/// Checks a program of `view.page`.
///
/// # Errors
/// The first broken rule.
#[inline(always)]
pub fn check_program(view: &PageView<'_>) -> Result<(), Rule> {
    if view.bad {
        return Err(Rule::BadBlock);
    }
    if view.torn {
        return Err(Rule::TornErase);
    }
    let before = u32::from(view.programs[view.page as usize]);
    if before >= view.part.nop {
        let high = view.part.is_high(view.page / view.dies);
        return Err(if high && before > 0 { Rule::HighTwice } else { Rule::TooManyPrograms });
    }
    match view.part.order {
        ProgramOrder::Any => Ok(()),
        ProgramOrder::Ascending if before > 0 || view.page >= view.next_page => Ok(()),
        ProgramOrder::Strict if before > 0 && view.page + 1 < view.next_page => Err(Rule::ReprogramOrder),
        ProgramOrder::Strict if before > 0 || view.page >= view.next_page => Ok(()),
        ProgramOrder::Ascending | ProgramOrder::Strict => Err(Rule::PageOrder),
        ProgramOrder::LowLowHigh | ProgramOrder::LowHighLow => check_pairs(*view, before),
    }
}

/// A program of a word line as one generation of the code of its cells.
pub struct GenerationView {
    /// Whether the block is marked bad.
    pub bad: bool,
    /// Whether the last erase of the block was cut off.
    pub torn: bool,
    /// Generations of the code.
    pub generations: u32,
    /// The generation of the program.
    pub generation: u32,
    /// The generation of the word line's last program; `None` if erased.
    pub before: Option<u32>,
    /// The highest generation of any word line of the block.
    pub pass: u32,
    /// The word line to program.
    pub page: u32,
    /// First word line not reached by programs of that generation.
    pub next_page: u32,
}

/// Checks a program of a word line. A block is written in passes of ascending generations. Word lines ascend within a
/// pass, because neighbours disturb each other; the next pass may begin at any time.
///
/// # Errors
/// The first broken rule.
#[inline]
pub fn check_generation(view: &GenerationView) -> Result<(), Rule> {
    match view.generation {
        _ if view.bad => Err(Rule::BadBlock),
        _ if view.torn => Err(Rule::TornErase),
        generation if generation >= view.generations => Err(Rule::NoGeneration),
        generation if generation < view.pass || view.before.is_some_and(|before| generation <= before) => {
            Err(Rule::GenerationPassed)
        }
        generation if generation == view.pass && view.page < view.next_page => Err(Rule::PageOrder),
        _ => Ok(()),
    }
}

/// The low-low-high order (LLH paper, Sec. 3.2). Low pages ascend, and so do high pages. A low page may be programmed
/// again before its high page is programmed, on an ideal part also afterwards. A high page must follow its low page.
/// The standard order is a special case.
#[inline]
fn check_pairs(view: PageView<'_>, before: u32) -> Result<(), Rule> {
    let (part, page) = (view.part, view.page / view.dies);
    let partner = part.partner(page) * view.dies + view.page % view.dies;
    let partner_programmed = view.programs[partner as usize] > 0;
    if part.is_high(page) {
        return match () {
            () if before > 0 => Err(Rule::HighTwice),
            () if !partner_programmed => Err(Rule::HighBeforeLow),
            () if page < view.reached.high => Err(Rule::PageOrder),
            () => Ok(()),
        };
    }
    match before {
        0 if page < view.reached.low => Err(Rule::PageOrder),
        0 => Ok(()),
        _ if part.order == ProgramOrder::LowLowHigh && partner_programmed => Err(Rule::LowAfterHigh),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
