//! Settings that layers share: collection, streams, allocation, wear levelling, the read command.

use super::pace;
use super::rotation;
pub use super::rotation::Allocation;
use super::streams;
use super::victim;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::blocks::BlockCount;
pub use palimpsest_ftl_api::keys::keys_of;
use palimpsest_ftl_api::keys::{Feature, Growth, Key, Reader, is};
use palimpsest_ftl_api::plan::select::ReadPolicy;
pub use palimpsest_ftl_api::plan::select::{GATHER, READ};
use palimpsest_ftl_api::{keys, words};

const IN_BACKGROUND: Reader = Reader::LISTED.needs(&["ftl.gc_background = true"]);
const PARITY: Reader = Reader::with(Feature::Parity);
const SUPERBLOCKS: Reader = Reader::with(Feature::Superblocks);

/// Most streams, each with an open block in a plane. Blocks name their stream with 8 bits.
const MOST_STREAMS: u64 = 256;

keys! {
    /// The settings that layers share.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LogSettings;

    /// Keys of layers that choose victims and collect them, also while the host is idle.
    group pub COLLECTION {
        /// block to clean: one of the policies that `palimpsest list victims` prints, POLICY or POLICY:NUMBER; or a
        /// class in Python, FILE.py:CLASS
        pub victim: String = "ftl.victim", victim::KIND, "greedy";
        /// collection starts when a plane has no more free blocks than this
        pub gc_start: BlockCount = "ftl.gc_start", Blocks, "1 block";
        /// collection stops when a plane has more free blocks than this
        pub gc_stop: BlockCount = "ftl.gc_stop", Blocks, "1 block";
        /// whether the drive collects, up to gc_idle_stop, while the host is idle
        pub gc_background: bool = "ftl.gc_background", Flag, "false";
        /// collection while the host is idle stops when a plane has more free blocks than this
        pub gc_idle_stop: BlockCount = "ftl.gc_idle_stop", Blocks, (as "ftl.gc_stop"), read_by[IN_BACKGROUND];
        /// idle time of the host before that, and before a patrol
        pub gc_idle: Nanos = "ftl.gc_idle", Time, "1ms", read_by[IN_BACKGROUND, Reader::ANY.needs(&["ftl.patrol > 0"])];
    }

    /// The key of layers that may keep moved data apart from the host's.
    group pub STREAMS {
        /// streams with own blocks: 1 all together; 2 host, moved; from 3 on the classes of ftl.classifier (hot and
        /// cold first), and moved data as the last
        pub streams: u32 = "ftl.streams", Count { min: 1, max: MOST_STREAMS }, "1";
    }

    /// Keys of layers that are one log: [`super::Log`].
    group pub LOG {
        /// how collection moves: whole blocks at once, or in steps with the host's writes, of which it keeps a block
        /// more free; or in steps that a class in Python spreads, FILE.py:CLASS
        pub gc_pace: String = "ftl.gc_pace", pace::KIND, "paced";
        /// pages of a plane that the host writes between bursts of collection, in which all planes move what is due
        /// before they program for the host; 0: a step with each page, behind the host's programs
        pub gc_burst: u32 = "ftl.gc_burst", Count { min: 0, max: 65_535 }, "0", needs["ftl.gc_pace = paced"];
        /// where moved data goes: to blocks of one stream; or with three streams or more to blocks of its class, or of
        /// the host's cold data
        pub moved: Moved = "ftl.moved", Moved::KIND, "together", needs["ftl.streams > 2"];
        /// where in a die moved data goes that has blocks of its own: to the plane that it was in; or to the planes of
        /// the die in turn, which can be programmed together (sim.multi_plane), as host data is with ftl.allocation =
        /// round-robin or namespace and without a fast cache
        pub moved_to: MovedTo = "ftl.moved_to", MovedTo::KIND, "plane", needs["ftl.streams > 1"];
    }

    /// Keys of layers that choose the plane of a write.
    group pub PLACEMENT {
        /// plane that a host write goes to: the address names plane or channel, the next in turn, the least busy; or
        /// the next in turn on the dies of the namespace (ssd.namespaces), which share no die; or a class in Python
        /// chooses, FILE.py:CLASS
        pub allocation: Allocation = "ftl.allocation", rotation::KIND, "round-robin";
        /// dies whose planes take host writes in turn, until a block of each is full and the next dies follow, as a
        /// zone or a superblock does; 0: all
        pub superblock_dies: u32 = "ftl.superblock_dies", Count { min: 0, max: 65_535 }, "0";
    }

    /// The key of layers that level wear.
    group pub LEVELING {
        /// how erases are kept even
        pub wear_leveling: WearLeveling = "ftl.wear_leveling", WearLeveling::KIND, "dynamic";
    }

    /// The key of layers that move data to level wear.
    group pub STATIC_LEVELING {
        /// spread of erases that static wear levelling allows
        pub wear_threshold: u32 = "ftl.wear_threshold", Count { min: 1, max: u32::MAX as u64 }, "100",
            needs["ftl.wear_leveling = static"];
    }

    /// The key that names the classifier; see [`classifier_keys`].
    group pub CLASSIFIER {
        /// which stream a write goes to, such as hot or cold: none, or as `palimpsest list classifiers` prints; or a
        /// class in Python, FILE.py:CLASS
        pub classifier: String = "ftl.classifier", streams::KIND, "none";
    }

    /// The key of layers whose blocks may hold one bit a cell at a time.
    group pub CACHE {
        /// blocks of a plane that may hold one bit a cell at a time: the fast cache of host writes, with ftl.streams of
        /// 2 or more, or log blocks of bast and fast
        pub slc_cache: BlockCount = "ftl.slc_cache", Blocks, "0%";
    }

    /// Keys of features that an [`Entry`](palimpsest_ftl_api::Entry) says to have.
    group pub FEATURES {
        /// bytes that are programmed between two checkpoints of the map, with which recovery reads less; 0B: none
        pub checkpoint: u64 = "ftl.checkpoint", Bytes { min: 0, max: 1 << 50 }, "0B",
            read_by[Reader::ANY], grows_with[Growth::Capacity];
        /// pages of data that one page of parity on another die is for, from which reads that fail for good are
        /// rebuilt; 0: no parity
        pub rain: u32 = "ftl.rain", Count { min: 0, max: 63 }, "0", read_by[PARITY];
        /// what the dies of a superblock do together: they are written in turn; or their blocks are collected and
        /// erased as one, too
        pub collects_superblocks: bool = "ftl.superblocks", Choice(&["allocated", "collected"])
            => is("collected"), "allocated", read_by[SUPERBLOCKS];
        /// planes of a die that a collected superblock has a block of
        pub joins_planes: bool = "ftl.superblock_planes", Choice(&["one", "all"]) => is("all"), "one",
            read_by[SUPERBLOCKS.needs(&["ftl.superblocks = collected"])];
        /// time in which all that is stored is read once while the host is idle, so that it is refreshed in time
        /// (ecc.*); 0ns: never
        pub patrol: Nanos = "ftl.patrol", Time, "0ns", read_by[Reader::ANY];
    }

    /// Keys of layers whose blocks may always hold one bit a cell.
    group pub FIXED_CACHE {
        /// blocks of a plane that always hold one bit a cell, out of its spare space: the share of the fast cache that
        /// a full drive has, too; for bast and fast these are log blocks
        pub slc_fixed: BlockCount = "ftl.slc_fixed", Blocks, "0%";
        /// host writes when the fast cache is full: past it, until the host is idle; or they wait until a block of the
        /// fixed share is folded
        pub slc_full: WhenFull = "ftl.slc_full", WhenFull::KIND, "direct", needs["ftl.slc_fixed > 0"];
    }

    with settings {
        /// The text of `ftl.allocation`.
        pub placement: String = settings.get(rotation::OUTSIDE.key);
        /// The read command.
        pub read: ReadPolicy = ReadPolicy::new(settings);
    }
}

keys! {
    /// How the FTL of the LLH paper buffers and cleans.
    #[derive(Debug, Clone)]
    pub struct WritePolicy;

    /// The keys of such layers.
    group pub WRITE_POLICY {
        /// a clean block is opened after cleaning for it, or before, which leaves one more clean
        pub open_before: bool = "ftl.open_block", Choice(&["after", "before"]) => is("before"), "after";
        /// whether a write replaces what waits in a merge buffer; else both take a place (with buffer.ack = buffer)
        pub absorb: bool = "ftl.absorb", Flag, "true";
    }
}

/// The keys of a layer that is one log, as [`super::Log`].
pub fn keys_of_log() -> Vec<&'static Key> {
    let own = keys_of(&[COLLECTION, STREAMS, LOG, PLACEMENT, LEVELING, STATIC_LEVELING, READ]);
    [own, classifier_keys()].concat()
}

/// The keys of layers that separate hot writes from cold ones: the name of the classifier, and the keys of each.
pub fn classifier_keys() -> Vec<&'static Key> {
    CLASSIFIER.iter().chain(streams::CLASSIFIERS.iter().flat_map(|classifier| classifier.keys)).collect()
}

/// The keys of all groups.
pub fn keys() -> Vec<&'static Key> {
    [keys_of_log(), keys_of(&[CACHE, GATHER, FEATURES, FIXED_CACHE])].concat()
}

words! {
    /// Stream of moved data.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Moved {
        /// A stream for all moved data.
        Together = "together",
        /// The stream of its class.
        Class = "class",
        /// The host's stream of cold data.
        Cold = "cold",
    }
}

words! {
    /// Target of moved data within a die.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum MovedTo {
        /// The plane that held the data.
        Plane = "plane",
        /// The planes of the die in turn.
        Die = "die",
    }
}

words! {
    /// Behaviour of host writes when the fast cache is full.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum WhenFull {
        /// Writes go past the cache.
        Direct = "direct",
        /// Writes wait until a block of the fixed share is folded.
        Fold = "fold",
    }
}

words! {
    /// Wear levelling.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum WearLeveling {
        /// None: free blocks are used in the order of their erases.
        None = "none",
        /// The free block with the fewest erases is used next.
        Dynamic = "dynamic",
        /// As dynamic; and the block with the fewest erases is moved when the spread exceeds the threshold.
        Static = "static",
    }
}

impl LogSettings {
    /// Streams that the host writes to.
    pub fn host_streams(&self) -> u32 {
        self.streams.max(2) - 1
    }

    /// Streams of moved data with open pages.
    pub fn moved_streams(&self) -> u32 {
        if self.moved == Moved::Class { self.host_streams() } else { 1 }
    }

    /// True if moved data, in separate blocks, goes to the planes of the die in turn. Requires that these take equally
    /// many host pages, because otherwise the fuller planes would fill up.
    pub fn moves_to_die(&self) -> bool {
        let cached = self.slc_cache.of(u32::MAX) > 0 || self.slc_fixed.of(u32::MAX) > 0;
        let even = matches!(self.allocation, Allocation::RoundRobin | Allocation::Namespace) && !cached;
        self.moved_to == MovedTo::Die && even && self.data_streams() > 1 && self.moved == Moved::Together
    }

    /// Streams of data: the host's, and a separate one for moved data, if any.
    pub fn data_streams(&self) -> u32 {
        if self.moved == Moved::Together { self.streams } else { self.host_streams() }
    }

    /// Dies of a superblock; 0: all. If superblocks are collected, blocks are superblocks and dies are groups, so the
    /// value is 1.
    pub fn dies_in_turn(&self) -> u32 {
        if self.collects_superblocks { 1 } else { self.superblock_dies }
    }

    /// Idle time of the host before background work; `None` without such work.
    pub fn background_after(&self) -> Option<Nanos> {
        (self.gc_background || self.patrol > 0).then_some(self.gc_idle)
    }
}
