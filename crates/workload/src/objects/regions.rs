//! A log of regions: CacheLib's BlockCache. Objects are appended to an open region in memory; a full region is written
//! at once, in commands of 1 MiB. Without a free region the log evicts one with the objects inside: the log reads the
//! region, as CacheLib does to find the keys, or knows the keys, and appends the objects that the policy keeps. All
//! objects are in an index in memory.
//!
//! Objects begin at sectors of 512 bytes, and a get reads whole pages of 4 KiB. Ignored: headers of objects.

use super::buckets::BUCKET_BYTES;
use super::commands::{Commands, Place, Trims};
use super::policies::{MOST_HITS, Policy};
use crate::object_figures::ClassFigures;
use crate::request::{RequestKind, SECTOR_BYTES};
use std::collections::{HashMap, VecDeque};

/// Sectors of a command that reads or writes a region.
const COMMAND_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;
const PAGE_SECTORS: u64 = BUCKET_BYTES / SECTOR_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    region: u32,
    /// First sector in the region.
    sector: u32,
    bytes: u32,
    hits: u8,
}

/// An open region of a queue, and its used sectors.
#[derive(Debug, Clone, Copy)]
struct Open {
    region: u32,
    used: u64,
}

/// The log.
pub struct Log {
    place: Place,
    trims: Trims,
    /// A region is read before its eviction.
    reads: bool,
    region_sectors: u64,
    /// Keys and first sectors of the objects written to each region, dead ones included.
    regions: Vec<Vec<(u64, u32)>>,
    free: VecDeque<u32>,
    /// The open region of each queue.
    open: Vec<Option<Open>>,
    /// Never iterated, because hash order must not affect a result.
    index: HashMap<u64, Entry>,
    policy: Box<dyn Policy>,
    pub figures: ClassFigures,
}

impl Log {
    /// An empty log called `name` of `regions` regions of `region_bytes`.
    pub fn new(
        name: &str,
        regions: u32,
        region_bytes: u64,
        place: Place,
        (trims, reads): (Trims, bool),
        policy: Box<dyn Policy>,
    ) -> Self {
        Log {
            place,
            trims,
            reads,
            region_sectors: region_bytes / SECTOR_BYTES,
            regions: vec![Vec::new(); regions as usize],
            free: (0..regions).collect(),
            open: vec![None; policy.queues()],
            index: HashMap::new(),
            policy,
            figures: ClassFigures::new(name, place.handle.unwrap_or(0), u64::from(regions) * region_bytes),
        }
    }

    /// Reads an object; its bytes, or `None` if it is absent.
    pub fn get(&mut self, key: u64, out: &mut Commands) -> Option<u64> {
        let entry = self.index.get_mut(&key)?;
        entry.hits = (entry.hits + 1).min(MOST_HITS);
        let entry @ Entry { region, bytes, .. } = *entry;
        self.policy.hit(region);
        self.figures.hits += 1;
        if self.open.iter().flatten().any(|open| open.region == region) {
            self.figures.memory_hits += 1;
        } else {
            let (sector, sectors) = self.pages_of(entry);
            out.read_for_get(self.place, sector, sectors);
        }
        Some(bytes.into())
    }

    /// True if the log has the object.
    pub fn holds(&self, key: u64) -> bool {
        self.index.contains_key(&key)
    }

    /// First sector, and sectors, of the pages of an object.
    fn pages_of(&self, entry: Entry) -> (u64, u64) {
        let begin = u64::from(entry.sector) / PAGE_SECTORS * PAGE_SECTORS;
        let end = (u64::from(entry.sector) + sectors_of(entry.bytes.into())).next_multiple_of(PAGE_SECTORS);
        (u64::from(entry.region) * self.region_sectors + begin, end - begin)
    }

    /// Inserts an object, or replaces it; an object larger than a region is refused.
    pub fn insert(&mut self, key: u64, bytes: u64, out: &mut Commands) {
        if sectors_of(bytes) > self.region_sectors {
            self.figures.refused += 1;
            return;
        }
        self.index.remove(&key);
        let queue = self.policy.queue_of(key);
        self.figures.inserted(bytes);
        self.append(queue, key, bytes as u32, 0, out);
    }

    /// Removes an object; false if it was absent.
    pub fn remove(&mut self, key: u64, out: &mut Commands) -> bool {
        let Some(Entry { region, sector, bytes, .. }) = self.index.remove(&key) else { return false };
        let is_open = self.open.iter().flatten().any(|open| open.region == region);
        let begin = u64::from(sector).next_multiple_of(PAGE_SECTORS);
        let end = (u64::from(sector) + sectors_of(bytes.into())) / PAGE_SECTORS * PAGE_SECTORS;
        if self.trims != Trims::None && !is_open && end > begin {
            self.figures.trimmed_bytes += (end - begin) * SECTOR_BYTES;
            out.push(self.place, RequestKind::Trim, u64::from(region) * self.region_sectors + begin, end - begin);
        }
        true
    }

    /// Appends an object to the open region of `queue`.
    fn append(&mut self, queue: usize, key: u64, bytes: u32, hits: u8, out: &mut Commands) {
        let sectors = sectors_of(bytes.into());
        let Open { region, used } = loop {
            match self.open[queue] {
                Some(open) if open.used + sectors <= self.region_sectors => break open,
                Some(open) => self.write(open.region, queue, out),
                None => match self.free.pop_front() {
                    Some(region) => self.open[queue] = Some(Open { region, used: 0 }),
                    None => self.evict(out),
                },
            }
        };
        self.open[queue] = Some(Open { region, used: used + sectors });
        self.regions[region as usize].push((key, used as u32));
        self.index.insert(key, Entry { region, sector: used as u32, bytes, hits });
    }

    /// Writes the open region of `queue`.
    fn write(&mut self, region: u32, queue: usize, out: &mut Commands) {
        self.open[queue] = None;
        self.figures.written_bytes += self.region_sectors * SECTOR_BYTES;
        self.whole(region, RequestKind::Write, out);
        self.policy.written(region, queue);
    }

    /// Frees a region. Objects that the policy keeps fill at most the open region of the last queue and this one.
    fn evict(&mut self, out: &mut Commands) {
        let (region, queue) = self.policy.victim();
        if self.reads {
            self.whole(region, RequestKind::Read, out);
        }
        let mut kept = Vec::new();
        for (key, sector) in std::mem::take(&mut self.regions[region as usize]) {
            let here = self.index.get(&key).filter(|entry| (entry.region, entry.sector) == (region, sector)).copied();
            let Some(entry) = here else { continue };
            self.index.remove(&key);
            match self.policy.keeps(queue, entry.hits) {
                Some(hits) => {
                    if !self.reads {
                        let (sector, sectors) = self.pages_of(entry);
                        out.push(self.place, RequestKind::Read, sector, sectors);
                    }
                    kept.push((key, entry.bytes, hits));
                }
                None => {
                    self.figures.evicted += 1;
                    self.policy.evicted(key, queue, self.index.len());
                }
            }
        }
        if self.trims == Trims::All {
            self.figures.trimmed_bytes += self.region_sectors * SECTOR_BYTES;
            out.push(self.place, RequestKind::Trim, u64::from(region) * self.region_sectors, self.region_sectors);
        }
        self.free.push_back(region);
        let last = self.open.len() - 1;
        for (key, bytes, hits) in kept {
            self.figures.rewritten_bytes += u64::from(bytes);
            self.append(last, key, bytes, hits, out);
        }
    }

    /// Reads or writes a whole region.
    fn whole(&self, region: u32, kind: RequestKind, out: &mut Commands) {
        let first = u64::from(region) * self.region_sectors;
        let mut done = 0;
        while done < self.region_sectors {
            let sectors = COMMAND_SECTORS.min(self.region_sectors - done);
            out.push(self.place, kind, first + done, sectors);
            done += sectors;
        }
    }
}

fn sectors_of(bytes: u64) -> u64 {
    bytes.div_ceil(SECTOR_BYTES).max(1)
}
