//! DRAM size of a map, as in the MGA paper (Sec. I): 8 bytes an entry, independent of the memory of the simulator.

/// Bytes of a map of `entries` entries.
pub const fn map_bytes(entries: u64) -> u64 {
    entries * 8
}

#[cfg(test)]
mod tests;
