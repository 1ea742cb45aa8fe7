//! Fingerprint of the seam between the program and a plug-in (`src/plugin.rs`): FNV-1a of 64 bits over the compiler,
//! the target, and the sources of the crates whose types cross the seam. Any change of these sources counts, comments
//! too. A checkout and packages of the same sources have the same fingerprint.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Layers get `Io` and the drive of `flash` and `ftl-api`, and policies of Python the blocks of `ftl`.
const CROSSING: [&str; 4] = ["flash", "ftl-api", "ftl", "layer"];

fn main() {
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
    for name in CROSSING {
        let source = source_of(name);
        println!("cargo::rerun-if-changed={}", source.display());
        for file in files(&source) {
            let below = file.strip_prefix(&source).expect("a path below the sources").to_string_lossy();
            let name = format!("{name}/src/{}", below.replace('\\', "/"));
            add(name.as_bytes());
            add(&fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}")));
        }
    }
    println!("cargo::rustc-env=PALIMPSEST_SEAM={digest:016x}");
    println!("cargo::rustc-env=PALIMPSEST_RUSTC={}", compiler.lines().next().unwrap_or_default());
}

/// The sources of a crate: in a checkout, a folder of packages with or without versions, or the crate itself.
fn source_of(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = format!("palimpsest-{name}");
    let places = [name.to_string(), format!("{package}-{}", env!("CARGO_PKG_VERSION")), package.clone()];
    let own = env!("CARGO_PKG_NAME") == package;
    let found = places.iter().map(|place| here.join("..").join(place).join("src")).find(|source| source.is_dir());
    let expected = || format!("expected {package} {} beside {}", env!("CARGO_PKG_VERSION"), here.display());
    if own { here.join("src") } else { found.unwrap_or_else(|| panic!("{}", expected())) }
}

/// The files of a folder and of its folders, in the order of their names; of a file, itself.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.into()] };
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    inside.sort();
    inside.iter().flat_map(|path| files(path)).collect()
}
