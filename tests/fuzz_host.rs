//! Fuzzing of the host side as an ordinary test: seeded mutations of small valid inputs through the fuzz entry points.
//!
//! Bounded by iterations, so that a failure repeats; `crates/workload/src/fuzzing.rs` states the properties that must
//! hold.

mod kept_inputs;

use kept_inputs::kept;
use std::io::Write;

use palimpsest_lab::host::fuzzing::{
    JOB_FILES, OBJECT_SAMPLES, OBJECT_SPECS, SAMPLES, SPECS, fuzz_archive, fuzz_job_file, fuzz_objects, fuzz_parquet,
    fuzz_spec, fuzz_trace,
};
use palimpsest_lab::rng::Rng;

/// Bytes with a meaning to some reader.
const SYNTAX: &[u8] = b"\n\r\t ,;.:/-+=%\"0199RWDFQCN\0\xff\x1f\x8b(\xb5";

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    let end = (at + rng.below(16) as usize).min(bytes.len());
    match rng.below(7) {
        0 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        1 if at < bytes.len() => bytes[at] = SYNTAX[rng.below(SYNTAX.len() as u64) as usize],
        2 => bytes.insert(at, SYNTAX[rng.below(SYNTAX.len() as u64) as usize]),
        3 => drop(bytes.drain(at..end)),
        4 => bytes.truncate(at),
        5 => {
            let piece = bytes[at..end].to_vec();
            let to = rng.below(bytes.len() as u64 + 1) as usize;
            bytes.splice(to..to, piece);
        }
        _ => bytes.splice(at..end, b"18446744073709551615".iter().copied()).for_each(drop),
    }
}

fn compressed(bytes: &[u8], choice: u64) -> Vec<u8> {
    match choice {
        0 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("memory takes all");
            encoder.finish().expect("memory takes all")
        }
        1 => zstd::stream::encode_all(bytes, 1).expect("memory takes all"),
        _ => bytes.to_vec(),
    }
}

/// Name and function of a fuzz target.
type Target = (&'static str, fn(&[u8]));

/// The fuzz targets of the host side.
const TARGETS: [Target; 6] = [
    ("trace", fuzz_trace),
    ("parquet", fuzz_parquet),
    ("archive", fuzz_archive),
    ("spec", fuzz_spec),
    ("jobs", fuzz_job_file),
    ("objects", fuzz_objects),
];

#[test]
fn kept_inputs_do_not_panic() {
    for (target, fuzz) in TARGETS {
        for (name, bytes) in kept(target) {
            println!("{name}");
            fuzz(&bytes);
        }
    }
}

/// `MODEL_FROM` names the seed: a part of `make soak`.
#[test]
#[ignore = "a minute a seed"]
fn long_mutations_of_kept_inputs() {
    let seed = std::env::var("MODEL_FROM").ok().and_then(|text| text.parse().ok()).unwrap_or(0u64);
    for (at, (target, fuzz)) in (0..).zip(TARGETS) {
        let kept = kept(target);
        for round in 0..3_000 {
            let mut rng = Rng::new(seed << 20 | round, 3000 + at);
            let (name, mut bytes) = kept[rng.below(kept.len() as u64) as usize].clone();
            for _ in 0..=rng.below(8) {
                mutate(&mut bytes, &mut rng);
            }
            let input = bytes.clone();
            let fuzzed = std::panic::catch_unwind(|| fuzz(&input));
            assert!(fuzzed.is_ok(), "{target}: {name} mutated by seed {seed}, round {round}, panics: {bytes:?}");
        }
    }
}

#[test]
fn mutated_traces_do_not_panic() {
    const ROUNDS: u64 = 300;
    for (at, (_, sample)) in SAMPLES.iter().enumerate() {
        for round in 0..ROUNDS {
            let mut rng = Rng::new(round, at as u64);
            let mut bytes = compressed(sample.as_bytes(), rng.below(6));
            for _ in 0..=rng.below(6) {
                mutate(&mut bytes, &mut rng);
            }
            if rng.chance(0.1) {
                let (_, other) = SAMPLES[rng.below(SAMPLES.len() as u64) as usize];
                bytes.extend(other.as_bytes());
            }
            fuzz_trace(&bytes);
        }
    }
}

#[test]
fn mutated_specifications_do_not_panic() {
    const ROUNDS: u64 = 20_000;
    for round in 0..ROUNDS {
        let mut rng = Rng::new(round, 1000);
        let mut bytes = SPECS[rng.below(SPECS.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &mut rng);
        }
        fuzz_spec(&bytes);
    }
}

#[test]
fn mutated_job_files_do_not_panic() {
    const ROUNDS: u64 = 5_000;
    for round in 0..ROUNDS {
        let mut rng = Rng::new(round, 2000);
        let mut bytes = JOB_FILES[rng.below(JOB_FILES.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &mut rng);
        }
        fuzz_job_file(&bytes);
    }
}

#[test]
fn mutated_objects_do_not_panic() {
    const ROUNDS: u64 = 2_000;
    let texts: Vec<&str> = OBJECT_SAMPLES.iter().map(|sample| sample.1).chain(OBJECT_SPECS.iter().copied()).collect();
    for round in 0..ROUNDS {
        let mut rng = Rng::new(round, 4000);
        let mut bytes = texts[rng.below(texts.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &mut rng);
        }
        fuzz_objects(&bytes);
    }
}
