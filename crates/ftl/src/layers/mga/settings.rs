//! The keys of `mga`, their checks, and the drives that the model suite draws for the layer.

use super::admission::{self, Threshold};
use super::limits::{self, Merging};
use crate::log::settings::LogSettings;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::is;
use palimpsest_ftl_api::{Model, Proposal, Unfit, keys, refuse_if};

keys! {
    /// The settings of `mga`, and the settings of every layer.
    #[derive(Debug, Clone)]
    pub struct MgaSettings;

    /// The keys of `mga` alone.
    group pub KEYS {
        /// exclusive allocation while the share of fully free pages exceeds this; or a class in Python chooses the
        /// share of each request, FILE.py:CLASS
        pub allocation_threshold: Threshold = "ftl.allocation_threshold", admission::KIND, "30%";
        /// the most physical pages of a logical page after 0, 1 to 2, 3 to 5 and more reads; off: no write merges; or
        /// a class in Python chooses, FILE.py:CLASS
        pub merging: Merging = "ftl.merge_limits", limits::KIND, "4/3/2/1";
        /// whether a merge sets the read count of its logical page to 0
        pub merge_resets: bool = "ftl.merge_resets", Flag, "false";
        /// whether a program of some subpages transfers the whole page, padding included, over the bus
        pub page_padding: bool = "ftl.page_padding", Flag, "false";
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

/// Rejects low pages first on a part without pairs in that order, and keys of merging where nothing merges.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let settings = MgaSettings::new(proposal.settings);
    let keys = [
        ("ftl.merge_on_read", settings.merge_on_read),
        ("ftl.merge_resets", settings.merge_resets),
        ("ftl.read_count_aging", settings.read_count_aging > 0),
    ];
    for (key, is_set) in keys {
        refuse_if!(is_set && settings.merging == Merging::Off => key, "ftl.merge_limits"
            => ["ftl.merge_limits" = "4/3/2/1"]; "reads are counted for merges alone, and nothing merges");
    }
    let low_first = settings.low_pages_first;
    refuse_if!(low_first && !proposal.part.order.pairs() => "ftl.low_pages_first", "part.order"
        => ["part.order" = "low-low-high"], ["part.order" = "low-low-high", "part.cell" = "mlc"];
        "low pages can be taken first in the low-low-high order only");
    let (log, blocks) = (LogSettings::new(proposal.settings), proposal.geometry.blocks_per_plane);
    let single = log.slc_cache.of(blocks) + log.slc_fixed.of(blocks);
    refuse_if!(low_first && single > 0 => "ftl.low_pages_first", "ftl.slc_cache", "ftl.slc_fixed"
        => ["ftl.low_pages_first" = "false"]; "blocks with one bit a cell have no low pages");
    refuse_if!(low_first && log.collects_superblocks => "ftl.low_pages_first", "ftl.superblocks"
        => ["ftl.low_pages_first" = "false"], ["ftl.superblocks" = "allocated"];
        "after a power cut the low pages of the dies of a superblock end at different pages, and high pages follow all \
         low ones");
    Ok(())
}

/// Exclusive allocation always, never, or by turns, and each option beyond the paper.
pub const MODEL: Model = Model { varies, ..Model::ANY };

fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let mut other = Rng::new(rng.clone().next_u64(), 0x3e6);
    let merges = other.below(4) > 0;
    let mut one_of =
        |key: &str, choices: &[&str]| format!("ftl.{key}={}", choices[rng.below(choices.len() as u64) as usize]);
    let pairs = drawn.iter().any(|setting| setting == "part.order=low-low-high");
    let mut varied = vec![
        one_of("allocation_threshold", &["0%", "10%", "30%", "30%", "50%", "100%"]),
        one_of("merge_on_read", &["false", "false", "true"]),
        one_of("read_count", &["page", "page", "entry"]),
        one_of("read_count_aging", &["0", "0", "7", "100"]),
        one_of("victim_free", &["false", "true"]),
        one_of("low_pages_first", if pairs { &["false", "true"] } else { &["false"] }),
        format!("ftl.merge_resets={}", other.below(2) == 0),
        format!("ftl.page_padding={}", other.below(2) == 0),
    ];
    if !merges {
        let of_merges = ["ftl.merge_on_read=", "ftl.merge_resets=", "ftl.read_count_aging="];
        varied.retain(|setting| !of_merges.iter().any(|key| setting.starts_with(key)));
        varied.push("ftl.merge_limits=off".into());
    }
    varied
}
