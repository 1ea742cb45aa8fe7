//! Buckets of small objects: CacheLib's BigHash. A hash of the key names the bucket of 4 KiB; an insert reads the
//! bucket and writes the bucket again, and drops the oldest objects that leave no room. Ignored: headers, and mistakes
//! of filters, so that a get of an absent object reads nothing, and an empty bucket is not read.

use super::commands::{Commands, Place, Trims};
use crate::object_figures::ClassFigures;
use crate::request::{RequestKind, SECTOR_BYTES};
use palimpsest_flash::rng::mix;

/// Bytes of a bucket.
pub const BUCKET_BYTES: u64 = 4096;
const SECTORS: u32 = (BUCKET_BYTES / SECTOR_BYTES) as u32;

#[derive(Debug, Clone, Copy)]
struct Small {
    key: u64,
    bytes: u16,
}

/// The buckets, each with its objects, oldest first.
pub struct Buckets {
    place: Place,
    trims: Trims,
    buckets: Vec<Vec<Small>>,
    pub figures: ClassFigures,
}

impl Buckets {
    /// `count` empty buckets.
    pub fn new(count: u64, place: Place, trims: Trims) -> Self {
        let figures = ClassFigures::new("small", place.handle.unwrap_or(0), count * BUCKET_BYTES);
        Buckets { place, trims, buckets: vec![Vec::new(); count as usize], figures }
    }

    fn bucket_of(&self, key: u64) -> usize {
        ((u128::from(mix(key)) * self.buckets.len() as u128) >> 64) as usize
    }

    fn command(&self, bucket: usize, kind: RequestKind, out: &mut Commands) {
        out.push(self.place, kind, bucket as u64 * u64::from(SECTORS), u64::from(SECTORS));
    }

    /// Reads an object; its bytes, or `None` if it is absent.
    pub fn get(&mut self, key: u64, out: &mut Commands) -> Option<u64> {
        let bucket = self.bucket_of(key);
        let found = self.buckets[bucket].iter().find(|small| small.key == key)?;
        out.read_for_get(self.place, bucket as u64 * u64::from(SECTORS), u64::from(SECTORS));
        self.figures.hits += 1;
        Some(found.bytes.into())
    }

    /// True if a bucket has the object.
    pub fn holds(&self, key: u64) -> bool {
        self.buckets[self.bucket_of(key)].iter().any(|small| small.key == key)
    }

    /// Inserts an object of at most a bucket, or replaces it.
    pub fn insert(&mut self, key: u64, bytes: u64, out: &mut Commands) {
        let bucket = self.bucket_of(key);
        if !self.buckets[bucket].is_empty() {
            self.command(bucket, RequestKind::Read, out);
        }
        let objects = &mut self.buckets[bucket];
        objects.retain(|small| small.key != key);
        let mut used = bytes + objects.iter().map(|small| u64::from(small.bytes)).sum::<u64>();
        let dropped = objects.iter().take_while(|small| {
            let is_full = used > BUCKET_BYTES;
            used -= u64::from(small.bytes) * u64::from(is_full);
            is_full
        });
        let dropped = dropped.count();
        objects.drain(..dropped);
        objects.push(Small { key, bytes: bytes as u16 });
        self.figures.evicted += dropped as u64;
        self.figures.inserted(bytes);
        self.rewrite(bucket, out);
    }

    /// Removes an object; false if it was absent.
    pub fn remove(&mut self, key: u64, out: &mut Commands) -> bool {
        let bucket = self.bucket_of(key);
        let before = self.buckets[bucket].len();
        self.buckets[bucket].retain(|small| small.key != key);
        if self.buckets[bucket].len() == before {
            return false;
        }
        self.command(bucket, RequestKind::Read, out);
        if self.buckets[bucket].is_empty() && self.trims != Trims::None {
            self.figures.trimmed_bytes += BUCKET_BYTES;
            self.command(bucket, RequestKind::Trim, out);
        } else {
            self.rewrite(bucket, out);
        }
        true
    }

    fn rewrite(&mut self, bucket: usize, out: &mut Commands) {
        self.figures.written_bytes += BUCKET_BYTES;
        self.command(bucket, RequestKind::Write, out);
    }
}
