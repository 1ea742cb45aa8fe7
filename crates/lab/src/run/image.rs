//! A drive in an image: the configuration in the header, the creation, and later services.
//!
//! An image begins with a new drive. When the image is opened again, the layer recovers from its flash as after a power
//! cut, because all other memory is lost. The write buffer is therefore never protected, and trimmed data may return.
//! The verifier does not know earlier data until a read or write. Ages of data continue with the drive's time. Ignored:
//! verification of times against the plan, which does not know earlier operations.

pub mod fuzzing;

use super::Session;
use crate::config::{ReadFile, Resolved, resolve};
use crate::layers::find_layer;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::image::Medium;
use palimpsest_flash::nand::image::layout::{Header, Layout, TEXT_MOST, VERSION};
use palimpsest_flash::nand::image::mount::{Fault, Found, Mounted, find};
use palimpsest_sim::drive::explain;
use palimpsest_workload::settings::Acknowledge;
use std::fmt::Write;

/// The image of a drive.
pub struct Keep {
    /// The image.
    pub medium: Box<dyn Medium>,
    /// Name for messages.
    pub name: String,
    /// Whether the image is empty.
    pub is_new: bool,
    /// Whether flushed data must survive a crash of the machine.
    pub syncs: bool,
    /// Identity of the drive, unless the image has one.
    pub uuid: [u8; 16],
}

/// Settings of a drive that acknowledges programs instead of writes to a protected buffer.
const WITHOUT_BUFFER: [&str; 2] = ["buffer.ack=program", "buffer.flush=programs"];

/// The setting under which a file is a range of addresses, so that flash records the place of each page.
const FILES_OF_ADDRESSES: &str = "fs.files=addresses";

/// The drive of [`resolve`], changed to fit an image, and the settings that changed.
///
/// # Errors
/// As [`resolve`]; [`Error::Input`] for a drive that does not fit an image.
pub fn resolve_to_keep(
    ssd: &str,
    ftl: Option<&str>,
    set: &[String],
    read_file: ReadFile<'_>,
) -> Result<(Resolved, Vec<&'static str>)> {
    let mut resolved = resolve(ssd, ftl, set, read_file)?;
    let (mut set, mut needed) = (set.to_vec(), Vec::new());
    if resolved.drive.loses_power() {
        let expected = "expected a drive without faults.power_cut_at and faults.power_cuts";
        return Err(Error::input(
            "--image",
            format!("its power fails when the server is killed, and then alone; {expected}"),
        ));
    }
    if resolved.drive.stripes.is_some() {
        let what = "an image keeps no superblocks and no parity across dies; expected a drive with ftl.rain = 0 \
                    and ftl.superblocks = allocated";
        return Err(Error::input("--image", what));
    }
    if find_layer(&resolved.drive.ftl.name).is_some_and(|entry| entry.is_file_system()) {
        let key = resolved.key("fs.files");
        if let Some(asked) = key.filter(|key| key.source.starts_with("--set ") && !key.source.contains("addresses")) {
            let what = "which files of a program have which addresses is not in flash";
            let expected = "expected fs.files=addresses, or no --image";
            return Err(Error::input(&asked.source, format!("{what}; {expected}")));
        }
        needed.push(FILES_OF_ADDRESSES);
        set.push(FILES_OF_ADDRESSES.into());
        resolved = resolve(ssd, ftl, &set, read_file)?;
    }
    let host = &resolved.drive.host;
    if host.acknowledge != Acknowledge::Buffer {
        return Ok((resolved, needed));
    }
    let asked = ["buffer.ack", "buffer.flush"].into_iter().filter_map(|key| resolved.key(key));
    if let Some(asked) =
        asked.into_iter().find(|key| host.flush_is_free && key.source.starts_with("--set buffer.flush"))
    {
        let expected = "expected buffer.flush=programs, or no --image";
        return Err(Error::input(&asked.source, format!("no buffer survives the end of a server; {expected}")));
    }
    if let Some(asked) = resolved.key("buffer.ack").filter(|key| key.source.starts_with("--set ")) {
        let expected = "expected buffer.ack=program, or no --image";
        return Err(Error::input(&asked.source, format!("no buffer survives the end of a server; {expected}")));
    }
    needed.extend(WITHOUT_BUFFER);
    set.extend(WITHOUT_BUFFER.map(String::from));
    Ok((resolve(ssd, ftl, &set, read_file)?, needed))
}

/// A number that depends on every value of the configuration (FNV-1a of 64 bits over `key = value` lines).
pub fn hash_of(resolved: &Resolved) -> u64 {
    let mut text = String::new();
    for (key, value) in resolved.values() {
        let _ = writeln!(text, "{key} = {value:?}");
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The configuration in `found`, named `name` in messages.
///
/// # Errors
/// [`Error::Input`]: the configuration is not valid in this version.
pub fn resolved_in(found: &Found, name: &str) -> Result<Resolved> {
    let read = |_: &str| Ok(found.text.clone());
    resolve("image.toml", None, &[], &read).map_err(|error| {
        let expected = "expected an image of this version of palimpsest";
        Error::input(name, format!("its configuration cannot be used ({error}); {expected}"))
    })
}

/// The error for `fault` of the image.
pub fn wrong(name: &str, fault: &Fault) -> Error {
    Error::input(name, fault.to_string())
}

fn header_of(resolved: &Resolved, nand: &Nand, text: &str, (seed, uuid): (u64, [u8; 16])) -> Header {
    Header {
        version: VERSION,
        shape: nand.image_shape(),
        logical_subpages: resolved.drive.logical_subpages(),
        seed,
        hash: hash_of(resolved),
        text_bytes: text.len() as u32,
        text_check: crc32fast::hash(text.as_bytes()),
        uuid,
    }
}

/// Bytes of the drive's image, most of which take no space.
///
/// # Errors
/// [`Error::Input`]: the drive is too large.
pub fn length_of(resolved: &Resolved) -> Result<u64> {
    let shape = palimpsest_flash::nand::image::layout::Shape::of(&resolved.drive.geometry, &resolved.drive.part);
    let expected = "expected a drive that an image can hold";
    let too_large = || Error::input("--image", format!("the drive {} is too large; {expected}", resolved.drive.name));
    Layout::new(shape).map(|layout| layout.end).ok_or_else(too_large)
}

/// Refuses the image `found` if its configuration or seed differs from `resolved` and `seed`.
///
/// # Errors
/// [`Error::Input`] with the first different key.
pub fn check_same(found: &Found, resolved: &Resolved, seed: u64, name: &str) -> Result<()> {
    if found.header.seed != seed {
        let what =
            format!("the image was made with --seed {}, not {seed}; expected that or no --seed", found.header.seed);
        return Err(Error::input(name, what));
    }
    if found.header.hash == hash_of(resolved) {
        return Ok(());
    }
    let own = resolved_in(found, name)?;
    let differs = own.values().zip(resolved.values()).find(|((_, one), (_, other))| one != other);
    // A version with fewer keys made the image: the missing keys have their defaults.
    let Some(((key, own), (_, other))) = differs else { return Ok(()) };
    let shown = |value| crate::config::shown(value);
    let expected = "expected the same drive, or neither --ssd nor --ftl nor --set";
    let what = format!("the image was made with {key} = {}, not {}; {expected}", shown(own), shown(other));
    Err(Error::input(name, what))
}

impl Session<'_> {
    /// Stores the new drive in an image from now on, or loads the drive unless `keep` is empty. Returns the loaded
    /// contents.
    pub(super) fn keep_in(&mut self, resolved: &Resolved, keep: Keep) -> Result<Option<Mounted>> {
        let Keep { medium, name, is_new, syncs, uuid } = keep;
        // The ledger knows no operations of earlier services.
        self.drive.io.ledger = None;
        if !self.drive.surface.is_files() {
            self.drive.keep_trims(self.config.logical_subpages());
        }
        let nand = &mut self.drive.io.nand;
        if is_new {
            let text = resolved.to_toml();
            if text.len() as u64 > TEXT_MOST {
                return Err(Error::input(&name, "the configuration is too long for an image; expected a shorter one"));
            }
            let header = header_of(resolved, nand, &text, (self.options.seed, uuid));
            nand.begin_image(medium, &header, &text, syncs).map_err(|fault| wrong(&name, &fault))?;
            return Ok(None);
        }
        let (mut found, _) = find(medium.as_ref()).map_err(|fault| wrong(&name, &fault))?;
        check_same(&found, resolved, self.options.seed, &name)?;
        if found.header.logical_subpages != resolved.drive.logical_subpages() {
            return Err(Error::input(
                &name,
                "the drive has another size than its configuration says; expected an image that nothing else wrote",
            ));
        }
        if found.header.uuid == [0; 16] {
            found.header.uuid = uuid;
        }
        let mounted = nand.open_image(medium, &found.header, syncs).map_err(|fault| wrong(&name, &fault))?;
        self.drive.io.data_age = nand.kept_clock();
        self.drive.mount()?;
        self.verifier.shadow.learn();
        Ok(Some(mounted))
    }

    /// Starts the measurement with the ages of data from earlier services.
    pub(super) fn go_on_with_ages(&mut self) {
        let kept = self.drive.io.nand.kept_clock();
        self.drive.io.data_age = self.drive.io.data_age.max(kept);
    }

    /// Closes the image after the service; nothing may be in flight.
    pub(super) fn close_image(&mut self) -> Result<()> {
        let now = self.drive.engine.now() + self.drive.io.data_age;
        self.drive.io.nand.note_clock(now);
        self.drive.io.nand.close_image().map_err(explain)
    }
}
