//! Settings of the user without a reader: the layer lacks the feature, or another key switches the feature off. Former
//! names of keys are notes beside them.
//!
//! Presets and saved configurations describe a whole drive, so they may set keys that the layer does not read. A file
//! without `base`, such as a copied preset, does as well, and such a key gives a note. A file with `base` may set keys
//! for its own layer, which an option replaces. A feature may be switched off on every layer, because every layer runs
//! without it. All other settings without a reader are mistakes.

use super::check::remedies::{self, Change, Trial};
use super::overlay::{Origin, Overlay, Setting};
use super::schema::Known;
use super::{Resolved, ResolvedKey, build, check, schema};
use crate::layers::{find_layer, layers};
use palimpsest_ftl_api::Entry;
use palimpsest_ftl_api::keys::{Key, Need, Reader, Value};

/// The weight of a setting without a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// The setting switches off a feature that the drive does not have.
    Harmless,
    /// Another layer reads the key: an option replaced that layer, or the file describes a whole drive.
    Note,
    /// A mistake, unless another run beside this one reads the key.
    Mistake,
}

/// A setting of the user that nothing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The key.
    pub key: &'static str,
    /// `FILE:LINE`, or `--set key=value`.
    pub place: String,
    /// A sentence that names the layer.
    pub what: String,
    /// The remedy: layers or settings that would read the key.
    pub expected: String,
    /// The gravity.
    pub gravity: Gravity,
}

/// A note for each former name of a key in `overlays` of the user.
pub(super) fn renamed(overlays: &[Overlay]) -> impl Iterator<Item = Unread> {
    let of_user = overlays.iter().filter(|overlay| overlay.origin != Origin::Preset);
    of_user.flat_map(|overlay| &overlay.renamed).map(|(each, place)| {
        let what = format!("{} is called {} since version {}", each.old, each.new, each.since);
        Unread { key: each.old, place: place.clone(), what, expected: each.new.into(), gravity: Gravity::Note }
    })
}

/// The settings of the user in `overlays` that nothing on the drive of `resolved` reads, in the order of the schema.
pub(super) fn find(resolved: &[ResolvedKey], overlays: &[Overlay]) -> Vec<Unread> {
    let values = build::Values::new(resolved);
    let Some(entry) = find_layer(&values.name) else { return Vec::new() };
    let origin = |key: &ResolvedKey| key.rank.checked_sub(1).map_or(Origin::Preset, |index| overlays[index].origin);
    let layer_by_option = origin(values.key("ftl.name")) == Origin::Options;
    let mut found = Vec::new();
    for (position, key) in resolved.iter().enumerate().filter(|(_, key)| origin(key) != Origin::Preset) {
        // A layer named after a read command sets `ftl.read` at the place of `ftl.name`.
        let (overlay, name) = (&overlays[key.rank - 1], key.key.name);
        if overlay.get(position).is_none_or(|setting| setting.place != key.source) {
            continue;
        }
        let in_file = overlay.origin == Origin::File;
        let (what, expected) = match reading(key.key, entry, &|name| values.value(name).clone()) {
            Reading::Read => continue,
            // A file describes the part and parameters of features, on or off.
            Reading::Off(_) if in_file => continue,
            Reading::Off(needs) => (format!("{} does not read {name} without {needs}", entry.name), "that".into()),
            Reading::OtherLayers => {
                let why = entry.why_not(name, "");
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                (format!("{} does not read {name}{why}", entry.name), format!("one of {}", key.key.layer_names()))
            }
        };
        let gravity = match is_taken_back(resolved, position, &overlays[..key.rank - 1]) {
            true => Gravity::Harmless,
            false if in_file && (layer_by_option || overlay.base.is_none()) => Gravity::Note,
            false => Gravity::Mistake,
        };
        let expected = format!("{expected}, or no {name}");
        found.push(Unread { key: name, place: key.source.clone(), what, expected, gravity });
    }
    found
}

/// The remedy of the settings `keys`, which nothing on the drive `resolved` reads.
pub(super) fn remedy(keys: &[&'static Known], resolved: &Resolved, trial: &dyn Trial) -> String {
    let entry = find_layer(&resolved.drive.ftl.name).expect("the name was read as that of a layer");
    let value = |name: &str| resolved.key(name).map_or_else(|| Value::Text(String::new()), |key| key.value.clone());
    let unmet = |needs: &[&'static str]| -> Vec<&'static str> {
        needs.iter().copied().filter(|need| !is_met(need, entry, &value)).collect()
    };
    let mut met: Vec<Vec<Change>> = Vec::new();
    for key in keys.iter().filter(|key| key.is_read_on(entry)) {
        let own = unmet(key.needs);
        let mut alternatives: Vec<Vec<&str>> = readers_on(key, entry).map(|reader| unmet(reader.needs)).collect();
        if alternatives.is_empty() {
            alternatives.push(Vec::new());
        }
        for needs in alternatives {
            let needs: Vec<Need> = own.iter().chain(&needs).map(|need| Need::parse(need)).collect();
            let more = needs.iter().fold(vec![Vec::new()], |all: Vec<Vec<Change>>, need| {
                let with = |changes: &Vec<Change>| -> Vec<Vec<Change>> {
                    let each = remedies::meeting(need).into_iter();
                    each.map(|change| [changes.as_slice(), &change].concat()).collect()
                };
                all.iter().flat_map(with).collect()
            });
            met.extend(more);
        }
    }
    let reads = |layer: &Entry| keys.iter().all(|key| key.is_read_on(layer));
    // A file system reads the keys of the layer below it.
    let bare = |layer: &&'static Entry| reads(layer) && !layer.below.is_some_and(&reads);
    let layers: Vec<&'static str> = layers().filter(bare).map(|layer| layer.name).collect();
    let names: Vec<&'static str> = keys.iter().map(|key| key.name).collect();
    remedies::of_unread(&names, &layers, &met, trial)
}

/// Whether the key at `position` switches a feature off, or restores the default in place of an earlier value that the
/// drive refuses.
fn is_taken_back(resolved: &[ResolvedKey], position: usize, earlier: &[Overlay]) -> bool {
    let key = &resolved[position];
    if key.key.fallback.as_ref() != Some(&key.value) {
        return false;
    }
    let before = earlier.iter().rev().find_map(|overlay| overlay.get(position));
    let is_refused = |setting: &Setting| {
        let mut without = resolved.to_vec();
        without[position].value = setting.value.clone();
        let values = build::Values::new(&without);
        check::fits(&build::drive("", "", &values), &values).is_err()
    };
    key.value.is_off() || before.is_some_and(is_refused)
}

/// Whether a key is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The key is read.
    Read,
    /// Not read, because other keys switch off every reader: the conditions.
    Off(String),
    /// Not read on this layer.
    OtherLayers,
}

/// Whether a drive with the layer `entry` and with the values of `value` reads `key`.
pub fn reading(key: &Known, entry: &Entry, value: &dyn Fn(&str) -> Value) -> Reading {
    if !key.is_read_on(entry) {
        return Reading::OtherLayers;
    }
    let unmet = |needs: &[&'static str]| -> Vec<&'static str> {
        needs.iter().copied().filter(|need| !is_met(need, entry, value)).collect()
    };
    let mut missing = unmet(key.needs).join(" and ");
    let alternatives: Vec<_> = readers_on(key, entry).map(|reader| unmet(reader.needs)).collect();
    if !alternatives.is_empty() && alternatives.iter().all(|needs| !needs.is_empty()) {
        let both = if missing.is_empty() { "" } else { " and " };
        missing = format!("{missing}{both}{}", shortest(&alternatives).join(" or "));
    }
    if missing.is_empty() { Reading::Read } else { Reading::Off(missing) }
}

/// The alternatives that need no more than another one, in words.
fn shortest(alternatives: &[Vec<&'static str>]) -> Vec<String> {
    let needs_more = |needs: &Vec<&str>, other: &Vec<&str>| {
        other.len() < needs.len() && other.iter().all(|need| needs.contains(need))
    };
    let least = alternatives.iter().filter(|needs| !alternatives.iter().any(|other| needs_more(needs, other)));
    let mut words: Vec<String> = least.map(|needs| needs.join(" and ")).collect();
    words.dedup();
    words
}

/// Whether the condition `need` holds: the other key has the value, and is read.
fn is_met(need: &'static str, entry: &Entry, value: &dyn Fn(&str) -> Value) -> bool {
    let need = Need::parse(need);
    need.is_met(&value(need.key)) && schema::known(need.key).is_read_on(entry)
}

/// The readers of `key` on the layer `entry`, if the key states readers.
pub fn readers_on<'a>(key: &'a Key, entry: &'a Entry) -> impl Iterator<Item = &'a Reader> {
    key.readers.iter().filter(|reader| entry.has_reader(reader, key))
}
