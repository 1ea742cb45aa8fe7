//! The transfers of the SSD tier: by a device of the caller if there is one, else by shares of a bandwidth.
//!
//! A module for the patched copy of aisimulate-core. Each KV block has a slot of the device, which a later block gets
//! once the tier has evicted the former. Ignored: cancelled jobs of a device, which only tests of the crate have.

use crate::engine::host_offload::HostBlockKey;
use crate::engine::offload_transfer::{Direction, FairTransfers, Job};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Storage of KV blocks. Times are milliseconds of the simulation.
pub trait Device: Send {
    /// Reads or writes the blocks in `slots`.
    fn submit(&mut self, job: u64, is_write: bool, slots: &[u64], now: f64);
    /// Time of the next event.
    fn next_event(&self) -> Option<f64>;
    /// Processes the events up to `target`; returns completed jobs with their times.
    fn advance(&mut self, target: f64) -> Vec<(u64, f64)>;
}

/// The device of the next simulation.
pub static DEVICE: Mutex<Option<Box<dyn Device>>> = Mutex::new(None);

/// Durations of the reads of the simulation.
pub static READS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

struct Transfer {
    client: u64,
    is_write: bool,
    start: f64,
}

pub(crate) struct Transfers {
    fair: FairTransfers,
    device: Option<Box<dyn Device>>,
    now: f64,
    jobs: BTreeMap<u64, Transfer>,
    slots: BTreeMap<(usize, HostBlockKey), u64>,
    free: Vec<u64>,
    /// Slots of the next job.
    placed: Vec<u64>,
}

impl Default for Transfers {
    fn default() -> Self {
        Transfers {
            fair: FairTransfers::default(),
            device: DEVICE.lock().unwrap().take(),
            now: 0.0,
            jobs: BTreeMap::new(),
            slots: BTreeMap::new(),
            free: Vec::new(),
            placed: Vec::new(),
        }
    }
}

impl Transfers {
    pub(crate) fn now(&self) -> f64 {
        self.now
    }

    pub(crate) fn has_client_jobs(&self, client: u64) -> bool {
        self.jobs.values().any(|job| job.client == client)
    }

    /// Finds the slots of `keys`, new ones for blocks that are new.
    pub(crate) fn place(
        &mut self,
        pool: usize,
        keys: &[HostBlockKey],
        is_held: impl Fn(&(usize, HostBlockKey)) -> bool,
    ) {
        self.placed.clear();
        for key in keys {
            if let Some(slot) = self.slots.get(&(pool, *key)) {
                self.placed.push(*slot);
                continue;
            }
            if self.free.is_empty() {
                let evicted = self.slots.keys().filter(|each| !is_held(each)).copied().collect::<Vec<_>>();
                self.free.extend(evicted.iter().map(|each| self.slots.remove(each).unwrap()));
            }
            let slot = self.free.pop().unwrap_or(self.slots.len() as u64);
            self.slots.insert((pool, *key), slot);
            self.placed.push(slot);
        }
    }

    pub(crate) fn submit(&mut self, job: Job) {
        let is_write = job.direction == Direction::Write;
        self.jobs.insert(job.id, Transfer { client: job.client, is_write, start: self.now });
        match &mut self.device {
            Some(device) => device.submit(job.id, is_write, &self.placed, self.now),
            None => self.fair.submit(job),
        }
    }

    pub(crate) fn next_event(&self) -> Option<f64> {
        match &self.device {
            Some(device) if !self.jobs.is_empty() => device.next_event(),
            Some(_) => None,
            None => self.fair.next_event(),
        }
    }

    pub(crate) fn advance(&mut self, target: f64) -> Vec<(u64, f64)> {
        self.now = target.max(self.now);
        let done = match &mut self.device {
            Some(device) => device.advance(self.now),
            None => self.fair.advance(target),
        };
        for (id, at) in &done {
            let job = self.jobs.remove(id).unwrap();
            if !job.is_write {
                READS.lock().unwrap().push(at - job.start);
            }
        }
        done
    }
}
