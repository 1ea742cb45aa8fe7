//! Any bytes as a workload in fio's language.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::host::fuzzing::fuzz_spec(bytes));
