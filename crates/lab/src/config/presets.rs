//! The presets: parts, drives and workloads, each a TOML file in `presets/` and one line here.
//!
//! The texts are compiled in, so that the program needs no other files.

use super::overlay::{Describes, Origin, Overlay};
use palimpsest_flash::error::{Error, Result};
use toml_edit::Document;

/// A preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// File in the repository.
    pub file: &'static str,
    /// TOML text.
    pub text: &'static str,
}

/// A row of `palimpsest list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// One line about the preset.
    pub description: String,
    /// Source of the numbers.
    pub source: String,
}

macro_rules! presets {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            file: concat!("presets/", $folder, "/", $name, ".toml"),
            text: include_str!(concat!("../../presets/", $folder, "/", $name, ".toml")),
        }),*]
    };
}

static PARTS: &[Preset] = presets!("parts":
    "k9-slc-8k",
    "k9-slc-16k",
    "vnand-16k",
    "mlc-8k",
    "mlc-32k",
    "a16",
    "a27",
    "b16",
    "b29",
    "b29-two-plane",
    "c35",
    "mlc-4k",
    "tlc-16k",
    "tlc-32k",
    "qlc-16k",
);

static SSDS: &[Preset] = presets!("ssds":
    "default",
    "enterprise-tlc-7.68t",
    "zn540",
    "cm7-r-3.84t",
    "p5520-1.92t",
    "datacentre-tlc",
    "tlc-32g",
    "970pro-512g",
    "980pro-1t",
    "980-1t",
    "870qvo-4t",
    "d5-p5336-30.72t",
    "mga-8k",
    "mga-16k",
    "spread-16g",
    "llh-16g",
    "llh-32g",
    "llh-64g",
    "llh32-16g",
    "llh32-32g",
    "llh32-64g",
    "codesign-8ch",
    "womv-16g",
);

static WORKLOADS: &[Preset] = presets!("workloads":
    "mysql-like",
    "randread-4k",
    "randwrite-4k",
    "randrw-70-30",
    "seqwrite-128k",
    "seqread-128k",
    "oltp-zipf",
    "synth-a",
    "synth-b",
    "trade",
    "cfs",
    "radius",
    "ads",
    "kv1",
    "kv2",
    "gr1",
    "su",
    "kv",
    "grp",
    "prj",
    "usr",
    "stg",
    "livemaps",
    "exchange",
    "development",
    "msnstorage",
    "livemaps-uneven",
    "exchange-uneven",
    "development-uneven",
    "msnstorage-uneven",
    "src1_2",
    "stg_0",
    "hm_0",
    "rsrch_0",
    "src2_0",
    "ts_0",
    "usr_0",
    "wdev_0",
    "prxy_0",
    "proj_0",
    "web_0",
    "online",
    "webresearch",
    "webusers",
    "webmail",
    "web-online",
    "zipf-0.9",
    "zipf-0.95",
    "zipf-1",
    "fdp-cache",
    "fdp-kvcache",
    "fdp-rocksdb",
);

/// The built-in parts.
pub fn part_presets() -> Vec<PresetInfo> {
    PARTS.iter().map(|preset| preset.info(&preset.overlay(Describes::Part))).collect()
}

/// The built-in drives.
pub fn ssd_presets() -> Vec<PresetInfo> {
    SSDS.iter().map(|preset| preset.info(&preset.overlay(Describes::Drive))).collect()
}

/// The built-in workloads.
pub fn workload_presets() -> Vec<PresetInfo> {
    WORKLOADS
        .iter()
        .map(|preset| PresetInfo {
            name: preset.name,
            description: preset.line("description"),
            source: preset.line("source"),
        })
        .collect()
}

/// The fio-like specification of the workload preset `name`, in any case: papers write KV1, the file is kv1. `None` if
/// there is no such preset.
pub fn workload_spec(name: &str) -> Option<String> {
    WORKLOADS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name)).map(|preset| preset.line("spec"))
}

/// The part preset called `name`, named at `place`.
pub(super) fn part(name: &str, place: &str) -> Result<&'static Preset> {
    find(PARTS, "part", name, place, PATH)
}

/// The drive preset called `name`, named at `place`.
pub(super) fn ssd(name: &str, place: &str) -> Result<&'static Preset> {
    find(SSDS, "SSD", name, place, PATH)
}

/// The drive preset called `name`, the base of the file at `place`.
pub(super) fn base(name: &str, place: &str) -> Result<&'static Preset> {
    find(SSDS, "SSD preset", name, place, "")
}

/// The alternative to a name.
const PATH: &str = ", or a path with a '/' or ending in .toml or .pal";

fn find(presets: &'static [Preset], what: &str, name: &str, place: &str, or: &str) -> Result<&'static Preset> {
    presets.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let kind = if what == "part" { "parts" } else { "ssds" };
        let expected = palimpsest_ftl_api::keys::expected_name(name, presets.iter().map(|preset| preset.name), kind);
        let name = palimpsest_flash::units::parse::shown(name);
        Error::input(place, format!("no {what} is called \"{name}\"{expected}{or}"))
    })
}

impl Preset {
    /// The settings of the preset. Panics if the file is malformed: a bug of the project.
    pub(super) fn overlay(&self, describes: Describes) -> Overlay {
        let overlay = Overlay::from_toml(self.file, self.text, describes).unwrap_or_else(|error| panic!("{error}"));
        Overlay { origin: Origin::Preset, ..overlay }
    }

    fn info(&self, overlay: &Overlay) -> PresetInfo {
        let line =
            |text: &Option<String>| text.clone().unwrap_or_else(|| panic!("{} lacks a line about it", self.file));
        PresetInfo { name: self.name, description: line(&overlay.description), source: line(&overlay.source) }
    }

    fn line(&self, key: &str) -> String {
        let document = Document::parse(self.text).unwrap_or_else(|error| panic!("{}: {error}", self.file));
        let text = document.get(key).and_then(|item| item.as_str());
        text.unwrap_or_else(|| panic!("{} lacks {key}", self.file)).into()
    }
}
