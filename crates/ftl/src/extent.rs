//! Splits a request into logical pages, and lays the host's sectors over the contents of a page.

use palimpsest_flash::geometry::{Divisor, Extent, unit_of};
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::Piece;

/// The logical pages of `extent`, each with the first sector and number of sectors within the page.
#[inline]
pub fn pages(extent: Extent, per_page: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    from_page(unit_of(extent.sector, per_page as u32), extent, per_page as u32)
}

/// As [`pages`], with a precomputed divisor instead of a division.
#[inline]
pub fn pages_by(extent: Extent, per_page: Divisor) -> impl Iterator<Item = (u32, u32, u32)> {
    from_page(per_page.divide_wide(extent.sector), extent, per_page.value())
}

/// As [`pages`]; `page` must be the first page of `extent`.
#[inline]
fn from_page(mut page: u64, extent: Extent, per_page: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut first = (extent.sector - page * u64::from(per_page)) as u32;
    let mut left = extent.sectors;
    std::iter::from_fn(move || {
        let sectors = left.min(per_page - first);
        let next = (page as u32, first, sectors);
        (page, first, left) = (page + 1, 0, left - sectors);
        (sectors > 0).then_some(next)
    })
}

/// Overwrites `contents`, the subpages of logical page `page`, with `sectors` host sectors from sector `first` on.
#[inline]
pub fn overlay(io: &mut Io, page: u32, first: u32, sectors: u32, contents: &mut [Data]) {
    if !io.host.has_contents() {
        return;
    }
    let per_subpage = io.host.sectors_per_subpage();
    for subpage in first / per_subpage..(first + sectors).div_ceil(per_subpage) {
        let begin = first.max(subpage * per_subpage) - subpage * per_subpage;
        let end = (first + sectors).min((subpage + 1) * per_subpage) - subpage * per_subpage;
        let lsn = page * contents.len() as u32 + subpage;
        let piece = Piece { lsn, first: begin, sectors: end - begin };
        let content = &mut contents[subpage as usize];
        *content = io.written(piece, *content);
    }
}

#[cfg(test)]
mod tests;
