//! Typed settings of a drive, from resolved keys. Ignored: possibility, which [`super::check`] decides.

use super::notation::read_bare;
use super::schema::{self, DriveSettings};
use super::{DriveConfig, ResolvedKey};
use crate::layers::find_layer;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::errors::ErrorSettings;
use palimpsest_flash::nand::faults::FaultSettings;
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::stripes::{StripeShape, striped};
use palimpsest_ftl::log::settings::LogSettings;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_sim::settings::{ControllerTimes, ReadAhead, SimSettings};
use palimpsest_workload::settings::HostSettings;
use std::ops::Deref;

/// All keys with their values and sources.
pub(super) struct Values<'a> {
    resolved: &'a [ResolvedKey],
    settings: Settings,
}

impl<'a> Values<'a> {
    /// The values of `resolved`, one for each of [`schema::keys`], in that order. The layer fixes some.
    pub fn new(resolved: &'a [ResolvedKey]) -> Self {
        debug_assert!(resolved.len() <= schema::keys().len());
        let name = resolved[schema::index("ftl.name")].value.to_text();
        let values = resolved.iter().map(|key| (key.key.name, key.value.clone()));
        let settings = Settings::new(&name, values);
        let fixed = find_layer(&name).map_or_else(Vec::new, |layer| (layer.fixes)(&settings));
        let settings = fixed.into_iter().fold(settings, |settings, (key, text)| {
            let value = read_bare(schema::known(key).value_type, &text);
            settings.with(key, value.unwrap_or_else(|what| panic!("{name} fixes {key}: {what}")))
        });
        Values { resolved, settings }
    }

    /// The value and source of `key`.
    pub fn key(&self, key: &str) -> &ResolvedKey {
        &self.resolved[schema::index(key)]
    }

    /// Every key, in the order of the schema.
    pub fn all(&self) -> &[ResolvedKey] {
        self.resolved
    }
}

impl Deref for Values<'_> {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

/// The drive of `values`. [`super::check`] refuses impossible ones.
pub(super) fn drive(name: &str, part_name: &str, values: &Values) -> DriveConfig {
    let settings = &values.settings;
    let layer = find_layer(&settings.name).expect("the name was read as that of a layer");
    let own = DriveSettings::new(settings);
    let part = Part { name: part_name.into(), ..Part::new(settings) };
    let (pages, part) = (part.pages_per_program, Part { pages_per_program: 1, ..part });
    let shot = part.shot(pages).filter(|_| layer.word_lines);
    let part = (layer.part)(settings, shot.unwrap_or(part));
    let physical = Geometry {
        channels: own.channels,
        chips_per_channel: own.chips_per_channel,
        dies_per_chip: own.dies_per_chip,
        planes_per_die: own.planes_per_die,
        blocks_per_plane: own.blocks_per_plane,
        pages_per_block: part.pages_per_block,
        subpages_per_page: part.subpages_per_page(),
        subpage_bytes: part.subpage_bytes,
    };
    let log = LogSettings::new(settings);
    let stripes = stripes(&log, &physical);
    DriveConfig {
        name: name.into(),
        geometry: stripes.map_or(physical, |shape| striped(&physical, shape)),
        physical,
        stripes,
        over_provisioning: own.over_provisioning,
        namespaces: own.namespaces,
        part,
        ftl: settings.clone(),
        log,
        sim: SimSettings::new(settings),
        host: HostSettings::new(settings),
        controller: ControllerTimes::new(settings),
        read_ahead: ReadAhead::new(settings),
        faults: FaultSettings::new(settings),
        errors: ErrorSettings::new(settings),
    }
}

/// The superblocks that are blocks of layers; `None` if the drive has no whole number of them.
fn stripes(log: &LogSettings, physical: &Geometry) -> Option<StripeShape> {
    let all = physical.dies();
    let planes = if log.joins_planes { physical.planes_per_die } else { 1 };
    let shape = match (log.rain, log.collects_superblocks) {
        (0, false) => return None,
        (0, true) => {
            let dies = if log.superblock_dies == 0 { all } else { log.superblock_dies };
            StripeShape { data: dies.saturating_mul(planes), parity: false, planes }
        }
        (data, _) => StripeShape { data, parity: true, planes: 1 },
    };
    (shape.members() > 1 && all.is_multiple_of(shape.dies())).then_some(shape)
}
