//! A flash translation layer: its trait, its entry in the registry, and its access to flash.
//!
//! A layer is sans-I/O: each call passes an extent and an [`Io`], through which the layer changes flash. A layer has no
//! queue, no clock and no engine. The same code therefore runs counted or timed, with or without contents.
//! `docs/write-an-ftl.md` shows a complete layer.

mod placement;
pub mod plan;
pub mod zones;

use crate::plan::RecoveryIo;
use keys::readers::Layers;
use keys::{Feature, Key, Reader};
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::{Extent, Geometry, RequestKind};
pub use palimpsest_flash::keys::settings;
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::part::{Part, ReadMode};
use palimpsest_flash::rng::Rng;
pub use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
pub use palimpsest_flash::{keys, words};
pub use placement::{HandleFigures, PlacementEvents, PlacementFigures};
use plan::Io;
use settings::Settings;
use zones::{ZoneError, ZoneFigures, Zones};

/// Parameters of [`Entry::build`].
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The values of all keys; each layer reads only its own.
    pub settings: Settings,
    /// Logical pages that the drive exports.
    pub logical_pages: u32,
    /// True if open pages survive a power cut. If false, the program of an open page must signal the gates of its
    /// writes.
    pub protected: bool,
    /// The longest time that a partly filled page may wait for more data.
    pub buffer_timeout: Nanos,
    /// Seed for policies that draw at random.
    pub seed: u64,
}

/// DRAM of a layer's tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Bytes of each table now.
    pub tables: Vec<(&'static str, u64)>,
    /// Largest sum of all tables so far.
    pub peak_bytes: u64,
}

/// A figure of one layer. The run subtracts the value at the start of the measurement as the type of figure requires.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Events since the drive was new.
    Count(u64),
    /// An amount, now or at the peak.
    Level(u64),
    /// A count as a share of another count.
    ShareOfCount(u64, u64),
    /// A level as a share of another level.
    ShareOfLevel(u64, u64),
}

/// Figures of a layer beside the counters of flash and engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerFigures {
    /// Memory of the tables.
    pub mapping: Mapping,
    /// Collections of garbage.
    pub gc_runs: u64,
    /// Blocks erased by collections.
    pub gc_erased: u64,
    /// Subpages moved by collections.
    pub gc_moved_subpages: u64,
    /// Merges of scattered subpages.
    pub merges: u64,
    /// Subpages moved by merges.
    pub merge_moved_subpages: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Share of the endurance of the part in which the layer programs low pages again.
    pub safe_life: f64,
    /// Figures of this layer alone, by name.
    pub own: Vec<(&'static str, Figure)>,
    /// Figures of reclaim unit handles, if the layer has them.
    pub placement: Option<PlacementFigures>,
    /// Figures of zones, if the layer has them.
    pub zones: Option<ZoneFigures>,
    /// Remarks for the user about this layer on this drive, each one sentence.
    pub remarks: Vec<String>,
}

palimpsest_flash::state!(PlacementEvents {
    unit_not_fully_written,
    reset_modified_handles,
    invalid_placement_identifier,
    media_reallocated
});

/// Implements [`Ftl::state`] and [`Ftl::state_mut`] for a layer with a [`State`] (see
/// [`macro@palimpsest_flash::state`]). Such a layer must not read keys of the host, the controller or the engine,
/// because stored states do not depend on them.
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

/// A classifier that reads requests before the drive serves them, many at a time.
pub trait ClassifyAhead {
    /// Sets the class of `commands`, which arrive at `arrivals` of the run. Must be called once for each, in order.
    fn classify_ahead(&mut self, arrivals: &[Nanos], commands: &mut [Command]);
}

/// A flash translation layer.
///
/// Callers keep extents within the logical pages of the [`Blueprint`], and at least one sector long. An extent may
/// begin and end at any sector, except in [`Self::trim`]. After an error the caller may call only [`Self::recover`] or
/// [`Self::figures`].
pub trait Ftl: Send {
    /// Subpages of the mapping unit. Trims cover whole units, and preconditioning writes whole units.
    fn unit_subpages(&self) -> u32;

    /// Subpages of the smallest trim: a zone, where zones are reset.
    fn trim_subpages(&self) -> u32 {
        self.unit_subpages()
    }

    /// Subpages of the layer below a file system, which gets inner requests; `None` for other layers.
    fn inner_subpages(&self) -> Option<u32> {
        None
    }

    /// The end, at most `end`, of the logical subpages from `first` on that belong to one file with subpage `first -
    /// 1`: a reader of that file may want them next. Layers without files return `end`.
    fn file_end(&self, _first: u32, end: u32) -> u32 {
        end
    }

    /// Announces a later request for `extent` (`soon`: only a few requests come before). A layer may prefetch memory.
    fn expect(&self, _extent: Extent, _soon: bool) {}

    /// The physical subpage with the first unit of `extent`, if the layer knows, so that the content is prefetched.
    fn locate_ahead(&self, _extent: Extent) -> Option<u32> {
        None
    }

    /// The classifier that must read each request before [`Self::write`]; `None` if the layer needs none.
    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        None
    }

    /// The zones, if the drive is zoned.
    fn zones(&self) -> Option<&Zones> {
        None
    }

    /// As [`Self::zones`], for a host that reads the Changed Zone List.
    fn zones_mut(&mut self) -> Option<&mut Zones> {
        None
    }

    /// Decides whether a zoned drive serves a request of `kind` and the present directives, and prepares the zone.
    /// Returns the sectors of the request: of a Zone Append those that the drive chose. The drive then calls
    /// [`Self::write`], [`Self::read`], [`Self::trim`] or [`Self::finish`] with them.
    ///
    /// # Errors
    /// The status of the failed request.
    fn admit(&mut self, _io: &Io, _kind: RequestKind, extent: Extent) -> Result<Extent, ZoneError> {
        Ok(extent)
    }

    /// Serves an admitted Finish Zone, which fills the rest of the zone at `extent` with zeros, or Commit Zone, which
    /// commits the random write area up to the end of `extent`.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn finish(&mut self, _io: &mut Io, _extent: Extent) -> Flash<()> {
        Ok(())
    }

    /// Serves a write. For each piece of the extent, [`Io::written`] returns the new content from the old content. The
    /// request completes when every operation that signals its gate ([`Io::request`]) has ended, or at once if none
    /// does.
    ///
    /// # Errors
    /// Every [`palimpsest_flash::nand::Halt`] of flash; of the layer only [`palimpsest_flash::nand::Halt::NoSpace`].
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Writes `units` units from `first` on, in whole pages, with the same effect as one [`Self::write`] per page. Only
    /// preconditioning in counted runs calls this, and no unit may have been written before. Returns the number of
    /// units written. The layer must stop early, or return 0, where a write would do more than fill the next page.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn fill(&mut self, _io: &mut Io, _first: u32, _units: u32) -> Flash<u32> {
        Ok(0)
    }

    /// Serves a read: must deliver each logical subpage that the extent touches exactly once, in any order. Subpages
    /// never written are delivered as zeros and counted by [`Io::count_unwritten`].
    ///
    /// # Errors
    /// As [`Self::write`].
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Unmaps the whole units of `extent`: later reads must return zeros. The drive, not the layer, journals the trim.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()>;

    /// Programs all buffered units. The request must not complete before (its gate as for [`Self::write`]).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn flush(&mut self, io: &mut Io) -> Flash<()>;

    /// Lets the reclaim unit handle that the present directives name refer to an empty reclaim unit, after a flush.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn update_handle(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    /// The events of reclaim unit handles, if the layer has handles; [`Self::figures`] takes longer.
    fn placement_events(&self) -> Option<PlacementEvents> {
        None
    }

    /// The time at which the drive must call [`Self::timer`]; `None` for never.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// Called when the deadline has passed.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn timer(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    /// Performs one step of background work while the drive is idle. Returns false if no work is left.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn background(&mut self, _io: &mut Io) -> Flash<bool> {
        Ok(false)
    }

    /// Moves the valid data of `block` elsewhere and erases the block, because reads of the block needed many retries.
    /// Returns false and must change nothing if the block is not full or no room is left. After true the block must
    /// hold no valid data, except units that wait for the rest of their new page; the drive ends the run otherwise.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn relocate(&mut self, _io: &mut Io, _block: u32) -> Flash<bool> {
        Ok(false)
    }

    /// Rebuilds every table after a power cut, from flash and from a protected buffer alone. A second power cut may
    /// interrupt the recovery. Called only if the payload keeps program numbers
    /// ([`palimpsest_flash::nand::Nand::sequence`]).
    ///
    /// # Errors
    /// As [`Self::write`].
    fn recover(&mut self, io: &mut Io) -> Flash<()>;

    /// Appends the tables for a checkpoint to `bytes`, at most [`Entry::tables`] bytes. The default saves the place of
    /// each logical subpage, which [`Self::recover`] reads from the out-of-band areas. A layer with other tables must
    /// read them back from [`plan::CheckpointIo::tables`].
    fn save_tables(&self, io: &Io, bytes: &mut Vec<u8>) {
        io.save_places(bytes);
    }

    /// Checks every table against the other tables and against flash. Slow.
    ///
    /// # Errors
    /// The first contradiction found.
    fn check(&mut self, io: &Io) -> Result<(), String>;

    /// Figures for the results.
    fn figures(&self) -> LayerFigures;

    /// The layer's state, for runs that store a preconditioned drive ([`mod@palimpsest_flash::state`]). With `None`
    /// every run preconditions again. [`crate::keeps_state!`] implements both methods.
    fn state(&self) -> Option<&dyn State> {
        None
    }

    /// The state of this new layer, to be filled from another layer of the same blueprint.
    fn state_mut(&mut self) -> Option<&mut dyn State> {
        None
    }

    /// Adds to each entry of `valid` the number of valid subpages of that physical block, which collection would have
    /// to move. Returns false if the layer has no such counts. Charts call this some hundred times in a run.
    fn count_valid(&self, _valid: &mut [u32]) -> bool {
        false
    }
}

/// The event after which a power cut can no longer lose a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The acknowledgement, because the data is programmed by then.
    Programmed,
    /// The acknowledgement, because the buffer survives a power cut.
    Buffered,
    /// The acknowledgement of a later flush, because all data is programmed by then.
    Flushed,
}

/// The durability that a layer promises for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// The event that makes writes durable.
    pub durable: Durability,
    /// True if buffered data and planned operations are still programmed when the power fails.
    pub protected: bool,
}

/// A configuration, for a layer to check.
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
    /// The contradictory keys; the message shows them with their values.
    pub keys: Vec<&'static str>,
    /// The problem, and the expected values unless `cures` has them.
    pub what: String,
    /// Remedies: settings, key and value, each set of which may make the drive possible. The message names those that
    /// do.
    pub cures: Vec<Cure>,
}

/// Settings, key and value, that together are one remedy.
pub type Cure = Vec<(&'static str, String)>;

impl Unfit {
    /// Refuses the values of `keys`, with `what` as the message.
    pub fn new(keys: &[&'static str], what: impl Into<String>) -> Self {
        Unfit { keys: keys.into(), what: what.into(), cures: Vec::new() }
    }

    /// The refusal with one more remedy: `settings` together.
    #[must_use]
    pub fn or(mut self, settings: &[(&'static str, &str)]) -> Self {
        self.cures.push(settings.iter().map(|&(key, value)| (key, value.into())).collect());
        self
    }
}

/// Returns an [`Unfit`] if a condition holds: `refuse_if!(CONDITION => KEY, ..; MESSAGE)`, as `format!` takes it; with
/// remedies as `refuse_if!(CONDITION => KEY, .. => [KEY = VALUE, ..], ..; MESSAGE)`.
#[macro_export]
macro_rules! refuse_if {
    ($broken:expr => $($key:expr),+ $(=> $([$($set:tt = $value:expr),+]),+)?; $($what:tt)+) => {
        if $broken {
            let unfit = $crate::Unfit::new(&[$($key),+], format_args!($($what)+).to_string());
            return Err(unfit$($(.or(&[$(($set, $value)),+]))+)?);
        }
    };
}

/// How often a layer programs a page before the erase of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// Once.
    Once,
    /// Once for each subpage of the page.
    Subpages,
    /// Again over data, with a code.
    OverData,
}

/// Small drives for the model suite: the suite draws their shapes, the layer states its needs and varies its own keys.
pub struct Model {
    /// Settings that a drive of the layer needs; they override drawn settings.
    pub needs: &'static [&'static str],
    /// Draws settings that differ from drive to drive, each `key=value`, from a random source and the settings drawn so
    /// far.
    pub varies: fn(&mut Rng, &[String]) -> Vec<String>,
    /// The fewest subpages that a page must have.
    pub subpages_per_page: u32,
    /// Blocks per plane beyond the needs of any layer.
    pub blocks: u32,
    /// True if data stays in the plane that the address names, even if other planes have room.
    pub banked: bool,
}

impl Model {
    /// No needs: any drive will do.
    pub const ANY: Model =
        Model { needs: &[], varies: |_, _| Vec::new(), subpages_per_page: 1, blocks: 0, banked: false };
}

/// One line of the registry. Other code must use a layer only through this entry.
pub struct Entry {
    /// Name in the configuration.
    pub name: &'static str,
    /// A line for `palimpsest list`.
    pub about: &'static str,
    /// Keys that the layer reads: its own, and keys of `log::settings` that it shares with other layers. Keys that
    /// state their readers ([`Key::readers`]) may be left out.
    pub keys: fn() -> Vec<&'static Key>,
    /// More keys, which only the running program knows.
    pub declared: &'static [Key],
    /// The layer below a file system, whose keys the file system uses too.
    pub below: Option<&'static Entry>,
    /// Keys that make no difference on this layer although the layer below, or a feature, reads them.
    pub hides: &'static [&'static str],
    /// True if the layer always separates hot data from cold and moved data, whatever `ftl.streams`.
    pub hot_and_cold: bool,
    /// Settings that the layer fixes, given the others: key and value.
    pub fixes: fn(&Settings) -> Vec<(&'static str, String)>,
    /// The read command of a layer named after one; `None` where `ftl.read` sets it.
    pub read: Option<ReadMode>,
    /// True if the host sees zones.
    pub zoned: bool,
    /// True if the layer gathers writes in open pages of the write buffer, and reports their room by
    /// [`plan::Present::buffer_taken`].
    pub gathers: bool,
    /// True if a protected buffer keeps open pages until they are full, because the host continues them.
    pub keeps_pages: bool,
    /// Bytes of the write buffer that the layer keeps for other data than open pages.
    pub kept_buffer: fn(&Settings) -> u64,
    /// True if pages may be word lines that are programmed in one shot (`part.pages_per_program`). The layer must then
    /// write each page whole and once, and map smaller units.
    pub word_lines: bool,
    /// True if the layer continues on the other dies after one has failed.
    pub outlives_dies: bool,
    /// True if pages may have parity across dies. The layer must then program each page whole and once, and move pages
    /// that [`plan::Io`] rebuilds.
    pub takes_parity: bool,
    /// True if blocks may be superblocks (`ftl.superblocks`), in which a power cut may leave out pages.
    pub superblocks: bool,
    /// The key that joins blocks to superblocks, and its value without.
    pub joined_by: (&'static str, &'static str),
    /// Why the layer cannot have the features of these keys: key and physical reason, for messages.
    pub reasons: &'static [(&'static str, &'static str)],
    /// How often the layer programs a page before the erase, because a checkpoint can skip only pages that no longer
    /// change.
    pub programs: Programs,
    /// Bytes of the tables in a checkpoint, for a number of logical subpages.
    pub tables: fn(&Settings, &Geometry, u64) -> u64,
    /// Blocks of each plane that the layer reserves, beyond the blocks of logical pages.
    pub reserved: fn(&Settings, &Geometry) -> u32,
    /// The key that sets the reserved blocks; empty if none does.
    pub reserved_key: &'static str,
    /// The key that sets the number of frontiers.
    pub frontiers_key: &'static str,
    /// Logical pages that a drive with room for a number of pages of data exports: whole zones, for example.
    pub exported: fn(&Settings, &Geometry, u64) -> u64,
    /// The part as the layer uses it, with a code of cells for example. Parts that the layer cannot use must be
    /// returned unchanged, for `check` to refuse.
    pub part: fn(&Settings, Part) -> Part,
    /// Refuses a drive that the layer cannot run on.
    pub check: fn(&Proposal<'_>) -> Result<(), Unfit>,
    /// Drives of the model suite.
    pub model: Model,
    /// Builds the layer over erased flash.
    pub build: fn(&Io, &Blueprint) -> Box<dyn Ftl>,
}

impl Entry {
    /// Defaults for `..Entry::PLAIN`: no keys and no needs. An entry must add a name, a description and `build`.
    pub const PLAIN: Entry = Entry {
        name: "",
        about: "",
        keys: Vec::new,
        declared: &[],
        below: None,
        hides: &[],
        hot_and_cold: false,
        fixes: |_| Vec::new(),
        read: None,
        zoned: false,
        gathers: false,
        keeps_pages: false,
        kept_buffer: |_| 0,
        word_lines: false,
        outlives_dies: false,
        takes_parity: false,
        superblocks: false,
        joined_by: ("ftl.superblocks", "allocated"),
        reasons: &[],
        programs: Programs::Once,
        tables: |_, _, subpages| 4 * subpages,
        reserved: |_, _| 0,
        reserved_key: "",
        frontiers_key: "ftl.streams",
        exported: |_, _, pages| pages,
        part: |_, part| part,
        check: |_| Ok(()),
        model: Model::ANY,
        build: |_, _| panic!("an entry of a layer has `build`"),
    };

    /// Why the layer does not have the feature of `key`: the reason of the layer, or of the layer below, or `what`.
    pub fn why_not(&self, key: &str, what: &'static str) -> &'static str {
        let own = self.reasons.iter().find(|reason| reason.0 == key).map(|reason| reason.1);
        own.unwrap_or_else(|| self.below.map_or(what, |below| below.why_not(key, what)))
    }

    /// True for a file system above a layer.
    pub fn is_file_system(&self) -> bool {
        self.below.is_some()
    }

    /// True if the layer has `feature`.
    pub fn has(&self, feature: Feature) -> bool {
        match feature {
            Feature::OpenPages => self.gathers,
            Feature::TimedPages => self.gathers && !self.keeps_pages,
            Feature::Parity => self.takes_parity,
            Feature::Superblocks => self.superblocks,
        }
    }

    /// True if `reader` reads `key` on this layer, provided that the conditions of the reader hold.
    pub fn has_reader(&self, reader: &Reader, key: &Key) -> bool {
        match reader.layers {
            Layers::Any => true,
            Layers::Bare => !self.is_file_system(),
            Layers::Unzoned => !self.zoned,
            Layers::Listed => self.lists(key.name),
            Layers::With(feature) => self.has(feature),
        }
    }

    /// True if this layer, or the layer below, lists `key`.
    pub fn lists(&self, key: &str) -> bool {
        let by_below = || self.below.is_some_and(|below| below.lists(key)) && !self.hides.contains(&key);
        self.all_keys().iter().any(|own| own.name == key) || by_below()
    }

    /// All keys of the layer itself.
    pub fn all_keys(&self) -> Vec<&'static Key> {
        (self.keys)().into_iter().chain(self.declared).collect()
    }

    /// Settings that a drive of the model suite needs: first those for the layer below, then this layer's.
    pub fn needs(&self) -> Vec<&'static str> {
        let mut needs = self.below.map_or_else(Vec::new, Entry::needs);
        needs.extend(self.model.needs);
        needs
    }

    /// The fewest subpages of a page on drives of the model suite.
    pub fn least_subpages(&self) -> u32 {
        self.model.subpages_per_page.max(self.below.map_or(1, Entry::least_subpages))
    }

    /// Frontiers of a plane: blocks that the layer writes to at the same time.
    pub fn frontiers(&self, settings: &Settings) -> u32 {
        if self.hot_and_cold { 2 } else { settings.get("ftl.streams") }
    }
}
