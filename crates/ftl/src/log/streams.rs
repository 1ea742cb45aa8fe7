//! Classifiers of the host's writes, for layers with several streams: a classifier names the stream, the layer acts.
//! Classifiers of hot and cold writes name stream 0 for hot and 1 for cold writes.
//!
//! A classifier is one file and one line of [`CLASSIFIERS`]. A program may add classifiers to [`OUTSIDE`], such as
//! classes in Python. Ignored: reads, which only classifiers outside see.

mod address;
mod hint;
mod lifetime;
mod owner;
mod placement;
mod recency;
mod sequence;
mod size;

use super::identifiers::Identifiers;
use super::outside::Added;
use palimpsest_flash::command::{Command, Directives};
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::{Key, Notation, ValueType};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{ClassifyAhead, Entry, LayerFigures, PlacementEvents, Unfit, refuse_if};

/// A classifier.
pub trait Classify: Send + State {
    /// The stream of a write of `extent` with `directives`, from 0. The last stream of the host also takes the writes
    /// of all later streams. Must be called for every write of the host, in order.
    fn stream_of(&mut self, extent: Extent, directives: Directives) -> u32;

    /// As [`ClassifyAhead::classify_ahead`], with classes from 0 to `last`. Only classifiers outside of the registry
    /// classify ahead; their [`Self::stream_of`] returns the class in `directives`.
    fn classify(&mut self, _arrivals: &[Nanos], _commands: &mut [Command], _last: u32) {}
}

/// Classifiers that are no lines of the registry.
pub static OUTSIDE: Added<dyn Classify> = Added::new("ftl.classifier");

palimpsest_flash::state_of_box!(dyn Classify);

/// The stream of hot data.
const HOT: u32 = 0;
/// The stream of cold data.
const COLD: u32 = 1;

/// One line of the registry.
pub struct Classifier {
    /// Name in the configuration.
    pub name: &'static str,
    /// The rule in one line, for `palimpsest list`.
    pub about: &'static str,
    /// Keys of the classifier.
    pub keys: &'static [Key],
    /// True if the classifier judges by the address that the host writes again. A file system writes every page of the
    /// layer below once, so the address says nothing there.
    pub reads_addresses: bool,
    /// True if the classifier reads the lifetime of writes, which file systems then estimate.
    pub reads_lifetimes: bool,
    /// True if the classifier reads the placement identifier of writes.
    pub reads_identifiers: bool,
    /// Constructs the classifier, given the number of units and of sectors per unit.
    pub build: fn(&Settings, u32, u32) -> Box<dyn Classify>,
}

/// Every classifier.
pub const CLASSIFIERS: &[Classifier] = &[
    size::CLASSIFIER,
    recency::CLASSIFIER,
    sequence::CLASSIFIER,
    address::CLASSIFIER,
    hint::CLASSIFIER,
    lifetime::CLASSIFIER,
    owner::CLASSIFIER,
    placement::CLASSIFIER,
];

/// The kind of `ftl.classifier`. With `none`, every write goes to stream 0.
pub(super) const KIND: ValueType = ValueType::Notation(&Notation { words: names, read: canonical, expected });

fn names() -> Vec<&'static str> {
    std::iter::once("none").chain(CLASSIFIERS.iter().map(|classifier| classifier.name)).collect()
}

fn expected() -> String {
    OUTSIDE.expected(names().into_iter().map(str::to_owned))
}

fn canonical(text: &str) -> Parsed<String> {
    OUTSIDE.canonical(&names(), text)
}

/// The classifier of the registry that the configuration names.
fn named(settings: &Settings) -> Option<&'static Classifier> {
    let name: String = settings.get("ftl.classifier");
    CLASSIFIERS.iter().find(|classifier| classifier.name == name)
}

/// True if the configuration names a classifier outside of the registry.
fn is_outside(settings: &Settings) -> bool {
    !names().contains(&settings.get::<String>("ftl.classifier").as_str())
}

/// True if the configuration names a classifier that reads lifetimes.
pub fn reads_lifetimes(settings: &Settings) -> bool {
    named(settings).is_some_and(|classifier| classifier.reads_lifetimes)
}

/// True if the configuration names a classifier, and true if the classifier reads placement identifiers.
pub fn classifies(settings: &Settings) -> (bool, bool) {
    let named = named(settings);
    (named.is_some() || is_outside(settings), named.is_some_and(|classifier| classifier.reads_identifiers))
}

/// The classifiers that judge writes of a file system.
fn below_files() -> String {
    let of_files = CLASSIFIERS.iter().filter(|classifier| !classifier.reads_addresses);
    std::iter::once("none").chain(of_files.map(|classifier| classifier.name)).collect::<Vec<_>>().join(", ")
}

/// Rejects a classifier, or moves by class, without effect on the layer `entry`.
///
/// # Errors
/// [`Unfit`].
pub fn check(settings: &Settings, entry: &Entry) -> Result<(), Unfit> {
    let streams: u32 = settings.get("ftl.streams");
    // A layer without a key ignores the value of a preset.
    let keeps_apart = entry.lists("ftl.moved") && settings.get::<String>("ftl.moved") != "together";
    let classes = entry.lists("ftl.classifier") && !entry.hot_and_cold && classifies(settings).0;
    refuse_if!(keeps_apart && streams < 3 => "ftl.moved", "ftl.streams"
        => ["ftl.streams" = "3"], ["ftl.moved" = "together"];
        "moved data keeps its class where the classes of the host have streams");
    refuse_if!(classes && streams < 3 => "ftl.classifier", "ftl.streams"
        => ["ftl.streams" = "3"], ["ftl.classifier" = "none"];
        "the classes of writes need streams of their own");
    refuse_if!(is_outside(settings) && entry.is_file_system() => "ftl.classifier", "ftl.name";
        "such a classifier gets requests of the host, not writes of a file system; expected {}", below_files());
    refuse_if!(named(settings).is_some_and(|classifier| classifier.reads_addresses) && entry.is_file_system() =>
        "ftl.classifier", "ftl.name";
        "such a classifier judges by the addresses of the host, and a file system writes where space is free; expected \
         {}", below_files());
    Ok(())
}

/// Finds the stream of a write.
pub struct StreamChooser {
    classifier: Option<Box<dyn Classify>>,
    /// True if `classifier` classifies requests ahead.
    is_ahead: bool,
    /// The last stream of the host.
    last: u32,
    /// Present if streams are reclaim unit handles.
    identifiers: Option<Identifiers>,
    /// The reclaim group of the next write without identifier.
    group: u32,
    /// Commands that named a handle that the drive does not have, and so went to handle 0.
    invalid: u64,
}

palimpsest_flash::state!(StreamChooser { group, invalid } parts { classifier } built { is_ahead, last, identifiers });

impl StreamChooser {
    /// A chooser for a layer with these settings that maps `units` units of `unit_sectors` sectors.
    pub fn new(settings: &Settings, units: u32, unit_sectors: u32) -> Self {
        Self::of(settings, settings.get::<u32>("ftl.streams").max(2) - 1, units, unit_sectors)
    }

    /// A chooser for a layer with streams for hot and cold data, whatever `ftl.streams`.
    pub fn always(settings: &Settings, units: u32, unit_sectors: u32) -> Self {
        Self::of(settings, 2, units, unit_sectors)
    }

    /// A chooser among `streams` streams of the host.
    fn of(settings: &Settings, streams: u32, units: u32, unit_sectors: u32) -> Self {
        let named = named(settings).filter(|_| streams > 1);
        let named = named.map(|named| (named.build)(settings, units, unit_sectors));
        let outside = (streams > 1).then(|| OUTSIDE.build_from(settings)).flatten();
        let (is_ahead, classifier) = (outside.is_some(), named.or(outside));
        StreamChooser { classifier, is_ahead, last: streams - 1, identifiers: None, group: 0, invalid: 0 }
    }

    /// The same chooser, whose streams are reclaim unit handles. Identifiers of writes name them, or the classifier.
    pub fn with_handles(self, identifiers: Identifiers) -> Self {
        StreamChooser { last: identifiers.streams() - 1, identifiers: Some(identifiers), ..self }
    }

    /// `figures` with the writes whose handle the drive does not have.
    pub fn with_invalid(&self, mut figures: LayerFigures) -> LayerFigures {
        if let Some(placement) = &mut figures.placement {
            placement.events.invalid_placement_identifier = self.invalid;
        }
        figures
    }

    /// `events` with the writes whose handle the drive does not have.
    pub fn with_invalid_events(&self, events: Option<PlacementEvents>) -> Option<PlacementEvents> {
        events.map(|events| PlacementEvents { invalid_placement_identifier: self.invalid, ..events })
    }

    /// True if every write goes to stream 0, without learning.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.classifier.is_none() && self.identifiers.is_none_or(|names| names.groups == 1)
    }

    /// The classifier of requests ahead, if the configuration names one.
    pub fn ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        if self.is_ahead { Some(self) } else { None }
    }

    /// The stream of a write of `extent` with `directives`.
    #[inline]
    pub fn stream_of(&mut self, extent: Extent, directives: Directives) -> u32 {
        match (&mut self.classifier, self.identifiers) {
            (Some(classifier), _) => classifier.stream_of(extent, directives).min(self.last),
            (None, Some(identifiers)) => self.named(identifiers, directives),
            (None, None) => 0,
        }
    }

    /// The stream of the placement identifier in `directives`. Without one, groups take turns.
    #[inline]
    fn named(&mut self, identifiers: Identifiers, directives: Directives) -> u32 {
        if identifiers.groups > 1 && !directives.placed {
            self.group = if self.group + 1 < identifiers.groups { self.group + 1 } else { 0 };
            return self.group * identifiers.handles;
        }
        identifiers.stream_of(directives.placement).unwrap_or_else(|| {
            self.invalid += 1;
            0
        })
    }

    /// The stream whose handle `directives` update. `None` if the drive lacks the handle, or streams are no handles.
    pub fn updated(&self, directives: Directives) -> Option<u32> {
        self.identifiers?.stream_of(directives.placement)
    }
}

impl ClassifyAhead for StreamChooser {
    fn classify_ahead(&mut self, arrivals: &[Nanos], commands: &mut [Command]) {
        self.classifier.iter_mut().for_each(|one| one.classify(arrivals, commands, self.last));
    }
}
