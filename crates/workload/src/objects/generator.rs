//! Generated requests for objects: popularity by Zipf's law, sizes from a mixture, by classes.
//!
//! The size of an object follows from its key. With churn the most popular object is the newest: each request adds
//! `churn` objects, and an object loses rank as others are added, until it is no longer requested.

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
    zipf: Zipf,
    keys: u64,
    sizes: Vec<(u64, u32)>,
    /// Weights of the classes.
    mix: Vec<u32>,
    puts: f64,
    deletes: f64,
    churn: f64,
    requests: u64,
    left: u64,
}

impl Generator {
    /// Requests for a cache of `cache_bytes`; equal seeds give equal requests.
    pub fn new(spec: &ObjectSpec, classes: usize, cache_bytes: u64, seed: u64) -> Self {
        let weight: u64 = spec.sizes.iter().map(|size| u64::from(size.1)).sum();
        let sum: f64 = spec.sizes.iter().map(|&(bytes, weight)| bytes as f64 * f64::from(weight)).sum();
        let mean = sum / weight as f64;
        let keys = (cache_bytes as f64 * spec.footprint / mean / classes as f64).max(1.0) as u64;
        Generator {
            rng: Rng::new(seed, 0x00b9_e4e7),
            zipf: Zipf::new(keys, spec.zipf),
            keys,
            sizes: spec.sizes.clone(),
            mix: if spec.mix.len() == classes { spec.mix.clone() } else { vec![1; classes] },
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

    fn size_of(&self, key: u64) -> u64 {
        let at = drawn(self.sizes.iter().map(|size| size.1), mix(key ^ 0x51_2e));
        self.sizes[at].0
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
        let rank = self.zipf.draw(&mut self.rng);
        let newest = self.keys + (self.requests as f64 * self.churn) as u64;
        self.requests += 1;
        let key = mix((newest - rank) * self.mix.len() as u64 + class as u64);
        let kind = self.rng.unit();
        let operation = match kind {
            _ if kind < self.puts => Operation::Put,
            _ if kind < self.puts + self.deletes => Operation::Delete,
            _ => Operation::Get,
        };
        Ok(Some(ObjectRequest { arrival: 0, key, bytes: self.size_of(key), operation, class: class as u32 }))
    }

    fn place(&self) -> String {
        "generated objects".into()
    }
}
