//! The co-designed file system on a simulated drive, mounted by FUSE for any program.
//!
//! `fsync`, and a commit some seconds after a change, make changes durable. A mount begins with an empty file system,
//! or with the file system of an image. Other systems than Linux get an error.

#[cfg(target_os = "linux")]
pub mod attributes;
#[cfg(target_os = "linux")]
mod extended;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
mod handles;
#[cfg(target_os = "linux")]
pub mod known;
#[cfg(target_os = "linux")]
mod mounted;
#[cfg(target_os = "linux")]
mod ranges;
#[cfg(target_os = "linux")]
mod requests;

#[cfg(target_os = "linux")]
pub use mounted::mount;

use std::path::PathBuf;

/// The settings of a mount.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder to mount at.
    pub at: PathBuf,
    /// The scheme that chooses the channel of each page.
    pub scheme: String,
    /// The image file; `None` keeps the drive in memory.
    pub image: Option<PathBuf>,
    /// Whether durable data must survive a crash of the machine, too.
    pub image_sync: bool,
    /// The page of live figures.
    pub page: Option<crate::page::Wanted>,
    /// A shell command with the folder as `$mount`. The mount ends with the command.
    pub run: Option<String>,
}

/// Always an [`palimpsest_lab::error::Error::Input`].
#[cfg(not(target_os = "linux"))]
pub fn mount(
    _resolved: &palimpsest_lab::config::Resolved,
    _options: &palimpsest_lab::run::Options,
    _settings: &Settings,
    _record: Option<palimpsest_lab::host::trace::output::Recorder>,
    _say: &(dyn Fn(&str) + Sync),
    _goes_on: &mut (dyn FnMut(Option<palimpsest_lab::run::Progress>) -> std::ops::ControlFlow<()> + Send),
) -> palimpsest_lab::error::Result<crate::Ended> {
    let what = "only Linux can mount the file system; palimpsest serve serves the drive by NBD";
    Err(palimpsest_lab::error::Error::input("mount", what))
}
