//! Any bytes as a trace of objects, and as the description of an object workload.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::host::fuzzing::fuzz_objects(bytes));
