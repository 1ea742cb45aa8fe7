//! Places of attached drives: each has a folder, at which the file system is mounted, and a note beside the folder,
//! which the server keeps locked.
//!
//! An unlocked note belongs to a killed server: the next command removes the leftovers. The folder of all places is
//! `/run/palimpsest` for root, else in the user's runtime folder or the folder for temporary files.

use super::device::{self, Unmounted};
use super::session::FILE;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};
use palimpsest_lab::error::{Error, Result};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that a server has to end.
const FAREWELL: Duration = Duration::from_secs(60);

/// Suffix of the names of notes.
const NOTE: &str = "attached";

/// Number of automatic names.
const NAMES: usize = 256;

/// A place that this process owns.
pub struct Claim {
    name: String,
    note: Flock<File>,
    base: PathBuf,
}

pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |error| Error::Io { place: path.display().to_string(), what: error.to_string() }
}

/// The folder of all attached drives of this user.
///
/// # Errors
/// [`Error::Io`]: the folder cannot be made, or belongs to another user.
pub fn base() -> Result<PathBuf> {
    let uid = getuid();
    let own = || std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("palimpsest"));
    let base = match uid.is_root() {
        true => PathBuf::from("/run/palimpsest"),
        false => own().unwrap_or_else(|| std::env::temp_dir().join(format!("palimpsest-{uid}"))),
    };
    match fs::DirBuilder::new().mode(0o700).create(&base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&base)(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(&base).map_err(failed(&base))?;
    if !found.is_dir() || found.uid() != uid.as_raw() || found.mode() & 0o022 != 0 {
        let what = "expected a folder of this user that no other user can write to";
        return Err(Error::Io { place: base.display().to_string(), what: what.into() });
    }
    Ok(base)
}

/// Whether `name` may name an attached drive: letters, digits, `-` and `_`.
pub fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn note_of(base: &Path, name: &str) -> PathBuf {
    base.join(format!("{name}.{NOTE}"))
}

fn names(base: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
    let name =
        |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(NOTE)?.strip_suffix('.').map(String::from);
    let mut names: Vec<String> = entries.flatten().filter_map(name).filter(|name| is_name(name)).collect();
    names.sort();
    names
}

/// The locked note of `name`; `None` while a server holds the lock, or for a missing note unless `may_create`.
fn lock(base: &Path, name: &str, may_create: bool) -> Result<Option<Flock<File>>> {
    let path = note_of(base, name);
    loop {
        let mut options = File::options();
        let opened = options.read(true).write(true).create(may_create).truncate(false).mode(0o600).open(&path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !may_create => return Ok(None),
            opened => opened.map_err(failed(&path))?,
        };
        let note = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(note) => note,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, error)) => return Err(failed(&path)(error.into())),
        };
        // Another process may have removed the note before the lock.
        let here = fs::metadata(&path).is_ok_and(|found| note.metadata().is_ok_and(|own| own.ino() == found.ino()));
        if here {
            return Ok(Some(note));
        }
    }
}

fn read(note: &mut File) -> Value {
    let mut text = String::new();
    let read = note.rewind().and_then(|()| note.read_to_string(&mut text));
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

impl Claim {
    /// Claims the place `name`, or the first free of `pal0`, `pal1`, ...; removes the leftovers of killed servers
    /// first.
    ///
    /// # Errors
    /// [`Error::Input`] for a name in use, and errors of the system.
    pub fn new(name: Option<&str>, say: &dyn Fn(&str)) -> Result<Claim> {
        let base = base()?;
        clean(&base, say)?;
        let numbered = (0..NAMES).map(|number| format!("pal{number}"));
        let candidates: Vec<String> = name.map_or_else(|| numbered.collect(), |name| vec![name.into()]);
        for name in candidates {
            if let Some(note) = lock(&base, &name, true)? {
                let mut claim = Claim { name, note, base };
                let folder = claim.folder();
                match fs::DirBuilder::new().mode(0o700).create(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&folder)(error)),
                    _ => {}
                }
                claim.note(None)?;
                return Ok(claim);
            }
        }
        match name {
            Some(name) => {
                Err(Error::input(format!("--name {name}"), "a drive of this name is attached; expected a free name"))
            }
            None => Err(Error::input("attach", format!("{NAMES} drives are attached; expected fewer"))),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mount point.
    pub fn folder(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    pub fn file(&self) -> PathBuf {
        self.folder().join(FILE)
    }

    /// Writes the process number and the `device` to the note.
    pub fn note(&mut self, device: Option<&Path>) -> Result<()> {
        let text = json!({"pid": std::process::id(), "file": self.file(), "device": device}).to_string();
        let path = note_of(&self.base, &self.name);
        let written = self.note.set_len(0).and_then(|()| self.note.rewind());
        written.and_then(|()| self.note.write_all(text.as_bytes())).map_err(failed(&path))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The next command removes the rest.
        if !device::is_mounted(&self.folder()) && fs::remove_dir(self.folder()).is_ok() {
            let _ = fs::remove_file(note_of(&self.base, &self.name));
        }
    }
}

/// Removes the leftovers of killed servers.
fn clean(base: &Path, say: &dyn Fn(&str)) -> Result<()> {
    for name in names(base) {
        if let Some(note) = lock(base, &name, false)? {
            let claim = Claim { name, note, base: base.into() };
            let left = remove(&claim, say);
            say(&format!("{}: the server was killed; {left}", claim.name));
        }
    }
    Ok(())
}

/// Removes the devices and mounts of a place without a server; returns a list of them for the user.
fn remove(claim: &Claim, say: &dyn Fn(&str)) -> String {
    let mut removed = end_devices(&claim.file(), say);
    if device::is_mounted(&claim.folder()) {
        match device::unmount(&claim.folder(), true) {
            Ok(_) => removed.push(format!("the mount at {}", claim.folder().display())),
            Err(error) => say(&format!("{} cannot be unmounted: {error}", claim.folder().display())),
        }
    }
    if removed.is_empty() { "nothing else was left".into() } else { format!("removed {}", removed.join(" and ")) }
}

/// Unmounts the file systems of the devices over `file`, and removes the devices; returns their names.
pub(super) fn end_devices(file: &Path, say: &dyn Fn(&str)) -> Vec<String> {
    let mut ended = Vec::new();
    for device in device::of_file(file) {
        for place in device::mounts_of(&device) {
            if device::end_mount(&place, &place, false, say) == Some(Unmounted::Now) {
                say(&format!("unmounted {}", place.display()));
            }
        }
        match device::unset(&device) {
            Ok(()) => ended.push(device.display().to_string()),
            Err(error) => say(&format!("{}: {error}", device.display())),
        }
    }
    ended
}

/// Ends the attached drives `wanted` (names of drives, files or devices), or `all`, and waits for their servers;
/// removes the leftovers of killed servers.
///
/// # Errors
/// [`Error::Input`] for an unknown name, [`Error::Io`] for a server that does not end.
pub fn detach(wanted: &[String], all: bool, say: &dyn Fn(&str)) -> Result<()> {
    let base = base()?;
    let before = names(&base);
    clean(&base, say)?;
    let mut attached = Vec::new();
    for name in names(&base) {
        let path = note_of(&base, &name);
        let value = File::open(&path).map(|mut note| read(&mut note)).unwrap_or_default();
        attached.push((name, value));
    }
    let found = |wanted: &String| {
        let is_it = |(name, note): &&(String, Value)| {
            name == wanted || [&note["file"], &note["device"]].iter().any(|known| known.as_str() == Some(wanted))
        };
        let name = attached.iter().find(is_it);
        if name.is_none() && before.contains(wanted) {
            // A name of a killed server.
            return Ok(None);
        }
        let names: Vec<&str> = attached.iter().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() {
            "expected a name that `palimpsest attach` printed; none is attached".into()
        } else {
            format!("expected {}", names.join(", "))
        };
        name.map(Some)
            .ok_or_else(|| Error::input(format!("detach {wanted}"), format!("no drive has this name; {names}")))
    };
    let ends: Vec<_> = match all {
        true => attached.iter().collect(),
        false => wanted.iter().map(found).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect(),
    };
    for (name, note) in &ends {
        let pid = note["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).filter(|&pid| pid > 0);
        if let Some(pid) = pid {
            kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(|error| failed(&note_of(&base, name))(error.into()))?;
        }
    }
    for (name, _) in ends {
        let begin = Instant::now();
        while note_of(&base, name).exists() && lock(&base, name, false)?.is_none() {
            if begin.elapsed() > FAREWELL {
                let what = format!("the server did not end within {} s", FAREWELL.as_secs());
                return Err(Error::Io { place: format!("detach {name}"), what });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        say(&format!("detached {name}"));
    }
    clean(&base, say)
}
