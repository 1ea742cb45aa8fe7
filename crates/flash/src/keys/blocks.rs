//! Numbers of blocks, absolute or as a share of a plane: `"2 blocks"`, `"20%"`.

use crate::units::parse::{Parsed, format_ratio, parse_ratio, shown, split};

/// A number of blocks, absolute or as a share of the blocks of a plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockCount {
    /// A number of blocks.
    Blocks(u32),
    /// A share of the blocks of a plane.
    Share(f64),
}

impl BlockCount {
    /// The count for a plane of `blocks` blocks, rounded down.
    pub fn of(self, blocks: u32) -> u32 {
        match self {
            BlockCount::Blocks(n) => n,
            BlockCount::Share(share) => (f64::from(blocks) * share) as u32,
        }
    }

    /// The count in pages, for a plane of `blocks` blocks of `pages_per_block` pages.
    pub fn pages_of(self, blocks: u32, pages_per_block: u32) -> u32 {
        match self {
            BlockCount::Blocks(n) => n * pages_per_block,
            BlockCount::Share(share) => (f64::from(blocks * pages_per_block) * share) as u32,
        }
    }
}

/// A number of blocks such as `"2 blocks"`, or a share of a plane's blocks such as `"20%"`.
///
/// # Errors
/// Neither of both, a share above 100 %, or a bare number of 1 or more.
pub fn parse_blocks(text: &str) -> Parsed<BlockCount> {
    let expected = "expected a number of blocks such as \"2 blocks\", or a share of a plane's blocks such as \"20%\"";
    let text = text.trim();
    let (number, unit) = split(text);
    match unit {
        "block" | "blocks" => {
            let count = number
                .parse()
                .map_err(|_| format!("\"{}\" is not a whole number of blocks; {expected}", shown(text)))?;
            Ok(BlockCount::Blocks(count))
        }
        "" | "%" if !number.is_empty() => match parse_ratio(text) {
            Ok(ratio) if ratio <= 1.0 => Ok(BlockCount::Share(ratio)),
            Ok(ratio) => {
                let shown = format_ratio(ratio);
                Err(format!("{shown} is more than all blocks of a plane; expected at most \"100%\""))
            }
            Err(_) => Err(format!("\"{}\" may be blocks or a percentage; {expected}", shown(text))),
        },
        _ => Err(format!("\"{}\" is not a number of blocks; {expected}", shown(text))),
    }
}

/// The shortest text of a number of blocks.
pub fn format_blocks(count: BlockCount) -> String {
    match count {
        BlockCount::Blocks(1) => "1 block".into(),
        BlockCount::Blocks(count) => format!("{count} blocks"),
        BlockCount::Share(share) => format_ratio(share),
    }
}

#[cfg(test)]
mod tests;
