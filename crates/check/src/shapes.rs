//! The dimensions of drawn drives: shapes, cells and features that translation layers depend on, with the values that
//! every kind of cases must reach.
//!
//! Case N of each kind wants value N of this list: the kind draws drives until one has the value, and takes any drive
//! if none has. So a number of cases, not luck, covers the list. Keys that a layer from outside the registry declares
//! are dimensions, too, because only that layer knows them. Ignored: pairs of values, which meet by chance.

use crate::drives::{Shape, with};
use crate::room::is_tight;
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::ftl::keys::{Fallback, Key, ValueType};
use palimpsest_lab::host::settings::Acknowledge;
use palimpsest_lab::layers::{is_built_in, layers};
use palimpsest_lab::nand::part::ProgramOrder;
use palimpsest_lab::units::parse::{format_ratio, parse_ratio};
use serde::Serialize;
use std::collections::VecDeque;

/// A dimension: its name, keys that a user fixes instead, and its values.
struct Dimension {
    name: &'static str,
    keys: &'static [&'static str],
    values: &'static [Value],
}

/// A value: its name, settings that bring it about, and whether a drive has it.
type Value = (&'static str, &'static [&'static str], fn(&Shape) -> bool);

/// Settings without which no drive has collected superblocks.
macro_rules! collected {
    ($($more:literal),*) => {
        &[
            "ftl.superblocks=collected",
            "ssd.channels=2",
            "part.cell=slc",
            "part.order=ascending",
            "part.pair_corruption=false",
            "ftl.slc_cache=0 blocks",
            "ftl.slc_fixed=0 blocks",
            $($more),*
        ]
    };
}

/// Every dimension. Values without settings appear by chance alone.
static DIMENSIONS: &[Dimension] = &[
    Dimension {
        name: "planes of a die",
        keys: &["ssd.planes_per_die"],
        values: &[
            ("1", &["ssd.planes_per_die=1"], |shape| shape.drive.physical.planes_per_die == 1),
            ("2", &["ssd.planes_per_die=2"], |shape| shape.drive.physical.planes_per_die == 2),
            ("4", &["ssd.planes_per_die=4", "ssd.channels=1", "ssd.chips_per_channel=1"], |shape| {
                shape.drive.physical.planes_per_die == 4
            }),
        ],
    },
    Dimension {
        name: "superblocks",
        keys: &["ftl.superblocks"],
        values: &[
            ("none", &[], |shape| shape.drive.stripes.is_none()),
            ("of several dies", collected!("ftl.superblock_planes=one"), |shape| joins(&shape.drive) == Some(false)),
            ("of several dies and planes", collected!("ftl.superblock_planes=all", "ssd.planes_per_die=2"), |shape| {
                joins(&shape.drive) == Some(true)
            }),
        ],
    },
    Dimension {
        name: "channels",
        keys: &["ssd.channels"],
        values: &[
            ("1", &["ssd.channels=1"], |shape| shape.drive.physical.channels == 1),
            ("2", &["ssd.channels=2"], |shape| shape.drive.physical.channels == 2),
            ("3", &["ssd.channels=3", "ssd.chips_per_channel=1", "ssd.planes_per_die=1"], |shape| {
                shape.drive.physical.channels == 3
            }),
        ],
    },
    Dimension {
        name: "chips of a channel",
        keys: &["ssd.chips_per_channel"],
        values: &[
            ("1", &["ssd.chips_per_channel=1"], |shape| shape.drive.physical.chips_per_channel == 1),
            ("2", &["ssd.chips_per_channel=2"], |shape| shape.drive.physical.chips_per_channel == 2),
        ],
    },
    Dimension {
        name: "dies of a chip",
        keys: &["ssd.dies_per_chip"],
        values: &[
            ("1", &["ssd.dies_per_chip=1"], |shape| shape.drive.physical.dies_per_chip == 1),
            ("2", &["ssd.dies_per_chip=2"], |shape| shape.drive.physical.dies_per_chip == 2),
        ],
    },
    Dimension {
        name: "subpages of a page",
        keys: &["part.page_size", "part.subpage_size"],
        values: &[
            ("1", &[], |shape| shape.drive.physical.subpages_per_page == 1),
            ("2", &[], |shape| shape.drive.physical.subpages_per_page == 2),
            ("4", &[], |shape| shape.drive.physical.subpages_per_page == 4),
            ("8 or more", &[], |shape| shape.drive.physical.subpages_per_page >= 8),
        ],
    },
    Dimension {
        name: "programs of a page",
        keys: &["part.nop"],
        values: &[
            ("1", &["part.nop=1"], |shape| shape.drive.part.nop == 1),
            ("2", &["part.nop=2"], |shape| shape.drive.part.nop == 2),
            ("4 or more", &["part.nop=4"], |shape| shape.drive.part.nop >= 4),
        ],
    },
    Dimension {
        name: "pages of a block",
        keys: &["part.pages_per_block"],
        values: &[
            ("4", &[], |shape| shape.drive.physical.pages_per_block == 4),
            ("no power of two", &[], |shape| !shape.drive.physical.pages_per_block.is_power_of_two()),
            ("8 to 16", &[], |shape| (8..=16).contains(&shape.drive.physical.pages_per_block)),
            ("32 or more", &[], |shape| shape.drive.physical.pages_per_block >= 32),
        ],
    },
    Dimension {
        name: "bits of a cell",
        keys: &["part.cell"],
        values: &[
            ("1", &[], |shape| shape.drive.part.stored_bits() == 1),
            ("2", &[], |shape| shape.drive.part.stored_bits() == 2),
            ("3 or 4", &[], |shape| shape.drive.part.stored_bits() > 2),
        ],
    },
    Dimension {
        name: "order of programs",
        keys: &["part.order"],
        values: &[
            ("strict", &[], |shape| shape.drive.part.order == ProgramOrder::Strict),
            ("ascending", &[], |shape| shape.drive.part.order == ProgramOrder::Ascending),
            ("any", &[], |shape| shape.drive.part.order == ProgramOrder::Any),
            ("low-low-high", &[], |shape| shape.drive.part.order == ProgramOrder::LowLowHigh),
        ],
    },
    Dimension {
        name: "spare blocks",
        keys: &["ssd.blocks_per_plane", "ssd.over_provisioning"],
        values: &[("the fewest", &[], is_tight), ("more", &[], |shape| !is_tight(shape))],
    },
    Dimension {
        name: "acknowledgement",
        keys: &["buffer.ack"],
        values: &[
            ("buffer", &["buffer.ack=buffer"], |shape| shape.drive.host.acknowledge == Acknowledge::Buffer),
            ("program", &["buffer.ack=program", "buffer.flush=programs"], |shape| {
                shape.drive.host.acknowledge == Acknowledge::Program
            }),
            ("volatile", &["buffer.ack=volatile", "buffer.flush=programs"], |shape| {
                shape.drive.host.acknowledge == Acknowledge::Volatile
            }),
        ],
    },
];

/// Of a drive with collected superblocks: whether these join planes. Superblocks with parity have a kind of their own.
fn joins(drive: &DriveConfig) -> Option<bool> {
    drive.stripes.filter(|stripes| !stripes.parity).map(|stripes| stripes.planes > 1)
}

/// A value of a dimension, for a layer.
pub struct Wanted {
    /// The dimension; for a declared key, the key.
    pub dimension: &'static str,
    /// The value in words.
    pub value: String,
    /// Settings that bring the value about.
    pub settings: Vec<String>,
    holds: Option<fn(&Shape) -> bool>,
}

impl Wanted {
    /// Whether the drive of `shape` has the value.
    pub fn holds(&self, shape: &Shape) -> bool {
        match self.holds {
            Some(holds) => holds(shape),
            None => self.settings.first().is_none_or(|setting| shape.settings.contains(setting)),
        }
    }
}

/// The values that the cases of a check of `entry` want in turn. Dimensions whose keys `settings` fix are left out.
pub fn wanted(entry: &'static Entry, settings: &[String]) -> Vec<Wanted> {
    let fixes = |key: &str| settings.iter().any(|own| own.split_once('=').is_some_and(|(name, _)| name == key));
    let shapes = DIMENSIONS.iter().filter(|dimension| !dimension.keys.iter().any(|key| fixes(key)));
    let mut shapes = shapes
        .flat_map(|Dimension { name, values, .. }| {
            values.iter().map(|&(value, settings, holds)| Wanted {
                dimension: name,
                value: value.into(),
                settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
                holds: Some(holds),
            })
        })
        .collect::<VecDeque<Wanted>>();
    let own = own_keys(entry).into_iter().filter(|key| !fixes(key.name)).flat_map(|key| {
        values_of(key).into_iter().map(|value| {
            // A larger value may need more space than drawn drives have.
            let roomy = ["ssd.blocks_per_plane=24", "ssd.over_provisioning=100%"];
            let settings = with(&[format!("{}={value}", key.name)], &roomy);
            Wanted { dimension: key.name, value, settings, holds: None }
        })
    });
    // In turn, so that few cases have both.
    let mut all: Vec<Wanted> = own.flat_map(|own| [Some(own), shapes.pop_front()]).flatten().collect();
    all.extend(shapes);
    all
}

/// The keys that the layer alone has, if it is not in the registry: built-in layers vary their keys themselves.
fn own_keys(entry: &Entry) -> Vec<&'static Key> {
    if is_built_in(entry.name) {
        return Vec::new();
    }
    let shared = |key: &Key| layers().any(|other| is_built_in(other.name) && other.lists(key.name));
    entry.all_keys().into_iter().filter(|key| !shared(key)).collect()
}

/// Values of a declared key: all of a choice, small counts, half and twice a ratio.
fn values_of(key: &Key) -> Vec<String> {
    match (key.value_type, &key.default) {
        (ValueType::Flag, _) => vec!["false".into(), "true".into()],
        (ValueType::Choice(words), _) => words.iter().map(|&word| word.into()).collect(),
        (ValueType::Count { min, max }, _) => {
            let mut counts = vec![min, min + 1, 2, 4];
            counts.retain(|count| *count <= max && *count >= min);
            counts.sort_unstable();
            counts.dedup();
            counts.iter().map(u64::to_string).collect()
        }
        (ValueType::Ratio { max }, Fallback::Text(text)) => {
            let ratio = parse_ratio(text).unwrap_or_default();
            let ratios = [ratio / 2.0, ratio * 2.0].into_iter().filter(|ratio| *ratio <= max);
            ratios.map(format_ratio).collect()
        }
        _ => Vec::new(),
    }
}

/// Cases in which the drive had a value.
#[derive(Debug, Clone, Serialize)]
pub struct Covered {
    /// The dimension.
    pub dimension: &'static str,
    /// The value in words.
    pub value: String,
    /// Cases of all kinds.
    pub cases: u64,
}
