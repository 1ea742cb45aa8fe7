//! The keys of `mga`, their checks, and the drives that the model suite draws for the layer.

use crate::log::settings::LogSettings;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::{SHARE, is};
use palimpsest_ftl_api::{Model, Proposal, Unfit, keys, refuse_if};

keys! {
    /// The settings of `mga`, and the settings of every layer.
    #[derive(Debug, Clone)]
    pub struct MgaSettings;

    /// The keys of `mga` alone.
    group pub KEYS {
        /// exclusive allocation while the share of fully free pages exceeds this
        pub allocation_threshold: f64 = "ftl.allocation_threshold", SHARE, "30%";
        /// whether a read also merges a logical page that is spread over more pages than its read count allows
        pub merge_on_read: bool = "ftl.merge_on_read", Flag, "false";
        /// whose reads are counted: those of every logical page, or of one with a subpage map, as long as it has it
        pub counts_reads_of_pages: bool = "ftl.read_count", Choice(&["page", "entry"]) => is("page"), "page";
        /// read counts halve after this many requests; 0: never
        pub read_count_aging: u64 = "ftl.read_count_aging", Count { min: 0, max: u32::MAX as u64 }, "0";
        /// on mlc, small writes fill the low pages of a block by subpage, its high pages follow
        pub low_pages_first: bool = "ftl.low_pages_first", Flag, "false";
        /// whether free subpages of a victim count as a gain, like invalid ones
        pub victim_free: bool = "ftl.victim_free", Flag, "false";
    }

    with settings {
        /// The settings of every layer.
        pub log: LogSettings = LogSettings::new(settings);
    }
}

/// Rejects low pages first on a part without pairs in that order.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let low_first = MgaSettings::new(proposal.settings).low_pages_first;
    refuse_if!(low_first && !proposal.part.order.pairs() => "ftl.low_pages_first", "part.order";
        "low pages can be taken first in the low-low-high order only; expected part.order = \"low-low-high\"");
    let (log, blocks) = (LogSettings::new(proposal.settings), proposal.geometry.blocks_per_plane);
    let single = log.slc_cache.of(blocks) + log.slc_fixed.of(blocks);
    refuse_if!(low_first && single > 0 => "ftl.low_pages_first", "ftl.slc_cache", "ftl.slc_fixed";
        "blocks with one bit a cell have no low pages; expected ftl.low_pages_first = false, or no fast cache");
    refuse_if!(low_first && log.collects_superblocks => "ftl.low_pages_first", "ftl.superblocks";
        "after a power cut the low pages of the dies of a superblock end at different pages, and high pages follow all \
         low ones; expected ftl.low_pages_first = false, or ftl.superblocks = \"allocated\"");
    Ok(())
}

/// Exclusive allocation always, never, or by turns, and each option beyond the paper.
pub const MODEL: Model = Model { varies, ..Model::ANY };

fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let mut one_of =
        |key: &str, choices: &[&str]| format!("ftl.{key}={}", choices[rng.below(choices.len() as u64) as usize]);
    let pairs = drawn.iter().any(|setting| setting == "part.order=low-low-high");
    vec![
        one_of("allocation_threshold", &["0%", "10%", "30%", "30%", "50%", "100%"]),
        one_of("merge_on_read", &["false", "false", "true"]),
        one_of("read_count", &["page", "page", "entry"]),
        one_of("read_count_aging", &["0", "0", "7", "100"]),
        one_of("victim_free", &["false", "true"]),
        one_of("low_pages_first", if pairs { &["false", "true"] } else { &["false"] }),
    ]
}
