//! Writes copies of the layer `examples/ring`, each with one fault. A fault is a change of the text, so that no second
//! copy of the layer is in the sources; the build fails if the text to change is no longer there exactly once.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// A fault: name, the text in the layer, and the text instead.
const FAULTS: &[(&str, &str, &str)] = &[
    // The page moves while `make_room` cleans, and the merge reads the old place.
    (
        "stale-lookup",
        "            self.make_room(io)?;
            let (mut data, mut after) = (vec![Data::ZERO; self.shape.subpages_per_page as usize], Gate::NONE);
            if u64::from(part.sectors) < self.page_sectors && self.map[lpn] != UNMAPPED {
                after = io.gate();
                data = self.load(io, self.map[lpn], Cause::Rmw, after)?;",
        "            let old = self.map[lpn];
            self.make_room(io)?;
            let (mut data, mut after) = (vec![Data::ZERO; self.shape.subpages_per_page as usize], Gate::NONE);
            if u64::from(part.sectors) < self.page_sectors && old != UNMAPPED {
                after = io.gate();
                data = self.load(io, old, Cause::Rmw, after)?;",
    ),
    ("missing-merge", "if u64::from(part.sectors) < self.page_sectors && self", "if part.sectors == 0 && self"),
    ("missing-deliver", "wanted.iter().for_each(|&lsn| io.deliver(lsn, Data::ZERO));", ""),
    ("double-deliver", "io.deliver(lsn, data);", "io.deliver(lsn, data);\nio.deliver(lsn, data);"),
    // Nothing signals the gate if the victim has no valid page.
    ("open-gate", "after: io.used(moved)", "after: moved"),
    (
        "early-erase",
        "Erase { after: io.used(moved), ..Erase::new(victim, Cause::Gc) }",
        "Erase::new(victim, Cause::Gc)",
    ),
    (
        "early-program",
        "Cause::Host, after, io.request()",
        "Cause::Host, if after == Gate::NONE { after } else { Gate::NONE }, io.request()",
    ),
    (
        "early-completion",
        "Program { after, signal, ..",
        "Program { after, signal: if signal == Gate::NONE { signal } else { Gate::NONE }, ..",
    ),
    ("older-copy", "sequence(io, ppn) > sequence", "sequence(io, ppn) < sequence"),
    ("torn-block", "let _ = io.erase(Erase::new(block, Cause::Gc))?;", ""),
    ("small-reserve", ".reserve) as u32", ".reserve / 3.0) as u32"),
    ("forgotten-trim", "self.map[lpn] = UNMAPPED);", "_ = lpn);"),
    (
        "failed-erase",
        "&& io.erase(erase)? == Outcome::Done",
        "&& matches!(io.erase(erase)?, Outcome::Done | Outcome::Failed)",
    ),
    (
        "failed-program",
        "if io.program(program)? == Outcome::Done",
        "if matches!(io.program(program)?, Outcome::Done | Outcome::Failed)",
    ),
    ("lost-halt", "if io.program(program)? == Outcome::Done", "if io.program(program).is_ok()"),
    ("wrong-index", "&mut data[(piece.lsn % self.shape.subpages_per_page) as usize]", "&mut data[piece.lsn as usize]"),
];

fn main() {
    let source = Path::new("../../examples/ring/src/ring.rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let layer = fs::read_to_string(source).expect("the layer");
    let mut all = String::new();
    let none = [("ring", "", "")];
    for (name, before, after) in none.iter().chain(FAULTS) {
        assert!(before.is_empty() || layer.matches(before).count() == 1, "{name}: the layer has changed");
        let changed = if before.is_empty() { layer.clone() } else { layer.replace(before, after) };
        let changed = changed.replace("\"ring", &format!("\"{name}"));
        let lines: Vec<&str> = changed.lines().filter(|line| !line.starts_with("//!")).collect();
        writeln!(all, "mod {} {{\n{}\n}}", name.replace('-', "_"), lines.join("\n")).expect("a text");
    }
    let entries = none.iter().chain(FAULTS).map(|(name, ..)| format!("{}::ENTRY", name.replace('-', "_")));
    let entries: Vec<String> = entries.collect();
    writeln!(all, "static LAYERS: &[palimpsest_lab::ftl::Entry] = &[{}];", entries.join(", ")).expect("a text");
    let folder = env::var_os("OUT_DIR").expect("a folder");
    fs::write(Path::new(&folder).join("planted.rs"), all).expect("a file");
}
