//! Any bytes from a client of the network block device.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_server::fuzzing::fuzz_session(bytes));
