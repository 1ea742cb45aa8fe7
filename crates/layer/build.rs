//! Fingerprint of the seam between the program and a plug-in (`src/plugin.rs`): FNV-1a of 64 bits over the compiler,
//! the target, and the sources of the crates whose types cross the seam. Any change of these sources counts, comments
//! too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Below `crates`. Layers get `Io` and the drive of `flash` and `ftl-api`, and policies of Python the blocks of `ftl`.
const CROSSING: [&str; 4] = ["flash/src", "ftl-api/src", "ftl/src", "layer/src"];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let compiler = Command::new(variable("RUSTC")).arg("-vV").output().expect("cargo names the compiler");
    let compiler = String::from_utf8(compiler.stdout).expect("the compiler names its version");
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes.iter().chain(&[0]) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    add(compiler.as_bytes());
    add(variable("TARGET").as_bytes());
    for source in CROSSING {
        println!("cargo::rerun-if-changed={}", crates.join(source).display());
        for file in files(&crates.join(source)) {
            let name =
                file.strip_prefix(&crates).expect("a path below the crates").to_string_lossy().replace('\\', "/");
            add(name.as_bytes());
            add(&fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}")));
        }
    }
    println!("cargo::rustc-env=PALIMPSEST_SEAM={digest:016x}");
    println!("cargo::rustc-env=PALIMPSEST_RUSTC={}", compiler.lines().next().unwrap_or_default());
}

/// The files of a folder and of its folders, in the order of their names; of a file, itself.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    inside.sort();
    inside.iter().flat_map(|path| files(path)).collect()
}
