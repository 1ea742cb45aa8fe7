//! The programmed part of a block, for pictures. Ignored: validity.

use super::{Nand, UNWRITTEN};

/// The programmed part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Pages programmed since the erase.
    pub pages: u32,
    /// Subpages programmed since the erase, padding and torn subpages included.
    pub subpages: u32,
    /// Whether some page was programmed again over data.
    pub reused: bool,
}

impl Nand {
    /// The programmed part of `block`, for pictures: O(1) unless pages are missing before its frontier.
    pub fn fill(&self, block: u32) -> Fill {
        let (pages, width) = (self.geometry.pages_per_block as usize, self.geometry.subpages_per_page as usize);
        let state = &self.blocks[block as usize];
        let mut fill = Fill {
            pages: state.next_page,
            subpages: state.next_page * width as u32,
            reused: state.reused || state.pass > 0,
        };
        if state.gaps {
            let first = self.first_page(block);
            let programs = &self.programs[first..first + pages];
            let cells = self.logical[first * width..(first + pages) * width].chunks_exact(width);
            let written = programs.iter().zip(cells).filter(|(programs, _)| **programs > 0);
            (fill.pages, fill.subpages) = written.fold((0, 0), |(pages, subpages), (_, cells)| {
                (pages + 1, subpages + cells.iter().filter(|&&cell| cell != UNWRITTEN).count() as u32)
            });
        }
        fill
    }
}
