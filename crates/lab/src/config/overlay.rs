//! One overlay of a configuration: the settings of one TOML file, or of one row of options, with the place of every
//! value.
//!
//! Each file is read completely before keys are resolved, so that every mistake is reported, even in a value that a
//! later overlay replaces.

use super::notation::{raw, read_bare};
use super::schema::{self, ABOUT, RENAMED, Renamed, keys};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::parse::shown;
use palimpsest_ftl_api::keys::{Raw, Value, ValueType, near};
use std::ops::Range;
use toml_edit::{Document, Item, TableLike};

/// A value, and the place that sets it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// Position of the key in [`keys`].
    pub key: usize,
    /// The value.
    pub value: Value,
    /// `FILE:LINE`, or `--set key=value`.
    pub place: String,
}

/// The key that is read before the others, because a layer outside the registry has keys of its own.
const LAYER: &str = "ftl.name";

/// The author of an overlay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// The presets, or a run that saved the whole configuration of its drive.
    Preset,
    /// The user, in a file.
    File,
    /// The user, by options.
    #[default]
    Options,
}

/// The settings of one file or row of options.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlay {
    /// The settings, one for each key.
    pub settings: Vec<Setting>,
    /// Former names, and the places that use them.
    pub renamed: Vec<(&'static Renamed, String)>,
    /// Name of the drive or part.
    pub name: Option<String>,
    /// One line about the drive or part.
    pub description: Option<String>,
    /// Source of the numbers.
    pub source: Option<String>,
    /// The SSD preset named by `base`, and the place of `base`.
    pub base: Option<(String, String)>,
    /// Whether the file sets every key, so that no part need be loaded.
    pub complete: bool,
    /// The author.
    pub origin: Origin,
}

/// The subject of a file, which limits the keys of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Describes {
    /// A drive: all keys.
    Drive,
    /// A part: `part.*` only.
    Part,
    /// Options of the command line: all keys, but none that describes a file.
    Options,
}

impl Overlay {
    /// The overlay of the TOML text of `file`.
    ///
    /// # Errors
    /// [`Error::Input`] at `FILE:LINE`: broken TOML, an unknown key, a value of the wrong type, unit or range.
    pub fn from_toml(file: &str, text: &str, describes: Describes) -> Result<Overlay> {
        let document = Document::parse(text).map_err(|error| {
            let line = line_of(text, error.span());
            Error::input(
                format!("{file}:{line}"),
                format!("expected TOML: {}", error.message().trim().replace('\n', "; ")),
            )
        })?;
        let mut found = Vec::new();
        flatten(document.as_table(), "", &mut found);
        found.sort_by_key(|(name, ..)| name != LAYER);
        let mut overlay = Overlay { origin: Origin::File, ..Overlay::default() };
        let ends: Vec<usize> = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at).collect();
        for (name, raw, span) in found {
            let start = span.map_or(0, |span| span.start);
            let place = format!("{file}:{}", 1 + ends.partition_point(|&end| end < start));
            match ABOUT.contains(&name.as_str()) {
                true => overlay.describe(&name, raw, place, describes)?,
                false => overlay.set(&name, |value_type| value_type.read(&raw), place, describes)?,
            }
        }
        if overlay.complete {
            overlay.origin = Origin::Preset;
        }
        Ok(overlay)
    }

    /// The overlay of `overrides`, each `key=value`.
    ///
    /// # Errors
    /// [`Error::Input`] at `--set key=value`: as for a file, with the mistakes of all options.
    pub fn from_overrides(overrides: &[String]) -> Result<Overlay> {
        let mut overlay = Overlay::default();
        let mut mistakes: Vec<Error> = Vec::new();
        let names_layer = |text: &str| text.split_once('=').is_some_and(|(name, _)| name.trim() == LAYER);
        let (first, then) = overrides.iter().partition::<Vec<_>, _>(|text| names_layer(text));
        for text in first.into_iter().chain(then) {
            let set = overlay.set_option(text);
            // Keys of an unknown layer are unknown, too.
            if names_layer(text) {
                set?;
            } else {
                mistakes.extend(set.err());
            }
        }
        match mistakes.split_first() {
            None => Ok(overlay),
            Some((Error::Input { place, what, .. }, others)) => {
                let also: String = others.iter().map(|error| format!("; also {error}")).collect();
                Err(Error::input(place, format!("{what}{also}")))
            }
            Some(_) => Err(mistakes.remove(0)),
        }
    }

    fn set_option(&mut self, text: &str) -> Result<()> {
        let place = format!("--set {}", shown(text));
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(Error::input(place, "expected key=value, such as part.nop=4"));
        };
        self.set(name.trim(), |value_type| read_bare(value_type, value), place, Describes::Options)
    }

    /// The setting of `key`.
    pub fn get(&self, key: usize) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    fn set(
        &mut self,
        name: &str,
        read: impl Fn(ValueType) -> std::result::Result<Value, String>,
        place: String,
        describes: Describes,
    ) -> Result<()> {
        let renamed = RENAMED.iter().find(|each| each.old == name);
        let name = renamed.map_or(name, |each| each.new);
        let Some(key) = schema::position(name) else {
            let about = if describes == Describes::Options { &[] } else { ABOUT };
            let near = near(name, keys().iter().map(|key| key.name).chain(about.iter().copied()));
            let near = if near.is_empty() { "; expected one that `palimpsest show` prints".into() } else { near };
            return Err(Error::input(place, format!("unknown key {}{near}", shown(name))));
        };
        if describes == Describes::Part && keys()[key].split().0 != "part" {
            return Err(Error::input(place, format!("{name} does not belong to a part; expected part.* keys only")));
        }
        if let Some(other) = self.get(key) {
            return Err(Error::input(place, format!("{name} is already set by {}; expected it once", other.place)));
        }
        let value =
            read(keys()[key].value_type).map_err(|what| Error::input(place.clone(), format!("{name}: {what}")))?;
        self.renamed.extend(renamed.map(|each| (each, place.clone())));
        self.settings.push(Setting { key, value, place });
        Ok(())
    }

    /// Sets a key that describes the file.
    fn describe(&mut self, name: &str, raw: Raw, place: String, describes: Describes) -> Result<()> {
        match (name, raw) {
            ("name", Raw::Text(text)) if !text.is_empty() && !text.chars().any(char::is_control) => {
                self.name = Some(text)
            }
            ("description", Raw::Text(text)) => self.description = Some(text),
            ("source", Raw::Text(text)) => self.source = Some(text),
            ("base" | "complete", _) if describes == Describes::Part => {
                return Err(Error::input(
                    place,
                    format!("{name} does not belong to a part; expected part.* keys only"),
                ));
            }
            ("base", Raw::Text(text)) => self.base = Some((text, place)),
            ("complete", Raw::Flag(flag)) => self.complete = flag,
            ("complete", _) => return Err(Error::input(place, "complete: expected true or false")),
            _ => return Err(Error::input(place, format!("{name}: expected one line of text"))),
        }
        Ok(())
    }
}

/// Every value under `table` with its dotted name and its place.
fn flatten(table: &dyn TableLike, prefix: &str, found: &mut Vec<(String, Raw, Option<Range<usize>>)>) {
    for (name, item) in table.iter() {
        let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
        let name = format!("{prefix}{name}");
        match item {
            Item::Value(value) if !value.is_inline_table() => found.push((name, raw(value), span)),
            Item::ArrayOfTables(_) => found.push((name, Raw::Other("a list of tables"), span)),
            _ => match item.as_table_like() {
                Some(table) => flatten(table, &format!("{name}."), found),
                None => found.push((name, Raw::Other("nothing"), span)),
            },
        }
    }
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
}
