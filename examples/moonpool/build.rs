//! Writes a module that includes the storage contract of moonpool-sim, a file of the package that cargo downloaded.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let cargo = env::var("CARGO").expect("cargo sets CARGO");
    let metadata = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform"])
        .arg(env::var("TARGET").expect("cargo sets TARGET"))
        .output()
        .expect("cargo metadata starts");
    assert!(metadata.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("metadata has packages");
    let package = packages.iter().find(|each| each["name"] == "moonpool-sim").expect("moonpool-sim is a dependency");
    let manifest = PathBuf::from(package["manifest_path"].as_str().expect("a package has a path"));
    let contract = manifest.with_file_name("tests").join("conformance/contract_storage.rs");
    assert!(contract.is_file(), "{}: expected the storage contract of moonpool-sim", contract.display());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("contract.rs");
    fs::write(out, format!("#[path = {contract:?}]\nmod contract_storage;\n")).expect("OUT_DIR can be written");
    println!("cargo::rerun-if-changed=Cargo.lock");
}
