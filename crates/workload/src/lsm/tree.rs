//! The tree: a table in memory, level 0 with files of overlapping keys, newest last, and levels of files with disjoint
//! keys. A compaction of a level takes its files in turn, by key; a file without overlap below moves without a copy, as
//! in RocksDB. Level 0 is merged as a whole.

use super::files::{EXTENT_BYTES, Space, part, whole};
use super::spec::LsmSpec;
use crate::objects::commands::{Commands, OWNER_OF_GETS, Place};
use crate::request::RequestKind;
use palimpsest_flash::error::Result;
use std::collections::HashSet;

/// Bytes that a get reads.
const BLOCK_BYTES: u64 = 4096;
/// Levels, as RocksDB has by default.
pub const LEVELS: usize = 7;

/// A sorted file.
#[derive(Debug)]
struct File {
    keys: Vec<u32>,
    extents: Vec<u32>,
}

impl File {
    fn range(&self) -> (u32, u32) {
        (self.keys[0], *self.keys.last().expect("a file has records"))
    }

    fn overlaps(&self, (first, last): (u32, u32)) -> bool {
        let own = self.range();
        own.0 <= last && first <= own.1
    }
}

/// The tree and its files.
pub struct Tree {
    spec: LsmSpec,
    space: Space,
    /// Keys in memory; the set is never iterated, because hash order must not affect a result.
    memtable: (Vec<u32>, HashSet<u32>),
    /// Bytes put into memory.
    filled: u64,
    /// The write-ahead log of the table, its bytes, and the written ones.
    log: (Vec<u32>, u64, u64),
    levels: Vec<Vec<File>>,
    /// Per level: the last key of the file that was compacted last.
    cursors: Vec<u32>,
    /// Bytes written to the drive.
    pub written: u64,
}

impl Tree {
    /// An empty tree in `bytes`.
    pub fn new(spec: LsmSpec, bytes: u64) -> Self {
        Tree {
            space: Space::new(bytes, spec.fit),
            spec,
            memtable: Default::default(),
            filled: 0,
            log: Default::default(),
            levels: (0..LEVELS).map(|_| Vec::new()).collect(),
            cursors: vec![0; LEVELS],
            written: 0,
        }
    }

    /// The place of the log (part 0) or of level `part - 1`, whose commands the owner `part + 1` has.
    fn place(&self, part: usize) -> Place {
        Place { sector: 0, owner: part as u32 + 1, handle: self.spec.handle(part) }
    }

    /// Inserts or replaces a record.
    ///
    /// # Errors
    /// As [`Space::take`].
    pub fn put(&mut self, key: u32, out: &mut Commands) -> Result<()> {
        if self.spec.wal > 0 {
            self.log_record(out)?;
        }
        if self.memtable.1.insert(key) {
            self.memtable.0.push(key);
        }
        self.filled += self.spec.record;
        if self.filled < self.spec.memtable {
            return Ok(());
        }
        self.flush(out)?;
        while let Some(level) = self.due() {
            self.compact(level, out)?;
        }
        Ok(())
    }

    /// Adds a record to the write-ahead log, and writes full parts.
    fn log_record(&mut self, out: &mut Commands) -> Result<()> {
        self.log.1 += self.spec.record;
        while self.log.1 - self.log.2 >= self.spec.wal {
            let mut left = self.spec.wal;
            while left > 0 {
                if self.log.2 == self.log.0.len() as u64 * EXTENT_BYTES {
                    self.log.0.extend(self.space.take(EXTENT_BYTES)?);
                }
                let bytes = left.min(EXTENT_BYTES - self.log.2 % EXTENT_BYTES);
                part(&self.log.0, (self.log.2, bytes), self.place(0), RequestKind::Write, out);
                self.log.2 += bytes;
                left -= bytes;
                self.written += bytes;
            }
        }
        Ok(())
    }

    /// Writes the table in memory to a file of level 0, and deletes its log.
    fn flush(&mut self, out: &mut Commands) -> Result<()> {
        let (mut keys, _) = std::mem::take(&mut self.memtable);
        keys.sort_unstable();
        self.filled = 0;
        let file = self.write_file(keys, 0, out)?;
        self.levels[0].push(file);
        let (extents, ..) = std::mem::take(&mut self.log);
        self.delete(&extents, 0, out);
        Ok(())
    }

    /// The level that exceeds its size the most; `None` if none does.
    fn due(&self) -> Option<usize> {
        let mut size = self.spec.base as f64;
        let mut most = (1.0, None);
        for (level, files) in self.levels.iter().enumerate().take(LEVELS - 1) {
            let excess = match level {
                0 => files.len() as f64 / self.spec.l0 as f64,
                _ => self.bytes_of(files) as f64 / size,
            };
            size *= if level == 0 { 1.0 } else { self.spec.ratio as f64 };
            if excess > most.0 || (level == 0 && excess >= 1.0) {
                most = (excess, Some(level));
            }
        }
        most.1
    }

    fn bytes_of(&self, files: &[File]) -> u64 {
        files.iter().map(|file| file.keys.len() as u64).sum::<u64>() * self.spec.record
    }

    /// Merges files of `level` with the files below that overlap.
    fn compact(&mut self, level: usize, out: &mut Commands) -> Result<()> {
        let above = match level {
            0 => std::mem::take(&mut self.levels[0]),
            _ => vec![self.next_file(level)],
        };
        let ranges = above.iter().map(File::range);
        let range = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).expect("files to compact");
        let files = std::mem::take(&mut self.levels[level + 1]).into_iter();
        let (below, kept): (Vec<File>, Vec<File>) = files.partition(|file| file.overlaps(range));
        self.levels[level + 1] = kept;
        if below.is_empty() && above.len() == 1 {
            self.place_files(level + 1, above);
            return Ok(());
        }
        let owner = self.place(level + 2);
        for file in above.iter().chain(&below) {
            whole(&file.extents, owner, RequestKind::Read, out);
        }
        let mut keys: Vec<u32> = above.iter().chain(&below).flat_map(|file| file.keys.iter().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        let in_file = (self.spec.file / self.spec.record) as usize;
        let mut new = Vec::new();
        for keys in keys.chunks(in_file) {
            new.push(self.write_file(keys.to_vec(), level + 1, out)?);
        }
        self.place_files(level + 1, new);
        for file in above.iter().chain(&below) {
            self.delete(&file.extents, level + 2, out);
        }
        Ok(())
    }

    /// Takes the file of `level` after the one that was compacted last.
    fn next_file(&mut self, level: usize) -> File {
        let (files, cursor) = (&mut self.levels[level], &mut self.cursors[level]);
        let at = files.iter().position(|file| file.keys[0] > *cursor).unwrap_or(0);
        let file = files.remove(at);
        *cursor = file.range().1;
        file
    }

    /// Adds files to `level`, in order of their keys.
    fn place_files(&mut self, level: usize, files: Vec<File>) {
        self.levels[level].extend(files);
        self.levels[level].sort_unstable_by_key(|file| file.keys[0]);
    }

    fn write_file(&mut self, keys: Vec<u32>, level: usize, out: &mut Commands) -> Result<File> {
        let extents = self.space.take(keys.len() as u64 * self.spec.record)?;
        whole(&extents, self.place(level + 1), RequestKind::Write, out);
        self.written += extents.len() as u64 * EXTENT_BYTES;
        Ok(File { keys, extents })
    }

    fn delete(&mut self, extents: &[u32], part: usize, out: &mut Commands) {
        if self.spec.trims {
            whole(extents, self.place(part), RequestKind::Trim, out);
        }
        self.space.give(extents);
    }

    /// Reads a record: the block of its newest copy.
    pub fn get(&self, key: u32, out: &mut Commands) {
        if self.memtable.1.contains(&key) {
            return;
        }
        let newest = self.levels[0].iter().rev().find_map(|file| Some((file, file.keys.binary_search(&key).ok()?)));
        let found = newest.or_else(|| self.levels[1..].iter().find_map(|files| in_level(files, key)));
        if let Some((file, at)) = found {
            let offset = at as u64 * self.spec.record / BLOCK_BYTES * BLOCK_BYTES;
            let place = Place { sector: 0, owner: OWNER_OF_GETS, handle: None };
            part(&file.extents, (offset, BLOCK_BYTES), place, RequestKind::Read, out);
        }
    }

    /// Records in files, with every copy, by level; for tests.
    #[cfg(test)]
    pub fn records(&self) -> Vec<usize> {
        self.levels.iter().map(|files| files.iter().map(|file| file.keys.len()).sum()).collect()
    }
}

/// The file of a level with `key`, and the place of the record in the file.
fn in_level(files: &[File], key: u32) -> Option<(&File, usize)> {
    let after = files.partition_point(|file| file.keys[0] <= key);
    let file = &files[after.checked_sub(1)?];
    Some((file, file.keys.binary_search(&key).ok()?))
}
