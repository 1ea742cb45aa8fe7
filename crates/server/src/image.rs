//! Images in files, and the commands of images. No other code of the project writes to an image.
//!
//! Bytes are read and written in place through the page cache of the system, which survives the end of the process. A
//! lock keeps other servers away until then. Linux gives erased space back as holes.

use crate::identity;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::metrics::life::Life;
use palimpsest_lab::nand::image::Medium;
use palimpsest_lab::nand::image::inspect::{Figures, Look, inspect};
use palimpsest_lab::nand::image::layout::{MAGIC, PAGE};
use palimpsest_lab::nand::image::mount::{Found, find};
use palimpsest_lab::run::image::{resolved_in, wrong};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// An image in a file.
pub struct ImageFile {
    file: File,
    /// A lock on a second handle of the file; `None` if only the configuration is read.
    _lock: Option<Flock<File>>,
}

fn cannot(path: &Path, error: &io::Error) -> Error {
    let expected = "expected a file, or a folder to make one in, of this user";
    Error::input(path.display().to_string(), format!("{error}; {expected}"))
}

impl ImageFile {
    /// Opens the image at `path` for writing, and tells whether the image is new. With a `length`, makes a file of as
    /// many bytes if there is none.
    ///
    /// # Errors
    /// [`Error::Input`]: the file cannot be opened or made, or is in use.
    pub fn open(path: &Path, length: Option<u64>) -> Result<(ImageFile, bool)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(length.is_some()).truncate(false).mode(0o600);
        let file = options.open(path).map_err(|error| cannot(path, &error))?;
        let image = ImageFile::locked(file, path, FlockArg::LockExclusiveNonblock)?;
        let is_new = length.map_or(Ok(false), |length| image.begin(length)).map_err(|error| cannot(path, &error))?;
        if is_new {
            // The directory entry must survive a crash of the machine, too.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| cannot(path, &error))?;
        }
        Ok((image, is_new))
    }

    /// Opens the image at `path` for inspection; no server may write to it meanwhile.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_look(path: &Path) -> Result<ImageFile> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|error| cannot(path, &error))?;
        ImageFile::locked(file, path, FlockArg::LockSharedNonblock)
    }

    /// Begins an image in an empty file, in `length` zeros, or in an image that was never completed; returns whether it
    /// did.
    fn begin(&self, length: u64) -> io::Result<bool> {
        let mut header = vec![0; (PAGE.min(self.length()?)) as usize];
        self.read(0, &mut header)?;
        let is_begun = header.starts_with(&MAGIC) && header[MAGIC.len()..].iter().all(|&byte| byte == 0);
        let is_hole = self.length()? == length && self.next_data(0)?.is_none();
        if !(is_begun || is_hole || header.is_empty()) {
            return Ok(false);
        }
        self.file.set_len(0)?;
        // A kill before the end leaves the magic number alone, which the next open begins again.
        self.write(0, &MAGIC)?;
        self.file.set_len(length)?;
        Ok(true)
    }

    fn locked(file: File, path: &Path, lock: FlockArg) -> Result<ImageFile> {
        let name = path.display().to_string();
        if !file.metadata().map_err(|error| cannot(path, &error))?.is_file() {
            return Err(Error::input(name, "not a regular file; expected an image, or a place for a new one"));
        }
        let other = file.try_clone().map_err(|error| cannot(path, &error))?;
        match Flock::lock(other, lock) {
            Ok(lock) => Ok(ImageFile { file, _lock: Some(lock) }),
            Err((_, Errno::EWOULDBLOCK)) => {
                Err(Error::input(name, "the image is in use by another process; expected one that is not served"))
            }
            Err((_, error)) => Err(cannot(path, &error.into())),
        }
    }

    /// The UUID of the drive in the image; `None` in a new image, and in one of a version without.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        find(self).ok().map(|(found, _)| found.header.uuid).filter(|&uuid| uuid != [0; 16])
    }

    fn taken(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }
}

impl Medium for ImageFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use nix::fcntl::{FallocateFlags, fallocate};
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let length = range.end - range.start;
            match fallocate(&self.file, flags, range.start as libc::off_t, length as libc::off_t) {
                // Without holes erased pages keep their space.
                Err(Errno::EOPNOTSUPP) => Ok(()),
                done => Ok(done?),
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = range;
            Ok(())
        }
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let length = self.length()?;
        if at >= length {
            return Ok(None);
        }
        #[cfg(target_os = "linux")]
        {
            use nix::unistd::{Whence, lseek};
            match lseek(&self.file, at as libc::off_t, Whence::SeekData) {
                Ok(data) => return Ok(Some(data as u64)),
                Err(Errno::ENXIO) => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(Some(at))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The configuration in the image at `path`; `None` for another file.
///
/// # Errors
/// [`Error::Input`] for an unusable image.
pub fn configuration(path: &Path) -> Result<Option<(String, u64)>> {
    let mut magic = [0; MAGIC.len()];
    // Opening a pipe would disturb the writer.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let Some(mut file) = is_file.then(|| File::open(path).ok()).flatten() else { return Ok(None) };
    if file.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Ok(None);
    }
    let Found { header, text } =
        find(&ImageFile { file, _lock: None }).map_err(|fault| wrong(&path.display().to_string(), &fault))?.0;
    Ok(Some((text, header.seed)))
}

fn looked(path: &Path, image: &ImageFile, look: Look) -> Result<(Found, Figures)> {
    inspect(image, look).map_err(|fault| wrong(&path.display().to_string(), &fault))
}

/// The figures of the image at `path`, as JSON.
///
/// # Errors
/// [`Error::Input`] for an unusable image.
pub fn info(path: &Path) -> Result<Value> {
    let image = ImageFile::open_to_look(path)?;
    let (found, figures) = looked(path, &image, Look::Records)?;
    let resolved = resolved_in(&found, &path.display().to_string())?;
    let io = |error: io::Error| cannot(path, &error);
    let drive = &resolved.drive;
    let life = figures.life.unwrap_or_default();
    let book = Life::of(&life, &drive.geometry, &drive.physical);
    let blocks = drive.geometry.blocks();
    Ok(json!({
        "image": path.display().to_string(),
        "format": found.header.version,
        "drive": drive.name,
        "ftl": drive.ftl.name,
        "part": drive.part.name,
        "seed": found.header.seed,
        "uuid": (found.header.uuid != [0; 16]).then(|| identity::text_of(&found.header.uuid)),
        "configuration_hash": format!("{:016x}", found.header.hash),
        "drive_bytes": drive.logical_bytes(),
        "flash_bytes": drive.geometry.pages() * u64::from(drive.geometry.page_bytes()),
        "written": {
            "host_bytes": book.host_bytes_written,
            "host_read_bytes": book.host_bytes_read,
            "stored_bytes": figures.bytes,
            "programmed_pages": figures.pages,
            "used_blocks": figures.blocks_used,
        },
        "wear": {
            "blocks": blocks,
            "erases": figures.erases,
            "mean_erases": figures.erases as f64 / f64::from(blocks),
            "min_erases": figures.least_erases,
            "max_erases": figures.most_erases,
            "rated_erases": drive.part.endurance,
            "bad_blocks": figures.bad_blocks,
        },
        "life": book,
        "drive_ns": life.clock,
        "services": life.services,
        "broken_off": life.broken_off,
        "ended_well": life.ended_well,
        "file_bytes": image.length().map_err(io)?,
        "disk_bytes": image.taken().map_err(io)?,
        "damaged": figures.found,
    }))
}

/// Verifies every checksum of the image at `path`; returns the findings as JSON.
///
/// # Errors
/// [`Error::Input`] for an unusable image.
pub fn check(path: &Path) -> Result<Value> {
    let image = ImageFile::open_to_look(path)?;
    let (found, figures) = looked(path, &image, Look::Everything)?;
    resolved_in(&found, &path.display().to_string())?;
    Ok(json!({
        "image": path.display().to_string(),
        "format": found.header.version,
        "checked_pages": figures.pages,
        "checked_bytes": figures.bytes,
        "damaged": figures.found,
        "findings": figures.findings,
    }))
}

/// Gives back unneeded space of the image at `path`.
///
/// # Errors
/// [`Error::Input`] for an unusable or damaged image.
pub fn compact(path: &Path) -> Result<Value> {
    let (image, _) = ImageFile::open(path, None)?;
    let io = |error: io::Error| cannot(path, &error);
    let (_, figures) = looked(path, &image, Look::Records)?;
    if figures.found > 0 {
        let first = figures.findings.first().cloned().unwrap_or_default();
        let what = format!("the image is damaged: {first}; expected one in which nothing is (palimpsest image check)");
        return Err(Error::input(path.display().to_string(), what));
    }
    let before = image.taken().map_err(io)?;
    looked(path, &image, Look::Compact)?;
    image.sync().map_err(io)?;
    let after = image.taken().map_err(io)?;
    Ok(json!({
        "image": path.display().to_string(),
        "disk_bytes_before": before,
        "disk_bytes": after,
        "freed_bytes": before.saturating_sub(after),
    }))
}
