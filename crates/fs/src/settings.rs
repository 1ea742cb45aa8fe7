//! The keys of file systems, and the drives that the model suite draws for them.

use crate::schemes;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::{Key, Notation, SHARE, ValueType, near};
use palimpsest_ftl_api::settings::Settings;

static KEYS: &[Key] = &[
    Key::new(
        "fs.dispatch_overhead",
        ValueType::Time,
        "3us",
        "DRAM permission exchange between FTL modules, once for each group of commands to one channel, one at a time",
    ),
    Key::new(
        "fs.files",
        ValueType::Choice(&["names", "addresses"]),
        "names",
        "file of a request: the named file (else the file of its range), or always the file of its range",
    ),
    Key::new(
        "fs.file_size",
        ValueType::Bytes { min: 4096, max: 1 << 40 },
        "64MiB",
        "range of addresses that is one file, for requests without a file name",
    ),
    Key::new("fs.gc_start", SHARE, "5%", "collection starts when less of the space is free"),
    Key::new("fs.gc_gain", SHARE, "10%", "collection stops when this much more of the space is free"),
    Key::new("fs.commit_interval", ValueType::Time, "5s", "how long a change may wait for a commit"),
    COMMIT,
];

static TURN: Key = Key::new(
    "fs.turn",
    ValueType::Choice(&["arrival", "address"]),
    "arrival",
    "turns of schemes that take channels in turn: by arrival, or by the address of the page on the disk (static)",
);

const COMMIT: Key = Key::new(
    "fs.commit",
    ValueType::Choice(&["log", "tree"]),
    "log",
    "contents of a commit: a log of the changes, and the tree of inodes and pointers now and then, or always the tree",
);

static DISCARD: Key = Key::new(
    "fs.discard",
    ValueType::Choice(&["auto", "block", "page"]),
    "auto",
    "trimmed free space: whole blocks, or pages after the commit that freed them; auto: pages if the layer below \
         maps subpages",
);

static SCHEME: Key = Key::new(
    "fs.scheme",
    ValueType::Notation(&Notation { words: schemes, read: scheme, expected: expected_schemes }),
    "rr",
    "rule that chooses the channel of each page of a write",
);

/// The keys of a file system above a layer that unmaps pages.
pub fn keys_with_discards() -> Vec<&'static Key> {
    KEYS.iter().chain([&DISCARD]).collect()
}

/// As [`keys_with_discards`], with several channels that the layer does not choose by the address.
pub fn keys_with_turns() -> Vec<&'static Key> {
    [&TURN].into_iter().chain(keys_with_discards()).collect()
}

/// The keys of a file system that chooses channels.
pub fn keys_with_schemes() -> Vec<&'static Key> {
    let of_schemes = schemes::SCHEMES.iter().flat_map(|entry| entry.keys);
    [&SCHEME, &TURN].into_iter().chain(of_schemes).chain(KEYS).collect()
}

fn schemes() -> Vec<&'static str> {
    schemes::SCHEMES.iter().map(|entry| entry.name).collect()
}

fn expected_schemes() -> String {
    format!("one of {}", schemes().join(", "))
}

fn scheme(text: &str) -> Parsed<String> {
    if schemes().contains(&text) {
        return Ok(text.into());
    }
    let near = near(text, schemes().into_iter());
    Err(format!("\"{}\" is not known; expected {}{near}", shown(text), expected_schemes()))
}

/// Free space that a file system trims in the layer below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Pages if the layer maps subpages, else blocks.
    Auto,
    /// Blocks, when all of their pages are free.
    Blocks,
    /// Pages, too, after the commit that freed them.
    Pages,
}

/// Settings of a file system above a layer; the keys document them.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSystemSettings {
    pub scheme: String,
    /// Whether the address of a page on the disk names its turn.
    pub turn_by_address: bool,
    /// Whether the command groups of a large write hold each n-th page on n channels, not consecutive pages.
    pub deep_apart: bool,
    pub dispatch_overhead: Nanos,
    /// Whether requests go to the files that they name, not always to the files of their ranges of addresses.
    pub by_name: bool,
    pub file_bytes: u64,
    pub gc_start: f64,
    pub gc_gain: f64,
    pub commit_interval: Nanos,
    /// Whether commits write a log of changes, and the tree only now and then.
    pub log: bool,
    pub discard: Discard,
}

impl FileSystemSettings {
    pub fn new(settings: &Settings) -> Self {
        FileSystemSettings {
            scheme: settings.text("fs.scheme"),
            turn_by_address: settings.choice(TURN.name, &[("arrival", false), ("address", true)]),
            deep_apart: settings.choice("fs.depth_pages", &[("consecutive", false), ("apart", true)]),
            dispatch_overhead: settings.time("fs.dispatch_overhead"),
            by_name: settings.choice("fs.files", &[("names", true), ("addresses", false)]),
            file_bytes: settings.bytes("fs.file_size"),
            gc_start: settings.ratio("fs.gc_start"),
            gc_gain: settings.ratio("fs.gc_gain"),
            commit_interval: settings.time("fs.commit_interval"),
            log: settings.choice(COMMIT.name, &[("log", true), ("tree", false)]),
            discard: settings
                .choice(DISCARD.name, &[("auto", Discard::Auto), ("block", Discard::Blocks), ("page", Discard::Pages)]),
        }
    }
}

/// Settings of every key, drawn at random.
pub(crate) fn varies(rng: &mut Rng, _drawn: &[String]) -> Vec<String> {
    let schemes = schemes();
    let mut one_of =
        |key: &str, choices: &[&str]| format!("{key}={}", choices[rng.below(choices.len() as u64) as usize]);
    vec![
        one_of("fs.scheme", &schemes),
        one_of("fs.turn", &["arrival", "arrival", "address"]),
        one_of("fs.depth_pages", &["consecutive", "apart"]),
        one_of("fs.dispatch_overhead", &["0ns", "3us", "50us"]),
        one_of("fs.files", &["names", "names", "addresses"]),
        one_of("fs.file_size", &["64KiB", "256KiB", "64MiB"]),
        one_of("fs.gc_start", &["0%", "5%", "20%"]),
        one_of("fs.gc_gain", &["2%", "10%"]),
        one_of("fs.commit_interval", &["1ms", "100ms", "5s"]),
        one_of("fs.commit", &["log", "log", "tree"]),
    ]
}

/// As [`varies`], above a layer that unmaps pages.
pub(crate) fn varies_with_discards(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let mut all = varies(rng, drawn);
    all.push(format!("fs.discard={}", ["auto", "page", "block"][rng.below(3) as usize]));
    all
}
