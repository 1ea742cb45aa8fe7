//! Classifiers of hot and cold writes, for layers with a stream for each. A classifier decides; the layer acts.
//!
//! A classifier is one file and one line of [`CLASSIFIERS`].

mod address;
mod hint;
mod recency;
mod sequence;
mod size;

use palimpsest_flash::geometry::Extent;
use palimpsest_flash::state::State;
use palimpsest_ftl_api::keys::Key;
use palimpsest_ftl_api::plan::inner::Hint;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Entry, Unfit, refuse_if};

/// A classifier.
pub trait HotCold: Send + State {
    /// True if a write of `extent` is hot. Must be called for every write of the host, in order.
    fn is_hot(&mut self, extent: Extent) -> bool;

    /// As [`Self::is_hot`], for a write with a hint.
    fn is_hot_for(&mut self, extent: Extent, _hint: Hint) -> bool {
        self.is_hot(extent)
    }
}

palimpsest_flash::state_of_box!(dyn HotCold);

/// One line of the registry.
pub struct Classifier {
    /// Name in the configuration.
    pub name: &'static str,
    /// The rule in one line, for `palimpsest list`.
    pub about: &'static str,
    /// Keys of the classifier.
    pub keys: &'static [Key],
    /// True if the classifier needs hints of a file system above the layer.
    pub needs_hints: bool,
    /// Constructs the classifier, given the number of units and of sectors per unit.
    pub build: fn(&Settings, u32, u32) -> Box<dyn HotCold>,
}

/// Every classifier.
pub const CLASSIFIERS: &[Classifier] =
    &[size::CLASSIFIER, recency::CLASSIFIER, sequence::CLASSIFIER, address::CLASSIFIER, hint::CLASSIFIER];

/// The words of `ftl.classifier`. With `none`, every write is hot.
pub(super) fn names() -> Vec<&'static str> {
    std::iter::once("none").chain(CLASSIFIERS.iter().map(|classifier| classifier.name)).collect()
}

/// The classifier that the configuration names.
fn named(settings: &Settings) -> Option<&'static Classifier> {
    let name: String = settings.get("ftl.classifier");
    CLASSIFIERS.iter().find(|classifier| classifier.name == name)
}

/// True if the configuration names a classifier that needs hints.
pub fn needs_hints(settings: &Settings) -> bool {
    named(settings).is_some_and(|classifier| classifier.needs_hints)
}

/// Rejects a classifier, or moves by class, without effect on the layer `entry`, one of `layers`.
///
/// # Errors
/// [`Unfit`].
pub fn check(settings: &Settings, entry: &Entry, layers: &[&Entry]) -> Result<(), Unfit> {
    let streams: u32 = settings.get("ftl.streams");
    refuse_if!(settings.get::<String>("ftl.moved") != "together" && streams < 3 => "ftl.moved", "ftl.streams";
        "moved data keeps its class where hot and cold data have streams; expected ftl.streams = 3, or ftl.moved = \
         together");
    let Some(classifier) = named(settings) else { return Ok(()) };
    refuse_if!(streams < 3 && !entry.hot_and_cold => "ftl.classifier", "ftl.streams";
        "hot and cold writes need streams of their own; expected ftl.streams = 3, or ftl.classifier = none");
    let hinted = |entry: &Entry| entry.below.is_some_and(|below| below.takes_hints);
    let takers: Vec<&str> = layers.iter().filter(|entry| hinted(entry)).map(|entry| entry.name).collect();
    let (last, others) = takers.split_last().expect("a layer takes hints");
    refuse_if!(classifier.needs_hints && !hinted(entry) => "ftl.classifier", "ftl.name";
        "hints need a file system above a layer that separates hot from cold data; expected ftl.name = {} or {last}, \
         or another classifier", others.join(", "));
    Ok(())
}

/// Finds the stream of a write.
pub struct StreamChooser {
    classifier: Option<Box<dyn HotCold>>,
}

palimpsest_flash::state!(StreamChooser {} parts { classifier });

impl StreamChooser {
    /// A chooser for a layer with these settings that maps `units` units of `unit_sectors` sectors.
    pub fn new(settings: &Settings, units: u32, unit_sectors: u32) -> Self {
        match settings.get::<u32>("ftl.streams") {
            3.. => Self::always(settings, units, unit_sectors),
            _ => StreamChooser { classifier: None },
        }
    }

    /// A chooser for a layer with streams for hot and cold data, whatever `ftl.streams`.
    pub fn always(settings: &Settings, units: u32, unit_sectors: u32) -> Self {
        let classifier = named(settings).map(|named| (named.build)(settings, units, unit_sectors));
        StreamChooser { classifier }
    }

    /// True if every write goes to stream 0, without learning.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.classifier.is_none()
    }

    /// The stream of a write of `extent` with `hint`: 0, or 1 if the write is cold and cold data has a stream.
    #[inline]
    pub fn stream_of(&mut self, extent: Extent, hint: Hint) -> u32 {
        self.classifier.as_mut().map_or(0, |classifier| u32::from(!classifier.is_hot_for(extent, hint)))
    }
}
