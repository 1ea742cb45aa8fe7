//! A store of records in a log-structured merge tree, such as RocksDB with levelled compaction (O'Neil et al. 1996), as
//! the workload of a run: gets and puts of records become reads and writes of the store's files.
//!
//! Puts go to a write-ahead log and to a table in memory. A full table becomes a file of level 0. `l0` files there, or
//! more bytes in a level than its size, start a compaction: files are merged with the files of the next level whose
//! keys overlap, and the result is written to new files of that level. Each level writes through one placement handle,
//! and the log through another, as plug-ins for RocksDB on drives with Flexible Data Placement do.
//!
//! Ignored: blocks of index and filter (a get reads a block only where the record is), compression, a cache of blocks,
//! snapshots, threads (a compaction is done before the next put), and metadata of the file system.

mod files;
mod source;
mod spec;
mod tree;

pub use source::LsmSource;
pub use spec::{KEYS, LsmSpec};

#[cfg(test)]
mod tests;
