//! The configuration of a drive: from presets, files and options to typed settings, with the source of every value.
//!
//! A value comes from the highest of these layers that sets it: the schema's default, the part (a preset or a file), the SSD
//! preset that a file names as its `base`, the SSD preset or file itself, `--ftl`, `--set`. A layer that names a part drops
//! what lower layers say of `part.*`, since they spoke of another part; what it says of `part.*` itself counts. A file with
//! `complete = true` (as [`Resolved::to_toml`] writes it) sets every key itself, so its part is only a name.
//!
//! Nothing here touches the file system: files are read by a function that the caller hands in. This module sits above the
//! modules whose settings it fills; none of them knows it.

mod build;
mod check;
pub mod fuzzing;
mod layer;
mod notation;
mod presets;
mod print;
pub mod schema;

pub use presets::{PresetInfo, part_presets, ssd_presets, workload_presets, workload_spec};

use crate::ftl;
use crate::layers::find_layer;
use layer::{Describes, Layer, Setting};
use notation::read_bare;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::faults::FaultSettings;
use palimpsest_flash::nand::part::{Part, ReadMode};
use palimpsest_ftl_api::keys::{Fallback, Value};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_sim::settings::SimSettings;
use palimpsest_workload::settings::HostSettings;
use schema::{Known, keys};

/// Reads a file that the user named.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String>;

/// A drive with everything it can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Drive {
    /// Name of the preset, or what the file calls it, or the name of the file.
    pub name: String,
    /// Shape.
    pub geometry: Geometry,
    /// (T - U) / U, with T physical and U logical pages (Desnoyers 2014).
    pub over_provisioning: f64,
    /// The NAND part.
    pub part: Part,
    /// Settings of the translation layer.
    pub ftl: Settings,
    /// Settings of the event engine.
    pub sim: SimSettings,
    /// Settings of the host and of the write buffer.
    pub host: HostSettings,
    /// Injected faults.
    pub faults: FaultSettings,
}

impl Drive {
    /// Logical pages U: the most for which (T - U) / U is no less than the over-provisioning.
    pub fn logical_pages(&self) -> u64 {
        let physical = self.geometry.pages();
        let enough =
            |logical: u64| logical == 0 || (physical - logical) as f64 / logical as f64 >= self.over_provisioning;
        // The quotient is within one rounding of the truth; the steps settle on which side.
        let mut logical = ((physical as f64 / (1.0 + self.over_provisioning)) as u64).min(physical);
        while !enough(logical) {
            logical -= 1;
        }
        while logical < physical && enough(logical + 1) {
            logical += 1;
        }
        logical
    }

    /// Logical subpages.
    pub fn logical_subpages(&self) -> u64 {
        self.logical_pages() * u64::from(self.geometry.subpages_per_page)
    }

    /// Bytes that the drive offers to the host.
    pub fn logical_bytes(&self) -> u64 {
        self.logical_pages() * u64::from(self.geometry.page_bytes())
    }
}

/// A key with its value and where that was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: &'static Known,
    /// Its value.
    pub value: Value,
    /// `default`, `default, as KEY`, `FILE:LINE`, `--ftl NAME` or `--set key=value`.
    pub source: String,
    /// Height of the layer that set it, 0 for defaults.
    rank: usize,
}

/// A drive, and where every one of its values came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The drive.
    pub drive: Drive,
    entries: Vec<Entry>,
}

impl Resolved {
    /// Every key with its value and source, in the order of the schema.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Keys that an option sets and that belong to other translation layers, with those; in the order of the schema.
    pub fn unused(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let set = self.entries.iter().filter(|entry| entry.source.starts_with("--set "));
        let used = |key: &Known| {
            key.layers.is_empty() || find_layer(&self.drive.ftl.name).is_none_or(|own| own.uses(key.name))
        };
        set.filter(|entry| !used(entry.key)).map(|entry| (entry.key.name, entry.key.layers.clone())).collect()
    }

    /// The value and source of `key`, or `None` if there is no such key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        schema::position(key).map(|position| &self.entries[position])
    }
}

/// The drive that `ssd` (a preset's name, or a path: anything with a `/` or ending in `.toml`) describes, with the translation
/// layer `ftl` instead of its own and with `overrides` (each `key=value`).
///
/// # Errors
/// [`Error::Input`] with the place of the mistake; whatever `read_file` returns.
pub fn resolve(ssd: &str, ftl: Option<&str>, overrides: &[String], read_file: ReadFile) -> Result<Resolved> {
    let mut layers = ssd_layers(ssd, read_file)?;
    layers.push(ftl_layer(ftl)?);
    layers.push(Layer::from_overrides(overrides)?);
    let (part, part_name) = load_part(&mut layers, read_file)?;
    layers.insert(0, part);

    let mut entries = merge(&layers, ssd)?;
    read_of_layer(&mut entries)?;
    let name = layers.iter().rev().find_map(|layer| layer.name.clone()).unwrap_or_else(|| stem(ssd).into());
    let values = build::Values::new(&entries);
    let drive = build::drive(&name, part_name.as_deref().unwrap_or(&name), &values);
    check::drive(&drive, &values)?;
    Ok(Resolved { drive, entries })
}

/// The layers of an SSD: the base it names, if any, and itself.
fn ssd_layers(ssd: &str, read_file: ReadFile) -> Result<Vec<Layer>> {
    if !is_path(ssd) {
        let preset = presets::ssd(ssd, &format!("--ssd {}", palimpsest_flash::units::parse::shown(ssd)))?;
        let layer = preset.layer(Describes::Drive);
        return Ok(vec![Layer { name: Some(preset.name.into()), ..layer }]);
    }
    let own = Layer::from_toml(ssd, &read_file(ssd)?, Describes::Drive)?;
    let mut layers = Vec::new();
    if let Some((base, place)) = &own.base {
        // The name of a drive that was changed is not the preset's.
        layers.push(Layer { name: None, ..presets::base(base, place)?.layer(Describes::Drive) });
    }
    layers.push(own);
    Ok(layers)
}

/// `--ftl NAME` as a layer of its own.
fn ftl_layer(ftl: Option<&str>) -> Result<Layer> {
    let Some(name) = ftl else { return Ok(Layer::default()) };
    let key = schema::position("ftl.name").expect("the schema has ftl.name");
    let name_shown = palimpsest_flash::units::parse::shown(name);
    let place = format!("--ftl {name_shown}");
    let value = read_bare(keys()[key].kind, name)
        .map_err(|what| Error::input(&place, format!("ftl.name = {name_shown}: {what}")))?;
    Ok(Layer { settings: vec![Setting { key, value, place }], ..Layer::default() })
}

/// The part that the highest layer naming one asks for, and its name. Removes `part.*` from the layers below that one.
fn load_part(layers: &mut [Layer], read_file: ReadFile) -> Result<(Layer, Option<String>)> {
    let key = schema::position("ssd.part").expect("the schema has ssd.part");
    let Some(naming) = layers.iter().rposition(|layer| layer.get(key).is_some()) else {
        return Ok((Layer::default(), None));
    };
    for layer in &mut layers[..naming] {
        layer.settings.retain(|setting| keys()[setting.key].split().0 != "part");
    }
    let Some(Setting { value: Value::Text(part), place, .. }) = layers[naming].get(key) else {
        panic!("ssd.part is a text");
    };
    let name = Some(stem(part).to_owned()).filter(|name| !name.is_empty());
    if layers[naming].complete || part.is_empty() {
        return Ok((Layer::default(), name));
    }
    if !is_path(part) {
        return Ok((Layer { name: None, ..presets::part(part, place)?.layer(Describes::Part) }, name));
    }
    let path = beside(place, part);
    Ok((Layer { name: None, ..Layer::from_toml(&path, &read_file(&path)?, Describes::Part)? }, name))
}

/// `page-fgm`, `dma-fgm` and `spftl` are one layer, and each name stands for a read command. The name says what `ftl.read` is;
/// an option that says otherwise turns what a file calls the layer into the name of that command.
///
/// # Errors
/// Name and command were set side by side, or both by options, and contradict each other.
fn read_of_layer(entries: &mut [Entry]) -> Result<()> {
    let at = |key| schema::position(key).expect("the schema has the keys of layers");
    let (name, read) = (at("ftl.name"), at("ftl.read"));
    let word_of = |layer: &ftl::Entry| {
        layer.read.map(|mode| match mode {
            ReadMode::Page => "page",
            ReadMode::Dma => "dma",
            ReadMode::Spread => "spread",
        })
    };
    let (layer, asked) = (entries[name].value.to_text(), entries[read].value.to_text());
    let Some(word) = find_layer(&layer).and_then(word_of) else { return Ok(()) };
    let overrides = entries[read].rank > entries[name].rank;
    if word == asked || (entries[read].rank < entries[name].rank) {
        let (source, rank) = (entries[name].source.clone(), entries[name].rank);
        entries[read] = Entry { value: Value::Text(word.into()), source, rank, ..entries[read].clone() };
        return Ok(());
    }
    if overrides && !entries[name].source.starts_with("--") && ftl::find(&layer).is_some() {
        let other = ftl::REGISTRY.iter().find(|other| word_of(other) == Some(&asked));
        let other = other.expect("every read command has a layer named after it");
        let (source, rank) = (entries[read].source.clone(), entries[read].rank);
        entries[name] = Entry { value: Value::Text(other.name.into()), source, rank, ..entries[name].clone() };
        return Ok(());
    }
    let what = format!(
        "ftl.read = {asked}, ftl.name = {layer}: {layer} always reads by \"{word}\"; expected ftl.name = subpage, or no ftl.read"
    );
    Err(Error::input(&entries[read].source, what))
}

/// Every key with the value of the highest layer that sets it.
fn merge(layers: &[Layer], ssd: &str) -> Result<Vec<Entry>> {
    let set = |key: usize| {
        let found =
            layers.iter().enumerate().rev().find_map(|(rank, layer)| layer.get(key).map(|setting| (rank + 1, setting)));
        found.map(|(rank, setting)| (setting.value.clone(), setting.place.clone(), rank))
    };
    let fallback = |key: &Known| match key.default {
        Fallback::Text(text) => {
            let value = read_bare(key.kind, text).unwrap_or_else(|what| panic!("default of {}: {what}", key.name));
            Some((value, "default".into(), 0))
        }
        Fallback::Same(other) => {
            let mut other = other;
            loop {
                let position = schema::position(other).expect("defaults name keys");
                let found = set(position).or_else(|| default_of(&keys()[position]));
                match (found, keys()[position].default) {
                    (Some((value, ..)), _) => break Some((value, format!("default, as {other}"), 0)),
                    (None, Fallback::Same(next)) => other = next,
                    (None, _) => break None,
                }
            }
        }
        Fallback::Required => None,
    };
    let mut entries = Vec::with_capacity(keys().len());
    for (position, key) in keys().iter().enumerate() {
        let Some((value, source, rank)) = set(position).or_else(|| fallback(key)) else {
            return Err(Error::input(ssd, missing(key)));
        };
        entries.push(Entry { key, value, source, rank });
    }
    Ok(entries)
}

fn default_of(key: &Known) -> Option<(Value, String, usize)> {
    let Fallback::Text(text) = key.default else { return None };
    Some((read_bare(key.kind, text).ok()?, "default".into(), 0))
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
    name.contains('/') || name.ends_with(".toml")
}

/// The file name of a path without `.toml`; a preset's name as it is.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// `path` as seen from the folder of the file at `place` (`FILE:LINE`); as it is if absolute or set by an option.
fn beside(place: &str, path: &str) -> String {
    match place.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') && !place.starts_with("--set ") => format!("{folder}/{path}"),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests;
