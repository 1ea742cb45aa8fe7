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

/// A fault of several changes: name, and each text in the layer with the text instead.
type Changes = (&'static str, &'static [(&'static str, &'static str)]);

/// Faults that only some shapes have: a page that cleaning loses.
const OF_SHAPES: &[Changes] = &[
    ("lost-of-planes", &[(MOVES, "if self.shape.planes_per_die > 3 && ppn % 4 == 3 { continue };\n")]),
    // A segment of several planes is a setting of the layer, off by default.
    (
        "lost-in-segment",
        &[
            (MOVES, "if self.planes > 1 && ppn % 4 == 3 { continue };\n"),
            ("    reserve: u32,", "    planes: u32,\n    reserve: u32,"),
            (
                "            reserve: (f64",
                "            planes: RingSettings::new(&blueprint.settings).planes,\n            reserve: (f64",
            ),
            (
                "    group KEYS {",
                "    group KEYS {\n        /// planes of a segment\n        planes: u32 = \"ring.planes\", \
                 Count { min: 1, max: 4 }, \"1\";",
            ),
        ],
    ),
];

/// Before this text, a page may be left out of cleaning.
const MOVES: &str = "            let Some(lpn) = self.holds(io.nand(), ppn).filter(|&lpn| self.map[lpn] == ppn) else";

fn main() {
    let source = Path::new("../../examples/ring/src/ring.rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let layer = fs::read_to_string(source).expect("the layer");
    let mut all = String::new();
    let single = FAULTS.iter().map(|&(name, before, after)| (name, vec![(before, after.to_owned())]));
    let of_shapes = OF_SHAPES.iter().map(|(name, changes)| {
        let whole = |&(before, after): &(&'static str, &str)| match before {
            MOVES => (before, format!("{after}{before}")),
            _ => (before, after.to_owned()),
        };
        (*name, changes.iter().map(whole).collect())
    });
    let all_faults: Vec<(&str, Vec<(&str, String)>)> =
        [("ring", Vec::new())].into_iter().chain(single).chain(of_shapes).collect();
    for (name, changes) in &all_faults {
        let changed = changes.iter().fold(layer.clone(), |layer, (before, after)| {
            assert!(layer.matches(before).count() == 1, "{name}: the layer has changed: {before}");
            layer.replace(before, after)
        });
        let changed = changed.replace("\"ring", &format!("\"{name}"));
        let lines: Vec<&str> = changed.lines().filter(|line| !line.starts_with("//!")).collect();
        writeln!(all, "mod {} {{\n{}\n}}", name.replace('-', "_"), lines.join("\n")).expect("a text");
    }
    let entries = all_faults.iter().map(|(name, _)| format!("{}::ENTRY", name.replace('-', "_")));
    let entries: Vec<String> = entries.collect();
    writeln!(all, "static LAYERS: &[palimpsest_lab::ftl::Entry] = &[{}];", entries.join(", ")).expect("a text");
    let folder = env::var_os("OUT_DIR").expect("a folder");
    fs::write(Path::new(&folder).join("planted.rs"), all).expect("a file");
}
