//! Any bytes from an NVMe/TCP host.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_server::fuzzing::fuzz_nvme(bytes));
