//! Any changes of the image of a drive.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palimpsest_lab::run::image::fuzzing::fuzz_image(bytes));
