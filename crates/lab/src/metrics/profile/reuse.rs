//! Reuse distances of pages, and the miss ratio of LRU caches of every size.
//!
//! The reuse distance of an access is the number of other pages accessed since the previous access to the same page. An
//! LRU cache of C pages hits if the distance is below C (Mattson et al., "Evaluation techniques for storage
//! hierarchies", IBM Systems Journal 9(2), 1970, section 4). A map of bits holds live pages in the order of their
//! latest accesses; counts of its words and of groups of words make the number of later ones a short sum.
//!
//! A sample of pages, chosen by a hash of their numbers, bounds memory (Waldspurger et al., "Efficient MRC Construction
//! with SHARDS", FAST 2015, section 3: fixed size). One difference: if there are too many sampled pages, their share is
//! halved, although the paper removes the page with the largest hash. Shares are therefore powers of two, all weights
//! are whole numbers, and the sample has between half of the limit and the limit. An access counts for as many accesses
//! as the page represents, and the shortest distance gets the difference to the number of all accesses (section 3.4:
//! SHARDS-adj). Up to the limit every page is followed, and the figures are exact.
//!
//! Ignored: sizes other than pages of 4 KiB, other policies than LRU, read-ahead, writes that bypass a cache.

use serde::Serialize;

use super::PAGE_BYTES;
use super::page_table::PageTable;
use palimpsest_flash::rng::mix;

/// Most followed pages: the figures are exact up to 64 MiB of footprint.
pub const MOST_FOLLOWED: usize = 1 << 14;

/// Sizes of caches between two powers of two.
const STEPS: u64 = 4;

/// Slots of the smallest map.
const LEAST_SLOTS: usize = 64;

/// Words of a group: 2,048 slots.
const GROUP: usize = 32;

/// Slot of a page without an access.
const NO_SLOT: u32 = u32::MAX;

/// The hash that samples `page`; must differ from the hash of [`PageTable`].
#[inline]
pub fn sampling_hash(page: u64) -> u64 {
    mix(page.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// A followed page.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// Place in the order of latest accesses.
    slot: u32,
    /// Time of the latest access, as given.
    at: u32,
}

impl Default for Page {
    fn default() -> Self {
        Page { slot: NO_SLOT, at: 0 }
    }
}

/// Reuse distances of the accesses so far.
#[derive(Debug)]
pub struct ReuseDistances {
    // Renumbered in the order of slots: the order of the table never affects a result.
    pages: PageTable<Page>,
    /// A bit for each slot with the latest access of a page.
    words: Vec<u64>,
    /// Bits set in each word, and in each group of words.
    in_word: Vec<u8>,
    in_group: Vec<u32>,
    next: usize,
    /// One page in 2^halvings is followed.
    halvings: u32,
    most: usize,
    accesses: u64,
    first: u64,
    /// Accesses by distance; bucket `i` has distances from [`floor`]`(i)` up to, not including, [`floor`]`(i + 1)`.
    buckets: Vec<u64>,
}

/// The miss ratio of an LRU cache.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Misses {
    /// Size of the cache in bytes.
    pub cache_bytes: u64,
    /// Misses by all accesses.
    pub miss_ratio: f64,
}

/// Reuse distances in bytes of distinct other pages, rounded up to one page less than a size of [`Reuse::misses`]: by
/// 25 % at most.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Distances {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// Reuse of the pages of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct Reuse {
    /// Accesses to pages of 4 KiB.
    pub page_accesses: u64,
    /// One if every page was followed; else the share of the pages in the sample.
    pub sampled_share: f64,
    /// Share of accesses to pages that were not accessed before; null without accesses.
    pub first_access_ratio: Option<f64>,
    /// Distances of the other accesses; null if there are none.
    pub distance_bytes: Option<Distances>,
    /// Miss ratio of LRU caches, with four sizes a power of two from a page to the size at which only first accesses
    /// miss.
    pub misses: Vec<Misses>,
}

impl Default for ReuseDistances {
    fn default() -> Self {
        ReuseDistances::up_to(MOST_FOLLOWED)
    }
}

impl ReuseDistances {
    /// Follows at most `most` pages.
    pub fn up_to(most: usize) -> ReuseDistances {
        ReuseDistances {
            pages: PageTable::default(),
            words: vec![0; LEAST_SLOTS / 64],
            in_word: vec![0; LEAST_SLOTS / 64],
            in_group: vec![0; 1],
            next: 0,
            halvings: 0,
            most,
            accesses: 0,
            first: 0,
            buckets: Vec::new(),
        }
    }

    /// Each followed page represents 2^halvings pages.
    pub fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Counts accesses to pages, which must be given to [`add`](Self::add) in their order if in the sample.
    #[inline]
    pub fn count(&mut self, pages: u64) {
        self.accesses += pages;
    }

    /// Whether a page is in the sample; prefetches its record into the caches.
    #[inline]
    pub fn expect(&self, page: u64, hash: u64) -> bool {
        let found = is_followed(hash, self.halvings);
        if found {
            self.pages.expect(page, page + 1);
        }
        found
    }

    /// Adds an access at `at` to a page; `hash` ([`sampling_hash`]) samples. For a page in the sample, returns the time
    /// of the previous access, if any.
    #[inline]
    pub fn add(&mut self, page: u64, hash: u64, at: u32) -> Option<Option<u32>> {
        if !is_followed(hash, self.halvings) { None } else { Some(self.follow(page, at)) }
    }

    fn follow(&mut self, page: u64, at: u32) -> Option<u32> {
        if self.next == self.words.len() * 64 {
            self.renumber();
        }
        let (slot, weight) = (self.next, 1 << self.halvings);
        self.next += 1;
        let before = std::mem::replace(self.pages.of(page), Page { slot: slot as u32, at });
        let before = (before.slot != NO_SLOT).then_some(before);
        match before {
            Some(before) => {
                let distance = u64::from(self.count_after(before.slot as usize)) << self.halvings;
                let bucket = bucket_of(distance);
                if self.buckets.len() <= bucket {
                    self.buckets.resize(bucket + 1, 0);
                }
                self.buckets[bucket] += weight;
                self.flip(before.slot as usize, false);
            }
            None => self.first += weight,
        }
        self.flip(slot, true);
        if self.pages.len() > self.most {
            while self.pages.len() > self.most {
                self.halvings += 1;
                let halvings = self.halvings;
                self.pages.retain(|page| is_followed(sampling_hash(page), halvings));
            }
            self.renumber();
        }
        before.map(|before| before.at)
    }

    /// Pages whose latest access is after `slot`.
    fn count_after(&self, slot: usize) -> u32 {
        let word = slot / 64;
        let group = word / GROUP;
        let words = self.in_word.len().min((group + 1) * GROUP);
        let in_words: u32 = self.in_word[word + 1..words].iter().map(|&count| u32::from(count)).sum();
        let in_groups: u32 = self.in_group[group + 1..].iter().sum();
        (self.words[word] >> (slot % 64) >> 1).count_ones() + in_words + in_groups
    }

    fn flip(&mut self, slot: usize, is_live: bool) {
        let (word, by) = (slot / 64, if is_live { 1 } else { -1 });
        self.words[word] ^= 1 << (slot % 64);
        self.in_word[word] = self.in_word[word].wrapping_add_signed(by);
        self.in_group[word / GROUP] = self.in_group[word / GROUP].wrapping_add_signed(by.into());
    }

    /// Gives the live pages the first slots, in their order, and leaves three times as many free.
    fn renumber(&mut self) {
        let mut words = vec![0u64; self.words.len()];
        self.pages.iter().for_each(|page| words[page.slot as usize / 64] |= 1 << (page.slot % 64));
        let mut before = vec![0];
        words.iter().for_each(|word| before.push(before[before.len() - 1] + word.count_ones()));
        for page in self.pages.iter_mut() {
            let (word, bit) = (page.slot as usize / 64, page.slot % 64);
            page.slot = before[word] + (words[word] & ((1 << bit) - 1)).count_ones();
        }
        self.next = self.pages.len();
        let slots = (4 * self.next).max(LEAST_SLOTS).next_multiple_of(64);
        self.words = vec![0; slots / 64];
        self.in_word = vec![0; slots / 64];
        self.in_group = vec![0; (slots / 64).div_ceil(GROUP)];
        (0..self.next).for_each(|slot| self.flip(slot, true));
    }

    /// Bytes of distinct pages.
    pub fn footprint_bytes(&self) -> u64 {
        (self.pages.len() as u64 * PAGE_BYTES) << self.halvings
    }

    /// The figures, with one in `every` cache sizes on the curve.
    pub fn figures(&self, every: usize) -> Reuse {
        let all = self.accesses;
        let counted: u64 = self.first + self.buckets.iter().sum::<u64>();
        // SHARDS-adj: the sample may have more or fewer accesses than the share of pages.
        let lacking = i128::from(all) - i128::from(counted);
        let reused = (i128::from(all) - i128::from(self.first)).max(0) as f64;
        let mut hits = lacking;
        let mut misses = Vec::new();
        for (bucket, &count) in self.buckets.iter().enumerate() {
            hits += i128::from(count);
            // All accesses of a bucket hit in a cache of the next bucket's first size.
            if (bucket + 1).is_multiple_of(every) || bucket + 1 == self.buckets.len() {
                let missed = (i128::from(all) - hits).clamp(0, i128::from(all));
                let miss_ratio = missed as f64 / all as f64;
                misses.push(Misses { cache_bytes: floor(bucket + 1) * PAGE_BYTES, miss_ratio });
            }
        }
        let percentile = |share: f64| {
            let mut seen = lacking as f64;
            let found = self.buckets.iter().position(|&count| {
                seen += count as f64;
                seen >= share * reused
            });
            (floor(found.unwrap_or(self.buckets.len() - 1) + 1) - 1) * PAGE_BYTES
        };
        Reuse {
            page_accesses: all,
            sampled_share: 1.0 / (1u64 << self.halvings) as f64,
            first_access_ratio: (all > 0).then(|| (self.first as f64 / all as f64).min(1.0)),
            distance_bytes: (!self.buckets.is_empty()).then(|| Distances {
                p50: percentile(0.5),
                p90: percentile(0.9),
                p99: percentile(0.99),
                max: percentile(1.0),
            }),
            misses,
        }
    }
}

#[inline]
fn is_followed(hash: u64, halvings: u32) -> bool {
    halvings == 0 || hash >> (64 - halvings) == 0
}

/// The bucket of a distance in pages: [`STEPS`] between two powers of two.
fn bucket_of(distance: u64) -> usize {
    if distance < STEPS {
        return distance as usize;
    }
    let octave = distance.ilog2() - STEPS.ilog2();
    (u64::from(octave) * STEPS + (distance >> octave)) as usize
}

/// The least distance of a bucket.
fn floor(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let octave = bucket / STEPS - 1;
    (STEPS + bucket % STEPS) << octave
}

#[cfg(test)]
mod tests;
