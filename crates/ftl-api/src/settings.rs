//! What a flash translation layer can be told. Each layer documents which of these it uses.

use crate::file_system::FileSystemSettings;
use crate::plan::select::ReadPolicy;
use palimpsest_flash::units::Nanos;

/// How garbage collection picks the block to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VictimPolicy {
    /// The fewest valid subpages; the block closed first among ties.
    Greedy,
    /// The block closed first.
    Fifo,
    /// The fewest valid subpages among `choices` blocks drawn at random.
    DChoices {
        /// Blocks drawn.
        choices: u32,
    },
    /// The largest age x (1 - u) / 2u, u the share of valid subpages (Rosenblum and Ousterhout 1992).
    CostBenefit,
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

/// How writes are told hot from cold where more than one host stream exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Classifier {
    /// Everything is hot: one host stream.
    None,
    /// Requests of 64 KiB and more are cold (LLH paper, Sec. 5).
    Size,
    /// Addresses written again while still in a table of recent writes are hot.
    Recency,
    /// Pages written in a sequence of more than two consecutive ones are cold (LLH paper, Sec. 5.3, for the FIU traces).
    Sequence,
    /// Addresses below a boundary are hot (LLH paper, Sec. 5.3, for the Zipf traces): an oracle.
    Address,
    /// What the file system above the layer expects to live less than most is hot (the co-design paper's future work).
    Hint,
}

/// Where hot addresses end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HotBelow {
    /// At this byte of the drive.
    Bytes(u64),
    /// Where the first units take half of the accesses of a Zipf law of this exponent over all units of the drive.
    Zipf(f64),
}

/// Partially-used blocks of a bank that `llh` starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdPu {
    /// The bank's spare blocks, divided by this.
    SpareOver(u32),
    /// So many blocks.
    Blocks(u32),
}

/// A number of blocks, absolute or as a share of a plane's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockCount {
    /// So many blocks.
    Blocks(u32),
    /// This share of the blocks of a plane.
    Share(f64),
}

impl BlockCount {
    /// The count for a plane of `blocks` blocks, rounded down.
    pub fn of(self, blocks: u32) -> u32 {
        match self {
            BlockCount::Blocks(n) => n,
            BlockCount::Share(share) => (f64::from(blocks) * share) as u32,
        }
    }

    /// The same in pages, for a plane of `blocks` blocks of `pages_per_block` pages.
    pub fn pages_of(self, blocks: u32, pages_per_block: u32) -> u32 {
        match self {
            BlockCount::Blocks(n) => n * pages_per_block,
            BlockCount::Share(share) => (f64::from(blocks * pages_per_block) * share) as u32,
        }
    }
}

/// Settings of a translation layer.
#[derive(Debug, Clone, PartialEq)]
pub struct FtlSettings {
    /// Name in the registry.
    pub name: String,
    /// Victim policy of garbage collection.
    pub victim: VictimPolicy,
    /// Garbage collection starts when a plane has no more free blocks than this.
    pub gc_start: BlockCount,
    /// Garbage collection stops when a plane has more free blocks than this.
    pub gc_stop: BlockCount,
    /// Whether the drive collects garbage, down to `gc_stop`, while the host is idle.
    pub gc_background: bool,
    /// How long the host must have been idle before that.
    pub gc_idle: Nanos,
    /// Write streams with blocks of their own: 1 = all together; 2 = host, moved; 3 = hot, cold, moved.
    pub streams: u32,
    /// How hot is told from cold.
    pub classifier: Classifier,
    /// Where a host write goes.
    pub allocation: Allocation,
    /// How erases are kept even.
    pub wear_leveling: WearLeveling,
    /// Spread of erases that static wear levelling allows.
    pub wear_threshold: u32,
    /// How it reads.
    pub read: ReadPolicy,
    /// Share of the blocks of a plane that are a log of small writes (`sector-log`).
    pub log_fraction: f64,
    /// `mga`: exclusive allocation while the share of fully free pages exceeds this.
    pub allocation_threshold: f64,
    /// `mga`: whether a read, too, merges a logical page that stands in more pages than its read count allows.
    pub merge_on_read: bool,
    /// `mga`: read counts halve after this many requests; 0: never.
    pub read_count_aging: u64,
    /// Where hot addresses end, for [`Classifier::Address`].
    pub hot_below: HotBelow,
    /// `llh`: partially-used blocks of a bank at the start.
    pub threshold_pu: ThresholdPu,
    /// `llh`: collections whose mean valid count moves that threshold; 0: it never moves.
    pub threshold_window: u32,
    /// `llh`: collections in a row that point the same way before that threshold moves.
    pub threshold_steps: u32,
    /// `llh`: blocks that it does not fall below.
    pub threshold_floor: u32,
    /// `llh`: whether a partially-used block without a valid page is reused at once, however few wait.
    pub reuse_empty: bool,
    /// `llh`: share of the part's endurance in which low pages are reused.
    pub safe_life: f64,
    /// `llh`: name of the write-once-memory code.
    pub wom: String,
    /// `llh`: share of the part's spare area that the code may take.
    pub wom_spare: f64,
    /// `llh`: probability that a second write cannot be encoded, where no real encoder decides.
    pub wom_failure: f64,
    /// `llh`: whether cold blocks are partially used and reused, too.
    pub reuse_cold: bool,
    /// `mga`: whether small writes fill the low pages of a block before its high pages are programmed.
    pub low_pages_first: bool,
    /// `mga`: whether victims are chosen by subpages that are not valid, free ones among them, instead of invalid ones.
    pub victim_free: bool,
    /// `codesign`, `fs-page`: the file system.
    pub fs: FileSystemSettings,
}

impl FtlSettings {
    /// Settings of the layer `name` in tests: the schema's defaults, cleaning at the last free block.
    #[doc(hidden)]
    pub fn of_tests(name: &str, entry: Option<&super::Entry>) -> Self {
        FtlSettings {
            name: name.into(),
            victim: VictimPolicy::Greedy,
            gc_start: BlockCount::Blocks(1),
            gc_stop: BlockCount::Blocks(1),
            gc_background: false,
            gc_idle: 0,
            streams: 1,
            classifier: Classifier::None,
            allocation: Allocation::RoundRobin,
            wear_leveling: WearLeveling::Dynamic,
            wear_threshold: 100,
            read: entry.and_then(|entry| entry.read).map_or(ReadPolicy::PAGE, |mode| ReadPolicy { mode, gaps: false }),
            log_fraction: 0.05,
            allocation_threshold: 0.3,
            merge_on_read: false,
            read_count_aging: 0,
            hot_below: HotBelow::Zipf(1.0),
            threshold_pu: ThresholdPu::SpareOver(2),
            threshold_window: 5,
            threshold_steps: 1,
            threshold_floor: 0,
            reuse_empty: false,
            safe_life: 0.4,
            wom: "polar".into(),
            wom_spare: 1.0,
            wom_failure: 0.0025,
            reuse_cold: false,
            low_pages_first: false,
            victim_free: false,
            fs: FileSystemSettings::default(),
        }
    }
}
