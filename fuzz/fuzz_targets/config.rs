//! Any bytes as a configuration.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::config::fuzzing::fuzz_config(bytes));
