//! Small caches counted by hand; caches under random requests against a naive model (`model.rs`); readers of traces
//! (`readers.rs`); the source (`source.rs`).

mod model;
mod readers;
mod source;

use super::cache::{Cache, Shape};
use super::commands::{Commands, Trims};
use super::memory::MemoryPolicy;
use super::policies::{POLICIES, PolicyEntry};
use super::{ObjectRequest, Operation};
use crate::request::{Command, RequestKind};

const PAGE: u64 = 4096;

fn policy(name: &str) -> &'static PolicyEntry {
    POLICIES.iter().find(|policy| policy.name == name).expect("a policy")
}

/// A log of `regions` regions of a page, beside as many buckets as a share of `small` gives.
fn shape(pages: u64, small: f64) -> Shape {
    Shape {
        bytes: pages * PAGE,
        small,
        threshold: 2048,
        region_bytes: vec![PAGE],
        logs: vec![1.0],
        handles: if small > 0.0 { vec![1, 2] } else { vec![2] },
        placed: true,
        trims: Trims::None,
        reads: true,
        admit: 1.0,
        memory: (0, Default::default()),
    }
}

fn request(operation: Operation, key: u64, bytes: u64) -> ObjectRequest {
    ObjectRequest { arrival: 0, key, bytes, operation, class: 0 }
}

fn drained(commands: &mut Commands) -> Vec<Command> {
    std::iter::from_fn(|| commands.next()).collect()
}

/// Letter, first page and handle of each command; all commands have one page.
fn shown(commands: &[Command]) -> String {
    let each = commands.iter().map(|command| {
        assert_eq!((command.extent.sector % 8, command.extent.sectors), (0, 8));
        let kind = match command.kind {
            RequestKind::Read if command.directives.owner == 0 => "get",
            RequestKind::Read => "R",
            RequestKind::Write => "W",
            RequestKind::Trim => "T",
            RequestKind::Flush => unreachable!("a cache does not flush"),
        };
        let handle =
            if command.kind == RequestKind::Write { format!(":{}", command.directives.placement) } else { "".into() };
        format!("{kind}{}{handle}", command.extent.sector / 8)
    });
    each.collect::<Vec<_>>().join(" ")
}

/// Gets of objects of a page by a log of four regions of a page: hits by digit, and the commands.
fn gets(name: &str, keys: &[u64]) -> (String, String) {
    let mut cache = Cache::new(&shape(4, 0.0), policy(name), 1).unwrap();
    let (mut hits, mut commands) = (String::new(), Commands::default());
    for &key in keys {
        let before = cache.figures().hits;
        cache.serve(&request(Operation::Get, key, PAGE), &mut commands);
        hits += if cache.figures().hits > before { "1" } else { "0" };
    }
    (hits, shown(&drained(&mut commands)))
}

/// Region 3 is open when object 4 comes, so object 5 evicts the first region.
#[test]
fn fifo_evicts_the_region_written_first() {
    let (hits, commands) = gets("fifo", &[1, 2, 3, 4, 1, 5, 1, 2]);
    assert_eq!(hits, "00001000");
    // Object 5: the region of 4 is written, region 0 is read and evicted. Object 1 then evicts 2, and 2 evicts 3.
    assert_eq!(commands, "W0:2 W1:2 W2:2 get0 W3:2 R0 W0:2 R1 W1:2 R2");
}

#[test]
fn lru_spares_the_region_read_last() {
    let (hits, commands) = gets("lru", &[1, 2, 3, 4, 1, 5, 1, 2]);
    assert_eq!(hits, "00001010");
    // Object 5 evicts object 2, because object 1 was read.
    assert_eq!(commands, "W0:2 W1:2 W2:2 get0 W3:2 R1 get0 W1:2 R2");
}

/// The small queue has one region. Object 1 is read twice in it, and moves to the main queue; object 2 is evicted, and
/// enters the main queue when it comes back.
#[test]
fn s3_fifo_keeps_objects_read_twice() {
    let (hits, commands) = gets("s3-fifo", &[1, 1, 1, 2, 3, 4, 5, 1, 2, 2]);
    assert_eq!(hits, "0110000101");
    // Hits of 1 are in the open region 0. Objects 1 to 4 fill the regions. Object 5 evicts region 0, and object 1 moves
    // to region 0 of the main queue, open; then region 1 (object 2) is evicted for object 5. Object 2 comes back to the
    // main queue: region 0 is written, and region 2 (object 3) is evicted.
    assert_eq!(commands, "W0:2 W1:2 W2:2 W3:2 R0 R1 W0:2 R2");
}

/// Objects of half a page in a bucket of a page: the third drops the first.
#[test]
fn buckets_drop_their_oldest_objects() {
    let mut cache = Cache::new(&shape(5, 0.2), policy("fifo"), 1).unwrap();
    let mut commands = Commands::default();
    for (operation, key) in [(Operation::Put, 1), (Operation::Put, 2), (Operation::Get, 1), (Operation::Put, 3)] {
        cache.serve(&request(operation, key, 2048), &mut commands);
    }
    // Object 1 is gone: the get inserts it again, and drops object 2.
    cache.serve(&request(Operation::Get, 1, 2048), &mut commands);
    cache.serve(&request(Operation::Delete, 3, 0), &mut commands);
    cache.serve(&request(Operation::Delete, 3, 0), &mut commands);
    assert_eq!(shown(&drained(&mut commands)), "W0:1 R0 W0:1 get0 R0 W0:1 R0 W0:1 R0 W0:1");
    let figures = cache.figures();
    assert_eq!((figures.gets, figures.hits, figures.puts, figures.deletes), (2, 1, 3, 2));
    assert_eq!((figures.hit_bytes, figures.requested_bytes), (2048, 4096));
    let small = &figures.classes[0];
    assert_eq!((small.inserts, small.inserted_bytes, small.evicted, small.written_bytes), (4, 8192, 2, 5 * PAGE));
    assert_eq!(figures.application_write_amplification, Some(2.5));
}

/// An object that grows beyond the threshold leaves its bucket, and one that shrinks leaves the log.
#[test]
fn an_object_is_in_one_part() {
    let mut cache = Cache::new(&shape(5, 0.2), policy("fifo"), 1).unwrap();
    let mut commands = Commands::default();
    for bytes in [100, PAGE, 100] {
        cache.serve(&request(Operation::Put, 1, bytes), &mut commands);
    }
    cache.serve(&request(Operation::Get, 1, 7), &mut commands);
    assert_eq!(shown(&drained(&mut commands)), "W0:1 R0 W0:1 W0:1 get0");
    assert_eq!(cache.figures().hit_bytes, 100);
}

/// Trims of deletes cover whole pages, and trims of evictions whole regions.
#[test]
fn trims_cover_deleted_pages_and_evicted_regions() {
    for (trims, expected) in [
        (Trims::None, "W0:2 W1:2 W2:2 W3:2 R0 W0:2 R1 W1:2 R2"),
        (Trims::Deletes, "W0:2 T0 W1:2 W2:2 W3:2 R0 W0:2 R1 W1:2 R2"),
        (Trims::All, "W0:2 T0 W1:2 W2:2 W3:2 R0 T0 W0:2 R1 T1 W1:2 R2 T2"),
    ] {
        let mut cache = Cache::new(&Shape { trims, ..shape(4, 0.0) }, policy("fifo"), 1).unwrap();
        let mut commands = Commands::default();
        for (operation, key) in
            [(0, 1), (0, 2), (1, 1), (1, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7)].map(|(kind, key)| (kind == 1, key))
        {
            let operation = if operation { Operation::Delete } else { Operation::Put };
            cache.serve(&request(operation, key, PAGE), &mut commands);
        }
        assert_eq!(shown(&drained(&mut commands)), expected, "{trims:?}");
    }
}

/// With keys in memory only kept objects are read.
#[test]
fn a_log_that_knows_its_keys_reads_kept_objects() {
    let mut cache = Cache::new(&Shape { reads: false, ..shape(4, 0.0) }, policy("s3-fifo"), 1).unwrap();
    let mut commands = Commands::default();
    for key in [1, 1, 1, 2, 3, 4, 5] {
        cache.serve(&request(Operation::Get, key, PAGE), &mut commands);
    }
    assert_eq!(shown(&drained(&mut commands)), "W0:2 W1:2 W2:2 W3:2 R0");
}

/// Memory for two objects. Object 2 leaves it first, comes back clean, and leaves again without a write.
#[test]
fn objects_reach_the_drive_when_they_leave_the_memory() {
    let memory = (2 * PAGE, MemoryPolicy::Lru);
    let mut cache = Cache::new(&Shape { memory, ..shape(4, 0.0) }, policy("fifo"), 1).unwrap();
    let mut commands = Commands::default();
    for (is_put, key) in [(true, 1), (true, 2), (false, 1), (true, 3), (true, 4), (false, 2), (true, 5), (true, 6)] {
        let operation = if is_put { Operation::Put } else { Operation::Get };
        cache.serve(&request(operation, key, PAGE), &mut commands);
    }
    assert_eq!(shown(&drained(&mut commands)), "W0:2 get0 W1:2 W2:2");
    let figures = cache.figures();
    let memory = figures.memory.unwrap();
    assert_eq!((figures.gets, figures.hits, memory.hits), (2, 2, 1));
    assert_eq!((memory.inserts, memory.evicted, memory.evicted_clean), (7, 5, 1));
}

#[test]
fn objects_larger_than_a_region_are_refused() {
    let mut cache = Cache::new(&shape(4, 0.0), policy("fifo"), 1).unwrap();
    let mut commands = Commands::default();
    cache.serve(&request(Operation::Get, 1, PAGE + 1), &mut commands);
    assert_eq!((cache.figures().classes[0].refused, drained(&mut commands).len()), (1, 0));
}

/// A cache that is too small for its parts.
#[test]
fn parts_without_room_are_refused() {
    let no = |shape: Shape| Cache::new(&shape, policy("lru"), 1).map(drop).unwrap_err().to_string();
    let log = no(shape(3, 0.0));
    assert_eq!(log, "region: a log of 12KiB has 3 regions of 4KiB; expected 4 to 2^32");
    assert!(no(shape(40, 0.01)).contains("no bucket of 4 KiB fits a cache of 160KiB"));
}
