//! Any bytes as a Parquet trace.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::host::fuzzing::fuzz_parquet(bytes));
