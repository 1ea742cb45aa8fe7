//! Generated requests for objects: popularity by Zipf's law, sizes from a mixture, by classes.
//!
//! The size of an object follows from its key. Each class has objects of equal number, or with sizes of its own, as
//! many as its log has room for, times the footprint. With churn the most popular object is the newest: each request
//! adds `churn` objects, and an object loses rank as others are added, until it is no longer requested.

use super::spec::ObjectSpec;
use super::{ObjectRequest, Objects, Operation};
use crate::fio::zipf::Zipf;
use palimpsest_flash::error::Result;
use palimpsest_flash::rng::{Rng, mix};

/// Requests without `n`.
const REQUESTS: u64 = 1_000_000;

/// The generator.
pub struct Generator {
    rng: Rng,
    /// Popularity, number and sizes of the objects of all classes, or of each.
    classes: Vec<Class>,
    /// Weights of the classes.
    mix: Vec<u32>,
    puts: f64,
    deletes: f64,
    churn: f64,
    requests: u64,
    left: u64,
}

struct Class {
    zipf: Zipf,
    keys: u64,
    sizes: Vec<(u64, u32)>,
}

impl Class {
    /// Objects of `sizes` with `bytes` in all, shared by `classes` classes.
    fn new(sizes: &[(u64, u32)], bytes: f64, classes: usize, zipf: f64) -> Self {
        let weight: u64 = sizes.iter().map(|size| u64::from(size.1)).sum();
        let sum: f64 = sizes.iter().map(|&(bytes, weight)| bytes as f64 * f64::from(weight)).sum();
        let keys = (bytes / (sum / weight as f64) / classes as f64).max(1.0) as u64;
        Class { zipf: Zipf::new(keys, zipf), keys, sizes: sizes.to_vec() }
    }
}

impl Generator {
    /// Requests for a cache of `cache_bytes`; equal seeds give equal requests.
    pub fn new(spec: &ObjectSpec, logs: &[f64], cache_bytes: u64, seed: u64) -> Self {
        let footprint = cache_bytes as f64 * spec.footprint;
        let of_class = |(at, sizes): (usize, &Vec<_>)| match spec.sizes.len() {
            1 => Class::new(sizes, footprint, logs.len(), spec.zipf),
            _ => Class::new(sizes, footprint * logs[at], 1, spec.zipf),
        };
        Generator {
            rng: Rng::new(seed, 0x00b9_e4e7),
            classes: spec.sizes.iter().enumerate().map(of_class).collect(),
            mix: if spec.mix.len() == logs.len() { spec.mix.clone() } else { vec![1; logs.len()] },
            puts: spec.puts,
            deletes: spec.deletes,
            churn: spec.churn,
            requests: 0,
            left: spec.requests.unwrap_or(REQUESTS),
        }
    }

    /// The generator without the requests so far: `n` counts from here on.
    pub fn restart(&mut self, requests: Option<u64>) {
        self.left = requests.unwrap_or(REQUESTS);
    }
}

/// The index of the weight on which `random` falls.
fn drawn(weights: impl Iterator<Item = u32> + Clone, random: u64) -> usize {
    let all: u64 = weights.clone().map(u64::from).sum();
    let mut rest = ((u128::from(random) * u128::from(all)) >> 64) as u64;
    for (at, weight) in weights.enumerate() {
        match rest.checked_sub(weight.into()) {
            Some(less) => rest = less,
            None => return at,
        }
    }
    unreachable!("the draw is below the sum of the weights")
}

impl Objects for Generator {
    fn next_object(&mut self) -> Result<Option<ObjectRequest>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let class = if self.mix.len() > 1 { drawn(self.mix.iter().copied(), self.rng.next_u64()) } else { 0 };
        let own = &self.classes[if self.classes.len() > 1 { class } else { 0 }];
        let rank = own.zipf.draw(&mut self.rng);
        let newest = own.keys + (self.requests as f64 * self.churn) as u64;
        self.requests += 1;
        let key = mix((newest - rank) * self.mix.len() as u64 + class as u64);
        let kind = self.rng.unit();
        let operation = match kind {
            _ if kind < self.puts => Operation::Put,
            _ if kind < self.puts + self.deletes => Operation::Delete,
            _ => Operation::Get,
        };
        let bytes = own.sizes[drawn(own.sizes.iter().map(|size| size.1), mix(key ^ 0x51_2e))].0;
        Ok(Some(ObjectRequest { arrival: 0, key, bytes, operation, class: class as u32 }))
    }

    fn place(&self) -> String {
        "generated objects".into()
    }
}
