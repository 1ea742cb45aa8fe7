//! The configuration of a drive: from presets, files and options to typed settings, with the source of every value.
//!
//! A value comes from the last of these overlays that sets the key: the schema's default, the part (a preset or a
//! file), the SSD preset that a file names as its `base`, the SSD preset or file itself, `--ftl`, `--set`. An overlay
//! that names a part replaces `part.*` of the earlier overlays, which describe another part; `part.*` of the same
//! overlay stay. A file with `complete = true`, as written by [`Resolved::to_toml`], sets every key, so `ssd.part` is
//! only a name there.
//!
//! No input or output: a function of the caller reads files. The modules of the settings filled here must not use this
//! module.

mod build;
mod capacity;
mod check;
pub mod fit;
pub mod fuzzing;
mod nearest;
mod notation;
mod overlay;
mod presets;
mod print;
pub mod schema;
mod size;
mod trial;
pub mod unread;

pub use presets::{PresetInfo, part_presets, ssd_presets, workload_presets, workload_spec};

use crate::ftl;
use crate::layers::find_layer;
use notation::read_bare;
use overlay::{Describes, Overlay, Setting};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::errors::ErrorSettings;
use palimpsest_flash::nand::faults::{FaultSettings, Faults};
use palimpsest_flash::nand::part::{Part, ReadMode};
use palimpsest_flash::nand::stripes::StripeShape;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl::log::settings::{Allocation, LogSettings};
use palimpsest_ftl_api::keys::{Fallback, Value};
use palimpsest_ftl_api::plan::checkpoint::Contents;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Durability, Guarantee, Unfit};
use palimpsest_sim::faults::{self, Fault, Power};
use palimpsest_sim::settings::{ControllerTimes, HostTimes, ReadAhead, SimSettings};
use palimpsest_workload::namespaces::{Namespaces, Shares};
use palimpsest_workload::settings::{Acknowledge, HostSettings};
use schema::{Known, index, keys};
pub use size::{LARGEST_FILE, Touched, check_length, check_memory, uses_most};
use unread::Unread;

/// Reads a file named by the user.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String>;

/// A drive with all settings.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveConfig {
    /// Name of the preset, `name` in the file, or the name of the file.
    pub name: String,
    /// Shape.
    pub geometry: Geometry,
    /// Shape of the flash. Differs from `geometry` if a block of the layer is a superblock; the layer then sees its
    /// data pages.
    pub physical: Geometry,
    /// The superblocks that are blocks of the layer, if there are any.
    pub stripes: Option<StripeShape>,
    /// (T - U) / U, with T physical and U logical pages (Desnoyers 2014).
    pub over_provisioning: f64,
    /// Shares of the capacity that belong to tenants.
    pub namespaces: Shares,
    /// The NAND part.
    pub part: Part,
    /// Settings of the translation layer.
    pub ftl: Settings,
    /// The settings among `ftl` that layers share.
    pub log: LogSettings,
    /// Settings of the event engine.
    pub sim: SimSettings,
    /// Settings of the host and of the write buffer.
    pub host: HostSettings,
    /// Times of the controller.
    pub controller: ControllerTimes,
    /// Read-ahead of the controller.
    pub read_ahead: ReadAhead,
    /// Faults that flash injects.
    pub faults: FaultSettings,
    /// Errors of reads.
    pub errors: ErrorSettings,
}

impl DriveConfig {
    /// Times between the host and the drive.
    pub fn host_times(&self) -> HostTimes {
        let times = &self.controller;
        let t_request = self.host.t_request + times.t_end + times.t_link;
        HostTimes { link_rate: self.host.link_rate, t_request }
    }

    /// Moment from which a write to this drive is durable, below the layer `entry`.
    pub fn guarantee(&self, entry: &ftl::Entry) -> Guarantee {
        let durable = match self.host.acknowledge {
            _ if entry.is_file_system() => Durability::Flushed,
            Acknowledge::Buffer => Durability::Buffered,
            Acknowledge::Program => Durability::Programmed,
            Acknowledge::Volatile => Durability::Flushed,
        };
        Guarantee { durable, protected: self.host.acknowledge == Acknowledge::Buffer }
    }

    /// Logical pages that the drive exports: the pages of data, unless the layer exports others.
    pub fn logical_pages(&self) -> u64 {
        let pages = self.data_pages();
        find_layer(&self.ftl.name).map_or(pages, |entry| (entry.exported)(&self.ftl, &self.geometry, pages))
    }

    /// Pages of data U: the most for which (T - U) / U is no less than the over-provisioning.
    pub fn data_pages(&self) -> u64 {
        let physical = self.geometry.pages();
        let enough =
            |logical: u64| logical == 0 || (physical - logical) as f64 / logical as f64 >= self.over_provisioning;
        // The quotient may be off by a rounding, which the steps correct.
        let mut logical = ((physical as f64 / (1.0 + self.over_provisioning)) as u64).min(physical);
        while !enough(logical) {
            logical -= 1;
        }
        while logical < physical && enough(logical + 1) {
            logical += 1;
        }
        logical
    }

    /// Bytes programmed between two checkpoints, and the contents of each; `None` without checkpoints.
    pub fn checkpoints(&self) -> Option<(u64, Contents)> {
        let (every, entry) = (self.log.checkpoint, find_layer(&self.ftl.name)?);
        let tables = (entry.tables)(&self.ftl, &self.geometry, self.logical_subpages());
        (every > 0).then_some((every, Contents { tables, programs: entry.programs }))
    }

    /// Blocks of a plane that the controller reserves.
    pub fn kept_blocks(&self) -> u32 {
        let checkpoints = self.checkpoints().map_or(0, |(_, contents)| contents.kept_blocks(&self.geometry));
        self.part.kept_blocks() + checkpoints
    }

    /// Blocks of each plane that always hold one bit a cell: the fixed share of the fast cache.
    pub fn fixed_single(&self) -> u32 {
        self.log.slc_fixed.of(self.geometry.blocks_per_plane)
    }

    /// Over-provisioning without the fixed share f of the fast cache, (1 + OP) (1 - f) - 1: flash with all bits a cell,
    /// over logical space.
    pub fn effective_over_provisioning(&self) -> f64 {
        let fixed = u64::from(self.fixed_single()) * u64::from(self.geometry.planes() * self.geometry.pages_per_block);
        let logical = self.data_pages() as f64;
        (self.geometry.pages() - fixed) as f64 / logical - 1.0
    }

    /// The new flash of the drive, storing `payload`, with faults and read errors drawn from `seed`.
    pub fn flash(&self, payload: Payload, seed: u64) -> Nand {
        let faults = self.faults.any().then(|| Faults::new(self.faults.clone(), seed));
        let mut nand = Nand::new(self.geometry, self.part.clone(), payload, faults);
        nand.hold_single(self.fixed_single());
        if let Some(shape) = self.stripes {
            nand.set_stripes(self.physical, shape);
        }
        if self.errors.strength > 0 {
            nand.set_read_errors(self.errors.clone(), seed);
        }
        nand
    }

    /// The fault that cuts the power, if any.
    pub fn power_fault(&self) -> Option<&'static Fault> {
        faults::of(&self.ftl).find(|fault| fault.power != Power::Stays)
    }

    /// Whether a power cut is scheduled.
    pub fn loses_power(&self) -> bool {
        self.power_fault().is_some()
    }

    /// Logical subpages.
    pub fn logical_subpages(&self) -> u64 {
        self.logical_pages() * u64::from(self.geometry.subpages_per_page)
    }

    /// Bytes of the logical space.
    pub fn logical_bytes(&self) -> u64 {
        self.logical_pages() * u64::from(self.geometry.page_bytes())
    }

    /// The address ranges of the tenants.
    pub fn namespaces(&self) -> Namespaces {
        let bytes = |page: u64| page * u64::from(self.geometry.page_bytes());
        Namespaces::new(
            self.logical_bytes(),
            self.namespaces.ends(self.logical_pages()).into_iter().map(bytes).collect(),
        )
    }

    /// The end of each namespace with dies of its own, in logical pages and in dies; empty if the dies are shared.
    pub fn sets(&self) -> Vec<(u32, u32)> {
        let dies = self.namespaces.ends_of_dies(self.geometry.dies());
        let isolated = self.log.allocation == Allocation::Namespace;
        let pages = self.namespaces.ends(self.logical_pages()).into_iter().map(|page| page as u32);
        dies.filter(|_| isolated).map_or_else(Vec::new, |dies| pages.zip(dies).collect())
    }
}

/// A key with its value and the source of the value.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedKey {
    /// The key.
    pub key: &'static Known,
    /// The value.
    pub value: Value,
    /// `default`, `default, as KEY`, `FILE:LINE`, `--ftl NAME` or `--set key=value`.
    pub source: String,
    /// Position of the overlay that set the value, 0 for defaults.
    rank: usize,
}

impl ResolvedKey {
    fn set(&mut self, value: Value, source: String, rank: usize) {
        (self.value, self.source, self.rank) = (value, source, rank);
    }
}

/// A drive, with the source of every value.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The drive.
    pub drive: DriveConfig,
    keys: Vec<ResolvedKey>,
    unread: Vec<Unread>,
}

impl Resolved {
    /// The settings of the user that nothing reads, in the order of the schema.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Every key with its value, in the order of the schema.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.keys.iter().map(|key| (key.key.name, &key.value))
    }

    /// The value and source of `key`, or `None` if there is no such key.
    pub fn key(&self, key: &str) -> Option<&ResolvedKey> {
        self.keys.iter().find(|own| own.key.name == key)
    }
}

/// The drive that `ssd` describes (a preset's name, or a path: anything with a `/` or ending in `.toml` or, of an
/// image, `.pal`), with another layer `ftl` if given, and with `overrides` (each `key=value`).
///
/// # Errors
/// [`Error::Input`] with the place of the mistake; the errors of `read_file`.
pub fn resolve(ssd: &str, ftl: Option<&str>, overrides: &[String], read_file: ReadFile) -> Result<Resolved> {
    // The layer first: one outside the registry has keys that the others may set.
    let layer = ftl_overlay(ftl)?;
    let mut overlays = ssd_overlays(ssd, read_file)?;
    overlays.push(layer);
    overlays.push(Overlay::from_overrides(overrides)?);
    let given = overlays.clone();
    let Assembled { keys: resolved, part_name, fits } = assemble(&mut overlays, ssd, read_file)?;
    let name = overlays.iter().rev().find_map(|overlay| overlay.name.clone()).unwrap_or_else(|| stem(ssd).into());
    let values = build::Values::new(&resolved);
    let drive = build::drive(&name, part_name.as_deref().unwrap_or(&name), &values);
    if let Err(unfit) = fits.and_then(|()| check::fits(&drive, &values)) {
        let source = trial::Source { ssd, read_file, given: &given };
        return Err(check::refusal(&values, &unfit, &trial::Drive::refused(source, &resolved, &overlays)));
    }
    let mut resolved = resolved;
    let unread = unread::renamed(&overlays).chain(unread::find(&resolved, &overlays)).collect();
    // Keys of other layers outside the registry depend on the history of the process.
    let entry = find_layer(&drive.ftl.name).expect("the name was read as that of a layer");
    resolved.retain(|key| !key.key.outside || entry.lists(key.key.name));
    Ok(Resolved { drive, keys: resolved, unread })
}

/// The remedy of the settings `keys` that nothing reads on the drive of these options, for the message of the first:
/// layers or settings with which the drive reads all of them, or none of them.
///
/// # Errors
/// As [`resolve`].
pub fn unread_remedy(
    ssd: &str,
    ftl: Option<&str>,
    overrides: &[String],
    keys: &[&str],
    read_file: ReadFile,
) -> Result<String> {
    let resolved = resolve(ssd, ftl, overrides, read_file)?;
    let mut given = ssd_overlays(ssd, read_file)?;
    given.extend([ftl_overlay(ftl)?, Overlay::from_overrides(overrides)?]);
    let keys: Vec<&'static Known> = keys.iter().map(|key| schema::known(key)).collect();
    let source = trial::Source { ssd, read_file, given: &given };
    Ok(unread::remedy(&keys, &resolved, &trial::Drive::unread(source)))
}

/// Every key with its value, the name of the part, and the first contradiction.
struct Assembled {
    keys: Vec<ResolvedKey>,
    part_name: Option<String>,
    fits: std::result::Result<(), Unfit>,
}

/// Every key with the value of the last of `overlays`, to which the part is added.
fn assemble(overlays: &mut Vec<Overlay>, ssd: &str, read_file: ReadFile) -> Result<Assembled> {
    let (part, part_name) = load_part(overlays, read_file)?;
    overlays.insert(0, part);
    let mut keys = merge(overlays, ssd)?;
    let fits = read_of_layer(&mut keys).and_then(|()| {
        scale_page_types(&mut keys);
        capacity::apply(&mut keys, overlays)
    });
    Ok(Assembled { keys, part_name, fits })
}

/// The overlays of an SSD: the base that a file names, and the file or preset.
fn ssd_overlays(ssd: &str, read_file: ReadFile) -> Result<Vec<Overlay>> {
    if !is_path(ssd) {
        let preset = presets::ssd(ssd, &format!("--ssd {}", palimpsest_flash::units::parse::shown(ssd)))?;
        let overlay = preset.overlay(Describes::Drive);
        return Ok(vec![Overlay { name: Some(preset.name.into()), ..overlay }]);
    }
    let own = Overlay::from_toml(ssd, &read_file(ssd)?, Describes::Drive)?;
    let mut overlays = Vec::new();
    if let Some((base, place)) = &own.base {
        // A changed drive does not keep the preset's name.
        overlays.push(Overlay { name: None, ..presets::base(base, place)?.overlay(Describes::Drive) });
    }
    overlays.push(own);
    Ok(overlays)
}

/// The overlay of `--ftl NAME`.
fn ftl_overlay(ftl: Option<&str>) -> Result<Overlay> {
    let Some(name) = ftl else { return Ok(Overlay::default()) };
    let key = index("ftl.name");
    let name_shown = palimpsest_flash::units::parse::shown(name);
    let place = format!("--ftl {name_shown}");
    let value = read_bare(keys()[key].value_type, name)
        .map_err(|what| Error::input(&place, format!("ftl.name = {name_shown}: {what}")))?;
    Ok(Overlay { settings: vec![Setting { key, value, place }], ..Overlay::default() })
}

/// The overlay and the name of the part that the last overlay with `ssd.part` names. Removes `part.*` from earlier
/// overlays.
fn load_part(overlays: &mut [Overlay], read_file: ReadFile) -> Result<(Overlay, Option<String>)> {
    let key = index("ssd.part");
    let Some(naming) = overlays.iter().rposition(|overlay| overlay.get(key).is_some()) else {
        return Ok((Overlay::default(), None));
    };
    for overlay in &mut overlays[..naming] {
        overlay.settings.retain(|setting| keys()[setting.key].split().0 != "part");
    }
    let Some(Setting { value: Value::Text(part), place, .. }) = overlays[naming].get(key) else {
        panic!("ssd.part is a text");
    };
    let name = Some(stem(part).to_owned()).filter(|name| !name.is_empty());
    if overlays[naming].complete || part.is_empty() {
        return Ok((Overlay::default(), name));
    }
    if !is_path(part) {
        return Ok((Overlay { name: None, ..presets::part(part, place)?.overlay(Describes::Part) }, name));
    }
    let path = beside(place, part);
    Ok((Overlay { name: None, ..Overlay::from_toml(&path, &read_file(&path)?, Describes::Part)? }, name))
}

/// `page-fgm`, `dma-fgm` and `spftl` are one layer, with one name for each read command. The name sets `ftl.read`. An
/// option that sets another command replaces the name in a file by the name with that command.
///
/// # Errors
/// Name and command contradict each other, and one overlay or only options set both.
fn read_of_layer(resolved: &mut [ResolvedKey]) -> std::result::Result<(), Unfit> {
    let (name, read) = (index("ftl.name"), index("ftl.read"));
    let word_of = |layer: &ftl::Entry| layer.read.map(ReadMode::word);
    let (layer, asked) = (resolved[name].value.to_text(), resolved[read].value.to_text());
    let Some(word) = find_layer(&layer).and_then(word_of) else { return Ok(()) };
    let overrides = resolved[read].rank > resolved[name].rank;
    if word == asked || (resolved[read].rank < resolved[name].rank) {
        let (source, rank) = (resolved[name].source.clone(), resolved[name].rank);
        resolved[read].set(Value::Text(word.into()), source, rank);
        return Ok(());
    }
    if overrides && !resolved[name].source.starts_with("--") && ftl::find(&layer).is_some() {
        let other = ftl::REGISTRY.iter().find(|other| word_of(other) == Some(&asked));
        let other = other.expect("every read command has a layer named after it");
        let (source, rank) = (resolved[read].source.clone(), resolved[read].rank);
        resolved[name].set(Value::Text(other.name.into()), source, rank);
        return Ok(());
    }
    let unfit = Unfit::new(&["ftl.read", "ftl.name"], format!("{layer} always reads by \"{word}\""));
    Err(unfit.or(&[("ftl.name", "subpage")]))
}

/// A `part.t_read` of a later overlay is the mean of `part.t_read_types`, whose ratios stay.
fn scale_page_types(resolved: &mut [ResolvedKey]) {
    let (read, types) = (index("part.t_read"), index("part.t_read_types"));
    let (Value::Time(mean), Value::Times(times)) = (&resolved[read].value, &resolved[types].value) else { return };
    let (count, sum) = (times.len() as u128, times.iter().map(|&time| u128::from(time)).sum::<u128>());
    if sum == 0 || resolved[read].rank <= resolved[types].rank {
        return;
    }
    let scale = |&time: &Nanos| Nanos::try_from(u128::from(time) * u128::from(*mean) * count / sum).unwrap_or(*mean);
    let value = Value::Times(times.iter().map(scale).collect());
    let (source, rank) = (resolved[read].source.clone(), resolved[read].rank);
    resolved[types].set(value, source, rank);
}

/// Every key with the value of the last overlay that sets it.
fn merge(overlays: &[Overlay], ssd: &str) -> Result<Vec<ResolvedKey>> {
    let set = |key: usize| {
        let found = overlays
            .iter()
            .enumerate()
            .rev()
            .find_map(|(rank, overlay)| overlay.get(key).map(|setting| (rank + 1, setting)));
        found.map(|(rank, setting)| (setting.value.clone(), setting.place.clone(), rank))
    };
    let fallback = |key: &Known| match key.default {
        Fallback::Text(_) => default_of(key),
        Fallback::Same(other) => {
            let mut other = other;
            loop {
                let position = index(other);
                let found = set(position).or_else(|| default_of(&keys()[position]));
                match (found, keys()[position].default) {
                    (Some((value, ..)), _) => break Some((value, format!("default, as {other}"), 0)),
                    (None, Fallback::Same(next)) => other = next,
                    (None, _) => break None,
                }
            }
        }
        // The capacity determines the number.
        Fallback::Required if key.name == "ssd.blocks_per_plane" => {
            let capacity = set(index("ssd.capacity"));
            capacity.map(|_| (Value::Count(1), "default".into(), 0))
        }
        Fallback::Required => None,
    };
    let mut resolved = Vec::with_capacity(keys().len());
    for (position, key) in keys().iter().enumerate() {
        let Some((value, source, rank)) = set(position).or_else(|| fallback(key)) else {
            return Err(Error::input(ssd, missing(key)));
        };
        resolved.push(ResolvedKey { key, value, source, rank });
    }
    Ok(resolved)
}

fn default_of(key: &Known) -> Option<(Value, String, usize)> {
    key.fallback.clone().map(|value| (value, "default".into(), 0))
}

fn missing(key: &Known) -> String {
    match key.split().0 {
        "part" => {
            format!("{} is not set; expected ssd.part to name a part, or every part.* key without a default", key.name)
        }
        _ => {
            format!("{} is not set ({}); expected a value, or base = \"...\" to name an SSD preset", key.name, key.doc)
        }
    }
}

/// Whether `name` is a path rather than the name of a preset.
fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml") || name.ends_with(".pal")
}

/// The notation of `value` in a file of settings.
pub fn shown(value: &Value) -> String {
    notation::to_toml(value)
}

/// The file name of a path, without the ending; the name of a preset, unchanged.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".toml").or_else(|| name.strip_suffix(".pal")).unwrap_or(name)
}

/// `path` relative to the folder of the file at `place` (`FILE:LINE`); unchanged if absolute or set by an option.
fn beside(place: &str, path: &str) -> String {
    match place.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') && !place.starts_with("--set ") => format!("{folder}/{path}"),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests;
