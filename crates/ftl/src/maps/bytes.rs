//! DRAM size of a map, as in the MGA paper (Sec. I): 8 bytes an entry, independent of the memory of the simulator.

/// Bytes of a map of `entries` entries.
pub const fn map_bytes(entries: u64) -> u64 {
    entries * 8
}

#[cfg(test)]
mod tests {
    use super::map_bytes;
    use palimpsest_flash::units::{GIB, KIB};

    /// "1 TB device with 16KB pages and 4KB subpages needs 2GB storage space for mapping tables".
    #[test]
    fn a_terabyte_in_subpages_takes_two_gigabytes_of_map() {
        assert_eq!(map_bytes(1024 * GIB / (4 * KIB)), 2 * GIB);
        assert_eq!(map_bytes(1024 * GIB / (16 * KIB)), GIB / 2, "a quarter in pages of 16 KiB");
    }
}
