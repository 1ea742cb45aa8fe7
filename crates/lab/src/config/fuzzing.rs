//! The fuzz target of configurations, shared by the fuzzer and the seeded test `tests/fuzz_config.rs`.

use super::resolve;
use palimpsest_flash::units::parse;

/// Resolves `bytes` as a file (up to the first NUL) with overrides (the lines after it), and parses the file as a
/// quantity.
///
/// # Panics
/// A resolved drive changes when written and read: a bug of the project. No input may cause a panic otherwise.
pub fn fuzz_config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (file, overrides) = text.split_once('\0').unwrap_or((&text, ""));
    let overrides: Vec<String> = overrides.lines().map(str::to_owned).collect();
    let read = |_: &str| Ok(file.to_owned());
    if let Ok(resolved) = resolve("fuzz.toml", None, &overrides, &read) {
        let written = resolved.to_toml();
        let again = resolve("fuzz.toml", None, &[], &|_| Ok(written.clone()))
            .unwrap_or_else(|error| panic!("{error} in a resolved and written drive:\n{written}"));
        assert_eq!(again.drive, resolved.drive, "a drive changed by being written and read:\n{written}");
        assert_eq!(again.to_json(), resolved.to_json());
    }
    let _ = resolve(file, Some(file), &overrides, &read);
    let quantity: String = file.chars().take(80).collect();
    if let Ok(time) = parse::parse_time(&quantity) {
        assert_eq!(parse::parse_time(&parse::format_time(time)), Ok(time));
    }
    if let Ok(ratio) = parse::parse_ratio(&quantity) {
        assert_eq!(parse::parse_ratio(&parse::format_ratio(ratio)), Ok(ratio));
    }
    let _ = (parse::parse_bytes(&quantity), parse::parse_rate(&quantity), parse::parse_energy(&quantity));
}
