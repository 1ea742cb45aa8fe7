//! Keeps states of preconditioned drives in the memory of the process, and in a folder: the user's, or the cache.
//!
//! Memory keeps the most recently used states, up to a number of bytes. A file in the folder has a header (version,
//! lengths, checksum), the whole key, and the state; the key includes the digest of the sources, and the file's name is
//! a hash of the key. A file is written under another name and renamed, so that other processes never see a part. When
//! the folder exceeds its size, the least recently used files are removed; files with other names stay. A damaged file,
//! or a failed write, causes a note, and the run preconditions the drive anew.
//!
//! The cache serves commands whose user asked for nothing. So it takes no drive of which another run is as fast
//! ([`LEAST_OF_CACHE`]), none larger than a part of its size, and none that code of the user changed, because that code
//! may import other files. A cache that cannot be read or made costs one note. A process never removes files that it or
//! a process beside it used, because a sweep over more drives than fit would otherwise write all and find none.

use crate::policies;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::rng::mix;
use palimpsest_lab::run::states::{Key, States};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Version, at the start of a file.
const MAGIC: [u8; 16] = *b"palimpsest-st-1\n";
/// Bytes before the key: the magic, the lengths of key and state, and the checksum.
const HEADER: usize = 16 + 3 * 8;
const ENDING: &str = ".state";
/// Least estimate of a state in the cache: a drive of 2 GiB with subpages of 4 KiB. The largest is a part of the size,
/// because the estimate is about half of the state.
const LEAST_OF_CACHE: u64 = 2 << 20;
const PARTS_OF_CACHE: u64 = 8;
/// Age after which partial files of dead processes are removed.
const LEFT_OVER: Duration = Duration::from_secs(3600);

struct Shelf {
    /// Most bytes in memory.
    memory: u64,
    /// The most recently used state is last.
    kept: VecDeque<(String, Arc<Vec<u8>>)>,
    folder: Option<Folder>,
    notes: Vec<String>,
    /// States loaded from the cache and stored in it since [`take_counts`].
    counts: (u64, u64),
}

#[derive(Clone)]
struct Folder {
    path: PathBuf,
    bytes: u64,
    /// Begin of the use of a cache; `None` for a folder that the user named.
    cache_since: Option<SystemTime>,
    /// Whether the cache has no space for another state of this process.
    is_full: bool,
}

/// Number of files that this process has begun to write. A write holds the lock, because two at once would exceed the
/// size of the folder.
static WRITTEN: Mutex<u64> = Mutex::new(0);

static SHELF: Mutex<Shelf> =
    Mutex::new(Shelf { memory: 0, kept: VecDeque::new(), folder: None, notes: Vec::new(), counts: (0, 0) });

fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets later runs of this process keep states: up to `memory` bytes in memory, and up to `bytes` in files of `folder`,
/// which is the user's cache if `is_cache`. A cache is made with its first file.
///
/// # Errors
/// [`Error::Input`] if the folder cannot be made.
pub fn keep_states(memory: u64, folder: Option<&str>, bytes: u64, is_cache: bool) -> Result<()> {
    let cache_since = is_cache.then(SystemTime::now);
    let folder = folder.map(|path| Folder { path: path.into(), bytes, cache_since, is_full: false });
    if let Some(Folder { path, cache_since: None, .. }) = &folder {
        fs::create_dir_all(path).map_err(|error| {
            Error::input(path.display().to_string(), format!("the folder of states cannot be made: {error}"))
        })?;
    }
    let mut shelf = shelf();
    (shelf.memory, shelf.folder) = (memory, folder);
    shelf.fit();
    Ok(())
}

/// Notes about files of states since the last call.
pub fn take_notes() -> Vec<String> {
    std::mem::take(&mut shelf().notes)
}

/// States loaded from the cache and stored in it since the last call.
pub fn take_counts() -> (u64, u64) {
    std::mem::take(&mut shelf().counts)
}

impl Shelf {
    /// The folder for the state of `key`.
    fn folder_of(&self, key: &Key) -> Option<Folder> {
        let folder = self.folder.as_ref()?;
        let takes = if folder.cache_since.is_some() { key.built_in && !key.own_policy } else { key.built_in };
        takes.then(|| folder.clone())
    }

    /// Drops the least recently used states until the others fit the memory.
    fn fit(&mut self) {
        let bytes =
            |kept: &VecDeque<(String, Arc<Vec<u8>>)>| kept.iter().map(|(_, state)| state.len() as u64).sum::<u64>();
        while bytes(&self.kept) > self.memory {
            self.kept.pop_front();
        }
    }

    /// Stores no more states in the cache.
    fn fill_cache(&mut self) {
        if let Some(folder) = self.folder.as_mut().filter(|folder| folder.cache_since.is_some()) {
            folder.is_full = true;
        }
    }

    fn put(&mut self, key: &str, state: Arc<Vec<u8>>) {
        self.kept.retain(|(kept, _)| kept != key);
        self.kept.push_back((key.into(), state));
        self.fit();
    }

    fn take(&mut self, key: &str) -> Option<Arc<Vec<u8>>> {
        let at = self.kept.iter().position(|(kept, _)| kept == key)?;
        let found = self.kept.remove(at)?;
        let state = Arc::clone(&found.1);
        self.kept.push_back(found);
        Some(state)
    }
}

/// The states of this process, for one run.
pub struct Kept;

impl States for Kept {
    fn is_used(&self) -> bool {
        let shelf = shelf();
        shelf.memory > 0 || shelf.folder.is_some()
    }

    fn takes(&mut self, bytes: u64) -> bool {
        let mut shelf = shelf();
        let Some(folder) = &shelf.folder else { return bytes <= shelf.memory };
        if folder.cache_since.is_some() {
            let may_be_cached = bytes >= LEAST_OF_CACHE && bytes <= folder.bytes / PARTS_OF_CACHE;
            return may_be_cached || bytes <= shelf.memory;
        }
        if bytes <= shelf.memory.max(folder.bytes) {
            return true;
        }
        let note = folder.too_large(bytes);
        shelf.notes.push(note);
        false
    }

    fn find(&mut self, key: &Key) -> Option<Arc<Vec<u8>>> {
        let _earlier = policies::unkept();
        let folder = {
            let mut shelf = shelf();
            if let Some(state) = shelf.take(&key.text) {
                return Some(state);
            }
            shelf.folder_of(key)?
        };
        match folder.read(&key.text) {
            Ok(state) => {
                let state = Arc::new(state?);
                let mut shelf = shelf();
                shelf.put(&key.text, Arc::clone(&state));
                shelf.counts.0 += u64::from(folder.cache_since.is_some());
                Some(state)
            }
            Err(note) => {
                shelf().notes.push(note);
                None
            }
        }
    }

    fn has_room(&mut self) -> bool {
        let shelf = shelf();
        shelf.memory > 0 || shelf.folder.as_ref().is_some_and(|folder| !folder.is_full)
    }

    fn keep(&mut self, key: &Key, state: Vec<u8>) {
        if let Some(error) = policies::unkept() {
            let note =
                format!("{}; the preconditioned drive is not kept", Python::attach(|py| error.value(py).to_string()));
            let notes = &mut shelf().notes;
            if !notes.contains(&note) {
                notes.push(note);
            }
            return;
        }
        let (state, folder) = (Arc::new(state), shelf().folder_of(key));
        shelf().put(&key.text, Arc::clone(&state));
        let Some(folder) = folder else { return };
        let (is_cache, bytes) = (folder.cache_since.is_some(), state.len() as u64);
        // Memory may have taken a state that the cache does not.
        if is_cache && !(LEAST_OF_CACHE..=folder.bytes / 2).contains(&bytes) {
            return;
        }
        let written = folder.write(&key.text, &state);
        let mut shelf = shelf();
        match written {
            Ok(true) => shelf.counts.1 += u64::from(is_cache),
            // Later runs would fail the same way.
            Ok(false) => shelf.fill_cache(),
            Err(note) => {
                shelf.notes.push(note);
                shelf.fill_cache();
            }
        }
    }
}

impl Folder {
    /// The whole key of a state, and the path of the file.
    fn file(&self, key: &str) -> (String, PathBuf) {
        let key = format!("sources {}\n{key}", env!("PALIMPSEST_SOURCES"));
        let (one, two) = (sum(key.as_bytes(), 1), sum(key.as_bytes(), 2));
        let path = self.path.join(format!("{one:016x}{two:016x}{ENDING}"));
        (key, path)
    }

    /// The state of `key`; `None` without a file.
    fn read(&self, key: &str) -> std::result::Result<Option<Vec<u8>>, String> {
        let (key, path) = self.file(key);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound || self.cache_since.is_some() => return Ok(None),
            Err(error) => return Err(format!("{}: {error}; the drive is preconditioned anew", path.display())),
        };
        let Some(state) = state_of(&mut file, &key) else {
            let what = "the file is torn, or is no state of this drive and this program";
            return Err(format!("{}: {what}; the drive is preconditioned anew", path.display()));
        };
        // Marks the file as recently used. A failure only makes the file seem older.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(state))
    }

    fn too_large(&self, bytes: u64) -> String {
        let what = format!("the state takes {bytes} bytes, and the folder may take {}", self.bytes);
        format!("{}: {what}; expected a larger size (--state-size, or PALIMPSEST_STATE_SIZE)", self.path.display())
    }

    /// Writes the state of `key`; false if the cache has no space.
    fn write(&self, key: &str, state: &[u8]) -> std::result::Result<bool, String> {
        let (key, path) = self.file(key);
        let needed = (HEADER + key.len() + state.len()) as u64;
        if needed > self.bytes {
            return if self.cache_since.is_some() { Ok(false) } else { Err(self.too_large(needed)) };
        }
        if self.cache_since.is_some() {
            fs::create_dir_all(&self.path).map_err(|error| self.not_cached(&error))?;
        }
        let mut number = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.prune(self.bytes - needed, &path) {
            return Ok(false);
        }
        // The name must be unique, because threads and processes may write the same state at the same time.
        *number += 1;
        let beside = path.with_extension(format!("{}-{number}.part", std::process::id()));
        let header = header(key.as_bytes(), state);
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(&header)?;
            file.write_all(key.as_bytes())?;
            file.write_all(state)
        });
        written.and_then(|()| fs::rename(&beside, &path)).map(|()| true).map_err(|error| {
            let _ = fs::remove_file(&beside);
            match self.cache_since {
                Some(_) => self.not_cached(&error),
                None => format!("{}: {error}; the state is not kept", path.display()),
            }
        })
    }

    fn not_cached(&self, error: &io::Error) -> String {
        format!("{}: {error}; the preconditioned drive is not kept (--no-cache tries nothing)", self.path.display())
    }

    /// Removes the least recently used files until the others take at most `bytes`, and returns whether they do. Other
    /// processes may do the same.
    fn prune(&self, bytes: u64, replaced: &Path) -> bool {
        let now = SystemTime::now();
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            let used = metadata.modified().unwrap_or(now);
            match kind_of(&path) {
                Some(Kind::State) if path != replaced => files.push((used, metadata.len(), path)),
                Some(Kind::Part) if now.duration_since(used).is_ok_and(|age| age > LEFT_OVER) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        files.sort();
        let mut all: u64 = files.iter().map(|(_, length, _)| length).sum();
        for (used, length, path) in files {
            if all <= bytes || self.cache_since.is_some_and(|since| used >= since) {
                break;
            }
            if fs::remove_file(path).is_ok() {
                all -= length;
            }
        }
        all <= bytes || self.cache_since.is_none()
    }
}

enum Kind {
    State,
    Part,
}

/// The kind of the file at `path` by name; `None` if not ours.
fn kind_of(path: &Path) -> Option<Kind> {
    let (hash, rest) = path.file_name()?.to_str()?.split_at_checked(32)?;
    if !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match rest {
        ENDING => Some(Kind::State),
        rest if rest.ends_with(".part") => Some(Kind::Part),
        _ => None,
    }
}

fn header(key: &[u8], state: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    for number in [key.len() as u64, state.len() as u64, sum(key, 3) ^ sum(state, 4)] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header
}

/// The state in a file; `None` if damaged or of another key.
fn state_of(file: &mut File, key: &str) -> Option<Vec<u8>> {
    let mut begin = vec![0; HEADER + key.len()];
    file.read_exact(&mut begin).ok()?;
    let (written, own_key) = begin.split_at(HEADER);
    if own_key != key.as_bytes() {
        return None;
    }
    let mut state = Vec::new();
    file.read_to_end(&mut state).ok()?;
    (written == header(own_key, &state)).then_some(state)
}

/// A checksum of 64 bits. Four sums side by side are as fast as memory.
fn sum(bytes: &[u8], seed: u64) -> u64 {
    let mut sums = [seed, seed ^ 1 << 60, seed ^ 2 << 60, seed ^ 3 << 60];
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (sum, word) in sums.iter_mut().zip(chunk.chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            *sum = (*sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
    let mut last = [0; 32];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let tail = last.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    sums.into_iter().chain(tail).fold(mix(bytes.len() as u64), |all, part| mix(all ^ part).rotate_left(17))
}
