//! The schema: every key of the drive, the engine and the host, and the keys that layers and policies define in their files.

use super::notation::read_bare;
use crate::layers::layers;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl::log::settings as log;
use palimpsest_ftl_api::Entry;
use palimpsest_ftl_api::keys::ValueType::{
    self, Age, Bytes, Capacity, Choice, Count, Energies, Energy, Factor, Flag, Notation as Words, PartName, Rate,
    Ratio, Ratios, Time, Times,
};
use palimpsest_ftl_api::keys::readers::Layers;
use palimpsest_ftl_api::keys::{Fallback, Key, Need, Notation, Reader, Value, near};
use palimpsest_sim::die_failures::DIE_FAILURE;
use palimpsest_sim::power_cuts::POWER_CUTS;
use std::ops::Deref;
use std::sync::OnceLock;

const PAGE: ValueType = Bytes { min: 512, max: 16 << 20 };
const WORD: ValueType = Bytes { min: 1, max: 16 << 20 };
const SPARE: ValueType = Bytes { min: 0, max: 16 << 20 };
const CAPACITY: ValueType = Capacity { max: 1 << 60 };
const BUFFER: ValueType = Bytes { min: 512, max: 1 << 40 };
const PIECE: ValueType = Bytes { min: 0, max: 1 << 40 };
const PROBABILITY: ValueType = Ratio { max: 1.0 };
const ANY: u64 = u32::MAX as u64;

/// Reads on any layer with the feature that `needs` name.
const fn on_any(needs: &'static [&'static str]) -> Reader {
    Reader { layers: Layers::Any, needs }
}

/// Readers of times of blocks that hold one bit a cell.
const CACHES: &[Reader] = &[on_any(&["ftl.slc_cache > 0"]), on_any(&["ftl.slc_fixed > 0"])];
/// Readers of the time of a retry.
const RETRIES: &[Reader] = &[on_any(&["faults.read_fail > 0"]), on_any(&["ecc.strength > 0"])];
/// Layers whose open pages lie in the write buffer.
const GATHERS: Reader = Reader::with(|layer| layer.gathers);
/// Drives with a write buffer: open pages lie there, or acknowledged writes wait there for their programs.
const BUFFERS: &[Reader] = &[GATHERS, on_any(&["buffer.ack = buffer|volatile"])];

/// The keys of the drive and of its part.
static DRIVE: &[Key] = &[
    Key::new(
        "ssd.part",
        PartName,
        "",
        "NAND part: a preset, or the path of a part file; replaces part.* of the files below",
    ),
    Key::required("ssd.channels", Count { min: 1, max: 1024 }, "channels"),
    Key::new("ssd.chips_per_channel", Count { min: 1, max: 1024 }, "1", "chips on each channel"),
    Key::new("ssd.dies_per_chip", Count { min: 1, max: 64 }, "1", "dies in each chip"),
    Key::new("ssd.planes_per_die", Count { min: 1, max: 64 }, "1", "planes in each die"),
    Key::required("ssd.blocks_per_plane", Count { min: 1, max: 1 << 24 }, "blocks in each plane"),
    Key::new(
        "ssd.capacity",
        CAPACITY,
        "0B",
        "bytes that the host sees, by which ssd.blocks_per_plane is set, rounded up; 0B: blocks as given",
    ),
    Key::new("ssd.over_provisioning", Ratio { max: 100.0 }, "7%", "(T - U) / U: physical over logical pages, less one"),
    Key::new(
        "ssd.spare",
        Choice(&["taken", "added"]),
        "taken",
        "another over-provisioning than that of the drive changes what the host sees (taken), or the blocks (added); beside ssd.capacity \
         it always changes the blocks",
    ),
    Key::required(
        "part.cell",
        Choice(&["slc", "mlc", "tlc", "qlc"]),
        "bits a cell; pages of mlc come in low and high pairs",
    ),
    Key::required("part.page_size", PAGE, "data bytes of a page"),
    Key::new("part.subpage_size", PAGE, "4KiB", "unit of partial programs and of fine maps"),
    Key::new("part.spare_size", SPARE, "0B", "spare bytes of a page; codes of second writes use some"),
    Key::required("part.pages_per_block", Count { min: 1, max: 65_536 }, "pages of a block"),
    Key::new(
        "part.pages_per_program",
        Count { min: 1, max: 4 },
        "1",
        "pages of a word line that one program writes: 1, or all of tlc (3) or qlc (4), in one shot of part.t_program and part.e_program",
    ),
    Key::new(
        "part.cache_pages",
        Count { min: 1, max: 4 },
        "1",
        "pages of the next word line that a die takes in while it programs one, with part.pages_per_program above 1 and sim.cache_register",
    ).needs(&["part.pages_per_program > 1", "sim.cache_register = true"]),
    Key::new(
        "part.nop",
        Count { min: 1, max: ANY },
        "1",
        "programs of a page between two erases, re-programs included",
    ),
    Key::new(
        "part.order",
        Choice(&["strict", "ascending", "any", "low-low-high", "low-high-low"]),
        "strict",
        "order of programs within a block",
    ),
    Key::required("part.t_read", Time, "sensing a page (low page where pages are paired)"),
    Key::same("part.t_read_high", Time, "part.t_read", "sensing a high page"),
    Key::new(
        "part.t_read_types",
        Times,
        "[]",
        "sensing the pages of a word line of tlc (3) or qlc (4), in the order of programs; none: part.t_read for all",
    ),
    Key::same("part.t_read_slc", Time, "part.t_read", "sensing a page of a block that holds one bit a cell").read_by(CACHES)
        .needs(&["ftl.read = page|dma"]),
    Key::same("part.t_program_slc", Time, "part.t_program", "programming such a page").read_by(CACHES),
    Key::required("part.t_program", Time, "programming a page (low page where pages are paired)"),
    Key::same("part.t_program_high", Time, "part.t_program", "programming a high page"),
    Key::required("part.t_erase", Time, "erasing a block"),
    Key::new("part.t_command", Time, "0ns", "command and address on the bus, before any operation"),
    Key::required("part.bus_rate", Rate, "transfer rate between controller and die"),
    Key::same(
        "part.t_read_retry",
        Time,
        "part.t_read",
        "extra time of a read whose first attempt fails; of a spread read as much less as its sensing",
    ).read_by(RETRIES),
    Key::new("part.t_suspend", Time, "0ns", "from the suspend command until the die can read").needs(&["sim.suspend = erase|program-erase"]),
    Key::new("part.t_resume", Time, "0ns", "from the resume command until the operation continues").needs(&["sim.suspend = erase|program-erase"]),
    Key::new("part.word_size", WORD, "2KiB", "ECC code word, the grain of dma and spread reads"),
    Key::new("part.t_read_words", Times, "[]", "sensing 1, 2, ... words in spread mode; none: no such command").needs(&["ftl.read = spread"]),
    Key::new("part.t_dma_words", Times, "[]", "transferring 1, 2, ... words; none: part.bus_rate decides"),
    Key::new(
        "part.spread_reach",
        Choice(&["any", "run"]),
        "any",
        "words that one spread read may name: any, or one run of adjacent words",
    ),
    Key::new("part.endurance", Count { min: 1, max: ANY }, "3000", "erases that a block is rated for"),
    Key::new(
        "part.endurance_slc",
        Count { min: 1, max: ANY },
        "30000",
        "the same of a block of tlc or qlc that always holds one bit a cell (ftl.slc_fixed)",
    ).needs(&["ftl.slc_fixed > 0"]),
    Key::new(
        "part.endurance_deviation",
        PROBABILITY,
        "0%",
        "standard deviation of the erases that single blocks endure, as a share of part.endurance",
    ),
    Key::new("part.ber_fresh", PROBABILITY, "0.001%", "raw bit error rate of a new block"),
    Key::new(
        "part.ber_limit",
        PROBABILITY,
        "0.1%",
        "raw bit error rate that ends a block's life, reached after part.endurance",
    ),
    Key::new(
        "part.reuse_shares",
        Ratios,
        "[]",
        "shares of part.endurance spent programming low pages again, ascending to 100%, for the next two; none: not measured",
    ),
    Key::new("part.reuse_loss", Ratios, "[]", "share of part.endurance lost at each of them"),
    Key::new("part.voltage_loss", Ratios, "[]", "share of it lost to the raised threshold voltage alone"),
    Key::new(
        "part.pair_corruption",
        Flag,
        "false",
        "whether a program that fails or is cut off corrupts the other pages of its word line; they are copied before, into blocks kept for it",
    ),
    Key::new("part.e_read", Energy, "0J", "energy of sensing a page (low page)"),
    Key::same("part.e_read_high", Energy, "part.e_read", "energy of sensing a high page").needs(&["part.cell = mlc"]),
    Key::new(
        "part.e_read_words",
        Energies,
        "[]",
        "energy of sensing 1, 2, ... words in spread mode; none: as for the page",
    ).needs(&["ftl.read = spread"]),
    Key::new("part.e_program", Energy, "0J", "energy of programming a page (low page)"),
    Key::same("part.e_program_high", Energy, "part.e_program", "energy of programming a high page").needs(&["part.cell = mlc"]),
    Key::same("part.e_reprogram", Energy, "part.e_program", "energy of programming a low page again"),
    Key::new("part.e_erase", Energy, "0J", "energy of erasing a block"),
    Key::same(
        "part.e_program_low_first",
        Energy,
        "part.e_program",
        "energy of the first program of a low page where low pages are programmed first",
    ),
    Key::same(
        "part.e_program_high_second",
        Energy,
        "part.e_program_high",
        "energy of programming a high page where low pages were programmed first",
    ),
    Key::same(
        "part.e_erase_reused",
        Energy,
        "part.e_erase",
        "energy of erasing a block whose low pages were programmed again",
    ),
];

/// The key that names the translation layer.
static LAYER: Key = Key::new(
    "ftl.name",
    Words(&Notation { words: layer_names, read: layer_name, expected: expected_layers }),
    "page",
    "flash translation layer",
);

fn layer_names() -> Vec<&'static str> {
    layers().map(|entry| entry.name).collect()
}

fn expected_layers() -> String {
    format!("one of {}", layer_names().join(", "))
}

fn layer_name(text: &str) -> Parsed<String> {
    if layer_names().contains(&text) {
        return Ok(text.into());
    }
    let near = near(text, layer_names().into_iter());
    Err(format!("there is no such translation layer{near}; expected {}", expected_layers()))
}

/// The keys of the engine, the host, the buffer, the controller and faults.
static AROUND: &[Key] = &[
    Key::new(
        "sim.scheduler",
        Choice(&["fifo", "read-first", "host-first"]),
        "fifo",
        "which waiting operation a die starts next",
    ),
    Key::new("sim.starvation_bound", Time, "10ms", "longest time for which others overtake an operation")
        .needs(&["sim.scheduler = read-first|host-first"]),
    Key::new(
        "sim.suspend",
        Choice(&["none", "erase", "program-erase"]),
        "none",
        "running operations that a read may suspend",
    ),
    Key::new(
        "sim.cache_register",
        Flag,
        "false",
        "whether operations of one kind are pipelined through a die's cache register",
    ),
    Key::new(
        "sim.cache_read",
        Flag,
        "true",
        "whether these include reads; else only programs are, and a die is busy until the data of a read has left it",
    )
    .needs(&["sim.cache_register = true"]),
    Key::new(
        "sim.multi_plane",
        Choice(&["off", "waiting", "group"]),
        "waiting",
        "operations of one kind on different planes of a die that run together: none, all that wait, or those of one command \
         group of a file system",
    ),
    Key::new(
        "sim.plane_reads",
        Choice(&["aligned", "independent"]),
        "aligned",
        "reads on different planes of a die that sim.multi_plane lets run together: those of one page address, or any",
    )
    .needs(&["sim.multi_plane = waiting|group"]),
    Key::new(
        "sim.block_order",
        Choice(&["needed", "planned"]),
        "needed",
        "operations of one block start in the order that flash needs, and reads find what is not programmed yet in memory; or all as \
         planned",
    ),
    Key::new("host.speedup", Factor, "1", "arrival times of an open loop are divided by this"),
    Key::new("host.fold", Flag, "false", "whether addresses beyond the drive are folded into it instead of refused"),
    Key::new(
        "host.compact",
        PIECE,
        "0B",
        "only pieces of this size that a trace reads or writes get addresses, in their order, such as 1MiB; 0B: addresses as they are",
    ),
    Key::new("host.link_rate", Rate, "unlimited", "transfer rate between host and drive"),
    Key::new("host.t_link", Time, "0ns", "latency of the host link, each way, beside its transfers"),
    Key::new("host.t_request", Time, "0ns", "time of the host for each request, beside that of others in flight"),
    Key::new("host.iodepth", Count { min: 0, max: 1 << 20 }, "0", "queue depth; 0: that of the workload"),
    Key::new("buffer.size", BUFFER, "1MiB", "bytes of the write buffer").read_by(BUFFERS),
    Key::new(
        "buffer.ack",
        Choice(&["buffer", "program", "volatile"]),
        "buffer",
        "a write is acknowledged in a buffer that survives a power cut, when programmed, or in a buffer that a power cut empties",
    ),
    Key::new(
        "buffer.flush",
        Choice(&["programs", "free"]),
        "programs",
        "a flush waits for programs, or ends at once, since the buffer is protected",
    )
    .needs(&["buffer.ack = buffer"]),
    Key::new("buffer.t_write", Time, "0ns", "time to put the first subpage of a write into the write buffer")
        .read_by(BUFFERS),
    Key::new("buffer.t_write_next", Time, "0ns", "time for each further subpage of the write").read_by(BUFFERS),
    Key::new("buffer.timeout", Time, "1ms", "a partly filled page is padded and programmed after this long")
        .read_by(&[GATHERS]),
    Key::new(
        "controller.iops",
        Count { min: 0, max: 1_000_000_000 },
        "0",
        "requests a second that the processors take, one after the other; 0: any number",
    ),
    Key::new("controller.t_read", Time, "0ns", "time of a read before its first flash command, beside that of others"),
    Key::new(
        "controller.t_write",
        Time,
        "0ns",
        "time of any other request before its data is taken, beside that of others",
    ),
    Key::new("controller.t_end", Time, "0ns", "time of a request after flash or buffer, beside that of others"),
    Key::new(
        "controller.read_ahead",
        Count { min: 0, max: 1 << 16 },
        "0",
        "pages that are read beyond a stream of sequential reads before the host asks; 0: none",
    ),
    Key::new(
        "controller.read_streams",
        Count { min: 1, max: 256 },
        "8",
        "streams of sequential reads that read-ahead tells apart",
    )
    .needs(&["controller.read_ahead > 0"]),
    Key::new(
        "ecc.strength",
        Count { min: 0, max: 1 << 20 },
        "0",
        "wrong bits of a code word (part.word_size) that are corrected; 0: reads have no errors but those of faults.read_fail",
    ),
    Key::new(
        "ecc.t_retries",
        Times,
        "[]",
        "extra time of each step of a retry, until a read succeeds or fails for good",
    )
    .needs(&["ecc.strength > 0"]),
    Key::new("ecc.retry_rates", Ratios, "[]", "share of the wrong bits that each of these steps leaves")
        .needs(&["ecc.strength > 0"]),
    Key::new(
        "ecc.t_retention",
        Age,
        "0ns",
        "age of data at which the rate of wrong bits has doubled; 0ns: it does not grow",
    )
    .needs(&["ecc.strength > 0"]),
    Key::new("ecc.data_age", Age, "0ns", "age that what preconditioning wrote has when the measurement begins")
        .needs(&["ecc.strength > 0", "ecc.t_retention > 0"]),
    Key::new(
        "ecc.disturb_reads",
        Count { min: 0, max: ANY },
        "0",
        "reads of a block since its erase at which the rate of wrong bits has doubled; 0: it does not grow",
    )
    .needs(&["ecc.strength > 0"]),
    log::REFRESH_RETRIES,
    Key::new("faults.program_fail", PROBABILITY, "0%", "probability that a program fails and its block goes bad"),
    Key::new("faults.erase_fail", PROBABILITY, "0%", "probability that an erase fails and its block goes bad"),
    Key::new("faults.read_fail", PROBABILITY, "0%", "probability that a read needs a retry"),
    Key::new("faults.initial_bad", PROBABILITY, "0%", "share of blocks that are bad from the factory"),
    Key::new(
        "faults.wear_out",
        Flag,
        "false",
        "whether a block fails its erase when its erases have come to what it endures (part.endurance)",
    ),
    Key::new(
        "faults.power_cut_at",
        Count { min: 0, max: i64::MAX as u64 },
        "0",
        "flash operation in which the power is cut, in a timed run half-way through its time; 0: never",
    ),
];

/// A key of the schema.
#[derive(Debug)]
pub struct Known {
    key: &'static Key,
    /// The layers that may read it, without the file systems that read it through the layer below; `None` if every
    /// layer runs with it.
    pub layers: Option<Vec<&'static str>>,
    /// Its meaning, after the names of those layers.
    pub doc: String,
    /// The value that it has where nothing sets it; none where another key or the drive says it.
    pub fallback: Option<Value>,
}

impl Deref for Known {
    type Target = Key;

    fn deref(&self) -> &Key {
        self.key
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All keys, in the order in which they are printed: table by table.
pub fn keys() -> &'static [Known] {
    static GATHERED: OnceLock<Vec<Known>> = OnceLock::new();
    GATHERED.get_or_init(gather)
}

fn gather() -> Vec<Known> {
    let of_layers = layers().flat_map(|entry| (entry.keys)());
    let of_drive = DRIVE.iter().chain([&LAYER]).map(|key| (key, true));
    // Keys that layers list and that are here, too, keep this place.
    let is_around = |key: &Key| AROUND.iter().any(|around| around.name == key.name);
    let of_layers = log::keys().into_iter().chain(of_layers).filter(|key| !is_around(key)).map(|key| (key, false));
    let around = AROUND.iter().chain([&POWER_CUTS, &DIE_FAILURE]).map(|key| (key, true));
    let mut known: Vec<Known> = Vec::new();
    for (key, is_of_drive) in of_drive.chain(of_layers).chain(around) {
        match known.iter().find(|known| known.name == key.name) {
            Some(known) => assert!(known.key.doc == key.doc, "{} is defined twice", key.name),
            None => known.push(Known::new(key, is_of_drive)),
        }
    }
    say_layers(&mut known);
    // New keys of an existing table follow its keys.
    let mut tables: Vec<&str> = Vec::new();
    for known in &known {
        if !tables.contains(&known.split().0) {
            tables.push(known.split().0);
        }
    }
    known.sort_by_key(|known| tables.iter().position(|table| *table == known.split().0));
    known
}

impl Known {
    fn new(key: &'static Key, is_of_drive: bool) -> Self {
        let fallback = match key.default {
            Fallback::Text(text) => {
                Some(read_bare(key.value_type, text).unwrap_or_else(|what| panic!("default of {}: {what}", key.name)))
            }
            Fallback::Same(_) | Fallback::Required => None,
        };
        let layers = (!is_of_drive || !key.readers.is_empty()).then(Vec::new);
        Known { key, layers, doc: key.doc.into(), fallback }
    }

    /// Whether the layer `entry` may read it, if other keys have the values that this needs.
    pub fn is_read_on(&self, entry: &Entry) -> bool {
        self.layers.is_none() || is_read_on(keys(), self, entry)
    }

    /// The names of the layers that may read it, for messages.
    pub fn layer_names(&self) -> String {
        self.layers.as_deref().map_or_else(String::new, |layers| layers.join(", "))
    }
}

/// Whether `entry` reads `key` of `known`, and each key of its conditions.
fn is_read_on(known: &[Known], key: &Key, entry: &Entry) -> bool {
    let can = |needs: &[&'static str]| {
        let mut others = needs.iter().map(|need| Need::parse(need).key);
        others.all(|other| {
            let other = known.iter().find(|known| known.name == other).expect("a condition names a key");
            other.layers.is_none() || is_read_on(known, other, entry)
        })
    };
    let reads = match key.readers {
        [] => entry.lists(key.name),
        readers => readers.iter().any(|reader| reader.is_on(key.name, entry) && can(reader.needs)),
    };
    reads && can(key.needs)
}

/// Notes for each key the layers that may read it, without file systems above one that does.
fn say_layers(known: &mut [Known]) {
    for at in 0..known.len() {
        if known[at].layers.is_none() {
            continue;
        }
        let reads = |entry: &Entry| is_read_on(known, &known[at], entry);
        let names = layers().filter(|entry| reads(entry) && !entry.below.is_some_and(reads)).map(|entry| entry.name);
        let names: Vec<&str> = names.collect();
        assert!(!names.is_empty(), "no layer reads {}", known[at].name);
        known[at].doc = format!("{}: {}", short(&names), known[at].key.doc);
        known[at].layers = Some(names);
    }
}

/// `names`, with all layers of one prefix as a pattern, such as `fs-*`.
fn short(names: &[&str]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for name in names {
        let begins = name.split_once('-').map(|(begin, _)| format!("{begin}-"));
        let family = |begin: &str| layers().map(|entry| entry.name).filter(|name| name.starts_with(begin)).count();
        let here = |begin: &str| names.iter().filter(|name| name.starts_with(begin)).count();
        let text = match begins {
            Some(begin) if here(&begin) > 1 && here(&begin) == family(&begin) => format!("{begin}*"),
            _ => (*name).to_owned(),
        };
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    shown.join(", ")
}

/// Keys outside tables: they describe the file, not the drive.
pub const ABOUT: &[&str] = &["name", "description", "source", "base", "complete"];

/// The key called `name`, which there is.
pub fn known(name: &str) -> &'static Known {
    &keys()[position(name).unwrap_or_else(|| panic!("{name} is not in the schema"))]
}

/// The position in [`keys`] of the key called `name`.
pub fn position(name: &str) -> Option<usize> {
    keys().iter().position(|key| key.name == name)
}
