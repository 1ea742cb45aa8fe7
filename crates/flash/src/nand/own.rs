//! Bytes that a layer stores for itself in flash, with any payload: in the subpages of a page, and in its out-of-band
//! spare area. A code for second writes stores there the bits that do not fit the cells.
//!
//! Only stored bytes take memory. Ignored: their time, because reads and programs are timed by the page, spare area
//! included.

use super::{Nand, SubpageMask};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of the layer's own that are programmed with a page.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// Bytes in the programmed subpages, from the first on; they must fit.
    pub page: &'a [u8],
    /// Bytes in the spare area; if empty, the area is unchanged.
    pub spare: &'a [u8],
}

impl Own<'_> {
    /// No bytes.
    pub const NONE: Own<'static> = Own { page: &[], spare: &[] };

    /// Whether there are no bytes.
    #[inline]
    pub fn is_none(self) -> bool {
        self.page.is_empty() && self.spare.is_empty()
    }
}

/// The bytes of all pages.
#[derive(Default)]
pub(super) struct OwnStore {
    /// By physical subpage.
    subpages: BTreeMap<u32, Box<[u8]>>,
    /// By physical page, from the first byte of the spare area on.
    spare: BTreeMap<u32, Box<[u8]>>,
    /// Memory of erased subpages, for others of the same size.
    erased: Vec<Box<[u8]>>,
}

crate::state!(OwnStore { subpages, spare } built { erased });

/// Subpages whose memory is kept.
const KEPT: usize = 1 << 14;

impl OwnStore {
    /// Whether any subpage holds bytes.
    #[inline]
    pub fn has_subpages(&self) -> bool {
        !self.subpages.is_empty()
    }

    pub fn subpage(&self, psn: u32) -> Option<&[u8]> {
        self.subpages.get(&psn).map(AsRef::as_ref)
    }

    pub fn spare(&self, ppn: u32) -> Option<&[u8]> {
        self.spare.get(&ppn).map(AsRef::as_ref)
    }

    /// Whether storing `bytes` in the spare area of page `ppn` takes cells from 1 to 0 only.
    pub fn spare_only_clears(&self, ppn: u32, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        // Cells beyond `bytes` do not change.
        self.spare(ppn).is_none_or(|old| old.iter().zip(bytes).all(|(old, new)| new & !old == 0))
    }

    pub fn store<'a>(&mut self, subpages: impl Iterator<Item = (u32, &'a [u8])>) {
        for (psn, bytes) in subpages {
            let kept = self.erased.pop().filter(|kept| kept.len() == bytes.len());
            let kept = kept.map_or_else(
                || bytes.into(),
                |mut kept| {
                    kept.copy_from_slice(bytes);
                    kept
                },
            );
            self.subpages.insert(psn, kept);
        }
    }

    pub fn store_spare(&mut self, ppn: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.spare.insert(ppn, bytes.into());
        }
    }

    /// Removes the bytes of `pages`, of `width` subpages each.
    pub fn erase(&mut self, pages: Range<u32>, width: u32) {
        if !self.subpages.is_empty() {
            let erased = self.subpages.extract_if(pages.start * width..pages.end * width, |_, _| true);
            self.erased.extend(erased.map(|(_, bytes)| bytes));
            self.erased.truncate(KEPT);
        }
        if !self.spare.is_empty() {
            self.spare.extract_if(pages, |_, _| true).for_each(drop);
        }
    }
}

/// Saved bytes of consecutive pages.
#[derive(Default)]
pub(super) struct SavedOwn {
    subpages: Vec<(u32, Box<[u8]>)>,
    spare: Vec<(u32, Box<[u8]>)>,
}

crate::state!(SavedOwn { subpages, spare });

impl SavedOwn {
    pub fn subpage(&self, psn: u32) -> Option<&[u8]> {
        self.subpages.iter().find(|(number, _)| *number == psn).map(|(_, bytes)| &**bytes)
    }

    pub fn spare(&self, ppn: u32) -> Option<&[u8]> {
        self.spare.iter().find(|(number, _)| *number == ppn).map(|(_, bytes)| &**bytes)
    }
}

impl OwnStore {
    /// Saves the bytes of `pages`, of `width` subpages each.
    pub fn save(&self, pages: Range<u32>, width: u32) -> SavedOwn {
        let copy = |kept: &BTreeMap<u32, Box<[u8]>>, range: Range<u32>| {
            kept.range(range).map(|(&number, bytes)| (number, bytes.clone())).collect()
        };
        SavedOwn {
            subpages: copy(&self.subpages, pages.start * width..pages.end * width),
            spare: copy(&self.spare, pages),
        }
    }

    /// Adds the saved bytes.
    pub fn put(&mut self, saved: &SavedOwn) {
        self.subpages.extend(saved.subpages.iter().cloned());
        self.spare.extend(saved.spare.iter().cloned());
    }

    /// Restores `pages` to `saved`.
    pub fn restore(&mut self, pages: Range<u32>, width: u32, saved: SavedOwn) {
        self.erase(pages, width);
        self.subpages.extend(saved.subpages);
        self.spare.extend(saved.spare);
    }
}

impl Nand {
    /// Bytes of the layer or of a code in the out-of-band spare area of page `ppn`.
    pub fn spare(&self, ppn: u32) -> Option<&[u8]> {
        self.own.spare(ppn)
    }

    /// Whether subpages of some page hold bytes of the layer's own.
    #[inline]
    pub fn has_own(&self) -> bool {
        self.own.has_subpages()
    }

    /// Bytes of the layer's own in physical subpage `psn`; the caller must have read the subpage.
    pub fn own(&self, psn: u32) -> Option<&[u8]> {
        self.own.subpage(psn)
    }

    /// Copies the bytes of the layer's own in page `ppn` to `bytes`.
    pub fn own_of(&self, ppn: u32, bytes: &mut Vec<u8>) {
        let first = ppn * self.geometry.subpages_per_page;
        bytes.clear();
        (first..first + self.geometry.subpages_per_page).filter_map(|psn| self.own(psn)).for_each(|own| {
            bytes.extend_from_slice(own);
        });
    }

    #[cold]
    pub(super) fn store_own(&mut self, ppn: u32, written: SubpageMask, own: Own<'_>) {
        assert!(own.spare.len() <= self.part.spare_bytes as usize, "the part has no spare area for so many bytes");
        let first = ppn * self.geometry.subpages_per_page;
        let subpages = (0..self.geometry.subpages_per_page).filter(|index| written >> index & 1 == 1);
        let mut pieces = own.page.chunks(self.geometry.subpage_bytes as usize);
        self.own.store(subpages.zip(&mut pieces).map(|(index, piece)| (first + index, piece)));
        assert!(pieces.next().is_none(), "more bytes of the layer's own than subpages are programmed");
        self.own.store_spare(ppn, own.spare);
    }
}
