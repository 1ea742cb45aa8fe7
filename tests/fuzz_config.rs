//! A seeded, bounded substitute for the fuzzer: mutated configuration files and options never make `resolve` panic, and
//! a resolved drive is unchanged after writing and reading.

mod kept_inputs;

use kept_inputs::kept;
use palimpsest_lab::config::fuzzing::fuzz_config;
use palimpsest_lab::config::{resolve, schema::keys, ssd_presets};
use palimpsest_lab::rng::Rng;

/// Pieces that mutations insert: keys and values of every type, and syntax that breaks parsers.
const PIECES: &[&str] = &[
    "[part]\n",
    "[ssd]\n",
    "part.",
    "\n",
    "=",
    " = ",
    "\"",
    "0",
    "1",
    "-1",
    "65536",
    "4294967295",
    "\"0B\"",
    "\"1KiB\"",
    "\"16MB\"",
    "\"35us\"",
    "\"99999999999s\"",
    "\"unlimited\"",
    "\"28%\"",
    "\"1e9%\"",
    "0.5",
    "nan",
    "inf",
    "1e300",
    "true",
    "[]",
    "[\"1us\"]",
    "{}",
    "{ part = \"a16\" }",
    "\0",
    "\u{b5}s",
    "base = \"mga-16k\"\n",
    "complete = true\n",
    "\"0 blocks\"",
    "\"d-choices:3\"",
    "[[part]]\n",
    "#",
    "ssd.part=a16\n",
    "part.nop=2\n",
    "ssd.over_provisioning=0%\n",
    "'''",
    "\\u0000",
];

/// A file with every key, and small ones, as seeds.
fn seeds() -> Vec<Vec<u8>> {
    let none = |_: &str| unreachable!("presets need no files");
    let whole = ssd_presets()
        .into_iter()
        .map(|preset| resolve(preset.name, None, &[], &none).expect("presets resolve").to_toml());
    let mut seeds: Vec<Vec<u8>> = whole.map(String::into_bytes).collect();
    seeds.push(b"base = \"mga-16k\"\n[part]\nnop = 2\n\0ssd.part=a16\npart.t_read=1us\n".to_vec());
    seeds.push(b"ssd = { part = \"parts/x.toml\", channels = 1, blocks_per_plane = 64 }\n".to_vec());
    seeds
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    match rng.below(5) {
        0 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
        1 => {
            let end = bytes.len().min(at + rng.below(40) as usize);
            bytes.drain(at..end);
        }
        2 => {
            let name = keys()[rng.below(keys().len() as u64) as usize].name;
            bytes.splice(at..at, name.bytes());
        }
        3 => {
            // Replaces a whole value, so that the file stays well-formed.
            let start = bytes[at..].iter().position(|byte| *byte == b'=').map(|offset| at + offset + 1);
            let Some(start) = start else { return };
            let end = bytes[start..]
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'#'))
                .map_or(bytes.len(), |end| start + end);
            let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
            bytes.splice(start..end, piece.bytes());
        }
        _ => {
            let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
            bytes.splice(at..at, piece.bytes());
        }
    }
}

#[test]
fn kept_configurations_do_not_panic() {
    for (name, bytes) in kept("config") {
        println!("{name}");
        fuzz_config(&bytes);
    }
}

/// `MODEL_FROM` names the seed: a part of `make soak`.
#[test]
#[ignore = "a minute a seed"]
fn long_mutations_of_configurations() {
    let seed = std::env::var("MODEL_FROM").ok().and_then(|text| text.parse().ok()).unwrap_or(0u64);
    let mut seeds = seeds();
    seeds.extend(kept("config").into_iter().map(|(_, bytes)| bytes));
    for round in 0..20_000 {
        let mut rng = Rng::new(seed << 20 | round, 0xc0f2);
        let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=rng.below(6) {
            mutate(&mut bytes, &mut rng);
        }
        let input = bytes.clone();
        let fuzzed = std::panic::catch_unwind(|| fuzz_config(&input));
        assert!(fuzzed.is_ok(), "seed {seed}, round {round} panics: {bytes:?}");
    }
}

#[test]
fn mutated_configurations_do_not_panic() {
    let seeds = seeds();
    for round in 0..4_000 {
        let mut rng = Rng::new(round, 0xc0f1);
        let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &mut rng);
        }
        fuzz_config(&bytes);
    }
}
