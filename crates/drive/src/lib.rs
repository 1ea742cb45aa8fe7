//! A simulated solid-state drive as a value: requests in, completions with their times out.
//!
//! ```
//! use palimpsest_drive::{Drive, Status, read, write};
//!
//! # fn main() -> palimpsest_drive::Result<()> {
//! let mut drive = Drive::builder("mga-8k").layer("page").set("ssd.blocks_per_plane", "32").build()?;
//! let first = drive.submit(write(0, 16 << 10)?, 0)?;
//! let second = drive.submit(read(0, 4096)?, 50_000)?;
//! let mut ended = Vec::new();
//! while let Some(time) = drive.next_time() {
//!     drive.advance(time)?;
//!     ended.extend(drive.completed().map(|done| (done.ticket, done.status)));
//! }
//! ended.sort();
//! assert_eq!(ended, [(first, Status::Done), (second, Status::Done)]);
//! assert_eq!(drive.finish()?.requests.write, 1);
//! # Ok(())
//! # }
//! ```
//!
//! The caller owns the clock. [`Drive::submit`] passes the time of arrival, [`Drive::next_time`] returns the next event
//! of the drive, and [`Drive::advance`] processes events. A drive is [`Send`], starts no thread, reads no file and no
//! clock, and draws every random choice from the seed: the same calls give the same times and figures on each machine.
//! [`Drive::finish`] checks every conservation law and returns the result of `palimpsest run`.
//!
//! Ignored: commands of zones, requests that the host aborts, and the time without power after a power cut.

mod builder;
mod drive;

pub use builder::{Builder, Contents};
pub use drive::{Completion, Drive, Moment, Status, Ticket};
pub use palimpsest_lab::command::{Command, Directives, Lifetime};
pub use palimpsest_lab::error::{Error, Result};
pub use palimpsest_lab::metrics::summary::Summary as Figures;
pub use palimpsest_lab::units::Nanos;

use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::units::SECTOR_BYTES;

/// A read of `length` bytes from byte `offset` on.
///
/// # Errors
/// [`Error::Input`] unless both are multiples of 512 bytes, and `length` is from 1 sector to 2 TiB.
pub fn read(offset: u64, length: u64) -> Result<Command> {
    command(RequestKind::Read, offset, length)
}

/// A write of `length` bytes from byte `offset` on.
///
/// # Errors
/// As [`read`].
pub fn write(offset: u64, length: u64) -> Result<Command> {
    command(RequestKind::Write, offset, length)
}

/// A trim: the whole units of the layer's map within `length` bytes from byte `offset` on read as zeros afterwards.
///
/// # Errors
/// As [`read`].
pub fn trim(offset: u64, length: u64) -> Result<Command> {
    command(RequestKind::Trim, offset, length)
}

/// A flush, which completes when all earlier writes are durable.
pub const FLUSH: Command = Command::FLUSH;

fn command(kind: RequestKind, offset: u64, length: u64) -> Result<Command> {
    let whole = offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES) && length > 0;
    match u32::try_from(length / SECTOR_BYTES) {
        Ok(sectors) if whole => Ok(Command::new(kind, Extent { sector: offset / SECTOR_BYTES, sectors })),
        _ => {
            let what = format!("{length} bytes from byte {offset} on; expected multiples of {SECTOR_BYTES} bytes");
            Err(Error::input(format!("{kind:?}").to_lowercase(), what))
        }
    }
}

/// Compiles and runs the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/drive.md")]
pub struct Guide;
