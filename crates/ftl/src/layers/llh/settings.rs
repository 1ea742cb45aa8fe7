//! The keys of `llh`, their checks, and the drives that the model suite draws for the layer.

use super::super::hotcold;
use super::code;
use super::threshold;
pub use super::threshold::ThresholdRule;
use crate::log::settings::{
    COLLECTION, GATHER, LEVELING, LogSettings, READ, STATIC_LEVELING, WRITE_POLICY, WritePolicy, classifier_keys,
    keys_of,
};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::blocks::{BlockCount, format_blocks, parse_blocks};
use palimpsest_ftl_api::keys::{Key, Notated, Notation, Rule, SHARE, Value, ValueType, near};
use palimpsest_ftl_api::{Model, Proposal, Unfit, keys, refuse_if};
use palimpsest_wom as wom;

const CODING: Rule = Rule {
    // The engine counts a time with 32 bits.
    holds: |value| matches!(value, Value::Time(time) if *time <= 4_000_000_000),
    expected: "a page is coded in milliseconds at the most; expected 4s or less",
};

/// A rule of this layer moves the threshold.
const BUILT_IN: &str = "ftl.threshold_rule = paper|published";

keys! {
    /// The settings of `llh`, and the settings that it shares.
    #[derive(Debug, Clone)]
    pub struct LlhSettings;

    /// The keys of reuse.
    group pub KEYS {
        /// what moves the threshold of partially-used blocks: each victim, as in the paper, or the rule of its authors'
        /// code; or a class in Python, FILE.py:CLASS
        pub threshold_rule: ThresholdRule = "ftl.threshold_rule", threshold::KIND, "paper";
        /// partially-used blocks of a bank at the start: OP/N of its spare blocks, or blocks
        pub threshold_pu: ThresholdPu = "ftl.threshold_pu", ThresholdPu::KIND, "OP/2";
        /// what that threshold rises to at most: OP/N of the spare blocks of a bank, or blocks; never all of them
        pub threshold_cap: ThresholdPu = "ftl.threshold_cap", ThresholdPu::KIND, "OP/1";
        /// collections whose mean valid count moves that threshold; 0: it never moves
        pub threshold_window: u32 = "ftl.threshold_window", Count { min: 0, max: 1000 }, "5",
            needs[BUILT_IN];
        /// collections in a row that point the same way before that threshold moves
        pub threshold_steps: u32 = "ftl.threshold_steps", Count { min: 1, max: 1000 }, "1",
            needs[BUILT_IN];
        /// blocks that the threshold does not fall below (what it starts with may be less)
        pub threshold_floor: u32 = "ftl.threshold_floor", Count { min: 0, max: 1 << 24 }, "0",
            needs[BUILT_IN];
        /// whether a partially-used block without a valid page is reused at once, however few wait
        pub reuse_empty: bool = "ftl.reuse_empty", Flag, "false";
        /// share of part.endurance in which low pages are reused
        pub safe_life: f64 = "ftl.safe_life", SHARE, "40%";
        /// write-once-memory code of second writes
        pub wom: String = "ftl.wom", CODE_NAME, "polar";
        /// share of part.spare_size that the code may take, which first writes must leave erased
        pub wom_spare: f64 = "ftl.wom_spare", SHARE, "100%";
        /// spare of a page that the error correction of a second write takes, and the code may not
        pub ecc_spare: u32 = "ftl.ecc_spare", Bytes { min: 0, max: 1 << 20 }, "0B";
        /// scramblings of a first write, of which the one that leaves most cells writable is taken; 16: four bits of
        /// spare
        pub wom_scramblings: u32 = "ftl.wom_scramblings", Count { min: 1, max: 16 }, "1";
        /// probability that a second write cannot be encoded; auto: that of the code; with payload bytes the code
        /// decides
        pub wom_failure: Option<f64> = "ftl.wom_failure", ShareOr("auto"), "auto";
        /// whether the next data of the stream tries the page of a failed encoding again, as in the authors' code, or
        /// it is left
        pub wom_retry: bool = "ftl.wom_retry", Flag, "false";
        /// time of an encoding, before the second program of a page
        pub wom_encode_time: Nanos = "ftl.wom_encode_time", Time, "0ns", rules[CODING];
        /// time of a decoding, after the read of a coded page
        pub wom_decode_time: Nanos = "ftl.wom_decode_time", Time, "0ns", rules[CODING];
        /// whether blocks of cold data are partially used and reused, too
        pub reuse_cold: bool = "ftl.reuse_cold", Flag, "false";
    }

    with settings {
        /// The settings of every layer.
        pub log: LogSettings = LogSettings::new(settings);
        /// How the layer buffers and cleans.
        pub policy: WritePolicy = WritePolicy::new(settings);
    }
}

/// All keys that the layer reads.
pub fn keys() -> Vec<&'static Key> {
    [keys_of(&[COLLECTION, LEVELING, STATIC_LEVELING, READ, GATHER, WRITE_POLICY, KEYS]), classifier_keys()].concat()
}

/// Partially-used blocks of a bank at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdPu {
    /// The bank's spare blocks, divided by this.
    SpareOver(u32),
    /// A number of blocks.
    Blocks(u32),
}

impl Notated for ThresholdPu {
    const EXPECTED: &'static str = "\"OP/2\", \"OP/4\" or blocks such as \"20 blocks\"";

    fn parse(text: &str) -> Parsed<ThresholdPu> {
        let found = match text.strip_prefix("OP/") {
            Some(parts) => parts.parse().ok().filter(|&parts| parts > 0).map(ThresholdPu::SpareOver),
            None => match parse_blocks(text) {
                Ok(BlockCount::Blocks(blocks)) => Some(ThresholdPu::Blocks(blocks)),
                _ => None,
            },
        };
        found.ok_or_else(|| format!("\"{}\" is no threshold; expected {}", shown(text), Self::EXPECTED))
    }

    fn text(&self) -> String {
        match self {
            ThresholdPu::SpareOver(parts) => format!("OP/{parts}"),
            ThresholdPu::Blocks(blocks) => format_blocks(BlockCount::Blocks(*blocks)),
        }
    }
}

const CODE_NAME: ValueType = ValueType::Notation(&Notation { words: codes, read: code_name, expected: expected_codes });

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

/// Checks that the part allows reuse of low pages, and that the code fits the pages.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let part = proposal.part;
    if !part.reusable() {
        let unfit = Unfit::new(&["ftl.name", "part.cell", "part.order", "part.nop"], "llh programs low pages twice");
        let pages = [("part.cell", "mlc"), ("part.order", "low-low-high"), ("part.nop", "2")];
        return Err(unfit.or(&[("ssd.part", "mlc-8k")]).or(&pages));
    }
    refuse_if!(part.subpages_per_page() < 2 => "ftl.name", "part.page_size", "part.subpage_size";
        "a second write stores half a page, so llh needs pages of two subpages at least");
    let keys = ["ftl.wom", "ftl.wom_spare", "ftl.ecc_spare", "part.page_size", "part.spare_size"];
    let codes = ["table", "polar-repair", "fountain"];
    let with_code = |unfit: Unfit, code: &&str| unfit.or(&[("ftl.wom", *code)]);
    code::check(part, &LlhSettings::new(proposal.settings))
        .map_err(|what| codes.iter().fold(Unfit::new(&keys, what), with_code))
}

/// Parts with reusable low pages, and each option.
pub const MODEL: Model = Model {
    needs: &["part.cell=mlc", "part.order=low-low-high", "part.nop=2", "part.spare_size=640B"],
    varies,
    subpages_per_page: 2,
    banked: true,
    ..Model::ANY
};

fn one_of(rng: &mut Rng, key: &str, choices: &[&str]) -> String {
    format!("{key}={}", choices[rng.below(choices.len() as u64) as usize])
}

fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let streams = drawn.iter().any(|setting| setting == "ftl.streams=3");
    let both = hotcold::varies(rng);
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
