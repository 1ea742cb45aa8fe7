//! The settings that layers share: collection, streams, allocation, wear levelling, the read command.

use super::streams;
use super::victim::VICTIM;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::keys::readers::Layers;
use palimpsest_ftl_api::keys::{Key, Reader, ValueType};
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::settings::Settings;

/// The drive reads the key, below any layer.
const DRIVE: &[Reader] = &[Reader { layers: Layers::Any, needs: &[] }];
const IN_BACKGROUND: Reader = Reader { layers: Layers::Listed, needs: &["ftl.gc_background = true"] };

/// Keys of layers that choose victims and collect them, also while the host is idle.
pub const COLLECTION: &[Key] = &[
    VICTIM,
    Key::new(
        "ftl.gc_start",
        ValueType::Blocks,
        "1 block",
        "collection starts when a plane has no more free blocks than this",
    ),
    Key::new(
        "ftl.gc_stop",
        ValueType::Blocks,
        "1 block",
        "collection stops when a plane has more free blocks than this",
    ),
    Key::new(
        "ftl.gc_background",
        ValueType::Flag,
        "false",
        "whether the drive collects, down to gc_stop, while the host is idle",
    ),
    Key::new("ftl.gc_idle", ValueType::Time, "1ms", "idle time of the host before that, and before a patrol")
        .read_by(&[IN_BACKGROUND, Reader { layers: Layers::Any, needs: &["ftl.patrol > 0"] }]),
];

/// The key of layers that move a block before its data is lost, as [`super::Log`] does.
pub const REFRESH_RETRIES: Key = Key::new(
    "ecc.refresh_retries",
    ValueType::Count { min: 0, max: 1000 },
    "0",
    "a block of which a read needed so many steps is moved; 0: never",
)
.read_by(&[Reader { layers: Layers::Listed, needs: &[] }])
.needs(&["ecc.strength > 0"]);

/// The key of layers that may keep moved data apart from the host's.
pub const STREAMS: &[Key] = &[Key::new(
    "ftl.streams",
    ValueType::Count { min: 1, max: 3 },
    "1",
    "streams with own blocks: 1 all together; 2 host, moved; 3 hot, cold, moved",
)];

/// Keys of layers that are one log: [`super::Log`].
pub const LOG: &[Key] = &[
    Key::new(
        "ftl.gc_pace",
        ValueType::Choice(&["block", "paced"]),
        "paced",
        "how collection moves: whole blocks at once, or in steps with the host's writes, of which it keeps a block more free",
    ),
    Key::new(
        "ftl.moved",
        ValueType::Choice(&["together", "class"]),
        "together",
        "where moved data goes: to blocks of one stream, or to those of its class, hot or cold, with ftl.streams = 3",
    ).needs(&["ftl.streams = 3"]),
    Key::new(
        "ftl.moved_to",
        ValueType::Choice(&["plane", "die"]),
        "plane",
        "where in a die moved data goes that has blocks of its own: to the plane that it was in, or, as the host's data with round-robin \
         allocation and without a fast cache, to the planes of the die in turn, which can be programmed together (sim.multi_plane)",
    ).needs(&["ftl.streams > 1"]),
    REFRESH_RETRIES,
];

/// The key of layers whose blocks may hold one bit a cell at a time.
pub const CACHE: &[Key] = &[Key::new(
    "ftl.slc_cache",
    ValueType::Blocks,
    "0%",
    "blocks of a plane that may hold one bit a cell at a time: the fast cache of host writes, with ftl.streams of 2 or 3",
)];

/// Keys of layers that choose the plane of a write.
pub const PLACEMENT: &[Key] = &[
    Key::new(
        "ftl.allocation",
        ValueType::Choice(&["static", "channel", "round-robin", "least-loaded"]),
        "round-robin",
        "plane that a host write goes to: the address names plane or channel, the next in turn, the least busy",
    ),
    Key::new(
        "ftl.superblock_dies",
        ValueType::Count { min: 0, max: 65_535 },
        "0",
        "dies whose planes take host writes in turn, until a block of each is full and the next dies follow, as a zone or a \
         superblock does; 0: all",
    ),
];

/// The key of layers that level wear.
pub const LEVELING: &[Key] = &[Key::new(
    "ftl.wear_leveling",
    ValueType::Choice(&["none", "dynamic", "static"]),
    "dynamic",
    "how erases are kept even",
)];

/// The key of layers that move data to level wear.
pub const STATIC_LEVELING: &[Key] = &[Key::new(
    "ftl.wear_threshold",
    ValueType::Count { min: 1, max: u32::MAX as u64 },
    "100",
    "spread of erases that static wear levelling allows",
)
.needs(&["ftl.wear_leveling = static"])];

/// Keys of layers that read by [`read_policy`].
pub const READ: &[Key] = &[Key::new(
    "ftl.read",
    ValueType::Choice(&["page", "dma", "spread"]),
    "page",
    "read command; page-fgm, dma-fgm and spftl each name one",
)];

/// Keys of layers that read words from several places of a page at once.
pub const GATHER: &[Key] = &[Key::new(
    "ftl.read_gap",
    ValueType::Flag,
    "false",
    "whether spread reads of a part that reads runs may sense words in between to save a command",
)
.needs(&["ftl.read = spread", "part.spread_reach = run"])];

/// Keys of features that an [`Entry`](palimpsest_ftl_api::Entry) says to have.
pub const FEATURES: &[Key] = &[
    Key::new(
        "ftl.checkpoint",
        ValueType::Bytes { min: 0, max: 1 << 50 },
        "0B",
        "bytes that are programmed between two checkpoints of the map, with which recovery reads less; 0B: none",
    ).read_by(DRIVE),
    Key::new(
        "ftl.rain",
        ValueType::Count { min: 0, max: 63 },
        "0",
        "pages of data that one page of parity on another die is for, from which reads that fail for good are rebuilt; 0: no parity",
    ).read_by(&[Reader::with(|layer| layer.takes_parity)]),
    Key::new(
        "ftl.superblocks",
        ValueType::Choice(&["allocated", "collected"]),
        "allocated",
        "what the dies of a superblock do together: they are written in turn; or their blocks are collected and erased as one, too",
    ).read_by(&[Reader::with(|layer| layer.takes_parity)]),
    Key::new(
        "ftl.patrol",
        ValueType::Time,
        "0ns",
        "time in which all that is stored is read once while the host is idle, so that it is refreshed in time (ecc.*); 0ns: never",
    ).read_by(DRIVE),
    Key::new(
        "ftl.slc_fixed",
        ValueType::Blocks,
        "0%",
        "blocks of a plane that always hold one bit a cell, out of its spare space: the share of the fast cache that a full drive has, too",
    ).read_by(&[Reader::with(|layer| layer.fast_cache)]),
    Key::new(
        "ftl.slc_full",
        ValueType::Choice(&["direct", "fold"]),
        "direct",
        "host writes when the fast cache is full: past it, until the host is idle; or they wait until a block of the fixed share is folded",
    ).read_by(&[Reader::with(|layer| layer.fast_cache)]).needs(&["ftl.slc_fixed > 0"]),
];

/// The keys of `groups`, for [`Entry::keys`](palimpsest_ftl_api::Entry::keys).
pub fn keys_of(groups: &[&'static [Key]]) -> Vec<&'static Key> {
    groups.iter().copied().flatten().collect()
}

/// The keys of a layer that is one log, as [`super::Log`] is.
pub fn keys_of_log() -> Vec<&'static Key> {
    [keys_of(&[COLLECTION, STREAMS, LOG, PLACEMENT, LEVELING, STATIC_LEVELING, READ]), streams::keys()].concat()
}

/// The keys of all groups.
pub fn keys() -> Vec<&'static Key> {
    [keys_of_log(), keys_of(&[CACHE, GATHER, FEATURES])].concat()
}

/// Where a host write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// The plane that the logical address names (modulo the number of planes; channels vary fastest).
    Static,
    /// The planes of the channel that the logical address names (modulo the number of channels), in turn.
    Channel,
    /// The next plane in turn; channels vary fastest.
    RoundRobin,
    /// The plane whose die has the fewest operations waiting, the next in turn among ties.
    LeastLoaded,
}

/// How much collection moves at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GcPace {
    /// Whole blocks.
    Block,
    /// Some pages with each page that the host writes.
    Paced,
}

/// Where in a die moved data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MovedTo {
    /// To the plane that it was in.
    Plane,
    /// To the planes of the die in turn.
    Die,
}

/// What the host's writes do when the fast cache is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// They go past it.
    Direct,
    /// They wait until a block of the fixed share is folded.
    Fold,
}

/// How erases are kept even.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WearLeveling {
    /// Not at all: free blocks are used in the order in which they were erased.
    None,
    /// The free block with the fewest erases is used next.
    Dynamic,
    /// As dynamic; and the block with the fewest erases is moved when the spread exceeds the threshold.
    Static,
}

/// The values of [`keys`].
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// Victim policy of garbage collection, as configured.
    pub victim: String,
    /// Garbage collection starts when a plane has no more free blocks than this.
    pub gc_start: BlockCount,
    /// Garbage collection stops when a plane has more free blocks than this.
    pub gc_stop: BlockCount,
    /// How much collection moves at a time.
    pub gc_pace: GcPace,
    /// Write streams with blocks of their own: 1 = all together; 2 = host, moved; 3 = hot, cold, moved.
    pub streams: u32,
    /// Whether moved data keeps its class, hot or cold: it goes to the blocks of the host's stream that it came from.
    pub keep_class: bool,
    /// Where in a die moved data goes that has blocks of its own.
    pub moved_to: MovedTo,
    /// Where a host write goes.
    pub allocation: Allocation,
    /// Dies of a superblock; 0: all.
    pub superblock_dies: u32,
    /// Blocks of a plane that may hold one bit a cell.
    pub slc_cache: BlockCount,
    /// Blocks of a plane that always hold one bit a cell.
    pub slc_fixed: BlockCount,
    /// What the host's writes do when the fast cache is full.
    pub slc_full: WhenFull,
    /// How erases are kept even.
    pub wear_leveling: WearLeveling,
    /// Spread of erases that static wear levelling allows.
    pub wear_threshold: u32,
    /// How it reads.
    pub read: ReadPolicy,
}

impl LogSettings {
    /// Those of `settings`.
    pub fn new(settings: &Settings) -> Self {
        LogSettings {
            victim: settings.text("ftl.victim"),
            gc_start: settings.blocks("ftl.gc_start"),
            gc_stop: settings.blocks("ftl.gc_stop"),
            gc_pace: settings.choice("ftl.gc_pace", &[("block", GcPace::Block), ("paced", GcPace::Paced)]),
            streams: settings.small("ftl.streams"),
            keep_class: keeps_class(settings),
            moved_to: settings.choice("ftl.moved_to", &[("plane", MovedTo::Plane), ("die", MovedTo::Die)]),
            allocation: settings.choice(
                "ftl.allocation",
                &[
                    ("static", Allocation::Static),
                    ("channel", Allocation::Channel),
                    ("round-robin", Allocation::RoundRobin),
                    ("least-loaded", Allocation::LeastLoaded),
                ],
            ),
            slc_cache: settings.blocks("ftl.slc_cache"),
            slc_fixed: settings.blocks("ftl.slc_fixed"),
            slc_full: settings.choice("ftl.slc_full", &[("direct", WhenFull::Direct), ("fold", WhenFull::Fold)]),
            // Superblocks that are collected are blocks, of dies that are groups.
            superblock_dies: if collects_superblocks(settings) { 1 } else { settings.small("ftl.superblock_dies") },
            wear_leveling: settings.choice(
                "ftl.wear_leveling",
                &[("none", WearLeveling::None), ("dynamic", WearLeveling::Dynamic), ("static", WearLeveling::Static)],
            ),
            wear_threshold: settings.small("ftl.wear_threshold"),
            read: read_policy(settings),
        }
    }
}

impl LogSettings {
    /// Streams that the host writes to.
    pub fn host_streams(&self) -> u32 {
        self.streams.max(2) - 1
    }

    /// Streams that data is moved to, and that have open pages for it.
    pub fn moved_streams(&self) -> u32 {
        if self.keep_class { self.host_streams() } else { 1 }
    }

    /// Whether moved data, in blocks of its own, goes to the planes of its die in turn: where these take as many pages of the host, too, else the
    /// fuller ones would fill up.
    pub fn moves_to_die(&self) -> bool {
        let cached = self.slc_cache.of(u32::MAX) > 0 || self.slc_fixed.of(u32::MAX) > 0;
        let even = self.allocation == Allocation::RoundRobin && !cached;
        self.moved_to == MovedTo::Die && even && self.data_streams() > 1 && !self.keep_class
    }

    /// Streams of data: of the host, and of what is moved where that is not one of the host's.
    pub fn data_streams(&self) -> u32 {
        if self.keep_class { self.host_streams() } else { self.streams }
    }
}

/// Whether superblocks are collected as one block.
pub fn collects_superblocks(settings: &Settings) -> bool {
    settings.choice("ftl.superblocks", &[("allocated", false), ("collected", true)])
}

/// Whether moved data keeps its class.
pub fn keeps_class(settings: &Settings) -> bool {
    settings.choice("ftl.moved", &[("together", false), ("class", true)])
}

/// How a layer with `settings` reads.
pub fn read_policy(settings: &Settings) -> ReadPolicy {
    let mode =
        settings.choice("ftl.read", &[("page", ReadMode::Page), ("dma", ReadMode::Dma), ("spread", ReadMode::Spread)]);
    ReadPolicy { mode, gaps: settings.flag("ftl.read_gap") }
}

/// Background work: how long the host must have been idle; `None` where there is none.
pub fn background_after(settings: &Settings) -> Option<Nanos> {
    let works = settings.flag("ftl.gc_background") || settings.time("ftl.patrol") > 0;
    works.then(|| settings.time("ftl.gc_idle"))
}
