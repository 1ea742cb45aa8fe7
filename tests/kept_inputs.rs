//! The inputs of a fuzz target in `fuzz/kept`: each runs at each change. Ignored: inputs that a fuzzer finds
//! (`fuzz/corpus`).

/// The inputs of `target`, by path.
pub fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = format!("{}/../../fuzz/kept/{target}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let files = files.map(|file| file.expect("a file").path());
    let mut kept: Vec<_> =
        files.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect();
    kept.sort();
    assert!(kept.len() >= 5, "{folder} has too few inputs");
    kept
}
