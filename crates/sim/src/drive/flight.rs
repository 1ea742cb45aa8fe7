//! Requests of a drive in flight, by number. Ignored: requests that the host aborts.

use super::Command;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::zones::ZoneError;

/// A request in flight, or room of the write buffer that a completed write still occupies.
#[derive(Clone, Copy)]
pub(super) struct InFlight {
    pub(super) command: Command,
    pub(super) arrival: Nanos,
    /// True if submitted before the measurement began.
    pub(super) warmup: bool,
    /// Number of requests planned before, this one included.
    planned: u64,
    /// Number of the data change of this request, or of the last before it.
    pub(super) change: u64,
    /// Subpages of the write buffer that this entry holds; above 0 the entry is no request.
    pub(super) held: u32,
    /// Why a zoned drive refused the request.
    pub(super) refused: Option<ZoneError>,
}

/// The requests in flight.
#[derive(Default)]
pub(super) struct Flight {
    entries: Vec<InFlight>,
    free: Vec<u32>,
    /// Requests that have not completed.
    pub(super) outstanding: u32,
    /// Number of requests planned.
    plans: u64,
}

impl Flight {
    /// Adds a request and returns its number.
    #[inline(always)]
    pub(super) fn submit(&mut self, command: Command, arrival: Nanos, warmup: bool) -> u32 {
        self.outstanding += 1;
        self.enter(InFlight { command, arrival, warmup, planned: 0, change: 0, held: 0, refused: None })
    }

    /// Adds an entry that holds `subpages` subpages of the write buffer for request `id`, and returns its number.
    pub(super) fn hold(&mut self, id: u32, subpages: u64) -> u32 {
        self.enter(InFlight { held: subpages as u32, ..*self.get(id) })
    }

    #[inline(always)]
    fn enter(&mut self, entry: InFlight) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// The entry of number `id`.
    #[inline]
    pub(super) fn get(&self, id: u32) -> &InFlight {
        &self.entries[id as usize]
    }

    /// Marks request `id` as planned, after the data change of number `change`.
    #[inline]
    pub(super) fn planned(&mut self, id: u32, change: u64) {
        self.plans += 1;
        let entry = &mut self.entries[id as usize];
        (entry.planned, entry.change) = (self.plans, change);
    }

    /// The entry of number `id`.
    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut InFlight {
        &mut self.entries[id as usize]
    }

    /// Frees number `id`.
    #[inline]
    pub(super) fn release(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Frees the number of request `id`, which has completed.
    #[inline]
    pub(super) fn complete(&mut self, id: u32) {
        self.release(id);
        self.outstanding -= 1;
    }

    /// Requests that have not completed, in order of number.
    pub(super) fn requests(&self) -> impl Iterator<Item = (u32, &InFlight)> {
        (0..).zip(&self.entries).filter(|(id, entry)| entry.held == 0 && !self.free.contains(id))
    }

    /// Sorts the requests of these numbers by the order in which they were planned.
    pub(super) fn sort_by_plan(&self, ids: &mut [u32]) {
        ids.sort_unstable_by_key(|&id| self.get(id).planned);
    }

    /// Drops all entries that hold room of the write buffer.
    pub(super) fn release_held(&mut self) {
        for (id, entry) in (0..).zip(&mut self.entries) {
            if entry.held > 0 && !self.free.contains(&id) {
                entry.held = 0;
                self.free.push(id);
            }
        }
    }

    /// Drops all requests.
    pub(super) fn clear(&mut self) {
        self.outstanding = 0;
        self.free = (0..self.entries.len() as u32).collect();
    }
}
