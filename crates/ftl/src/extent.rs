//! The extent of a request by logical pages, and the host's sectors in the contents of a page.

use palimpsest_flash::geometry::{Divisor, Extent, unit_of};
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::Piece;
use std::ops::Range;

/// The logical pages of `extent`, each with its first sector and number of sectors within the page.
#[inline]
pub fn pages(extent: Extent, per_page: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    within(
        extent,
        unit_of(extent.sector, per_page as u32)..unit_of(extent.end() + per_page - 1, per_page as u32),
        per_page,
    )
}

/// As [`pages`], by multiplication.
#[inline]
pub fn pages_by(extent: Extent, per_page: Divisor) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut page = per_page.divide_wide(extent.sector);
    let mut first = (extent.sector - page * u64::from(per_page.value())) as u32;
    let mut left = extent.sectors;
    std::iter::from_fn(move || {
        let sectors = left.min(per_page.value() - first);
        let next = (page as u32, first, sectors);
        (page, first, left) = (page + 1, 0, left - sectors);
        (sectors > 0).then_some(next)
    })
}

#[inline]
fn within(extent: Extent, pages: Range<u64>, per_page: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    pages.map(move |page| {
        let first = extent.sector.max(page * per_page) - page * per_page;
        let end = extent.end().min((page + 1) * per_page) - page * per_page;
        (page as u32, first as u32, (end - first) as u32)
    })
}

/// Puts `sectors` sectors of the host, from sector `first` of logical page `page` on, over the contents of its subpages.
#[inline]
pub fn overlay(io: &mut Io, page: u32, first: u32, sectors: u32, contents: &mut [Data]) {
    if !io.has_contents() {
        return;
    }
    let per_subpage = io.sectors_per_subpage();
    for subpage in first / per_subpage..(first + sectors).div_ceil(per_subpage) {
        let begin = first.max(subpage * per_subpage) - subpage * per_subpage;
        let end = (first + sectors).min((subpage + 1) * per_subpage) - subpage * per_subpage;
        let lsn = page * contents.len() as u32 + subpage;
        let piece = Piece { lsn, first: begin, sectors: end - begin };
        let content = &mut contents[subpage as usize];
        *content = io.written(piece, *content);
    }
}
