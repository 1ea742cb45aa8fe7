//! Telling hot writes from cold ones, where a layer has a stream for each. A classifier decides; the layer acts.
//!
//! One classifier is one file and one arm of `classifier`.

mod address;
mod hint;
mod recency;
mod sequence;
mod size;

use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::plan::inner::Life;
use palimpsest_ftl_api::settings::{Classifier, FtlSettings};

/// A classifier.
pub trait HotCold: Send {
    /// Whether a write of `extent` is hot. It is told of every write of the host, in order.
    fn is_hot(&mut self, extent: Extent) -> bool;

    /// The same of a write that somebody above the layer says something about.
    fn is_hot_for(&mut self, extent: Extent, _life: Life) -> bool {
        self.is_hot(extent)
    }
}

/// The classifier that the configuration names, for `units` units of `unit_sectors` sectors.
fn classifier(settings: &FtlSettings, units: u32, unit_sectors: u32) -> Option<Box<dyn HotCold>> {
    match settings.classifier {
        Classifier::None => None,
        Classifier::Size => Some(Box::new(size::Size)),
        Classifier::Recency => Some(Box::new(recency::Recency::new(units, unit_sectors))),
        Classifier::Sequence => Some(Box::new(sequence::Sequence::new(unit_sectors))),
        Classifier::Hint => Some(Box::new(hint::Hint::default())),
        Classifier::Address => Some(Box::new(address::Address::new(settings.hot_below, units, unit_sectors))),
    }
}

/// Finds the stream of a write.
pub struct StreamChooser {
    classifier: Option<Box<dyn HotCold>>,
}

impl StreamChooser {
    /// For a layer with these settings that maps `units` units of `unit_sectors` sectors.
    pub fn new(settings: &FtlSettings, units: u32, unit_sectors: u32) -> Self {
        match settings.streams {
            3.. => Self::always(settings, units, unit_sectors),
            _ => StreamChooser { classifier: None },
        }
    }

    /// For a layer that has streams for hot and cold data whatever `ftl.streams` says.
    pub fn always(settings: &FtlSettings, units: u32, unit_sectors: u32) -> Self {
        StreamChooser { classifier: classifier(settings, units, unit_sectors) }
    }

    /// The stream of a write of `extent` that will live for `life`: 0, or 1 where it is cold and cold data has a stream.
    #[inline]
    pub fn stream_of(&mut self, extent: Extent, life: Life) -> u32 {
        self.classifier.as_mut().map_or(0, |classifier| u32::from(!classifier.is_hot_for(extent, life)))
    }
}
