//! Eviction policies of a log of regions: the registry, and the interface. Each policy is one file and one line of
//! [`POLICIES`].

mod fifo;
mod lru;
mod s3_fifo;

/// Most hits of an object that a log counts.
pub const MOST_HITS: u8 = 3;

/// Chooses the regions of a log that are evicted. A log writes each queue to an open region of its own.
pub trait Policy: Send {
    /// Number of queues. Objects that a policy keeps go to the last.
    fn queues(&self) -> usize {
        1
    }

    /// The queue of a new object.
    fn queue_of(&mut self, _key: u64) -> usize {
        0
    }

    /// A region of `queue` is full and on the drive.
    fn written(&mut self, region: u32, queue: usize);

    /// An object of a region was read.
    fn hit(&mut self, _region: u32) {}

    /// The region to evict and its queue; a written one, which leaves its queue.
    fn victim(&mut self) -> (u32, usize);

    /// The hits that an object keeps which is moved out of its evicted region; `None`: the object is evicted, too.
    fn keeps(&self, _queue: usize, _hits: u8) -> Option<u8> {
        None
    }

    /// An object of `queue` was evicted; the log has `objects` others.
    fn evicted(&mut self, _key: u64, _queue: usize, _objects: usize) {}
}

/// A policy by name.
pub struct PolicyEntry {
    /// Name.
    pub name: &'static str,
    /// One line for listings.
    pub about: &'static str,
    /// The policy of a log of so many regions.
    pub build: fn(u32) -> Box<dyn Policy>,
}

/// Every policy.
pub const POLICIES: &[PolicyEntry] = &[fifo::ENTRY, lru::ENTRY, s3_fifo::ENTRY];
