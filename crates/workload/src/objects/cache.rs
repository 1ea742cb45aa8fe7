//! A cache of objects on a drive: buckets of small objects, and a log for each class of others. Each part has its own
//! addresses and placement handle; the parts follow each other from address 0 on. A cache in memory may come first:
//! objects go to the drive when they leave the memory.

use super::buckets::{BUCKET_BYTES, Buckets};
use super::commands::{Commands, Place, Trims};
use super::memory::{Held, Memory, MemoryPolicy};
use super::policies::PolicyEntry;
use super::regions::Log;
use super::{ObjectRequest, Operation};
use crate::object_figures::{ClassFigures, Figures, MemoryFigures};
use crate::request::SECTOR_BYTES;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::format_bytes;

/// Fewest regions of a log: `s3-fifo` keeps two open, and evicts others.
const LEAST_REGIONS: u64 = 4;

/// Sizes of a cache.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Bytes of the cache.
    pub bytes: u64,
    /// Share of the buckets.
    pub small: f64,
    /// Largest object in a bucket.
    pub threshold: u64,
    /// Shares of the logs in the rest, by class, and bytes of a region of each.
    pub logs: Vec<f64>,
    pub region_bytes: Vec<u64>,
    /// Handles of the buckets, if any, and of each log.
    pub handles: Vec<u16>,
    /// Writes name the handles.
    pub placed: bool,
    /// Commands that discard data.
    pub trims: Trims,
    /// A region is read before its eviction.
    pub reads: bool,
    /// Share of the inserts that are admitted.
    pub admit: f64,
    /// Bytes of the cache in memory, 0: none; and its policy.
    pub memory: (u64, MemoryPolicy),
}

/// The cache.
pub struct Cache {
    memory: Option<Memory>,
    small: Option<Buckets>,
    logs: Vec<Log>,
    threshold: u64,
    admit: f64,
    rng: Rng,
    figures: Figures,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Errors
    /// [`Error::Input`] if a part has no room, with the key to change.
    pub fn new(shape: &Shape, policy: &PolicyEntry, seed: u64) -> Result<Self> {
        let has_small = shape.small > 0.0;
        let buckets = (shape.bytes as f64 * shape.small) as u64 / BUCKET_BYTES;
        if has_small && buckets == 0 {
            let what =
                format!("no bucket of 4 KiB fits a cache of {}; expected a larger share", format_bytes(shape.bytes));
            return Err(Error::input("small", what));
        }
        let mut sector = 0;
        let mut places = shape.handles.iter().zip(1..).map(|(&handle, owner)| (handle, owner));
        let mut place = |bytes: u64| {
            let (handle, owner) = places.next().expect("a handle for each part");
            let place = Place { sector, owner, handle: shape.placed.then_some(handle) };
            sector += bytes / SECTOR_BYTES;
            place
        };
        let small = has_small.then(|| Buckets::new(buckets, place(buckets * BUCKET_BYTES), shape.trims));
        let rest = shape.bytes - buckets * BUCKET_BYTES;
        let mut logs = Vec::new();
        for (number, (share, &region_bytes)) in shape.logs.iter().zip(&shape.region_bytes).enumerate() {
            let regions = (rest as f64 * share) as u64 / region_bytes;
            if regions < LEAST_REGIONS || regions > u64::from(u32::MAX) {
                let (room, region) = (format_bytes((rest as f64 * share) as u64), format_bytes(region_bytes));
                let what = format!("a log of {room} has {regions} regions of {region}; expected 4 to 2^32");
                return Err(Error::input("region", what));
            }
            let name = if shape.logs.len() == 1 { "large".into() } else { format!("log{number}") };
            let place = place(regions * region_bytes);
            let policy = (policy.build)(regions as u32);
            logs.push(Log::new(&name, regions as u32, region_bytes, place, (shape.trims, shape.reads), policy));
        }
        let rng = Rng::new(seed, 0x00bc_ac4e);
        let (bytes, order) = shape.memory;
        let memory = (bytes > 0).then(|| Memory::new(bytes, order));
        let (threshold, admit) = (shape.threshold, shape.admit);
        Ok(Cache { memory, small, logs, threshold, admit, rng, figures: Figures::default() })
    }

    /// Serves a request.
    pub fn serve(&mut self, request: &ObjectRequest, out: &mut Commands) {
        let ObjectRequest { key, bytes, class, .. } = *request;
        match request.operation {
            Operation::Get => {
                self.figures.gets += 1;
                let in_memory = self.memory.as_mut().and_then(|memory| memory.get(key));
                let found = in_memory.or_else(|| self.get(key, out));
                self.figures.requested_bytes += found.unwrap_or(bytes);
                match found {
                    Some(found) => {
                        self.figures.hits += 1;
                        self.figures.hit_bytes += found;
                        if in_memory.is_none() {
                            self.hold(key, Held { bytes: found, class, is_clean: true }, out);
                        }
                    }
                    None if bytes > 0 => self.accept(key, bytes, class, out),
                    None => {}
                }
            }
            Operation::Put => {
                self.figures.puts += 1;
                self.accept(key, bytes.max(1), class, out);
            }
            Operation::Delete => {
                self.figures.deletes += 1;
                self.memory.iter_mut().for_each(|memory| memory.remove(key));
                self.remove_elsewhere(key, usize::MAX, out);
            }
        }
    }

    fn get(&mut self, key: u64, out: &mut Commands) -> Option<u64> {
        let large = self.logs.iter_mut().find_map(|log| log.get(key, out));
        large.or_else(|| self.small.as_mut()?.get(key, out))
    }

    /// Takes a new object, whose copy on the drive is then stale.
    fn accept(&mut self, key: u64, bytes: u64, class: u32, out: &mut Commands) {
        if self.memory.is_none() {
            return self.insert(key, bytes, class, out);
        }
        self.remove_elsewhere(key, usize::MAX, out);
        self.hold(key, Held { bytes, class, is_clean: false }, out);
    }

    /// Puts an object into memory, if there is a cache in memory, and objects that leave on the drive.
    fn hold(&mut self, key: u64, held: Held, out: &mut Commands) {
        let Some(memory) = &mut self.memory else { return };
        memory.insert(key, held);
        while let Some((key, held)) = self.memory.as_mut().and_then(Memory::evict) {
            if held.is_clean && self.is_on_drive(key) {
                self.memory.iter_mut().for_each(|memory| memory.figures.evicted_clean += 1);
            } else {
                self.insert(key, held.bytes, held.class, out);
            }
        }
    }

    fn is_on_drive(&self, key: u64) -> bool {
        self.logs.iter().any(|log| log.holds(key)) || self.small.as_ref().is_some_and(|small| small.holds(key))
    }

    fn insert(&mut self, key: u64, bytes: u64, class: u32, out: &mut Commands) {
        if self.admit < 1.0 && !self.rng.chance(self.admit) {
            self.figures.not_admitted += 1;
            self.remove_elsewhere(key, usize::MAX, out);
            return;
        }
        match &mut self.small {
            Some(small) if bytes <= self.threshold => {
                small.insert(key, bytes, out);
                self.logs.iter_mut().for_each(|log| {
                    log.remove(key, out);
                });
            }
            _ => {
                let to = class as usize % self.logs.len();
                self.remove_elsewhere(key, to, out);
                self.logs[to].insert(key, bytes, out);
            }
        }
    }

    /// Removes an object from all parts but the log `except`.
    fn remove_elsewhere(&mut self, key: u64, except: usize, out: &mut Commands) {
        self.logs.iter_mut().enumerate().filter(|(number, _)| *number != except).for_each(|(_, log)| {
            log.remove(key, out);
        });
        if let Some(small) = &mut self.small {
            small.remove(key, out);
        }
    }

    fn parts(&self) -> impl Iterator<Item = &ClassFigures> {
        self.small.iter().map(|small| &small.figures).chain(self.logs.iter().map(|log| &log.figures))
    }

    /// Names of the parts.
    pub fn names(&self) -> Vec<String> {
        self.parts().map(|part| part.class.clone()).collect()
    }

    /// Bytes on the drive.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|part| part.capacity_bytes).sum()
    }

    /// Bytes written to the drive since the last restart.
    pub fn written(&self) -> u64 {
        self.parts().map(|part| part.written_bytes).sum()
    }

    /// True if each part has written its size and all together `bytes`, or all 16 times as much: a part may get no
    /// writes.
    pub fn is_warm(&self, bytes: f64) -> bool {
        let written = self.written() as f64;
        let is_full = self.parts().all(|part| part.written_bytes >= part.capacity_bytes);
        written >= bytes && (is_full || written >= 16.0 * bytes.max(self.bytes() as f64))
    }

    /// Sets all counts to 0.
    pub fn restart(&mut self) {
        self.figures = Figures::default();
        let figures = self.small.iter_mut().map(|small| &mut small.figures);
        for part in figures.chain(self.logs.iter_mut().map(|log| &mut log.figures)) {
            *part = part.restarted();
        }
        if let Some(memory) = &mut self.memory {
            let capacity_bytes = memory.figures.capacity_bytes;
            memory.figures = MemoryFigures { capacity_bytes, ..MemoryFigures::default() };
        }
    }

    /// The figures since the last restart.
    pub fn figures(&self) -> Figures {
        let classes: Vec<ClassFigures> = self.parts().cloned().collect();
        let inserted: u64 = classes.iter().map(|part| part.inserted_bytes).sum();
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Figures {
            hit_ratio: ratio(self.figures.hits, self.figures.gets),
            application_write_amplification: ratio(self.written(), inserted),
            memory: self.memory.as_ref().map(|memory| memory.figures.clone()),
            classes,
            ..self.figures.clone()
        }
    }
}
