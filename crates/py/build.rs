//! Digest of all sources that affect figures, for `_core.build()`: FNV-1a of 64 bits over paths and contents.
//!
//! While a layer is under work its version stays and its digest changes, so that results of older code are not taken
//! for those of newer code. It covers sources, not compiled code: the same on every machine.

use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 3] = ["crates", "presets", "Cargo.lock"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join(SOURCES[0]).is_dir() {
        // A package, whose version determines all sources.
        println!("cargo::rustc-env=PALIMPSEST_SOURCES={}", env!("CARGO_PKG_VERSION"));
        return;
    }
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        for file in files(&root.join(source)) {
            let name = file.strip_prefix(&root).expect("a path below the root").to_string_lossy().replace('\\', "/");
            let text = fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
            for byte in name.bytes().chain([0]).chain(text).chain([0]) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    println!("cargo::rustc-env=PALIMPSEST_SOURCES={digest:016x}");
}

/// The files of a folder and of its folders, in the order of their names; of a file, itself.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    inside.sort();
    inside.iter().flat_map(|path| files(path)).collect()
}
