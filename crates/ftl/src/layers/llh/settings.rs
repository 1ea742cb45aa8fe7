//! The keys of `llh`, their checks, and the drives that the model suite draws for it.

use super::code;
pub use super::threshold::ThresholdRule;
use crate::log::settings::{COLLECTION, GATHER, LEVELING, LogSettings, READ, STATIC_LEVELING, keys_of};
use crate::log::streams;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::blocks::{BlockCount, format_blocks, parse_blocks};
use palimpsest_ftl_api::keys::{Key, Notation, SHARE, ValueType, near};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Model, Proposal, Unfit};
use palimpsest_wom as wom;

/// Longer than any coding takes; what the engine keeps of a time has 32 bits.
const LONGEST_CODING: Nanos = 4_000_000_000;

/// The keys that the baseline has, too.
pub const BASELINE_KEYS: &[Key] = &[
    Key::new(
        "ftl.open_block",
        ValueType::Choice(&["after", "before"]),
        "after",
        "a clean block is opened after cleaning for it, or before, which leaves one more clean",
    ),
    Key::new(
        "ftl.absorb",
        ValueType::Flag,
        "true",
        "whether a write replaces what waits in a merge buffer; else both take a place (with buffer.ack = buffer)",
    ),
];

/// All keys that the baseline reads.
pub fn baseline_keys() -> Vec<&'static Key> {
    [keys_of(&[COLLECTION, LEVELING, STATIC_LEVELING, READ, GATHER, BASELINE_KEYS]), streams::keys()].concat()
}

/// The other keys.
pub const KEYS: &[Key] = &[
    Key::new(
        "ftl.threshold_rule",
        ValueType::Choice(&["paper", "published"]),
        "paper",
        "what moves the threshold of partially-used blocks: each victim, as in the paper, or the rule of its authors' code",
    ),
    Key::new(
        "ftl.threshold_pu",
        ValueType::Notation(&Notation {
            words: Vec::new,
            read: |text| threshold(text).map(format_threshold),
            expected: || THRESHOLD.into(),
        }),
        "OP/2",
        "partially-used blocks of a bank at the start: OP/N of its spare blocks, or blocks",
    ),
    Key::new(
        "ftl.threshold_cap",
        ValueType::Notation(&Notation {
            words: Vec::new,
            read: |text| threshold(text).map(format_threshold),
            expected: || THRESHOLD.into(),
        }),
        "OP/1",
        "what that threshold rises to at most: OP/N of the spare blocks of a bank, or blocks; never all of them",
    ),
    Key::new(
        "ftl.threshold_window",
        ValueType::Count { min: 0, max: 1000 },
        "5",
        "collections whose mean valid count moves that threshold; 0: it never moves",
    ),
    Key::new(
        "ftl.threshold_steps",
        ValueType::Count { min: 1, max: 1000 },
        "1",
        "collections in a row that point the same way before that threshold moves",
    ),
    Key::new(
        "ftl.threshold_floor",
        ValueType::Count { min: 0, max: 1 << 24 },
        "0",
        "blocks that the threshold does not fall below (what it starts with may be less)",
    ),
    Key::new(
        "ftl.reuse_empty",
        ValueType::Flag,
        "false",
        "whether a partially-used block without a valid page is reused at once, however few wait",
    ),
    Key::new("ftl.safe_life", SHARE, "40%", "share of part.endurance in which low pages are reused"),
    Key::new(
        "ftl.wom",
        ValueType::Notation(&Notation { words: codes, read: code_name, expected: expected_codes }),
        "polar",
        "write-once-memory code of second writes",
    ),
    Key::new(
        "ftl.wom_spare",
        SHARE,
        "100%",
        "share of part.spare_size that the code may take, which first writes must leave erased",
    ),
    Key::new(
        "ftl.ecc_spare",
        ValueType::Bytes { min: 0, max: 1 << 20 },
        "0B",
        "spare of a page that the error correction of a second write takes, and the code may not",
    ),
    Key::new(
        "ftl.wom_scramblings",
        ValueType::Count { min: 1, max: 16 },
        "1",
        "scramblings of a first write, of which the one that leaves most cells writable is taken; 16: four bits of spare",
    ),
    Key::new(
        "ftl.wom_failure",
        ValueType::ShareOr("auto"),
        "auto",
        "probability that a second write cannot be encoded; auto: that of the code; with payload bytes the code decides",
    ),
    Key::new(
        "ftl.wom_retry",
        ValueType::Flag,
        "false",
        "whether the next data of the stream tries the page of a failed encoding again, as in the authors' code, or it is left",
    ),
    Key::new("ftl.wom_encode_time", ValueType::Time, "0ns", "time of an encoding, before the second program of a page"),
    Key::new("ftl.wom_decode_time", ValueType::Time, "0ns", "time of a decoding, after the read of a coded page"),
    Key::new(
        "ftl.reuse_cold",
        ValueType::Flag,
        "false",
        "whether blocks of cold data are partially used and reused, too",
    ),
];

const THRESHOLD: &str = "\"OP/2\", \"OP/4\" or blocks such as \"20 blocks\"";

/// Partially-used blocks of a bank at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdPu {
    /// The bank's spare blocks, divided by this.
    SpareOver(u32),
    /// So many blocks.
    Blocks(u32),
}

/// The values of [`KEYS`], and those that every layer has.
#[derive(Debug, Clone)]
pub struct LlhSettings {
    /// Those of every layer.
    pub log: LogSettings,
    /// Whether a clean block is opened before cleaning.
    pub open_before: bool,
    /// Whether a write replaces what waits in a buffer.
    pub absorb: bool,
    /// What moves the threshold of partially-used blocks.
    pub threshold_rule: ThresholdRule,
    /// Partially-used blocks of a bank at the start.
    pub threshold_pu: ThresholdPu,
    /// What that threshold rises to at most.
    pub threshold_cap: ThresholdPu,
    /// Collections whose mean valid count moves that threshold; 0: it never moves.
    pub threshold_window: u32,
    /// Collections in a row that point the same way before that threshold moves.
    pub threshold_steps: u32,
    /// Blocks that it does not fall below.
    pub threshold_floor: u32,
    /// Whether a partially-used block without a valid page is reused at once, however few wait.
    pub reuse_empty: bool,
    /// Share of the part's endurance in which low pages are reused.
    pub safe_life: f64,
    /// Name of the write-once-memory code.
    pub wom: String,
    /// Share of the part's spare area that the code may take.
    pub wom_spare: f64,
    /// Bytes of a page's spare area that the code may not take.
    pub ecc_spare: u32,
    /// Scramblings of a first write, of which the best is taken.
    pub wom_scramblings: u32,
    /// Probability that a second write cannot be encoded, where no real encoder decides; `None`: that of the code.
    pub wom_failure: Option<f64>,
    /// Whether hot data tries the page of a failed encoding again.
    pub wom_retry: bool,
    /// Time of an encoding.
    pub wom_encode_time: Nanos,
    /// Time of a decoding.
    pub wom_decode_time: Nanos,
    /// Whether cold blocks are partially used and reused, too.
    pub reuse_cold: bool,
}

impl LlhSettings {
    /// Those of `settings`.
    pub fn new(settings: &Settings) -> Self {
        LlhSettings {
            log: LogSettings::new(settings),
            open_before: settings.choice("ftl.open_block", &[("after", false), ("before", true)]),
            absorb: settings.flag("ftl.absorb"),
            threshold_rule: settings.choice(
                "ftl.threshold_rule",
                &[("paper", ThresholdRule::Paper), ("published", ThresholdRule::Published)],
            ),
            threshold_pu: threshold(&settings.text("ftl.threshold_pu")).expect("the configuration read a threshold"),
            threshold_cap: threshold(&settings.text("ftl.threshold_cap")).expect("the configuration read a threshold"),
            threshold_window: settings.small("ftl.threshold_window"),
            threshold_steps: settings.small("ftl.threshold_steps"),
            threshold_floor: settings.small("ftl.threshold_floor"),
            reuse_empty: settings.flag("ftl.reuse_empty"),
            safe_life: settings.ratio("ftl.safe_life"),
            wom: settings.text("ftl.wom"),
            wom_spare: settings.ratio("ftl.wom_spare"),
            ecc_spare: settings.small_bytes("ftl.ecc_spare"),
            wom_scramblings: settings.small("ftl.wom_scramblings"),
            wom_failure: settings.share_or_word("ftl.wom_failure"),
            wom_retry: settings.flag("ftl.wom_retry"),
            wom_encode_time: settings.time("ftl.wom_encode_time"),
            wom_decode_time: settings.time("ftl.wom_decode_time"),
            reuse_cold: settings.flag("ftl.reuse_cold"),
        }
    }
}

fn threshold(text: &str) -> Parsed<ThresholdPu> {
    let expected = || format!("\"{}\" is no threshold; expected {THRESHOLD}", shown(text));
    match text.strip_prefix("OP/") {
        Some(parts) => match parts.parse() {
            Ok(parts) if parts > 0 => Ok(ThresholdPu::SpareOver(parts)),
            _ => Err(expected()),
        },
        None => match parse_blocks(text) {
            Ok(BlockCount::Blocks(blocks)) => Ok(ThresholdPu::Blocks(blocks)),
            _ => Err(expected()),
        },
    }
}

fn format_threshold(start: ThresholdPu) -> String {
    match start {
        ThresholdPu::SpareOver(parts) => format!("OP/{parts}"),
        ThresholdPu::Blocks(blocks) => format_blocks(BlockCount::Blocks(blocks)),
    }
}

fn codes() -> Vec<&'static str> {
    wom::CODES.iter().map(|entry| entry.name).collect()
}

fn expected_codes() -> String {
    format!("one of {}", codes().join(", "))
}

fn code_name(text: &str) -> Parsed<String> {
    if wom::find(text).is_some() {
        return Ok(text.into());
    }
    let near = near(text, codes().into_iter());
    Err(format!("\"{}\": there is no such code; expected {}{near}", shown(text), expected_codes()))
}

/// Low pages can be reused on some parts only, and by a code that fits their pages.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let part = proposal.part;
    if !part.reusable() {
        let what = "llh programs low pages twice; expected part.cell = mlc, part.order = low-low-high and part.nop of 2 \
                    or more (part mlc-8k has them)";
        return Err(Unfit::new(&["ftl.name", "part.cell", "part.order", "part.nop"], what));
    }
    if part.subpages_per_page() < 2 {
        let what = "a second write stores half a page, so llh needs pages of two subpages at least";
        return Err(Unfit::new(&["ftl.name", "part.page_size", "part.subpage_size"], what));
    }
    for key in ["ftl.wom_encode_time", "ftl.wom_decode_time"] {
        if proposal.settings.time(key) > LONGEST_CODING {
            return Err(Unfit::new(&[key], "a page is coded in milliseconds at the most; expected 4s or less"));
        }
    }
    let keys = ["ftl.wom", "ftl.wom_spare", "ftl.ecc_spare", "part.page_size", "part.spare_size"];
    code::check(part, &LlhSettings::new(proposal.settings)).map_err(|what| Unfit::new(&keys, what))
}

/// Parts whose low pages can be reused, and each option.
pub const MODEL: Model = Model {
    needs: &["part.cell=mlc", "part.order=low-low-high", "part.nop=2", "part.spare_size=640B"],
    varies,
    subpages_per_page: 2,
    banked: true,
    ..Model::ANY
};

/// Each option of the baseline.
pub const BASELINE_MODEL: Model = Model { varies: |rng, _| varies_both(rng), banked: true, ..Model::ANY };

fn one_of(rng: &mut Rng, key: &str, choices: &[&str]) -> String {
    format!("{key}={}", choices[rng.below(choices.len() as u64) as usize])
}

fn varies_both(rng: &mut Rng) -> Vec<String> {
    vec![one_of(rng, "ftl.open_block", &["after", "before"]), one_of(rng, "ftl.absorb", &["true", "false"])]
}

fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let streams = drawn.iter().any(|setting| setting == "ftl.streams=3");
    let both = varies_both(rng);
    let mut one_of = |key: &str, choices: &[&str]| one_of(rng, key, choices);
    let mut varied = vec![
        one_of("part.order", &["low-low-high", "low-low-high", "low-high-low"]),
        one_of("part.nop", &["2", "2", "4"]),
        one_of("part.endurance", &["3000", "3000", "20"]),
        one_of("ftl.threshold_pu", &["OP/2", "OP/2", "OP/4", "0 blocks", "1 block", "100 blocks"]),
        one_of("ftl.threshold_window", &["0", "1", "5"]),
        one_of("ftl.wom_failure", &["0%", "0.25%", "20%", "100%"]),
        one_of("ftl.wom", &codes()),
        one_of("ftl.wom_scramblings", &["1", "1", "4", "16"]),
        one_of("part.spare_size", &["32B", "128B", "640B"]),
        one_of("ftl.reuse_cold", &["false", "false", "true"]),
        one_of("ftl.wom_retry", &["false", "true"]),
        one_of("ftl.wom_encode_time", &["0ns", "20us"]),
        one_of("ftl.wom_decode_time", &["0ns", "20us"]),
        one_of("ftl.threshold_rule", &["paper", "published"]),
        one_of("ftl.threshold_cap", &["OP/1", "OP/2", "1 block"]),
        one_of("ftl.threshold_steps", &["1", "1", "2"]),
        one_of("ftl.threshold_floor", &["0", "0", "1"]),
        one_of("ftl.reuse_empty", &["false", "true"]),
    ];
    varied.extend(both);
    if streams {
        varied.push("ftl.classifier=recency".into());
    }
    varied
}
