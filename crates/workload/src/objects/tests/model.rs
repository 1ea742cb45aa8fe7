//! A naive cache: lists and scans instead of indices and queues. Random requests must give the same commands and hits.

use super::super::cache::{Cache, Shape};
use super::super::commands::{Commands, Trims};
use super::super::{ObjectRequest, Operation};
use super::{PAGE, drained, policy};
use crate::request::RequestKind::{self, Read, Write};
use palimpsest_flash::rng::{Rng, mix};

/// Kind, first sector, sectors, handle.
type Shown = (RequestKind, u64, u64, u16);

#[derive(Clone, Copy)]
struct Object {
    key: u64,
    bytes: u64,
    sector: u64,
    hits: u64,
    alive: bool,
}

/// A region of the log: its queue, objects, and the number of its last use since it was written.
#[derive(Clone, Default)]
struct Region {
    queue: usize,
    objects: Vec<Object>,
    used: u64,
    written: bool,
}

struct Naive {
    policy: &'static str,
    buckets: Vec<Vec<(u64, u64)>>,
    regions: Vec<Region>,
    free: Vec<usize>,
    open: [Option<usize>; 2],
    region_sectors: u64,
    uses: u64,
    ghosts: Vec<u64>,
    out: Vec<Shown>,
    hits: u64,
}

impl Naive {
    fn queues(&self) -> usize {
        if self.policy == "s3-fifo" { 2 } else { 1 }
    }

    fn bucket(&self, key: u64) -> usize {
        ((u128::from(mix(key)) * self.buckets.len() as u128) >> 64) as usize
    }

    fn log_start(&self) -> u64 {
        self.buckets.len() as u64 * 8
    }

    fn region_io(&mut self, kind: RequestKind, region: usize) {
        let first = self.log_start() + region as u64 * self.region_sectors;
        self.out.push((kind, first, self.region_sectors, if kind == Write { 2 } else { 0 }));
    }

    fn get(&mut self, key: u64) -> bool {
        self.uses += 1;
        let open = self.open;
        let start = self.log_start();
        for (number, region) in self.regions.iter_mut().enumerate() {
            if let Some(object) = region.objects.iter_mut().find(|object| object.alive && object.key == key) {
                object.hits = (object.hits + 1).min(3);
                if region.written {
                    region.used = self.uses;
                }
                if !open.contains(&Some(number)) {
                    let begin = object.sector / 8 * 8;
                    let end = (object.sector + object.bytes.div_ceil(512)).div_ceil(8) * 8;
                    self.out.push((Read, start + number as u64 * self.region_sectors + begin, end - begin, 0));
                }
                return true;
            }
        }
        let bucket = self.bucket(key);
        let found = self.buckets[bucket].iter().any(|small| small.0 == key);
        if found {
            self.out.push((Read, bucket as u64 * 8, 8, 0));
        }
        found
    }

    fn forget(&mut self, key: u64) {
        for object in self.regions.iter_mut().flat_map(|region| &mut region.objects) {
            object.alive &= object.key != key;
        }
    }

    fn remove_small(&mut self, key: u64) {
        let bucket = self.bucket(key);
        if self.buckets[bucket].iter().any(|small| small.0 == key) {
            self.buckets[bucket].retain(|small| small.0 != key);
            self.out.extend([(Read, bucket as u64 * 8, 8, 0), (Write, bucket as u64 * 8, 8, 1)]);
        }
    }

    fn insert(&mut self, key: u64, bytes: u64) {
        if bytes <= 2048 {
            let bucket = self.bucket(key);
            if !self.buckets[bucket].is_empty() {
                self.out.push((Read, bucket as u64 * 8, 8, 0));
            }
            self.buckets[bucket].retain(|small| small.0 != key);
            self.buckets[bucket].push((key, bytes));
            while self.buckets[bucket].iter().map(|small| small.1).sum::<u64>() > PAGE {
                self.buckets[bucket].remove(0);
            }
            self.out.push((Write, bucket as u64 * 8, 8, 1));
            self.forget(key);
            return;
        }
        self.remove_small(key);
        if bytes.div_ceil(512) > self.region_sectors {
            return;
        }
        self.forget(key);
        let known = self.ghosts.iter().position(|ghost| *ghost == key);
        let queue = usize::from(known.is_some());
        if let Some(at) = known {
            self.ghosts.remove(at);
        }
        self.append(queue, key, bytes, 0);
    }

    fn append(&mut self, queue: usize, key: u64, bytes: u64, hits: u64) {
        let sectors = bytes.div_ceil(512);
        loop {
            if let Some(open) = self.open[queue] {
                let used: u64 = self.regions[open].objects.iter().map(|object| object.bytes.div_ceil(512)).sum();
                if used + sectors <= self.region_sectors {
                    self.regions[open].objects.push(Object { key, bytes, sector: used, hits, alive: true });
                    return;
                }
                self.uses += 1;
                self.region_io(Write, open);
                self.regions[open].written = true;
                self.regions[open].used = self.uses;
                self.open[queue] = None;
            } else if !self.free.is_empty() {
                let region = self.free.remove(0);
                self.regions[region] = Region { queue, ..Region::default() };
                self.open[queue] = Some(region);
            } else {
                self.evict();
            }
        }
    }

    fn evict(&mut self) {
        let written = |queue: usize| -> Vec<usize> {
            let of_queue = |&at: &usize| self.regions[at].written && self.regions[at].queue == queue;
            let mut found: Vec<usize> = (0..self.regions.len()).filter(of_queue).collect();
            found.sort_by_key(|&at| self.regions[at].used);
            found
        };
        let target = (self.regions.len() / 10).max(1);
        let queue = usize::from(self.queues() == 2 && written(0).len() < target && !written(1).is_empty());
        let victim = written(queue)[0];
        self.region_io(Read, victim);
        let region = std::mem::take(&mut self.regions[victim]);
        let mut kept = Vec::new();
        for (at, object) in region.objects.iter().enumerate().filter(|(_, object)| object.alive) {
            match (self.queues(), queue, object.hits) {
                (2, 0, 2..) => kept.push(Object { hits: 0, ..*object }),
                (2, 1, 1..) => kept.push(Object { hits: object.hits - 1, ..*object }),
                (2, 0, _) => {
                    self.ghosts.push(object.key);
                    let later =
                        region.objects[at + 1..].iter().filter(|object| object.alive).count() + kept_alive(&kept);
                    let others =
                        self.regions.iter().flat_map(|region| &region.objects).filter(|each| each.alive).count();
                    let most = (others + later - kept_alive(&kept)) * 9 / 10;
                    let surplus = self.ghosts.len().saturating_sub(most);
                    self.ghosts.drain(..surplus);
                }
                _ => {}
            }
        }
        self.free.push(victim);
        kept.iter().for_each(|object| self.append(self.queues() - 1, object.key, object.bytes, object.hits));
    }
}

/// Objects that are kept left the log for the moment.
fn kept_alive(kept: &[Object]) -> usize {
    kept.len()
}

/// In `lru` a hit changes the order of regions; in the others the order is that of writing.
fn get_of(naive: &mut Naive, key: u64) -> bool {
    let before: Vec<u64> = naive.regions.iter().map(|region| region.used).collect();
    let found = naive.get(key);
    if naive.policy != "lru" {
        naive.regions.iter_mut().zip(before).for_each(|(region, used)| region.used = used);
    }
    found
}

/// Evicted objects of a cache that equals the naive one.
fn compare(name: &'static str, seed: u64) -> u64 {
    let mut rng = Rng::new(seed, 3);
    let (regions, region_pages, buckets) = (4 + rng.below(20), 1 + rng.below(4), 1 + rng.below(5));
    let bytes = (regions * region_pages + buckets) * PAGE;
    let shape = Shape {
        bytes,
        small: (buckets as f64 + 0.5) * PAGE as f64 / bytes as f64,
        threshold: 2048,
        region_bytes: vec![region_pages * PAGE],
        logs: vec![1.0],
        handles: vec![1, 2],
        placed: true,
        trims: Trims::None,
        reads: true,
        admit: 1.0,
        memory: (0, Default::default()),
    };
    let mut cache = Cache::new(&shape, policy(name), seed).unwrap();
    let mut naive = Naive {
        policy: name,
        buckets: vec![Vec::new(); buckets as usize],
        regions: vec![Region::default(); regions as usize],
        free: (0..regions as usize).collect(),
        open: [None; 2],
        region_sectors: region_pages * 8,
        uses: 0,
        ghosts: Vec::new(),
        out: Vec::new(),
        hits: 0,
    };
    let (mut commands, keys) = (Commands::default(), 8 + rng.below(80));
    for step in 0..1500 {
        // Small keys are popular, and half of the objects are small.
        let key = rng.below(keys).min(rng.below(keys));
        let largest = if rng.below(2) == 0 { 2048 } else { region_pages * PAGE + 300 };
        let bytes = 1 + rng.below(largest);
        let operation =
            [Operation::Get, Operation::Get, Operation::Get, Operation::Put, Operation::Delete][rng.below(5) as usize];
        cache.serve(&ObjectRequest { arrival: 0, key, bytes, operation, class: 0 }, &mut commands);
        match operation {
            Operation::Get if get_of(&mut naive, key) => naive.hits += 1,
            Operation::Get | Operation::Put => naive.insert(key, bytes),
            Operation::Delete => {
                naive.forget(key);
                naive.remove_small(key);
            }
        }
        let found: Vec<Shown> = drained(&mut commands)
            .into_iter()
            .map(|one| (one.kind, one.extent.sector, u64::from(one.extent.sectors), one.directives.placement))
            .collect();
        assert_eq!(found, std::mem::take(&mut naive.out), "{name}, seed {seed}, step {step}: {operation:?} {key}");
        assert_eq!(cache.figures().hits, naive.hits, "{name}, seed {seed}, step {step}");
    }
    let figures = cache.figures();
    assert!(figures.hits > 0 && figures.gets > figures.hits);
    figures.classes.iter().map(|part| part.evicted).sum()
}

#[test]
fn caches_equal_the_naive_model() {
    for name in ["fifo", "lru", "s3-fifo"] {
        let evicted: u64 = (0..30).map(|seed| compare(name, seed)).sum();
        assert!(evicted > 5000, "{name}: {evicted}");
    }
}
