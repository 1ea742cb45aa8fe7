//! A flash translation layer: the trait, its entry in the registry, and the flash that it gets.
//!
//! A layer is sans-I/O: it gets an extent and an [`Io`], through which it acts on flash; it has no queue, no clock and
//! no engine. The same code runs counted, timed, with or without contents. `docs/write-an-ftl.md` explains it with a
//! complete layer.

pub mod plan;

use keys::readers::Layers;
use keys::{Feature, Key, Reader};
use palimpsest_flash::geometry::{Extent, Geometry};
pub use palimpsest_flash::keys::settings;
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::part::{Part, ReadMode};
use palimpsest_flash::rng::Rng;
pub use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
pub use palimpsest_flash::{keys, words};
use plan::Io;
use settings::Settings;

/// What a layer is built from.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The values of all keys; each layer takes its own.
    pub settings: Settings,
    /// Logical pages that the drive exports.
    pub logical_pages: u32,
    /// Whether open pages survive a power cut. If not, the program of an open page must signal the gates of its writes.
    pub protected: bool,
    /// How long a partly filled page may wait.
    pub buffer_timeout: Nanos,
    /// For policies that draw at random.
    pub seed: u64,
}

/// DRAM that a layer's tables take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Bytes of each table now.
    pub tables: Vec<(&'static str, u64)>,
    /// The most that all tables took together.
    pub peak_bytes: u64,
}

/// A figure of a layer's own. The run subtracts its value before the measurement, by the type of figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Something counted since the drive was new.
    Count(u64),
    /// How much there is of something, now or at its peak.
    Level(u64),
    /// A count as a share of another.
    ShareOfCount(u64, u64),
    /// A level as a share of another.
    ShareOfLevel(u64, u64),
}

/// What a layer reports beside what flash and engine count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerFigures {
    /// Its tables.
    pub mapping: Mapping,
    /// Collections of garbage.
    pub gc_runs: u64,
    /// Blocks erased by them.
    pub gc_erased: u64,
    /// Subpages moved by them.
    pub gc_moved_subpages: u64,
    /// Merges of scattered subpages.
    pub merges: u64,
    /// Subpages moved by merges.
    pub merge_moved_subpages: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Share of the endurance of its part in which it programs low pages again.
    pub safe_life: f64,
    /// Figures of its own, by name.
    pub own: Vec<(&'static str, Figure)>,
    /// What the user should know of this layer on this drive, each in a sentence.
    pub remarks: Vec<String>,
}

/// [`Ftl::state`] and [`Ftl::state_mut`] of a layer that has a [`State`], as [`macro@palimpsest_flash::state`] makes
/// one of its fields. Such a layer reads no keys of the host, the controller and the engine, of which states do not
/// depend.
#[macro_export]
macro_rules! keeps_state {
    () => {
        fn state(&self) -> Option<&dyn $crate::State> {
            Some(self)
        }

        fn state_mut(&mut self) -> Option<&mut dyn $crate::State> {
            Some(self)
        }
    };
}

/// A flash translation layer.
///
/// Extents are within the logical pages of the [`Blueprint`] and cover a sector at least; they may begin and end at any
/// sector, except those of [`Self::trim`]. After an error of any method the next call is [`Self::recover`], or none but
/// [`Self::figures`].
pub trait Ftl: Send {
    /// Subpages of the unit that the layer maps: what can be trimmed, and what preconditioning writes.
    fn unit_subpages(&self) -> u32;

    /// Subpages of the smallest run that crosses the host link.
    fn transfer_subpages(&self) -> u32 {
        self.unit_subpages()
    }

    /// A request for `extent` comes after some others (`soon`: after a few). Layers may prefetch memory.
    fn expect(&self, _extent: Extent, _soon: bool) {}

    /// Serves a write: [`Io::written`] gives the new content of each piece of the extent over its old content. The
    /// request completes when its gate ([`Io::request`]) closes: when every operation that signals it has ended, at
    /// once if none does.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]: passed on from flash; the layer itself makes only
    /// [`palimpsest_flash::nand::Halt::NoSpace`].
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Writes whole pages of the `units` units from `first` on, none of which was ever written, as a [`Self::write`] of
    /// each page would: in counted runs, for preconditioning. Returns how many units it wrote: fewer, or none, if a
    /// write does more than to fill pages in turn.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn fill(&mut self, _io: &mut Io, _first: u32, _units: u32) -> Flash<u32> {
        Ok(0)
    }

    /// Serves a read: delivers each logical subpage that the extent touches once, in any order, those never written as
    /// zeros (which [`Io::count_unwritten`] counts).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Unmaps the units of `extent`, which are whole: they read as zeros. The drive journals the trim
    /// ([`palimpsest_flash::nand::Nand::note_trimmed`]).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Programs all buffered units; the request completes when they are programmed (its gate as for [`Self::write`]).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn flush(&mut self, io: &mut Io) -> Flash<()>;

    /// When [`Self::timer`] is due.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// The deadline has come.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn timer(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    /// One step of work for an idle drive. False where there is none.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn background(&mut self, _io: &mut Io) -> Flash<bool> {
        Ok(false)
    }

    /// Moves the valid data of `block` elsewhere and erases the block, because reads of it needed many retries. False, and
    /// without effect, if the block is not full or there is no room.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn relocate(&mut self, _io: &mut Io, _block: u32) -> Flash<bool> {
        Ok(false)
    }

    /// After a power cut: rebuilds every table from flash and from a protected buffer, all that survives. A second
    /// power cut may interrupt it. Called only where the payload keeps program numbers
    /// ([`palimpsest_flash::nand::Nand::sequence`]).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn recover(&mut self, io: &mut Io) -> Flash<()>;

    /// Appends the tables of a checkpoint to `bytes`, as many as [`Entry::tables`] says. By default the place of each
    /// logical subpage, which [`Self::recover`] finds in the out-of-band areas; a layer with tables of its own finds
    /// them as [`plan::Io::tables`].
    fn save_tables(&self, io: &Io, bytes: &mut Vec<u8>) {
        io.save_places(bytes);
    }

    /// Checks every table against itself and against flash. Slow.
    ///
    /// # Errors
    /// What disagrees.
    fn check(&mut self, io: &Io) -> Result<(), String>;

    /// Figures for the results.
    fn figures(&self) -> LayerFigures;

    /// The state, for runs that keep what preconditioning made of the drive ([`mod@palimpsest_flash::state`]): `None`
    /// where the layer has no such form, and every run preconditions. [`crate::keeps_state!`] is both methods.
    fn state(&self) -> Option<&dyn State> {
        None
    }

    /// The state of this new layer, to be taken over from another one of the same blueprint.
    fn state_mut(&mut self) -> Option<&mut dyn State> {
        None
    }

    /// Adds to each entry of `valid` how many subpages of that physical block are valid: would have to move before its
    /// erase. False where the layer has no such counts. For charts: called some hundred times in a run.
    fn count_valid(&self, _valid: &mut [u32]) -> bool {
        false
    }
}

/// When what a write stored cannot be lost any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is acknowledged: it is programmed then.
    Programmed,
    /// When it is acknowledged: the buffer that holds it survives a power cut.
    Buffered,
    /// When a flush behind it is acknowledged: all is programmed then.
    Flushed,
}

/// What a layer promises of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// When they are durable.
    pub durable: Durability,
    /// Whether what its buffer holds, and what is planned, is still programmed when the power fails.
    pub protected: bool,
}

/// What a configuration describes, for a layer to check.
pub struct Proposal<'a> {
    /// The values of all keys.
    pub settings: &'a Settings,
    /// The NAND part.
    pub part: &'a Part,
    /// Shape of the drive.
    pub geometry: &'a Geometry,
    /// Logical pages that the drive exports.
    pub logical_pages: u64,
}

/// Why a layer refuses a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The keys that contradict each other; the message shows them with their values.
    pub keys: Vec<&'static str>,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl Unfit {
    /// The refusal `what` of the values of `keys`.
    pub fn new(keys: &[&'static str], what: impl Into<String>) -> Self {
        Unfit { keys: keys.into(), what: what.into() }
    }
}

/// Returns an [`Unfit`] from the function if a condition holds: `refuse_if!(CONDITION => KEY, ..; MESSAGE)`, the
/// message as for `format!`.
#[macro_export]
macro_rules! refuse_if {
    ($broken:expr => $($key:expr),+; $($what:tt)+) => {
        if $broken {
            return Err($crate::Unfit::new(&[$($key),+], format_args!($($what)+).to_string()));
        }
    };
}

/// How often a layer programs a page before the erase of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// Once.
    Once,
    /// Once for each of its subpages.
    Subpages,
    /// Again over data, with a code.
    OverData,
}

/// Small drives for the model suite, which draws their shapes: what every drive of a layer needs, and how its own keys vary.
pub struct Model {
    /// Settings that a drive of the layer needs; they replace what the suite draws.
    pub needs: &'static [&'static str],
    /// Settings that differ from drive to drive, each `key=value`, from a source of random numbers and what was drawn
    /// so far.
    pub varies: fn(&mut Rng, &[String]) -> Vec<String>,
    /// The fewest subpages that a page must have.
    pub subpages_per_page: u32,
    /// Blocks of a plane that it needs beyond those of any layer.
    pub blocks: u32,
    /// Whether what it stores stays in the plane that the address names, though others have room.
    pub banked: bool,
}

impl Model {
    /// Any drive will do.
    pub const ANY: Model =
        Model { needs: &[], varies: |_, _| Vec::new(), subpages_per_page: 1, blocks: 0, banked: false };
}

/// One line of the registry: all that other code uses of a layer.
pub struct Entry {
    /// Name in the configuration.
    pub name: &'static str,
    /// A line for `palimpsest list`.
    pub about: &'static str,
    /// The keys that it reads: its own, and those of `log::settings` that it shares with other layers. Keys that state
    /// their readers ([`Key::readers`]) need not be here.
    pub keys: fn() -> Vec<&'static Key>,
    /// The layer below, where this one is a file system; it uses the keys of that layer too.
    pub below: Option<&'static Entry>,
    /// Keys of the layer below that make no difference below this file system.
    pub hides: &'static [&'static str],
    /// Whether it classifies writes by the lifetime that a file system above expects (classifier `hint`).
    pub takes_hints: bool,
    /// Whether it always separates hot data from cold and moved data, whatever `ftl.streams`.
    pub hot_and_cold: bool,
    /// The read command of a layer named after one; `None` where `ftl.read` sets it.
    pub read: Option<ReadMode>,
    /// Whether the layer gathers writes in open pages, which lie in the write buffer, and counts their room itself
    /// ([`plan::Io::take_buffer`]).
    pub gathers: bool,
    /// Whether its pages can be word lines that are programmed in one shot (`part.pages_per_program`): it writes a page once, whole, and maps
    /// what is smaller.
    pub word_lines: bool,
    /// Whether it can have a fixed share of a fast cache (`ftl.slc_fixed`), as layers of one log can.
    pub fast_cache: bool,
    /// Whether it goes on with the other dies when one has failed.
    pub outlives_dies: bool,
    /// Whether it programs each page whole and once, and moves what [`plan::Io`] rebuilds: pages can have parity across
    /// dies.
    pub takes_parity: bool,
    /// How often the layer programs a page before the erase: what of the flash a checkpoint knows for good.
    pub programs: Programs,
    /// Bytes of the tables in a checkpoint of a drive with so many logical subpages.
    pub tables: fn(&Settings, &Geometry, u64) -> u64,
    /// Blocks of each plane that it reserves, beyond those of logical pages.
    pub reserved: fn(&Settings, &Geometry) -> u32,
    /// The key of their number; empty where there is none.
    pub reserved_key: &'static str,
    /// The part as the layer uses it: with a code of cells, say. Parts that it cannot use stay as they are, for `check`
    /// to refuse.
    pub part: fn(&Settings, Part) -> Part,
    /// Refuses a drive that it cannot run on.
    pub check: fn(&Proposal<'_>) -> Result<(), Unfit>,
    /// Drives of the model suite.
    pub model: Model,
    /// Builds one over erased flash.
    pub build: fn(&Io, &Blueprint) -> Box<dyn Ftl>,
}

impl Entry {
    /// A layer without keys or needs of its own, for `..Entry::PLAIN`: it lacks a name, a description and how it is
    /// built.
    pub const PLAIN: Entry = Entry {
        name: "",
        about: "",
        keys: Vec::new,
        below: None,
        hides: &[],
        takes_hints: false,
        hot_and_cold: false,
        read: None,
        gathers: false,
        word_lines: false,
        fast_cache: false,
        outlives_dies: false,
        takes_parity: false,
        programs: Programs::Once,
        tables: |_, _, subpages| 4 * subpages,
        reserved: |_, _| 0,
        reserved_key: "",
        part: |_, part| part,
        check: |_| Ok(()),
        model: Model::ANY,
        build: |_, _| panic!("an entry of a layer has `build`"),
    };

    /// Whether it is a file system above a layer.
    pub fn is_file_system(&self) -> bool {
        self.below.is_some()
    }

    /// Whether it has `feature`.
    pub fn has(&self, feature: Feature) -> bool {
        match feature {
            Feature::OpenPages => self.gathers,
            Feature::FastCache => self.fast_cache,
            Feature::Parity => self.takes_parity,
        }
    }

    /// Whether `reader` reads `key` on this layer, where the conditions of the reader hold.
    pub fn has_reader(&self, reader: &Reader, key: &Key) -> bool {
        match reader.layers {
            Layers::Any => true,
            Layers::Listed => self.lists(key.name),
            Layers::With(feature) => self.has(feature),
        }
    }

    /// Whether it, or the layer below it, lists `key`.
    pub fn lists(&self, key: &str) -> bool {
        let by_below = || self.below.is_some_and(|below| below.lists(key)) && !self.hides.contains(&key);
        (self.keys)().iter().any(|own| own.name == key) || by_below()
    }

    /// Settings that a drive of the model suite needs: those of the layer below, then its own.
    pub fn needs(&self) -> Vec<&'static str> {
        let mut needs = self.below.map_or_else(Vec::new, Entry::needs);
        needs.extend(self.model.needs);
        needs
    }

    /// The fewest subpages that a page of a drive of the model suite must have.
    pub fn least_subpages(&self) -> u32 {
        self.model.subpages_per_page.max(self.below.map_or(1, Entry::least_subpages))
    }

    /// Blocks of a plane that it writes to at once.
    pub fn frontiers(&self, settings: &Settings) -> u32 {
        if self.hot_and_cold { 2 } else { settings.get("ftl.streams") }
    }
}
