//! The keys of `mga`, what they refuse, and the drives that its model suite draws.

use crate::log::settings::LogSettings;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::{Key, SHARE, ValueType};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Model, Proposal, Unfit};

/// The keys.
pub const KEYS: &[Key] = &[
    Key::new(
        "ftl.allocation_threshold",
        SHARE,
        "30%",
        "exclusive allocation while the share of fully free pages exceeds this",
    ),
    Key::new(
        "ftl.merge_on_read",
        ValueType::Flag,
        "false",
        "whether a read also merges a logical page that is spread over more pages than its read count allows",
    ),
    Key::new(
        "ftl.read_count",
        ValueType::Choice(&["page", "entry"]),
        "page",
        "whose reads are counted: those of every logical page, or of one with a subpage map, as long as it has it",
    ),
    Key::new(
        "ftl.read_count_aging",
        ValueType::Count { min: 0, max: u32::MAX as u64 },
        "0",
        "read counts halve after this many requests; 0: never",
    ),
    Key::new(
        "ftl.low_pages_first",
        ValueType::Flag,
        "false",
        "on mlc, small writes fill the low pages of a block by subpage, its high pages follow",
    ),
    Key::new(
        "ftl.victim_free",
        ValueType::Flag,
        "false",
        "whether free subpages of a victim count as a gain, like invalid ones",
    ),
];

/// The values of [`KEYS`], and those that every layer has.
#[derive(Debug, Clone)]
pub struct MgaSettings {
    /// Those of every layer.
    pub log: LogSettings,
    /// Exclusive allocation while the share of fully free pages exceeds this.
    pub allocation_threshold: f64,
    /// Whether a read, too, merges a logical page that is in more pages than its read count allows.
    pub merge_on_read: bool,
    /// Whether reads are counted of every logical page, not of one with a subpage map only.
    pub counts_reads_of_pages: bool,
    /// Read counts halve after this many requests; 0: never.
    pub read_count_aging: u64,
    /// Whether small writes fill the low pages of a block before its high pages are programmed.
    pub low_pages_first: bool,
    /// Whether victims are chosen by subpages that are not valid, free ones among them, instead of invalid ones.
    pub victim_free: bool,
}

impl MgaSettings {
    /// Those of `settings`.
    pub fn new(settings: &Settings) -> Self {
        MgaSettings {
            log: LogSettings::new(settings),
            allocation_threshold: settings.ratio("ftl.allocation_threshold"),
            merge_on_read: settings.flag("ftl.merge_on_read"),
            counts_reads_of_pages: settings.choice("ftl.read_count", &[("page", true), ("entry", false)]),
            read_count_aging: settings.count("ftl.read_count_aging"),
            low_pages_first: settings.flag("ftl.low_pages_first"),
            victim_free: settings.flag("ftl.victim_free"),
        }
    }
}

/// Refuses low pages first on a part without pairs in that order.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    if !proposal.settings.flag("ftl.low_pages_first") || proposal.part.order.pairs() {
        return Ok(());
    }
    let what = "low pages can be taken first in the low-low-high order only; expected part.order = \"low-low-high\"";
    Err(Unfit::new(&["ftl.low_pages_first", "part.order"], what))
}

/// Exclusive allocation always, never, or by turns, and what goes beyond the paper.
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
