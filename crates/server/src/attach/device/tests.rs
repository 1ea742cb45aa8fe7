//! Tests of the module `device`.

use super::*;

#[test]
fn mounts_are_found_by_the_number_of_their_device() {
    let mounts = b"25 1 7:3 / /mnt rw - ext4 /dev/loop3 rw\n\
        26 25 7:30 / /other rw - ext4 /dev/loop30 rw\n\
        27 25 7:3 /sub /with\\040blank\\134x rw shared:1 - ext4 /dev/loop3 rw\nbroken line\n";
    let found = mounted_from(mounts, "7:3");
    assert_eq!(found, [Path::new("/with blank\\x"), Path::new("/mnt")], "the last first");
    assert!(mounted_from(mounts, "").is_empty() && mounted_from(mounts, "7:4").is_empty());
}

#[test]
fn a_file_without_device_has_none() {
    assert!(of_file(Path::new("/no such file")).is_empty());
    assert!(mounts_of(Path::new("/dev/no-such-device")).is_empty());
    assert!(!is_mounted(Path::new("/no such folder")) && is_mounted(Path::new("/")));
}
