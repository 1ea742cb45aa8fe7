//! Tests of the module `bytes`.

use super::map_bytes;
use palimpsest_flash::units::{GIB, KIB};

/// "1 TB device with 16KB pages and 4KB subpages needs 2GB storage space for mapping tables".
#[test]
fn a_terabyte_in_subpages_takes_two_gigabytes_of_map() {
    assert_eq!(map_bytes(1024 * GIB / (4 * KIB)), 2 * GIB);
    assert_eq!(map_bytes(1024 * GIB / (16 * KIB)), GIB / 2, "a quarter in pages of 16 KiB");
}
