//! Any text as a job file of fio.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::host::fuzzing::fuzz_job_file(bytes));
