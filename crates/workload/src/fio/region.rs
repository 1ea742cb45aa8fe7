//! The part of the drive that a generated workload uses.
//!
//! As in fio, an offset in percent is rounded up and a size in percent down to a multiple of the smallest block size of
//! all directions, used or not; percentages of `io_size` are percentages of the size.

use super::quantity::{Amount, size_text};
use super::spec::{FioSpec, place};
pub use crate::namespaces::Room;
use crate::request::SECTOR_BYTES;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::GIB;

/// Largest drive, because floating point counts more slots inexactly.
const DRIVE_LIMIT: u64 = 1 << 60;

/// A run of sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Number of sectors, from the first, for requests that are not sequential by their size.
    pub drawn: u64,
}

impl Region {
    /// The region of `spec` for copy `copy` (from 0) in `room`, which is the drive in percentages and messages.
    ///
    /// # Errors
    /// [`Error::Input`] if the region reaches beyond the drive or is too small for the largest request.
    pub fn new(spec: &FioSpec, room: Room, copy: u64) -> Result<Region> {
        let drive_bytes = room.bytes;
        if drive_bytes > DRIVE_LIMIT {
            return Err(Error::input(place("size"), format!("expected a drive up to {}", shown(DRIVE_LIMIT))));
        }
        let grain = spec.least_block();
        let offset = offset(spec, copy, drive_bytes, grain);
        let key = match spec.size {
            Some(_) if spec.groups.is_empty() => "size",
            Some(_) => "filegroups",
            None => "offset",
        };
        let bytes = match spec.size {
            Some(size @ Amount::Millionths(_)) => {
                let (bytes, room) = (size.bytes_of(drive_bytes, grain), drive_bytes.saturating_sub(offset));
                // Only the rounding of the offset may reach beyond the drive.
                if bytes < room.saturating_add(grain) { bytes.min(room / grain * grain) } else { bytes }
            }
            Some(Amount::Bytes(bytes)) => bytes,
            None => drive_bytes.saturating_sub(offset),
        };
        if offset.checked_add(bytes).is_none_or(|end| end > drive_bytes) {
            let what = format!(
                "the region of {} from offset {} reaches beyond the drive; expected a region within {}",
                shown(bytes),
                shown(offset),
                shown(drive_bytes)
            );
            return Err(Error::input(place(key), what));
        }
        let sizes = spec.pattern.kinds.iter().flat_map(|&kind| spec.sizes(kind));
        let largest = sizes.map(|share| share.bytes).max().expect("every direction has a size");
        if bytes < largest {
            let what = format!("the region has {}; expected room for a request of {}", shown(bytes), shown(largest));
            return Err(Error::input(place(key), what));
        }
        let drawn = drawn(spec, bytes, drive_bytes)?;
        let first = (room.first + offset) / SECTOR_BYTES;
        Ok(Region { first, sectors: bytes / SECTOR_BYTES, drawn: drawn / SECTOR_BYTES })
    }

    /// Offset of the requests that are sequential by their size, from the first sector.
    #[inline]
    pub fn following(self) -> u64 {
        if self.drawn == self.sectors { 0 } else { self.drawn }
    }

    /// Upper bound of the bytes of the whole workload.
    pub fn io_bytes(self, spec: &FioSpec) -> u64 {
        let bytes = self.sectors * SECTOR_BYTES;
        let loops = spec.loops.map(|loops| loops.saturating_mul(bytes));
        spec.io_size.map(|size| size.bytes_of(bytes, 1)).or(loops).unwrap_or(u64::MAX)
    }
}

/// The offset of a copy, rounded up to a multiple of `grain` if a part is a percentage.
fn offset(spec: &FioSpec, copy: u64, drive_bytes: u64, grain: u64) -> u64 {
    let step = spec.offset_increment.bytes_of(drive_bytes, 1).saturating_mul(copy);
    match (spec.offset, spec.offset_increment) {
        (first, _) if step == 0 => first.bytes_up_to(drive_bytes, grain),
        (Amount::Bytes(first), Amount::Bytes(_)) => first.saturating_add(step),
        (first, _) => first.bytes_of(drive_bytes, 1).saturating_add(step).div_ceil(grain).saturating_mul(grain),
    }
}

/// Bytes of a region of `bytes` without `sequential_size`.
fn drawn(spec: &FioSpec, bytes: u64, drive_bytes: u64) -> Result<u64> {
    let grain = spec.least_block();
    let Some(own) = spec.sequential_size.map(|size| size.bytes_of(drive_bytes, grain)) else { return Ok(bytes) };
    let sizes = || spec.pattern.kinds.iter().flat_map(|&kind| spec.sizes(kind)).map(|share| share.bytes);
    let largest = |follows: bool| sizes().filter(|&bytes| spec.follows(bytes) == follows).max().unwrap_or(0);
    let (most, least) = (bytes.saturating_sub(largest(false)), largest(true).max(1));
    if own < least || own > most {
        let what = format!(
            "sequential requests get {} of the region of {}; expected room for a request of {} there and of {} \
             beside it",
            shown(own),
            shown(bytes),
            shown(largest(true)),
            shown(largest(false))
        );
        return Err(Error::input(place("sequential_size"), what));
    }
    Ok(bytes - own)
}

/// Bytes for a message: exact, or with a decimal if that is shorter.
pub fn shown(bytes: u64) -> String {
    match size_text(bytes) {
        short if short.len() > 8 && bytes > GIB => format!("{:.1} GiB", bytes as f64 / GIB as f64),
        short if short.ends_with('B') => short,
        _ => format!("{bytes} bytes"),
    }
}
