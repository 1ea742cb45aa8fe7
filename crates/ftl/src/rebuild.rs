//! Rebuild after a die failure, for block maps on parts with parity: each host write, and each step while the host is
//! idle, copies one logical block with pages on the failed die. Their content is read from the rest of the stripe.
//! Ignored: writes wait for the copy of a whole logical block, not of a page.

use palimpsest_ftl_api::plan::{Io, ParityIo};

/// Progress of a rebuild.
#[derive(Default)]
pub struct Rebuild {
    /// Logical blocks before this one have no page on a failed die.
    next: u32,
    /// Failed dies when the rebuild began.
    dies: usize,
}

impl Rebuild {
    /// The first of `blocks` logical blocks with a page on a failed die; `pages` adds the valid physical pages of a
    /// logical block. `None` once no logical block has such a page.
    #[cold]
    pub fn next(&mut self, io: &mut Io, blocks: u32, pages: impl Fn(u32, &mut Vec<u32>)) -> Option<u32> {
        let dies = io.nand().failed_dies().len();
        if self.dies != dies {
            *self = Rebuild { next: 0, dies };
            io.note_failure();
        }
        let mut valid = Vec::new();
        while self.next < blocks {
            valid.clear();
            pages(self.next, &mut valid);
            if valid.iter().any(|&ppn| io.nand().is_unreadable(ppn)) {
                return Some(self.next);
            }
            self.next += 1;
        }
        self.next = 0;
        io.note_moved(None);
        None
    }
}
