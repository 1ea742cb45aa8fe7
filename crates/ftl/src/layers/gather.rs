//! Reads of scattered subpages: one command per physical page (SPREAD paper, Fig. 5).

use palimpsest_flash::nand::{Flash, SubpageMask, WordMask};
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};

/// Wanted subpages of one physical page.
#[derive(Clone, Copy)]
struct Wanted {
    ppn: u32,
    subpages: SubpageMask,
    words: WordMask,
}

/// The wanted subpages of a request.
#[derive(Default)]
pub(super) struct Gather {
    wanted: Vec<Wanted>,
}

impl Gather {
    /// Removes all wanted subpages.
    #[inline]
    pub fn clear(&mut self) {
        self.wanted.clear();
    }

    /// True if no subpages are wanted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds the code words `words` of page `ppn`, which are in `subpages`.
    #[inline]
    pub fn add(&mut self, ppn: u32, subpages: SubpageMask, words: WordMask) {
        match self.wanted.last_mut() {
            Some(last) if last.ppn == ppn => {
                last.subpages |= subpages;
                last.words |= words;
            }
            _ => self.wanted.push(Wanted { ppn, subpages, words }),
        }
    }

    /// Reads the wanted subpages, one read per physical page; each signals `signal`.
    ///
    /// # Errors
    /// Errors of flash.
    #[inline]
    pub fn read(&mut self, io: &mut Io, policy: ReadPolicy, cause: Cause, signal: Gate) -> Flash<()> {
        if self.wanted.len() > 1 {
            self.wanted.sort_by_key(|wanted| wanted.ppn);
            self.wanted.dedup_by(|later, kept| {
                let same = later.ppn == kept.ppn;
                if same {
                    kept.subpages |= later.subpages;
                    kept.words |= later.words;
                }
                same
            });
        }
        let after = io.arrival();
        for &Wanted { ppn, subpages, words } in &self.wanted {
            io.read(Read { ppn, subpages, words, policy, cause, after, signal })?;
        }
        Ok(())
    }
}
