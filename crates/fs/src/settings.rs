//! The keys of file systems, and the drives that the model suite draws for them.

use crate::schemes;
use crate::schemes::Rules;
use crate::schemes::depth::{DepthPages, DepthSettings};
use crate::schemes::fairness::FairnessSettings;
use crate::schemes::read_busy::ReadBusySettings;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::{Key, SHARE, is, keys_of};
use palimpsest_ftl_api::{keys, words};

keys! {
    /// Settings of a file system above a layer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FileSystemSettings;

    /// The key of file systems that choose channels.
    group pub SCHEME {
        /// which channel each page of a write goes to
        pub scheme: String = "fs.scheme", Names(schemes), "rr";
    }

    /// The key of file systems on several channels.
    group pub TURN {
        /// whose turn it is where a scheme takes channels in turn: the next channel, or the one that the page's address
        /// on the disk names, as with static
        pub turn_by_address: bool = "fs.turn", Choice(&["arrival", "address"]) => is("address"), "arrival";
    }

    /// The keys of every file system.
    group pub KEYS {
        /// DRAM permission exchange between FTL modules, once for each group of commands to one channel, one at a time
        pub dispatch_overhead: Nanos = "fs.dispatch_overhead", Time, "3us";
        /// a request's file: the one it names (else that of its range), or always that of its range
        pub files: Files = "fs.files", Files::KIND, "names";
        /// range of addresses that is a file where requests name none
        pub file_bytes: u64 = "fs.file_size", Bytes { min: 4096, max: 1 << 40 }, "64MiB";
        /// collection starts when less of the space is free
        pub gc_start: f64 = "fs.gc_start", SHARE, "5%";
        /// collection stops when so much more of the space is free
        pub gc_gain: f64 = "fs.gc_gain", SHARE, "10%";
        /// how long a change may wait for a commit
        pub commit_interval: Nanos = "fs.commit_interval", Time, "5s";
        /// what a commit writes: a log of the changes, and the tree of inodes and pointers now and then, or always the
        /// tree
        pub log: bool = "fs.commit", Choice(&["log", "tree"]) => is("log"), "log";
    }

    /// The key of file systems above a layer that unmaps pages.
    group pub DISCARD {
        /// free space that is trimmed: whole blocks, or pages after the commit that freed them; auto: pages if the
        /// layer below maps subpages
        pub discard: Discard = "fs.discard", Discard::KIND, "auto";
    }

    with settings {
        /// Pages of a command group of the schemes with dynamic depth.
        pub depth_pages: DepthPages = DepthSettings::new(settings).depth_pages;
        /// Readings of the paper that the schemes follow.
        pub rules: Rules = Rules {
            tie: FairnessSettings::new(settings).tie,
            read_busy: ReadBusySettings::new(settings).read_busy,
        };
    }
}

/// The keys of a file system that chooses channels.
pub fn keys_with_schemes() -> Vec<&'static Key> {
    let of_schemes = schemes::SCHEMES.iter().flat_map(|entry| entry.keys).collect();
    [keys_of(&[SCHEME, TURN]), of_schemes, keys_of(&[KEYS])].concat()
}

fn schemes() -> Vec<&'static str> {
    schemes::SCHEMES.iter().map(|entry| entry.name).collect()
}

words! {
    /// Which file a request belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Files {
        /// The file that the workload names; where it names none, that of the range of addresses.
        Names = "names",
        /// The file of the range of addresses.
        Addresses = "addresses",
    }
}

words! {
    /// Free space that a file system trims in the layer below.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Discard {
        /// Pages where the layer maps subpages, blocks else.
        Auto = "auto",
        /// Blocks, when all of their pages are free.
        Blocks = "block",
        /// Pages too, after the commit that freed them.
        Pages = "page",
    }
}

/// Settings of every key, drawn at random.
pub(crate) fn varies(rng: &mut Rng, _drawn: &[String]) -> Vec<String> {
    let schemes = schemes();
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let mut other = Rng::new(rng.clone().next_u64(), 0x71e);
    let mut one_of =
        |key: &str, choices: &[&str]| format!("{key}={}", choices[rng.below(choices.len() as u64) as usize]);
    vec![
        format!("fs.tie={}", ["outstanding", "issued", "turn"][other.below(3) as usize]),
        format!("fs.read_busy={}", ["last", "skip"][other.below(2) as usize]),
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
