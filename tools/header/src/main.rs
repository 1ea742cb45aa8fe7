//! Writes the header of a crate whose functions C calls: `header CRATE FILE`. Ignored: crates without cbindgen.toml.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file] = &arguments[..] else { panic!("expected the folder of a crate and the file of the header") };
    cbindgen::generate(folder).expect("the crate has only items that C has").write_to_file(file);
}
