//! The extent of a request by logical pages, and the host's sectors in the contents of a page.

use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::Piece;

/// The logical pages of `extent`, each with its first sector and number of sectors within the page.
#[inline]
pub fn pages(extent: Extent, per_page: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    (extent.sector / per_page..extent.end().div_ceil(per_page)).map(move |page| {
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
