//! Limits of size, so that a mistake is refused before memory ends: of files of settings, and of drives.
//!
//! The memory of a drive is estimated from below: the tables of flash and the shadow, without those of the layer, the engine or the
//! workload, and without the bytes that it will store.

use super::DriveConfig;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::data::Payload;

/// Bytes of the longest file of settings that is read.
pub const LARGEST_FILE: u64 = 16 << 20;

/// Bytes for each physical subpage in the tables of flash: its logical number, and with contents their tag or place, and the number
/// of their program.
const SUBPAGE_BYTES: [u64; 2] = [4, 20];

/// Bytes for each logical subpage in the shadow, where contents are verified.
const SHADOW_BYTES: u64 = 8;

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

/// Refuses a drive whose tables take more than the memory `available`, where that is known.
///
/// # Errors
/// [`Error::Input`].
pub fn check_memory(drive: &DriveConfig, payload: Payload, available: Option<u64>) -> Result<()> {
    let contents = payload != Payload::None;
    let subpages = drive.geometry.pages() * u64::from(drive.geometry.subpages_per_page);
    let shadow = if contents { drive.logical_subpages() * SHADOW_BYTES } else { 0 };
    let least = subpages * SUBPAGE_BYTES[usize::from(contents)] + drive.geometry.pages() + shadow;
    match available {
        Some(available) if least > available => {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            Err(Error::input(
                format!("--ssd {}", drive.name),
                format!(
                    "the tables of this drive take more than {:.1} GiB of memory, and {:.1} GiB are free; expected a smaller drive \
                     (fewer ssd.blocks_per_plane, say) or --payload none",
                    gib(least),
                    gib(available)
                ),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolve;

    #[test]
    fn drives_that_do_not_fit_are_refused() {
        let drive = |blocks: u32| {
            let set = [format!("ssd.blocks_per_plane={blocks}")];
            resolve("tlc-32g", None, &set, &|_| unreachable!()).unwrap().drive
        };
        assert!(check_memory(&drive(10_000), Payload::Tag, Some(1 << 30)).is_err());
        assert!(check_memory(&drive(10_000), Payload::Tag, None).is_ok());
        assert!(check_memory(&drive(100), Payload::Tag, Some(1 << 30)).is_ok());
        assert!(check_length("a.toml", 1 << 20).is_ok());
        assert!(check_length("/dev/zero", (LARGEST_FILE + 1) as usize).is_err());
    }
}
