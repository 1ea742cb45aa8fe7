//! The co-designed file system on a simulated drive, mounted by FUSE: for any program.
//!
//! What is written is on the drive; `fsync`, and a commit some seconds after a change, make it durable. A mount begins with an empty file
//! system, or with what an image keeps. For Linux; elsewhere one line says so.

#[cfg(target_os = "linux")]
pub mod attributes;
#[cfg(target_os = "linux")]
mod errors;
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
pub use mounted::mount;

use std::path::PathBuf;

/// How a file system is mounted.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder.
    pub at: PathBuf,
    /// The scheme that gives pages to channels.
    pub scheme: String,
    /// The file that keeps the drive; `None`: memory does.
    pub image: Option<PathBuf>,
    /// Whether what is durable is to survive a crash of the machine, too.
    pub image_sync: bool,
    /// Where figures are shown meanwhile: an address of this machine.
    pub page: Option<String>,
    /// A command for the shell, which finds the folder as `$mount`: the mount ends with it.
    pub run: Option<String>,
}

/// Says that this is not Linux.
///
/// # Errors
/// [`palimpsest_lab::error::Error::Input`].
#[cfg(not(target_os = "linux"))]
pub fn mount(
    _resolved: &palimpsest_lab::config::Resolved,
    _options: &palimpsest_lab::run::Options,
    _settings: &Settings,
    _record: Option<palimpsest_lab::host::trace::output::Recorder>,
    _say: &(dyn Fn(&str) + Sync),
    _goes_on: &mut (dyn FnMut(Option<palimpsest_lab::run::Progress>) -> std::ops::ControlFlow<()> + Send),
) -> palimpsest_lab::error::Result<crate::Ended> {
    let what = "only Linux mounts file systems of programs; palimpsest serve serves the drive by NBD";
    Err(palimpsest_lab::error::Error::input("mount", what))
}
