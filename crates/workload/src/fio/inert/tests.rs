//! Tests of keys without a field: each has one meaning.

use super::*;
use crate::fio::keys::{KEYS, acting};

#[test]
fn each_key_has_one_meaning() {
    let names = |table: &'static [(&str, &'static str)]| table.iter().flat_map(|(_, names)| names.split(' '));
    let plain = |name: &'static str| name.split('=').next().unwrap();
    let mut all: Vec<&str> = names(ACCEPTED).chain(names(REFUSED)).map(plain).collect();
    all.extend(KEYS.iter().flat_map(|key| key.aliases.iter().chain([&key.name])));
    all.sort_unstable();
    let twice: Vec<&[&str]> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert_eq!(twice, [[""; 0]; 0]);
    assert!(all.iter().all(|name| !name.is_empty()));
    assert!(acting("ioengine").is_some() && accepted("direct") && !accepted("verify"));
}

#[test]
fn a_switch_that_is_off_is_no_reason() {
    assert_eq!(refused("pre_read", "1"), Some("needs a file system instead of a drive"));
    assert_eq!((refused("pre_read", "0"), is_off("pre_read")), (None, true));
    assert_eq!((refused("sg_write_mode", "write"), refused("zonemode", "none")), (None, None));
    assert!(refused("sg_write_mode", "verify_bytchk_01").is_some() && refused("zonemode", "zbd").is_some());
    assert_eq!((refused("size", "5g"), refused("size", "3z")), (None, Some("counts zones, and the drive has none")));
    assert_eq!((refused("ioengine", "libaio"), waits("libaio"), waits("psync")), (None, Some(false), Some(true)));
    assert_eq!((refused("ioengine", "http"), waits("http")), (Some("needs a server instead of a drive"), None));
}
