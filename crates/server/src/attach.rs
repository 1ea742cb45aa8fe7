//! A served drive as a block device of the kernel: a file by FUSE, and a loop device over it where this is root.
//!
//! The device is the drive with all that the kernel puts before one: its cache, its scheduler, file systems. A discard arrives as a hole
//! in the file, a flush as `fsync`. The end unmounts what is mounted from the device, as a system does before it goes down. For Linux;
//! elsewhere one line says so, and that the drive can be served by NBD.

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
/// What is wanted of an attached drive.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Its name; the first of `pal0`, `pal1`, ... that is free, if none.
    pub name: Option<String>,
    /// Whether only the file is wanted, and no device.
    pub file_only: bool,
}

/// What to use where there is no block device.
const INSTEAD: &str = "palimpsest serve --listen unix:drive.sock serves the drive by NBD";
