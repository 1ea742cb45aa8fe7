//! A served drive as a block device of the kernel: a file by FUSE and, for root, a loop device over that file.
//!
//! Programs meet the kernel's cache, scheduler and file systems before the drive, as with any disk. A discard arrives
//! as a hole in the file, a flush as `fsync`. The end unmounts the file systems of the device first. Other systems than
//! Linux get an error that names NBD instead.

#[cfg(target_os = "linux")]
mod attached;
#[cfg(not(target_os = "linux"))]
#[path = "attach/elsewhere.rs"]
mod attached;
#[cfg(target_os = "linux")]
pub mod device;
#[cfg(target_os = "linux")]
pub mod disk;
#[cfg(target_os = "linux")]
pub mod file;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
pub mod places;
#[cfg(target_os = "linux")]
pub mod session;

pub use attached::{Attached, Place, detach};
/// The wanted place of an attached drive.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Name of the drive; without one the first free of `pal0`, `pal1`, ...
    pub name: Option<String>,
    /// Whether to attach the file only, without a device.
    pub file_only: bool,
}

const INSTEAD: &str = "palimpsest serve --listen unix:drive.sock serves the drive by NBD";
