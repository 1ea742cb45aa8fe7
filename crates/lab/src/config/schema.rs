//! The schema: all keys declared by parts of a drive, the host and layers, in the order of printing.

use super::notation::read_bare;
use crate::layers::{OUTSIDE, close, enter, found, layers};
use palimpsest_flash::nand::errors::{self, growth};
use palimpsest_flash::nand::{part, wear};
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl::log::settings as log;
use palimpsest_ftl_api::keys::{
    Fallback, Key, Need, Notated, Notation, Value, ValueType, expected_name, few, is, keys_of,
};
use palimpsest_ftl_api::{Entry, keys};
use palimpsest_sim::faults::FAULTS;
use palimpsest_sim::queues::QUEUES;
use palimpsest_sim::settings::{CONTROLLER, ENGINE, READ_AHEAD};
use palimpsest_workload::namespaces::Shares;
use palimpsest_workload::settings::{BUFFER, HOST};
use std::ops::Deref;
use std::sync::RwLock;

keys! {
    /// Settings of the drive as a whole.
    pub(super) struct DriveSettings;

    /// The keys of the drive's shape and spare flash.
    group SSD {
        /// NAND part: a preset, or the path of a part file; replaces part.* of the files below
        pub(super) part: String = "ssd.part", PartName, "";
        /// channels
        pub(super) channels: u32 = "ssd.channels", Count { min: 1, max: 1024 }, required;
        /// chips on each channel
        pub(super) chips_per_channel: u32 = "ssd.chips_per_channel", Count { min: 1, max: 1024 }, "1";
        /// dies in each chip
        pub(super) dies_per_chip: u32 = "ssd.dies_per_chip", Count { min: 1, max: 64 }, "1";
        /// planes in each die
        pub(super) planes_per_die: u32 = "ssd.planes_per_die", Count { min: 1, max: 64 }, "1";
        /// blocks in each plane
        pub(super) blocks_per_plane: u32 = "ssd.blocks_per_plane", Count { min: 1, max: 1 << 24 }, required;
        /// bytes that the host sees, by which ssd.blocks_per_plane is set, rounded up; 0B: blocks as given
        pub(super) capacity: u64 = "ssd.capacity", Capacity { max: 1 << 60 }, "0B";
        /// (T - U) / U: physical over logical pages, less one
        pub(super) over_provisioning: f64 = "ssd.over_provisioning", Ratio { max: 100.0 }, "7%";
        /// another over-provisioning than that of the drive changes what the host sees (taken), or the blocks (added);
        /// beside ssd.capacity it always changes the blocks
        pub(super) adds_spare: bool = "ssd.spare", Choice(&["taken", "added"]) => is("added"), "taken";
        /// shares of the capacity, each the addresses of one tenant, in the order of sections or volumes; further
        /// tenants share the last; none: all tenants address the whole drive
        pub(super) namespaces: Shares = "ssd.namespaces", Shares::KIND, "none";
    }

    /// The key that names the layer.
    group LAYER {
        /// flash translation layer
        pub(super) layer: String = "ftl.name", LAYER_NAME, "page";
    }
}

const LAYER_NAME: ValueType =
    ValueType::Notation(&Notation { words: layer_names, read: layer_name, expected: expected_layers });

fn layer_names() -> Vec<&'static str> {
    layers().map(|entry| entry.name).collect()
}

fn expected_layers() -> String {
    let outside = OUTSIDE.get().map_or_else(String::new, |outside| format!(", {}", outside.form));
    format!("one of {}{outside}", layer_names().join(", "))
}

fn layer_name(text: &str) -> Parsed<String> {
    if let Some(outside) = OUTSIDE.get().and_then(|outside| (outside.read)(text)) {
        let entry = outside?;
        enter(entry, |found| fits(entry, found))?;
        return Ok(entry.name.into());
    }
    if layer_names().contains(&text) {
        return Ok(text.into());
    }
    Err(format!("there is no such translation layer{}", expected_name(text, layer_names().into_iter(), "ftls")))
}

/// A key of the schema.
#[derive(Debug)]
pub struct Known {
    key: &'static Key,
    /// The layers that may read the key, without file systems that read it through the layer below; `None`: every
    /// layer.
    pub layers: Option<Vec<&'static str>>,
    /// The names of these layers, and the meaning.
    pub doc: String,
    /// The value if nothing sets the key; `None` if another key or the drive determines the value.
    pub fallback: Option<Value>,
    /// True for a key of layers outside the registry alone.
    pub outside: bool,
}

impl Deref for Known {
    type Target = Key;

    fn deref(&self) -> &Key {
        self.key
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All keys in the order of printing: table by table. The tables of layers outside the registry are last, so the
/// position of a key never changes.
pub fn keys() -> &'static [Known] {
    static GATHERED: RwLock<(usize, &[Known])> = RwLock::new((0, &[]));
    let found = found();
    let (layers, known) = *GATHERED.read().expect("no reader panics");
    if !known.is_empty() && layers == found.len() {
        return known;
    }
    let mut gathered = GATHERED.write().expect("no reader panics");
    *gathered = (found.len(), gather(&found).leak());
    gathered.1
}

/// Refuses the layer `entry` outside the registry if its keys are not in tables of their own, or differ from those of
/// the layers `found`.
fn fits(entry: &Entry, found: &[&'static Entry]) -> Parsed<()> {
    let known = gather(found);
    for key in entry.all_keys() {
        check_declaration(key)?;
        let table = key.split().0;
        // A key of the drive or of the registry is the same declaration.
        let is_same = |known: &Known| {
            let declared = |key: &Key| (key.doc, key.default, format!("{:?} {:?}", key.value_type, key.needs));
            declared(known.key) == declared(key)
        };
        match known.iter().find(|known| known.name == key.name) {
            Some(twin) if is_same(twin) => {}
            Some(twin) => {
                return Err(format!("{} is also a key of others ({}); expected another name", key.name, twin.doc));
            }
            None if known.iter().any(|known| known.split().0 == table && !known.outside) => {
                return Err(format!(
                    "{}: {table} is a table of the drive; expected a table of the layer's own",
                    key.name
                ));
            }
            None => {}
        }
    }
    Ok(())
}

fn of_drive() -> Vec<&'static Key> {
    keys_of(&[SSD, part::SHAPE_AND_TIMES, wear::KEYS, growth::OF_PART, part::CORRUPTION_AND_ENERGIES, LAYER])
}

fn around() -> Vec<&'static Key> {
    let mut around =
        keys_of(&[ENGINE, HOST, BUFFER, CONTROLLER, QUEUES, READ_AHEAD, errors::KEYS, growth::TEMPERATURE]);
    around.extend(FAULTS.iter().flat_map(|fault| fault.keys));
    around
}

/// Refuses a name without a table, and a default that is no value of the kind.
fn check_declaration(key: &Key) -> Parsed<()> {
    let name = key.name;
    if name.split('.').filter(|part| !part.is_empty()).count() != 2 {
        return Err(format!("the key {name}: expected a name such as table.key"));
    }
    if let Fallback::Text(text) = key.default {
        read_bare(key.value_type, text).map_err(|what| format!("the default of {name}: {what}"))?;
    }
    Ok(())
}

/// Checks the keys of new layers, as [`keys()`] requires of the program's own.
///
/// # Errors
/// The first contradiction.
pub fn check_new(entries: &[Entry]) -> Result<(), String> {
    let of_layers = log::keys().into_iter().chain(layers().flat_map(|entry| entry.all_keys()));
    let mut known: Vec<&Key> = of_drive().into_iter().chain(around()).chain(of_layers).collect();
    let first_new = known.len();
    known.extend(entries.iter().flat_map(|entry| entry.all_keys()));
    let is_known = |name: &str| known.iter().any(|key| key.name == name);
    for (at, key) in known.iter().enumerate().skip(first_new) {
        let name = key.name;
        check_declaration(key)?;
        if known[..at].iter().any(|other| other.name == name && other.doc != key.doc) {
            return Err(format!("the key {name} has another meaning already; expected a key of this layer's own"));
        }
        let needs = key.needs.iter().chain(key.readers.iter().flat_map(|reader| reader.needs));
        if let Some(need) = needs.map(|need| Need::parse(need).key).find(|need| !is_known(need)) {
            return Err(format!("the key {name} needs {need}; expected a key of the drive or of a layer"));
        }
    }
    Ok(())
}

fn gather(found: &[&'static Entry]) -> Vec<Known> {
    close();
    let (of_drive, around) = (of_drive(), around());
    let of_layers = layers().flat_map(|entry| entry.all_keys());
    // A key that both a layer and its surroundings list keeps the place of the surroundings.
    let is_around = |key: &Key| around.iter().any(|around| around.name == key.name);
    let of_layers: Vec<&Key> = log::keys().into_iter().chain(of_layers).filter(|key| !is_around(key)).collect();
    let (of_drive, of_layers) = (of_drive.into_iter().map(|key| (key, true)), of_layers.into_iter());
    let all = of_drive.chain(of_layers.map(|key| (key, false))).chain(around.iter().map(|&key| (key, true)));
    let outside = found.iter().flat_map(|entry| entry.all_keys()).map(|key| (key, false));
    let all = all.chain(outside);
    let mut known: Vec<Known> = Vec::new();
    for (key, is_of_drive) in all {
        match known.iter().find(|known| known.name == key.name) {
            Some(known) => assert!(known.key.doc == key.doc, "{} is defined twice", key.name),
            None => known.push(Known::new(key, is_of_drive)),
        }
    }
    say_layers(&mut known, found);
    // New keys of an existing table follow the keys of that table.
    let mut tables: Vec<&str> = Vec::new();
    for known in &known {
        if !tables.contains(&known.split().0) {
            tables.push(known.split().0);
        }
    }
    known.sort_by_key(|known| tables.iter().position(|table| *table == known.split().0));
    known
}

impl Known {
    fn new(key: &'static Key, is_of_drive: bool) -> Self {
        let fallback = match key.default {
            Fallback::Text(text) => {
                Some(read_bare(key.value_type, text).unwrap_or_else(|what| panic!("default of {}: {what}", key.name)))
            }
            Fallback::Same(_) | Fallback::Required => None,
        };
        let layers = (!is_of_drive || !key.readers.is_empty()).then(Vec::new);
        Known { key, layers, doc: key.doc.into(), fallback, outside: false }
    }

    /// Whether the layer `entry` may read the key, if the conditions on other keys hold.
    pub fn is_read_on(&self, entry: &Entry) -> bool {
        self.layers.is_none() || is_read_on(keys(), self, entry)
    }

    /// The names of the layers that may read the key, for messages.
    pub fn layer_names(&self) -> String {
        self.layers.as_deref().map_or_else(String::new, |layers| few(layers, 3, "or"))
    }
}

/// Whether `entry` reads `key`, and each key of the conditions of `key`.
fn is_read_on(known: &[Known], key: &Key, entry: &Entry) -> bool {
    let can = |needs: &[&'static str]| {
        let mut others = needs.iter().map(|need| Need::parse(need).key);
        others.all(|other| {
            let other = known.iter().find(|known| known.name == other).expect("a condition names a key");
            other.layers.is_none() || is_read_on(known, other, entry)
        })
    };
    let reads = match key.readers {
        [] => entry.lists(key.name),
        readers => readers.iter().any(|reader| entry.has_reader(reader, key) && can(reader.needs)),
    };
    reads && can(key.needs) && !entry.hides.contains(&key.name)
}

/// Fills in [`Known::layers`], and names the layers in [`Known::doc`].
fn say_layers(known: &mut [Known], found: &[&'static Entry]) {
    for at in 0..known.len() {
        if known[at].layers.is_none() {
            continue;
        }
        let reads = |entry: &Entry| is_read_on(known, &known[at], entry);
        let bare = |entry: &&'static Entry| reads(entry) && !entry.below.is_some_and(&reads);
        let mut names: Vec<&str> = layers().filter(bare).map(|entry| entry.name).collect();
        if names.is_empty() {
            names.extend(found.iter().copied().filter(bare).map(|entry| entry.name));
            known[at].outside = true;
        }
        assert!(!names.is_empty(), "no layer reads {}", known[at].name);
        known[at].doc = format!("{}: {}", short(&names), known[at].key.doc);
        known[at].layers = Some(names);
    }
}

/// `names`, with all layers of one prefix as a pattern, such as `fs-*`.
fn short(names: &[&str]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for name in names {
        let begins = name.split_once('-').map(|(begin, _)| format!("{begin}-"));
        let family = |begin: &str| layers().map(|entry| entry.name).filter(|name| name.starts_with(begin)).count();
        let here = |begin: &str| names.iter().filter(|name| name.starts_with(begin)).count();
        let text = match begins {
            Some(begin) if here(&begin) > 1 && here(&begin) == family(&begin) => format!("{begin}*"),
            _ => (*name).to_owned(),
        };
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    shown.join(", ")
}

/// Keys outside tables: they describe the file, not the drive.
pub const ABOUT: &[&str] = &["name", "description", "source", "base", "complete"];

/// A key under a former name, which one release accepts with a warning (docs/promises.md).
#[derive(Debug)]
pub(super) struct Renamed {
    /// The former name.
    pub old: &'static str,
    /// The name in the schema.
    pub new: &'static str,
    /// The release that renamed the key; the next may remove this entry.
    pub since: &'static str,
}

/// The renamed keys of this release. Tests plant an entry.
pub(super) const RENAMED: &[Renamed] = &[
    #[cfg(test)]
    Renamed { old: "part.partial_programs", new: "part.nop", since: "9.1" },
];

/// The key called `name`.
///
/// # Panics
/// There is no such key: a bug of the caller; also in [`index`].
pub fn known(name: &str) -> &'static Known {
    &keys()[index(name)]
}

/// The position in [`keys()`] of the key called `name`.
pub fn index(name: &str) -> usize {
    position(name).unwrap_or_else(|| panic!("{name} is not in the schema"))
}

/// The position in [`keys()`] of the key called `name`, if there is one.
pub fn position(name: &str) -> Option<usize> {
    keys().iter().position(|key| key.name == name)
}
