//! Whether the end of a drive's life was necessary. A power cut spoils the pages that the cut tears, and restores
//! trimmed data that was not yet erased, though collection had counted on the space. The smallest drives can lose a
//! page or two, and may end so, if flash shows that no plane has room. Ignored: the number of frontiers over which a
//! layer must spread writes.

use crate::drives::{Shape, entry};
use palimpsest_lab::nand::{Nand, TORN};
use palimpsest_lab::plan::Io;

/// Whether the drive has little more space than the frontiers and the block for collection take. Space that a layer
/// reserves does not count.
pub fn is_tight(shape: &Shape) -> bool {
    let (drive, geometry) = (&shape.drive, &shape.drive.geometry);
    let spare = (geometry.pages() - drive.logical_pages()) / u64::from(geometry.pages_per_block * geometry.planes());
    let entry = entry(&drive.ftl.name);
    let reserved = (entry.reserved)(&drive.ftl, geometry) + drive.kept_blocks() + drive.fixed_single();
    let spare = spare - u64::from(reserved);
    spare < u64::from(entry.frontiers(&drive.ftl)) + 3
}

/// Whether some plane has a collectable block: the block's newest copies fit into the erased pages of the others, and
/// the block has at least one other page. If a layer's data cannot go to another plane, each plane must have one.
pub fn has_room(io: &Io, shape: &Shape) -> bool {
    let (nand, geometry) = (io.nand(), *io.geometry());
    let newest = newest(nand);
    let plane_has_room = |plane: u32| {
        let blocks = plane * geometry.blocks_per_plane..(plane + 1) * geometry.blocks_per_plane;
        let usable: Vec<u32> = blocks.filter(|&block| !nand.is_bad(block) && !nand.is_always_single(block)).collect();
        // A block of single bits has fewer pages, and frees a whole block.
        let is_single = |block: u32| nand.is_single(block) && nand.next_page(block) > 0;
        let single = geometry.pages_per_block / nand.part().stored_bits();
        let size = |block: u32| if is_single(block) { single } else { geometry.pages_per_block };
        let left_out = |block: u32| nand.left_out(block).len() as u32;
        let erased = |block: u32| size(block).saturating_sub(nand.next_page(block)) + left_out(block);
        let free: u32 = usable.iter().map(|&block| erased(block)).sum();
        usable.into_iter().any(|block| {
            let first = block * geometry.pages_per_block * geometry.subpages_per_page;
            let held = (first..first + geometry.pages_per_block * geometry.subpages_per_page)
                .filter(|&psn| newest.get(nand.logical(psn) as usize) == Some(&Some(psn)));
            let pages = (held.count() as u32).div_ceil(geometry.subpages_per_page);
            let given_back =
                if is_single(block) { geometry.pages_per_block } else { nand.next_page(block) - left_out(block) };
            pages < given_back && pages <= free - erased(block)
        })
    };
    let layer = entry(&shape.drive.ftl.name);
    let mut planes = 0..geometry.planes();
    match layer.below.unwrap_or(layer).model.banked {
        true => planes.all(plane_has_room),
        false => planes.any(plane_has_room),
    }
}

/// For each logical subpage, the physical subpage with the newest copy.
fn newest(nand: &Nand) -> Vec<Option<u32>> {
    let subpages = nand.geometry().subpages() as u32;
    let mut newest: Vec<Option<u32>> = vec![None; subpages as usize];
    for psn in (0..subpages).filter(|&psn| nand.logical(psn) < TORN) {
        let copy = &mut newest[nand.logical(psn) as usize];
        if copy.is_none_or(|other| nand.sequence(psn) > nand.sequence(other)) {
            *copy = Some(psn);
        }
    }
    newest
}

/// Content of flash, for messages: for each page of each block `v` newest copies, `o` older ones, `x` nothing, `.`
/// erased.
pub fn picture(io: &Io) -> String {
    let (nand, geometry) = (io.nand(), *io.geometry());
    let (newest, width) = (newest(nand), geometry.subpages_per_page);
    let erased = |ppn: u32| {
        let (block, page) = (ppn / geometry.pages_per_block, ppn % geometry.pages_per_block);
        page >= nand.next_page(block) || nand.left_out(block).contains(&page)
    };
    let subpage = |psn: u32| match nand.logical(psn) {
        _ if erased(psn / width) => '.',
        logical if logical >= TORN => 'x',
        logical if newest[logical as usize] == Some(psn) => 'v',
        _ => 'o',
    };
    let page = |ppn: u32| (ppn * width..(ppn + 1) * width).map(subpage).chain([' ']).collect::<String>();
    let block = |block: u32| {
        let first = block * geometry.pages_per_block;
        format!("\nblock {block}: {}", (first..first + geometry.pages_per_block).map(page).collect::<String>())
    };
    (0..geometry.blocks()).map(block).collect()
}
