//! The schema as data: every key with its kind, its default and what it means. Nothing else in the project knows the keys
//! but `config/build.rs`, which puts their values into the typed settings.

use super::value::Kind::{
    self, Blocks, Boundary, Bytes, Choice, Count, Energies, Energy, Factor, Flag, Name, PartName, Rate, Ratio, Ratios,
    Threshold, Time, Times, Victim,
};

/// What a key has when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// This text, in the key's own notation.
    Text(&'static str),
    /// Whatever that key has.
    Same(&'static str),
    /// Nothing: somebody must set it.
    Required,
}

/// One key of the configuration.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// Dotted name, table first.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// What it has when nobody sets it.
    pub default: Fallback,
    /// One line on what it means.
    pub doc: &'static str,
}

impl Key {
    /// The table that the key stands in, and its name there.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').expect("a key has a table and a name")
    }

    /// The translation layers that its line begins with (`mga: ...`, `fs-*: ...`), which alone use it, and file systems above
    /// them; empty where all may.
    pub fn layers(&self) -> Vec<&'static str> {
        let Some((names, _)) = self.doc.split_once(": ") else { return Vec::new() };
        let mut layers = Vec::new();
        for name in names.split(", ") {
            let called = |layer: &str| name.strip_suffix('*').map_or(layer == name, |start| layer.starts_with(start));
            let found = layers.len();
            layers.extend(crate::layers::layers().map(|entry| entry.name).filter(|layer| called(layer)));
            if layers.len() == found {
                return Vec::new();
            }
        }
        layers
    }
}

const fn key(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Fallback::Text(default), doc }
}

const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: Fallback::Required, doc }
}

const fn same(name: &'static str, kind: Kind, other: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Fallback::Same(other), doc }
}

const PAGE: Kind = Bytes { min: 512, max: 16 << 20 };
const WORD: Kind = Bytes { min: 1, max: 16 << 20 };
const SPARE: Kind = Bytes { min: 0, max: 16 << 20 };
const BUFFER: Kind = Bytes { min: 512, max: 1 << 40 };
const PROBABILITY: Kind = Ratio { max: 1.0 };
const ANY: u64 = u32::MAX as u64;

/// All keys, in the order in which they are printed.
pub static KEYS: &[Key] = &[
    key(
        "ssd.part",
        PartName,
        "",
        "NAND part: a preset, or the path of a part file; drops what lower layers say of part.*",
    ),
    required("ssd.channels", Count { min: 1, max: 1024 }, "channels"),
    key("ssd.chips_per_channel", Count { min: 1, max: 1024 }, "1", "chips on each channel"),
    key("ssd.dies_per_chip", Count { min: 1, max: 64 }, "1", "dies in each chip"),
    key("ssd.planes_per_die", Count { min: 1, max: 64 }, "1", "planes in each die"),
    required("ssd.blocks_per_plane", Count { min: 1, max: 1 << 24 }, "blocks in each plane"),
    key("ssd.over_provisioning", Ratio { max: 100.0 }, "7%", "(T - U) / U: physical over logical pages, less one"),
    required(
        "part.cell",
        Choice(&["slc", "mlc", "tlc", "qlc"]),
        "bits a cell; pages of mlc come in low and high pairs",
    ),
    required("part.page_size", PAGE, "data bytes of a page"),
    key("part.subpage_size", PAGE, "4KiB", "unit of partial programs and of fine maps"),
    key("part.spare_size", SPARE, "0B", "spare bytes of a page, of which codes of second writes take theirs"),
    required("part.pages_per_block", Count { min: 1, max: 65_536 }, "pages of a block"),
    key("part.nop", Count { min: 1, max: ANY }, "1", "programs of a page between two erases, re-programs included"),
    key(
        "part.order",
        Choice(&["strict", "ascending", "any", "low-low-high", "low-high-low"]),
        "strict",
        "order of programs within a block",
    ),
    required("part.t_read", Time, "sensing a page (low page where pages are paired)"),
    same("part.t_read_high", Time, "part.t_read", "sensing a high page"),
    required("part.t_program", Time, "programming a page (low page where pages are paired)"),
    same("part.t_program_high", Time, "part.t_program", "programming a high page"),
    required("part.t_erase", Time, "erasing a block"),
    key("part.t_command", Time, "0ns", "command and address on the bus, before any operation"),
    required("part.bus_rate", Rate, "transfer rate between controller and die"),
    same("part.t_read_retry", Time, "part.t_read", "what a read costs more when its first attempt fails"),
    key("part.t_suspend", Time, "0ns", "from the suspend command until the die can read"),
    key("part.t_resume", Time, "0ns", "from the resume command until the operation goes on"),
    key("part.word_size", WORD, "2KiB", "ECC code word, the grain of dma and spread reads"),
    key("part.t_read_words", Times, "[]", "sensing 1, 2, ... words in spread mode; none: no such command"),
    key("part.t_dma_words", Times, "[]", "transferring 1, 2, ... words; none: part.bus_rate decides"),
    key(
        "part.spread_reach",
        Choice(&["any", "run"]),
        "any",
        "words that one spread read may name: any, or one run of adjacent words",
    ),
    key("part.endurance", Count { min: 1, max: ANY }, "3000", "erases that a block is rated for"),
    key("part.ber_fresh", PROBABILITY, "0.001%", "raw bit error rate of a new block"),
    key(
        "part.ber_limit",
        PROBABILITY,
        "0.1%",
        "raw bit error rate that ends a block's life, reached after part.endurance",
    ),
    key(
        "part.reuse_shares",
        Ratios,
        "[]",
        "shares of part.endurance spent programming low pages again, ascending to 100%, for the next two; none: not measured",
    ),
    key("part.reuse_loss", Ratios, "[]", "share of part.endurance that each of them costs"),
    key("part.voltage_loss", Ratios, "[]", "share of it that the raised threshold voltage alone costs"),
    key("part.e_read", Energy, "0J", "energy of sensing a page (low page)"),
    same("part.e_read_high", Energy, "part.e_read", "energy of sensing a high page"),
    key("part.e_read_words", Energies, "[]", "energy of sensing 1, 2, ... words in spread mode; none: as for the page"),
    key("part.e_program", Energy, "0J", "energy of programming a page (low page)"),
    same("part.e_program_high", Energy, "part.e_program", "energy of programming a high page"),
    same("part.e_reprogram", Energy, "part.e_program", "energy of programming a low page again"),
    key("part.e_erase", Energy, "0J", "energy of erasing a block"),
    same(
        "part.e_program_low_first",
        Energy,
        "part.e_program",
        "energy of the first program of a low page where low pages are programmed first",
    ),
    same(
        "part.e_program_high_second",
        Energy,
        "part.e_program_high",
        "energy of programming a high page where low pages were programmed first",
    ),
    same(
        "part.e_erase_reused",
        Energy,
        "part.e_erase",
        "energy of erasing a block whose low pages were programmed again",
    ),
    key("ftl.name", Name, "page", "flash translation layer"),
    key(
        "ftl.victim",
        Victim,
        "greedy",
        "block to clean: greedy, fifo, d-choices:K (K drawn at random) or cost-benefit",
    ),
    key("ftl.gc_start", Blocks, "1 block", "collection starts when a plane has no more free blocks than this"),
    key("ftl.gc_stop", Blocks, "1 block", "collection stops when a plane has more free blocks than this"),
    key("ftl.gc_background", Flag, "false", "whether the drive collects, down to gc_stop, while the host is idle"),
    key("ftl.gc_idle", Time, "1ms", "how long the host must have been idle before that"),
    key(
        "ftl.streams",
        Count { min: 1, max: 3 },
        "1",
        "streams with own blocks: 1 all together; 2 host, moved; 3 hot, cold, moved",
    ),
    key(
        "ftl.classifier",
        Choice(&["none", "size", "recency", "sequence", "address", "hint"]),
        "none",
        "how hot writes are told from cold ones; hint: by what the file system above the layer knows of its files",
    ),
    key(
        "ftl.hot_below",
        Boundary,
        "zipf:1",
        "classifier address: what begins below is hot; zipf:A: below the pages that take half of a Zipf law of exponent A",
    ),
    key(
        "ftl.allocation",
        Choice(&["static", "channel", "round-robin", "least-loaded"]),
        "round-robin",
        "plane that a host write goes to: the address names plane or channel, the next in turn, the least busy",
    ),
    key("ftl.wear_leveling", Choice(&["none", "dynamic", "static"]), "dynamic", "how erases are kept even"),
    key("ftl.wear_threshold", Count { min: 1, max: ANY }, "100", "spread of erases that static wear levelling allows"),
    key(
        "ftl.read",
        Choice(&["page", "dma", "spread"]),
        "page",
        "read command; page-fgm, dma-fgm and spftl each name one",
    ),
    key(
        "ftl.read_gap",
        Flag,
        "false",
        "whether spread reads of a part that reads runs may sense words in between to save a command",
    ),
    key(
        "ftl.log_fraction",
        PROBABILITY,
        "5%",
        "sector-log: share of the blocks that take writes smaller than a page; at least one block of each plane",
    ),
    key(
        "ftl.allocation_threshold",
        PROBABILITY,
        "30%",
        "mga: exclusive allocation while the share of fully free pages exceeds this",
    ),
    key(
        "ftl.merge_on_read",
        Flag,
        "false",
        "mga: whether a read, too, merges what stands in more pages than its read count allows",
    ),
    key(
        "ftl.read_count_aging",
        Count { min: 0, max: ANY },
        "0",
        "mga: read counts halve after this many requests; 0: never",
    ),
    key(
        "ftl.threshold_pu",
        Threshold,
        "OP/2",
        "llh: partially-used blocks of a bank at the start: OP/N of its spare blocks, or blocks",
    ),
    key(
        "ftl.threshold_window",
        Count { min: 0, max: 1000 },
        "5",
        "llh: collections whose mean valid count moves that threshold; 0: it never moves",
    ),
    key(
        "ftl.threshold_steps",
        Count { min: 1, max: 1000 },
        "1",
        "llh: collections in a row that point the same way before that threshold moves",
    ),
    key(
        "ftl.threshold_floor",
        Count { min: 0, max: 1 << 24 },
        "0",
        "llh: blocks that the threshold does not fall below (what it starts with may be less)",
    ),
    key(
        "ftl.reuse_empty",
        Flag,
        "false",
        "llh: whether a partially-used block without a valid page is reused at once, however few wait",
    ),
    key("ftl.safe_life", PROBABILITY, "40%", "llh: share of part.endurance in which low pages are reused"),
    key("ftl.wom", Name, "polar", "llh: write-once-memory code of second writes"),
    key(
        "ftl.wom_spare",
        PROBABILITY,
        "100%",
        "llh: share of part.spare_size that the code may take, which first writes must leave erased",
    ),
    key(
        "ftl.wom_failure",
        PROBABILITY,
        "0.25%",
        "llh: probability that a second write cannot be encoded; with payload bytes the code itself decides",
    ),
    key("ftl.reuse_cold", Flag, "false", "llh: whether blocks of cold data are partially used and reused, too"),
    key(
        "ftl.low_pages_first",
        Flag,
        "false",
        "mga: on mlc, small writes fill the low pages of a block by subpage, its high pages follow",
    ),
    key("ftl.victim_free", Flag, "false", "mga: whether free subpages of a victim count as a gain, like invalid ones"),
    key(
        "fs.scheme",
        Choice(&["rr", "fairness", "read-busy", "depth", "hybrid", "least-work"]),
        "rr",
        "codesign: which channel each page of a write goes to",
    ),
    key(
        "fs.depth_pages",
        Choice(&["consecutive", "apart"]),
        "consecutive",
        "codesign: pages of a large write that depth and hybrid give a channel at once: consecutive, or each n-th on n channels",
    ),
    key(
        "fs.dispatch_overhead",
        Time,
        "3us",
        "codesign, fs-*: hand-over of the FTL's memory for each group of commands to one channel, one at a time",
    ),
    key(
        "fs.files",
        Choice(&["names", "addresses"]),
        "names",
        "codesign, fs-*: a request's file: the one it names (else that of its range), or always that of its range",
    ),
    key(
        "fs.file_size",
        Bytes { min: 4096, max: 1 << 40 },
        "64MiB",
        "codesign, fs-*: range of addresses that is a file where requests name none",
    ),
    key("fs.gc_start", PROBABILITY, "5%", "codesign, fs-*: collection starts when less of the space is free"),
    key("fs.gc_gain", PROBABILITY, "10%", "codesign, fs-*: collection stops when so much more of the space is free"),
    key("fs.commit_interval", Time, "5s", "codesign, fs-*: how long a change may wait for a commit"),
    key(
        "fs.discard",
        Choice(&["auto", "block", "page"]),
        "auto",
        "fs-*: what the layer below hears of free space: whole blocks, or pages after the commit that freed them; auto: pages if it maps subpages",
    ),
    key(
        "sim.scheduler",
        Choice(&["fifo", "read-first", "host-first"]),
        "fifo",
        "which operation waiting at a die goes next",
    ),
    key("sim.starvation_bound", Time, "10ms", "how long an operation is overtaken at most"),
    key(
        "sim.suspend",
        Choice(&["none", "erase", "program-erase"]),
        "none",
        "running operations that a read may suspend",
    ),
    key("sim.cache_register", Flag, "false", "whether operations of one kind pipeline through a die's cache register"),
    key(
        "sim.multi_plane",
        Flag,
        "true",
        "whether operations of one kind on different planes of a die may run together",
    ),
    key("host.speedup", Factor, "1", "arrival times of an open loop are divided by this"),
    key("host.fold", Flag, "false", "whether addresses beyond the drive are folded into it instead of refused"),
    key("host.link_rate", Rate, "unlimited", "transfer rate between host and drive"),
    key("host.iodepth", Count { min: 0, max: 1 << 20 }, "0", "queue depth; 0: as the workload says"),
    key("buffer.size", BUFFER, "1MiB", "write buffer of buffered translation layers"),
    key(
        "buffer.ack",
        Choice(&["buffer", "program"]),
        "buffer",
        "a write is acknowledged when buffered, or when programmed",
    ),
    key("buffer.timeout", Time, "1ms", "a partly filled page is padded and programmed after this long"),
    key("faults.program_fail", PROBABILITY, "0%", "probability that a program fails and its block goes bad"),
    key("faults.erase_fail", PROBABILITY, "0%", "probability that an erase fails and its block goes bad"),
    key("faults.read_fail", PROBABILITY, "0%", "probability that a read needs a retry"),
    key("faults.initial_bad", PROBABILITY, "0%", "share of blocks that are bad from the factory"),
    key(
        "faults.power_cut_at",
        Count { min: 0, max: i64::MAX as u64 },
        "0",
        "flash operation at which the power fails; 0: never",
    ),
];

/// Keys outside tables that describe a file instead of the drive.
pub const ABOUT: &[&str] = &["name", "description", "source", "base", "complete"];

/// The position in [`KEYS`] of the key called `name`.
pub fn position(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

/// Up to three of `names` that look like `name`, best first, as "; did you mean ...?", or nothing.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    // Comparing is quadratic; nobody mistypes a name of this length.
    if name.len() > 100 {
        return String::new();
    }
    let bare = |text: &'a str| text.split_once('.').map_or(text, |(_, rest)| rest);
    let score = |known: &'a str| strsim::jaro_winkler(name, known).max(strsim::jaro_winkler(name, bare(known)) - 0.01);
    let mut scored: Vec<(f64, &str)> =
        names.map(|known| (score(known), known)).filter(|(score, _)| *score > 0.85).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let names: Vec<&str> =
        scored.iter().filter(|(score, _)| best - score < 0.04).take(3).map(|(_, known)| *known).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}
