//! Workloads of a page: presets, and specifications in fio's language. Ignored: traces and job files.

use palimpsest_lab::config::{self, DriveConfig};
use palimpsest_lab::error::Result;
use palimpsest_lab::host::fio::{self, FioSpec};
use palimpsest_lab::host::lsm::{LsmSource, LsmSpec};
use palimpsest_lab::host::objects::{ObjectSource, ObjectSpec};
use palimpsest_lab::host::request::Source;

/// The workload of `text`: a preset, a preset with changes (`NAME,key=value`), or a specification.
pub fn open(text: &str, drive: &DriveConfig, seed: u64) -> Result<Box<dyn Source>> {
    let changed = || -> Result<Option<String>> {
        let Some((name, changes)) = text.split_once(',') else { return Ok(None) };
        let Some(spec) = config::workload_spec(name) else { return Ok(None) };
        let is_described = ObjectSpec::is_meant(&spec) || LsmSpec::is_meant(&spec);
        Ok(Some(if is_described { ObjectSpec::changed(&spec, changes) } else { FioSpec::changed(&spec, changes)? }))
    };
    let spec = match config::workload_spec(text) {
        Some(spec) => spec,
        None => changed()?.unwrap_or_else(|| text.into()),
    };
    if ObjectSpec::is_meant(&spec) {
        return Ok(Box::new(ObjectSource::new(ObjectSpec::parse(&spec)?, None, drive.logical_bytes(), seed)?));
    }
    if LsmSpec::is_meant(&spec) {
        return Ok(Box::new(LsmSource::new(LsmSpec::parse(&spec)?, drive.logical_bytes(), seed)?));
    }
    fio::of_text(&spec, drive.namespaces(), seed)
}
