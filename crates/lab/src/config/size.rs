//! Limits of the size of settings files and drives, to refuse a mistake before memory is exhausted.
//!
//! The memory of a drive is estimated from below: the tables of flash, the shadow and the layer's map, and the bytes of
//! a fill. Ignored: tables of the engine and the workload, and bytes of its writes. Untouched memory is never
//! allocated, so a drive that is filled in part and rarely written takes little.

use super::DriveConfig;
use crate::layers::find_layer;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::data::Payload;

/// Most bytes of a settings file.
pub const LARGEST_FILE: u64 = 16 << 20;

/// Bytes for each physical subpage in the tables of flash: its logical number, and with contents also tag or place, and
/// program number.
const SUBPAGE_BYTES: [u64; 2] = [4, 20];

/// Bytes for each logical subpage in the shadow, if contents are verified.
const SHADOW_BYTES: u64 = 8;

/// Bytes for each physical subpage if times are verified: of the last copy of stored data, and of the ledger, which
/// only the requests of the workload touch.
const VERIFIED_BYTES: [u64; 2] = [16, 24];

/// Refuses a file of `length` bytes, read up to one more than [`LARGEST_FILE`].
///
/// # Errors
/// [`Error::Input`].
pub fn check_length(path: &str, length: usize) -> Result<()> {
    if length as u64 <= LARGEST_FILE {
        return Ok(());
    }
    Err(Error::input(path, format!("the file has more than {} MiB; expected a TOML file", LARGEST_FILE >> 20)))
}

/// The use of a drive's tables by a run.
#[derive(Debug, Clone, Copy)]
pub struct Touched {
    /// Contents of cells.
    pub payload: Payload,
    /// Whether times are verified.
    pub verified: bool,
    /// Share of the logical space that preconditioning fills sequentially.
    pub filled: f64,
    /// All writes of preconditioning, as multiples of that share.
    pub times: f64,
    /// Requests of the workload; `None` if unknown.
    pub requests: Option<u64>,
    /// Whether the drive is served to programs, so that the payload must be bytes.
    pub served: bool,
}

impl Touched {
    /// A run that touches all tables, with `payload`.
    pub fn all(payload: Payload) -> Self {
        Touched { payload, verified: false, filled: 1.0, times: f64::INFINITY, requests: None, served: false }
    }
}

/// Share of the free memory that a smaller drive in a message takes.
const ROOM: f64 = 0.75;

/// Bytes of the pieces in which tables take memory; a request may touch one piece of each table.
const PIECE: u64 = 4096;

/// Bytes of the tables of `drive`, and of their touched part.
fn tables(drive: &DriveConfig, touched: &Touched) -> (u64, u64) {
    let contents = touched.payload != Payload::None;
    let (pages, physical) = (drive.geometry.pages(), drive.geometry.subpages());
    let logical = drive.logical_subpages();
    let map = find_layer(&drive.ftl.name).map_or(0, |entry| (entry.tables)(&drive.ftl, &drive.geometry, logical));
    let [copies, ledger] = if touched.verified { VERIFIED_BYTES.map(|bytes| physical * bytes) } else { [0, 0] };
    let flash = physical * SUBPAGE_BYTES[usize::from(contents)] + physical / 8 + pages + copies;
    let host = map + if contents { logical * SHADOW_BYTES } else { 0 };
    let written = (touched.filled * touched.times * logical as f64 / physical as f64).min(1.0);
    let by_requests = |requests: u64| {
        let tables = 4 + 3 * u64::from(contents) + u64::from(touched.verified);
        requests.saturating_mul(tables * PIECE)
    };
    let by_fill = (flash as f64 * written + host as f64 * touched.filled) as u64;
    let all = flash + host + ledger;
    let least = touched.requests.map_or(all, |requests| by_fill.saturating_add(by_requests(requests)));
    (all, least.min(all))
}

/// Bytes of the stored data of a fill; the programs of a served drive fill it themselves.
fn stored(drive: &DriveConfig, touched: &Touched) -> u64 {
    let stores = touched.payload == Payload::Bytes && !touched.served;
    if stores { (drive.logical_bytes() as f64 * touched.filled) as u64 } else { 0 }
}

/// Bytes that a run with `touched` may take: the touched tables, or all of them if these are most.
pub fn needed(drive: &DriveConfig, touched: &Touched) -> u64 {
    let (all, touches) = tables(drive, touched);
    (if uses_most(drive, touched) { all } else { touches }) + stored(drive, touched)
}

/// Whether a run with `touched` allocates most of the tables of `drive`.
pub fn uses_most(drive: &DriveConfig, touched: &Touched) -> bool {
    let (all, least) = tables(drive, touched);
    least >= all / 2
}

/// Bytes of the largest table that is one piece of address space.
fn largest(drive: &DriveConfig, payload: Payload) -> u64 {
    drive.geometry.subpages() * if payload == Payload::None { 4 } else { 8 }
}

/// Whether the system grants the address space of a table of `bytes`, which is not touched here.
fn can_reserve(bytes: u64) -> bool {
    let mut table: Vec<u8> = Vec::new();
    let reserved = usize::try_from(bytes).is_ok_and(|bytes| table.try_reserve_exact(bytes).is_ok());
    std::hint::black_box(&table);
    reserved
}

/// Refuses a drive whose tables, if `touched` so, exceed the memory `available`, if known.
///
/// # Errors
/// [`Error::Input`].
pub fn check_memory(drive: &DriveConfig, touched: &Touched, available: Option<u64>) -> Result<()> {
    let (mut all, touches) = tables(drive, touched);
    let table = largest(drive, touched.payload);
    let stored = stored(drive, touched);
    all += stored;
    match available {
        Some(available) if touches + stored > available || !can_reserve(table) => {
            let least = touches.max(table) + stored;
            let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
            let whole = if least < all { format!(" (of {} in all)", gib(all)) } else { String::new() };
            let what = if stored > 0 { "tables and the data" } else { "tables" };
            let with =
                |payload| Touched { payload, verified: touched.verified && payload != Payload::None, ..*touched };
            let fits = |touched: &Touched| {
                let table = largest(drive, touched.payload);
                tables(drive, touched).1 + self::stored(drive, touched) <= available && can_reserve(table)
            };
            let mut cures = Vec::new();
            if !touched.served {
                cures.push("--fit-memory".to_owned());
                let other = if stored > 0 { ("tag", Payload::Tag) } else { ("none", Payload::None) };
                cures.extend(fits(&with(other.1)).then(|| format!("--payload {}", other.0)));
            }
            let share = available as f64 / least as f64 * ROOM;
            let capacity = ((drive.logical_bytes() as f64 * share) as u64) >> 30;
            cures.extend((capacity > 0).then(|| format!("--set ssd.capacity={capacity}GiB")));
            let expected = if cures.is_empty() { "more memory".into() } else { cures.join(" or ") };
            Err(Error::input(
                format!("--ssd {}", drive.name),
                format!(
                    "the {what} of this drive take more than {}{whole} of memory, and {} are free; expected {expected}",
                    gib(least),
                    gib(available),
                ),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
