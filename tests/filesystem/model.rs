//! The reference of a file system: a tree of files in memory, driven by the same operations, with the same refusals.

use crate::device::Memory;
use palimpsest_lab::host::fs::{Done, Fault, FileSystem, FileType, ROOT};
use palimpsest_lab::rng::Rng;
use std::collections::BTreeMap;

/// A tree, by path.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Tree(pub BTreeMap<String, Option<Vec<u8>>>);

/// An operation. Paths begin with a slash; the root is empty.
#[derive(Debug, Clone)]
pub enum Operation {
    Create(String),
    MakeDirectory(String),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Unlink(String),
    RemoveDirectory(String),
    Rename(String, String),
    Read(String, u64, u64),
    Sync,
}

use Operation::{Create, MakeDirectory, Read, RemoveDirectory, Rename, Sync, Truncate, Unlink, Write};

/// Directory and name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').expect("a path has a slash")
}

/// Refusals that both sides must agree on.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Refusal {
    NotFound,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    Invalid,
}

/// The refusal of a fault; `None` for a fault that is no refusal.
pub fn refusal(fault: &Fault) -> Option<Refusal> {
    Some(match fault {
        Fault::NotFound => Refusal::NotFound,
        Fault::Exists => Refusal::Exists,
        Fault::NotDirectory => Refusal::NotDirectory,
        Fault::IsDirectory => Refusal::IsDirectory,
        Fault::NotEmpty => Refusal::NotEmpty,
        Fault::Invalid => Refusal::Invalid,
        _ => return None,
    })
}

impl Tree {
    fn directory(&self, path: &str) -> Result<(), Refusal> {
        match self.0.get(path) {
            _ if path.is_empty() => Ok(()),
            Some(None) => Ok(()),
            Some(Some(_)) => Err(Refusal::NotDirectory),
            None => {
                // A file in the path is `NotDirectory`; a missing name there is `NotFound`.
                let (parent, _) = split(path);
                self.directory(parent)?;
                Err(Refusal::NotFound)
            }
        }
    }

    fn entry(&self, path: &str) -> Result<&Option<Vec<u8>>, Refusal> {
        self.directory(split(path).0)?;
        self.0.get(path).ok_or(Refusal::NotFound)
    }

    fn file(&mut self, path: &str) -> Result<&mut Vec<u8>, Refusal> {
        self.entry(path)?;
        self.0.get_mut(path).and_then(Option::as_mut).ok_or(Refusal::IsDirectory)
    }

    fn is_empty(&self, path: &str) -> bool {
        let below = format!("{path}/");
        !self.0.keys().any(|key| key.starts_with(&below))
    }

    fn make(&mut self, path: &str, entry: Option<Vec<u8>>) -> Result<(), Refusal> {
        self.directory(split(path).0)?;
        if self.0.contains_key(path) {
            return Err(Refusal::Exists);
        }
        self.0.insert(path.to_owned(), entry);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let moved = self.entry(from)?.clone();
        self.directory(split(to).0)?;
        if from == to {
            return Ok(());
        }
        if moved.is_none() && format!("{}/", split(to).0).starts_with(&format!("{from}/")) {
            return Err(Refusal::Invalid);
        }
        match (&moved, self.0.get(to)) {
            (Some(_), Some(None)) => return Err(Refusal::IsDirectory),
            (None, Some(Some(_))) => return Err(Refusal::NotDirectory),
            (None, Some(None)) if !self.is_empty(to) => return Err(Refusal::NotEmpty),
            _ => {}
        }
        let below = format!("{from}/");
        let keys: Vec<String> = self.0.keys().filter(|key| *key == from || key.starts_with(&below)).cloned().collect();
        for key in keys {
            let entry = self.0.remove(&key).expect("the key was there");
            self.0.insert(format!("{to}{}", &key[from.len()..]), entry);
        }
        Ok(())
    }

    /// Runs `operation`; returns the bytes of a read.
    pub fn apply(&mut self, operation: &Operation) -> Result<Vec<u8>, Refusal> {
        match operation {
            Create(path) => self.make(path, Some(Vec::new()))?,
            MakeDirectory(path) => self.make(path, None)?,
            Write(path, offset, bytes) => {
                let file = self.file(path)?;
                let end = *offset as usize + bytes.len();
                if !bytes.is_empty() {
                    file.resize(file.len().max(end), 0);
                    file[*offset as usize..end].copy_from_slice(bytes);
                }
            }
            Truncate(path, size) => self.file(path)?.resize(*size as usize, 0),
            Unlink(path) => {
                self.file(path)?;
                self.0.remove(path);
            }
            RemoveDirectory(path) => {
                if self.entry(path)?.is_some() {
                    return Err(Refusal::NotDirectory);
                }
                if !self.is_empty(path) {
                    return Err(Refusal::NotEmpty);
                }
                self.0.remove(path);
            }
            Rename(from, to) => self.rename(from, to)?,
            Read(path, offset, length) => {
                let file = self.file(path)?;
                let from = (*offset as usize).min(file.len());
                return Ok(file[from..(from + *length as usize).min(file.len())].to_vec());
            }
            Sync => {}
        }
        Ok(Vec::new())
    }

    /// The tree of a file system.
    pub fn of(filesystem: &FileSystem, device: &mut Memory) -> Done<Tree> {
        let mut tree = Tree::default();
        let mut queue = vec![(String::new(), ROOT)];
        while let Some((path, ino)) = queue.pop() {
            for (name, child) in filesystem.list(ino)? {
                let path = format!("{path}/{}", String::from_utf8_lossy(name));
                let (file_type, size) = filesystem.stat(child)?;
                let entry = match file_type {
                    FileType::File => Some(filesystem.read(device, child, 0, size)?),
                    FileType::Directory => {
                        queue.push((path.clone(), child));
                        None
                    }
                };
                tree.0.insert(path, entry);
            }
        }
        Ok(tree)
    }
}

/// Runs `operation` on a file system; returns the bytes of a read.
pub fn apply(filesystem: &mut FileSystem, device: &mut Memory, operation: &Operation) -> Done<Vec<u8>> {
    let parent = |filesystem: &FileSystem, path: &str| filesystem.resolve(split(path).0);
    match operation {
        Create(path) => {
            _ = {
                let parent = parent(filesystem, path)?;
                filesystem.create(device, parent, split(path).1, FileType::File)?
            }
        }
        MakeDirectory(path) => {
            _ = {
                let parent = parent(filesystem, path)?;
                filesystem.create(device, parent, split(path).1, FileType::Directory)?
            }
        }
        Write(path, offset, bytes) => {
            let ino = filesystem.resolve(path)?;
            filesystem.write(device, ino, *offset, bytes)?;
        }
        Truncate(path, size) => {
            let ino = filesystem.resolve(path)?;
            filesystem.truncate(device, ino, *size)?;
        }
        Unlink(path) => {
            let parent = parent(filesystem, path)?;
            filesystem.unlink(device, parent, split(path).1)?;
        }
        RemoveDirectory(path) => {
            let parent = parent(filesystem, path)?;
            filesystem.remove_directory(device, parent, split(path).1)?;
        }
        Rename(from, to) => {
            let source = parent(filesystem, from)?;
            filesystem.lookup(source, split(from).1)?;
            let target = parent(filesystem, to)?;
            filesystem.rename(device, source, split(from).1, target, split(to).1)?;
        }
        Read(path, offset, length) => {
            let ino = filesystem.resolve(path)?;
            return filesystem.read(device, ino, *offset, *length);
        }
        Sync => filesystem.sync(device)?,
    }
    Ok(Vec::new())
}

/// Draws operations over a few names, so that operations share names.
pub struct Draw {
    pub rng: Rng,
    /// Bytes of a page, and of the largest file without holes.
    pub page: u64,
    pub large: u64,
    /// Offsets beyond single and double indirect pointers.
    pub far: [u64; 2],
}

impl Draw {
    fn path(&mut self) -> String {
        let depth = [1, 1, 2, 2, 3][self.rng.below(5) as usize];
        let mut path = String::new();
        for level in 0..depth {
            let name = self.rng.below(if level + 1 == depth { 5 } else { 2 });
            path += if level + 1 == depth { "/f" } else { "/d" };
            path += &name.to_string();
            if name == 4 {
                path += &"x".repeat(60);
            }
        }
        if self.rng.below(6) == 0 { path.replace("/f", "/d").replace("/d4", "/d1") } else { path }
    }

    pub fn next(&mut self) -> Operation {
        let path = self.path();
        match self.rng.below(40) {
            0..6 => Create(path),
            6..9 => MakeDirectory(path.replace("/f", "/d")),
            9..23 => {
                let most = [self.page / 2, 3 * self.page, self.large / 4][self.rng.below(3) as usize];
                let size = 1 + self.rng.below(most);
                let offset = match self.rng.below(12) {
                    0 => self.far[self.rng.below(2) as usize] + self.rng.below(self.page),
                    _ => self.rng.below(self.large),
                };
                let fill = self.rng.below(255) as u8 + 1;
                Write(path, offset, (0..size).map(|at| fill ^ (at >> 3) as u8).collect())
            }
            23..26 => Truncate(path, self.rng.below(self.large)),
            26..29 => Unlink(path),
            29 => RemoveDirectory(path.replace("/f", "/d")),
            30..33 => Rename(path, self.path()),
            33..38 => Read(path, self.rng.below(self.large), self.rng.below(4 * self.page)),
            _ => Sync,
        }
    }
}
