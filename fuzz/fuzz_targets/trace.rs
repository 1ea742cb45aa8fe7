//! Any bytes as a trace file, plain or compressed, in every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::host::fuzzing::fuzz_trace(bytes));
