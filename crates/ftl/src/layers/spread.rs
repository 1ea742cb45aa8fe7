//! `spftl`, and the baselines `dma-fgm` and `page-fgm`: one layer, three read commands.
//!
//! The layer is [`super::subpage`]: the fine-grained map with a merge buffer of one page. Host reads, the read half of
//! read-modify-write, garbage collection and wear levelling all use one selector. The selector gathers the wanted
//! subpages by physical page (`gather`, Fig. 5 of the paper; cleaning uses the block's bitmap of valid subpages) and
//! chooses the fewest commands for the wanted code words of a page ([`palimpsest_ftl_api::plan::select`]). The names
//! select commands. `page-fgm` senses and transfers whole pages (the paper's pageFTL). `dma-fgm` senses whole pages and
//! transfers the wanted code words (dmaFTL). `spftl` senses and transfers the wanted code words. Source: SPREAD paper,
//! Secs. III to V; docs/systems.md, "spftl, dma-fgm, page-fgm". Ignored: as in `subpage`.

use super::subpage;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_ftl_api::Entry;

pub const PAGE_FGM: Entry = Entry {
    name: "page-fgm",
    about: "SPREAD's baseline: fine-grained map, whole pages are read",
    read: Some(ReadMode::Page),
    ..subpage::ENTRY
};

pub const DMA_FGM: Entry = Entry {
    name: "dma-fgm",
    about: "SPREAD's second baseline: fine-grained map, whole pages are sensed, wanted words transferred",
    read: Some(ReadMode::Dma),
    ..subpage::ENTRY
};

pub const SPFTL: Entry = Entry {
    name: "spftl",
    about: "SPREAD: fine-grained map, only wanted words are sensed and transferred",
    read: Some(ReadMode::Spread),
    ..subpage::ENTRY
};

#[cfg(test)]
mod tests;
