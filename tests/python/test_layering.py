"""The architecture as a test: allowed dependencies, no clocks and sockets in the core, limits on files and functions.

ARCHITECTURE.md gives the reasons. The checks read the sources as text, without code under `#[cfg(test)]` and without
comments. One test is one rule and lists every offender, a line each.
"""

import ast
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CRATES = ROOT / "crates"
_ALL = (path for name in ("crates", "examples") for path in (ROOT / name).rglob("*.rs"))
RUST = sorted(path for path in _ALL if "target" not in path.relative_to(ROOT).parts)
PYTHON = sorted(path for name in ("python", "tests", "tools") for path in (ROOT / name).rglob("*.py"))

CORE = {
    "flash": "error prefetch past_caches pieces huge_pages state rng units keys geometry command nand",
    "ftl-api": "placement zones plan",
    "workload": "",
    "wom": "",
    "ftl": "extent free gaps log maps rebuild hybrid layers",
    "layer": "",
    "sim": "",
    "fs": "",
    "lab": "layers metrics config run",
    "drive": "",
    "check": (
        "story catch drives workload zones model room file_systems faults sequences power timed idle kept trial words "
        "shrink kinds digest scale shapes check"
    ),
}
"""Crates without I/O, threads and clocks, lowest first; with their modules, lowest first, if those have an order."""

DEPENDENCIES = {
    "flash": "",
    "ftl-api": "flash",
    "workload": "flash",
    "wom": "flash",
    "ftl": "flash ftl-api wom",
    "sim": "flash ftl-api",
    "fs": "flash ftl-api ftl",
    "layer": "flash ftl-api wom ftl",
    "lab": "flash ftl-api workload wom ftl layer sim fs",
    "extension": "py",
    "py": "lab server drive check",
    "server": "lab",
    "drive": "lab",
    "check": "lab",
    "c": "drive",
    "live": "lab drive",
}
"""Dependencies of each crate of ours."""

FORBIDDEN = {
    "std::fs": "the core does no I/O",
    "std::net": "the core does no I/O",
    "std::thread": "the core starts no threads",
    "std::time::Instant": "the core has no wall clock",
    "std::time::SystemTime": "the core has no wall clock",
}

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80


def without_comments(text: str) -> str:
    """Rust without line comments and block comments; string literals stay unchanged."""
    literal = r'"(?:\\.|[^"\\])*"|\br(?P<hashes>\#*)".*?"(?P=hashes)|\'(?:\\.|[^\'\\])\''
    comment = r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    return re.sub(f"{literal}|{comment}", lambda m: "\n" * m[0].count("\n") if m["comment"] else m[0], text, flags=re.S)


def without_tests(text: str) -> str:
    """Rust without the items under `#[cfg(test)]`; rustfmt's indentation shows the end of each."""
    pattern = r"^([ \t]*)#\[cfg\(test\)\]\n(?:\1#\[[^\n]*\n)*\1[^\n]*(?:;|\{\})\n|^([ \t]*)#\[cfg\(test\)\]\n.*?^\2\}\n"
    return re.sub(pattern, "", text + "\n", flags=re.S | re.M)


def source(path: Path) -> str:
    return without_tests(without_comments(path.read_text(encoding="utf-8")))


def crate_of(path: Path) -> str:
    """The crate of a file under `crates`; "" for other files."""
    return path.relative_to(CRATES).parts[0] if path.is_relative_to(CRATES) else ""


def module_of(path: Path) -> str:
    return path.relative_to(CRATES / crate_of(path) / "src").parts[0].removesuffix(".rs")


def flat_uses(code: str) -> Iterator[str]:
    """Every path of every `use`, groups written out: `a::{b, c::d}` gives `a::b` and `a::c::d`."""
    for use in re.findall(r"\buse\s+([^;]+);", code):
        yield from _expand(re.sub(r"\s+", "", use))


def _expand(path: str) -> Iterator[str]:
    brace = path.find("{")
    if brace < 0:
        yield path
        return
    depth, start = 0, brace + 1
    for position in range(brace, len(path)):
        letter = path[position]
        depth += (letter == "{") - (letter == "}")
        if depth == 0 or (depth == 1 and letter == ","):
            if position > start:
                yield from _expand(path[:brace] + path[start:position])
            start = position + 1
            if depth == 0:
                return


def modules_used(path: Path) -> set[str]:
    """Top-level modules of the same crate that a file names, through `crate::` or `super::`."""
    code = source(path)
    depth = len(path.relative_to(CRATES / crate_of(path) / "src").parts)
    paths = [*flat_uses(code), *re.findall(r"\b(?:crate|super)(?:::\w+)+", code)]
    used = set()
    for each in paths:
        match = re.match(r"(crate::|(?:super::)+)(\w+)", each)
        if match and (match[1] == "crate::" or match[1].count("super") == depth):
            used.add(match[2])
    return used


def declared_for_tests(path: Path) -> set[Path]:
    """Possible paths of the files that a file declares by `#[cfg(test)] mod name;`."""
    code = without_comments(path.read_text(encoding="utf-8"))
    names = re.findall(r"#\[cfg\(test\)\]\n(?:\s*#\[[^\n]*\n)*\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", code)
    folder = path.parent if path.name in ("lib.rs", "mod.rs", "main.rs") else path.with_suffix("")
    return {folder / f"{name}.rs" for name in names}


TEST_FILES = {file for path in RUST for file in declared_for_tests(path)}
SHIPPED = [path for path in RUST if crate_of(path) in CORE and "src" in path.parts and path not in TEST_FILES]
CORE_FILES = [path for path in SHIPPED if path.name != "lib.rs"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def no_offenders(rule: str, offenders: Iterable[str]) -> None:
    """Fails with the rule and every offender, sorted."""
    if found := sorted(offenders):
        pytest.fail("\n".join([f"{rule}:", *found]), pytrace=False)


def test_the_sources_are_found() -> None:
    """Fails if a rule finds no file, because it would always hold."""
    assert len(SHIPPED) > 50
    assert len(RUST) > len(SHIPPED)
    assert len(PYTHON) > 50
    assert any(modules_used(path) for path in CORE_FILES)


def test_each_crate_depends_on_what_is_below() -> None:
    crates = {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in CRATES.glob("*/Cargo.toml")}
    assert set(crates) == set(DEPENDENCIES), "say what a new crate may use here, and in ARCHITECTURE.md"
    no_offenders(
        "a crate uses another than DEPENDENCIES says",
        (
            f"{crate}: {sorted(used)}"
            for crate, manifest in crates.items()
            if (used := {each.removeprefix("palimpsest-") for each in manifest["dependencies"] if "palimpsest" in each})
            != set(DEPENDENCIES[crate].split())
        ),
    )


def test_modules_use_only_what_lies_below() -> None:
    order = {crate: modules.split() for crate, modules in CORE.items() if modules}
    files = [path for path in CORE_FILES if crate_of(path) in order]
    missing = {f"{crate_of(path)}: {module_of(path)}" for path in files if module_of(path) not in order[crate_of(path)]}
    no_offenders("a module has no place in CORE", missing)
    no_offenders(
        "a module uses one above it",
        (
            f"{name(path)} uses {used}"
            for path in files
            for used in modules_used(path)
            if used in (own := order[crate_of(path)]) and own.index(used) > own.index(module_of(path))
        ),
    )


def used_files(path: Path, files: dict[tuple[str, ...], Path]) -> set[Path]:
    """The files of the same crate that a file names through `crate::` or `super::`, its own folders' files apart."""
    own = parts_of(path)
    code = source(path)
    used = set()
    for each in [*flat_uses(code), *re.findall(r"\b(?:crate|super)(?:::\w+)+", code)]:
        match = re.match(r"(crate::|(?:super::)+)([\w:]+)", each)
        if match is None:
            continue
        base = () if match[1] == "crate::" else own[: len(own) - match[1].count("super")]
        named = (*base, *match[2].split("::"))
        found = next((named[:length] for length in range(len(named), 0, -1) if named[:length] in files), own)
        if found[: len(own)] != own and own[: len(found)] != found:
            used.add(files[found])
    return used


def parts_of(path: Path) -> tuple[str, ...]:
    return path.relative_to(CRATES / crate_of(path) / "src").with_suffix("").parts


def circles(uses: dict[Path, set[Path]]) -> set[frozenset[Path]]:
    """The sets of files that reach each other."""
    reached = {path: set(used) for path, used in uses.items()}
    for middle in uses:
        for path in uses:
            if middle in reached[path]:
                reached[path] |= reached[middle]
    in_circles = [path for path in uses if path in reached[path]]
    return {frozenset(two for two in uses if two in reached[one] and one in reached[two]) for one in in_circles}


def test_files_in_a_circle_say_why() -> None:
    """Files of a crate that use each other say so in the head of one of them."""
    found: set[frozenset[Path]] = set()
    for crate in CORE:
        files = {parts_of(path): path for path in SHIPPED if crate_of(path) == crate and path.name != "lib.rs"}
        found |= circles({path: used_files(path, files) for path in files.values()})
    no_offenders(
        'files use each other in a circle; expected another order, or "use each other: .." in the head of one',
        (
            ", ".join(sorted(map(name, circle)))
            for circle in found
            if not any("use each other" in head_of(path) for path in circle)
        ),
    )


def test_a_layer_sees_at_most_25_functions_of_io() -> None:
    """Functions for one kind of caller belong to a trait of that side, such as `PowerIo`."""
    bodies = (
        body
        for path in SHIPPED
        for body in re.findall(r"^impl Io \{\n(.*?)^\}", source(path), re.DOTALL | re.MULTILINE)
    )
    functions = [found for body in bodies for found in re.findall(r"^    pub fn (\w+)", body, re.MULTILINE)]
    assert {"read", "program", "erase"} <= set(functions)
    assert len(functions) <= 25, sorted(functions)


def test_the_parts_of_a_drive_have_at_most_15_fields() -> None:
    counted = {}
    for path in SHIPPED:
        for word, body in re.findall(
            r"^pub struct (Drive|Engine|Session|Nand)\b[^{;]*\{\n(.*?)^\}", source(path), re.DOTALL | re.MULTILINE
        ):
            counted[word] = len(re.findall(r"^    (?:pub(?:\([^)]*\))? )?\w+:", body, re.MULTILINE))
    assert set(counted) == {"Drive", "Engine", "Session", "Nand"}
    assert all(fields <= 15 for fields in counted.values()), counted


def head_of(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("//!").strip() for line in itertools.takewhile(lambda line: "//!" in line, lines))


def registered() -> dict[str, Path]:
    """Names in the registries (layers, policies, classifiers, schemes, codes, trace formats), each with its file."""
    kinds = "Entry|Scheme|CodeEntry|Policy|Classifier|Format"
    line = re.compile(
        rf'(?:{kinds}) =\s*(?:{kinds}) \{{\s*name: "([^"]+)"|file_system!\(\s*"([^"]+)"|const NAME.* = "([^"]+)"'
    )
    return {word: path for path in SHIPPED for found in line.findall(source(path)) for word in found if word}


def test_no_variant_is_named_outside_its_file() -> None:
    """Code that depends on a variant must be in the variant's entry: no other code may compare names."""
    names = registered()
    assert {"page", "mga", "llh", "greedy", "windowed", "recency", "rr", "polar", "msr"} <= set(names)
    asked = re.compile(r'[=!]= "([^"]+)"|"([^"]+)"\s*(?:=>|\|)')
    no_offenders(
        "a variant is asked for by its name",
        (
            f"{name(path)}: {word}"
            for path in SHIPPED
            for match in asked.findall(source(path))
            for word in match
            if word in names and path != names[word] and not is_a_word_of_its_own(path, word)
        ),
    )


def is_a_word_of_its_own(path: Path, word: str) -> bool:
    """Whether a file uses a word that is also the name of a variant: units of numbers, fields of traces."""
    return (path.name, word) in {("blocks.rs", "block")}


def test_core_has_no_clock_files_sockets_or_threads() -> None:
    no_offenders(
        "the core names what it must not",
        (
            f"{name(path)}: {each}: {why}"
            for path in SHIPPED
            for each in std_paths(path)
            for forbidden, why in FORBIDDEN.items()
            if each == forbidden or each.startswith(f"{forbidden}::")
        ),
    )


def std_paths(path: Path) -> set[str]:
    """Paths of `std` that a file names, in `use` or inline."""
    code = source(path)
    return {*flat_uses(code), *re.findall(r"\bstd(?:::\w+)+", code)}


def test_rust_files_say_what_they_are() -> None:
    silent = (name(path) for path in RUST if not path.read_text(encoding="utf-8").startswith("//!"))
    no_offenders("the file does not begin with what it models", silent)


def test_crates_with_doc_tests_run_them() -> None:
    """A crate without examples must set `doctest = false`, because the search for doc tests takes a second."""
    wrong = []
    for crate in sorted(CRATES.iterdir()):
        runs = tomllib.loads((crate / "Cargo.toml").read_text()).get("lib", {}).get("doctest", True)
        if runs != any(has_doc_test(path.read_text(encoding="utf-8")) for path in (crate / "src").rglob("*.rs")):
            wrong.append(f"{crate.name}: doctest = {str(runs).lower()}")
    no_offenders("`doctest` is not what the comments of the crate hold", wrong)


def has_doc_test(text: str) -> bool:
    """Whether comments of this source hold code, or include documents with code."""
    openings = re.findall(r"^\s*//[/!]\s*```(.*)$", text, re.M)[::2]
    code = {"", "rust", "no_run", "should_panic", "compile_fail"}
    return "doc = include_str!" in text or any(set(re.split(r"[,\s]+", fence.strip())) <= code for fence in openings)


def test_doc_tests_are_found() -> None:
    assert has_doc_test("/// ```\n/// let x = 1;\n/// ```\n")
    assert has_doc_test('#[doc = include_str!("../../../docs/guide.md")]\n')
    assert has_doc_test("    //! ```text\n    //! a picture\n    //! ```\n    //! ```rust,no_run\n    //! ```\n")
    assert not has_doc_test("/// ```text\n/// a picture\n/// ```\n")
    assert not has_doc_test("// No example.\n")


def test_files_have_a_size() -> None:
    sizes = ((name(path), len(path.read_text(encoding="utf-8").splitlines())) for path in [*RUST, *PYTHON])
    no_offenders(
        f"a file has more than {MAX_FILE_LINES} lines",
        (f"{file}: {lines}" for file, lines in sizes if lines > MAX_FILE_LINES),
    )


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions and their lines, by rustfmt's indentation."""
    start = re.compile(r'^([ ]*)(?:pub(?:\([^)]*\))? )?(?:(?:const|async|unsafe|extern "C") )*fn (\w+)')
    lines = without_comments(text).splitlines()
    for index, line in enumerate(lines):
        match = start.match(line)
        if match and not line.rstrip().endswith((";", "}")):
            end = next(
                (at for at in range(index + 1, len(lines)) if lines[at].startswith((match[1] + "}", match[1] + ");"))),
                index,
            )
            yield match[2], end - index + 1


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def functions(path: Path) -> Iterator[tuple[str, int]]:
    text = path.read_text(encoding="utf-8")
    return rust_functions(text) if path.suffix == ".rs" else python_functions(text)


def test_functions_have_a_size() -> None:
    no_offenders(
        f"a function has more than {MAX_FUNCTION_LINES} lines",
        (
            f"{name(path)}: {function} has {lines}"
            for path in [*RUST, *PYTHON]
            for function, lines in functions(path)
            if lines > MAX_FUNCTION_LINES
        ),
    )


def test_groups_are_written_out() -> None:
    uses = list(flat_uses("use a::{b, c::{d, e as f}};\nuse crate::x::Y;\npub(crate) use std::{fs, time::Instant};"))
    assert uses == ["a::b", "a::c::d", "a::c::easf", "crate::x::Y", "std::fs", "std::time::Instant"]


def test_tests_are_left_out() -> None:
    code = "use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n    fn f() {\n    }\n}\nuse crate::c;\n"
    assert without_tests(code).split() == ["use", "crate::a;", "use", "crate::c;"]
    assert without_tests("#[cfg(test)]\nmod shadow;\nuse crate::c;\n").split() == ["use", "crate::c;"]


def test_function_lengths() -> None:
    code = (
        "impl A {\n    pub fn f(&self) -> u32 {\n        if a {\n        }\n        1\n    }\n}\nfn g();\nfn h() {}\n"
    )
    assert list(rust_functions(code)) == [("f", 5)]


def test_comments_are_separated_from_literals() -> None:
    assert without_comments('a(\'"\'); // b\nc("//", r#"//"#); /* d */e').split() == [
        "a('\"');",
        'c("//",',
        'r#"//"#);',
        "e",
    ]


def test_a_guarded_layer_passes_on_every_call() -> None:
    """A method with a default would otherwise lose the code of a plug-in."""
    traits = {"Ftl": CRATES / "ftl-api/src/lib.rs", "State": CRATES / "flash/src/state.rs"}
    guard = source(CRATES / "layer/src/plugin/guard.rs")
    for name, path in traits.items():
        declared = re.search(rf"^pub trait {name}\b.*?^}}", source(path), re.M | re.S)
        passed_on = re.search(rf"^impl {name} for Guarded .*?^}}", guard, re.M | re.S)
        assert declared
        assert passed_on
        methods = re.findall(r"^    fn (\w+)\(&", declared[0], re.M)
        assert len(methods) > 2
        assert set(re.findall(r"^    fn (\w+)", passed_on[0], re.M)) == set(methods)
