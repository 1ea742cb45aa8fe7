//! The keys of file systems, and the drives that the model suite draws for them.

use crate::schemes;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::{Key, Notation, SHARE, ValueType, near};
use palimpsest_ftl_api::settings::Settings;

/// The keys of every file system.
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
        "a request's file: the one it names (else that of its range), or always that of its range",
    ),
    Key::new(
        "fs.file_size",
        ValueType::Bytes { min: 4096, max: 1 << 40 },
        "64MiB",
        "range of addresses that is a file where requests name none",
    ),
    Key::new("fs.gc_start", SHARE, "5%", "collection starts when less of the space is free"),
    Key::new("fs.gc_gain", SHARE, "10%", "collection stops when so much more of the space is free"),
    Key::new("fs.commit_interval", ValueType::Time, "5s", "how long a change may wait for a commit"),
    COMMIT,
];

static TURN: Key = Key::new(
    "fs.turn",
    ValueType::Choice(&["arrival", "address"]),
    "arrival",
    "whose turn it is where a scheme takes channels in turn: the next channel, or the one that the page's address on the disk \
         names, as with static",
);

const COMMIT: Key = Key::new(
    "fs.commit",
    ValueType::Choice(&["log", "tree"]),
    "log",
    "what a commit writes: a log of the changes, and the tree of inodes and pointers now and then, or always the tree",
);

static DISCARD: Key = Key::new(
    "fs.discard",
    ValueType::Choice(&["auto", "block", "page"]),
    "auto",
    "free space that is trimmed: whole blocks, or pages after the commit that freed them; auto: pages if the layer below \
         maps subpages",
);

/// The key that names the channel allocation scheme.
static SCHEME: Key = Key::new(
    "fs.scheme",
    ValueType::Notation(&Notation { words: schemes, read: scheme, expected: expected_schemes }),
    "rr",
    "which channel each page of a write goes to",
);

/// The keys of a file system above a layer that unmaps pages.
pub fn keys_with_discards() -> Vec<&'static Key> {
    KEYS.iter().chain([&DISCARD]).collect()
}

/// The same with several channels, which the layer does not choose by the address.
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

/// Which file a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Files {
    /// The file that the workload names; where it names none, that of the range of addresses.
    Names,
    /// The file of the range of addresses.
    Addresses,
}

/// Which pages of a large write are one command group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DepthPages {
    /// Consecutive ones.
    Consecutive,
    /// Each n-th on n channels, so that neighbours are on different channels.
    Apart,
}

/// Free space that a file system trims in the layer below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Pages where the layer maps subpages, blocks else.
    Auto,
    /// Blocks, when all of their pages are free.
    Blocks,
    /// Pages too, after the commit that freed them.
    Pages,
}

/// Settings of a file system above a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSystemSettings {
    /// Name of the channel allocation scheme.
    pub scheme: String,
    /// Whether turns are by the address of a page on the disk.
    pub turn_by_address: bool,
    /// Pages of a command group of the schemes with dynamic depth.
    pub depth_pages: DepthPages,
    /// Time of a DRAM permission exchange, once a command group.
    pub dispatch_overhead: Nanos,
    /// Which file a request belongs to.
    pub files: Files,
    /// Bytes of the files of ranges of addresses.
    pub file_bytes: u64,
    /// Collection starts when less than this share of the space is free.
    pub gc_start: f64,
    /// Collection stops when this share more is free.
    pub gc_gain: f64,
    /// Longest time from a change to the commit that makes it durable.
    pub commit_interval: Nanos,
    /// Whether commits write a log of changes, and the tree only now and then.
    pub log: bool,
    /// Free space that is trimmed.
    pub discard: Discard,
}

impl FileSystemSettings {
    /// The settings of a file system in `settings`.
    pub fn new(settings: &Settings) -> Self {
        FileSystemSettings {
            scheme: settings.text("fs.scheme"),
            turn_by_address: settings.choice(TURN.name, &[("arrival", false), ("address", true)]),
            depth_pages: settings
                .choice("fs.depth_pages", &[("consecutive", DepthPages::Consecutive), ("apart", DepthPages::Apart)]),
            dispatch_overhead: settings.time("fs.dispatch_overhead"),
            files: settings.choice("fs.files", &[("names", Files::Names), ("addresses", Files::Addresses)]),
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
