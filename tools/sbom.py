"""Parts of the native module and dependencies of an installation: a CycloneDX document, and licences.

Sources: the resolved graph of `cargo metadata` below `palimpsest-extension` for all targets of a release, without parts
that only builds and tests use, and requirements/runtime.lock. `python tools/sbom.py` writes LICENCES.md, which wheels
and the sdist contain (`license-files` in pyproject.toml). Ignored: C sources inside crates (zstd), which only the texts
of their crates name; licences of Python packages, which are installed beside the wheel and not inside.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
TARGETS = tuple(
    f"{machine}-unknown-linux-{library}" for machine in ("x86_64", "aarch64") for library in ("gnu", "musl")
)
"""The targets of the wheels of `make release`."""
_MODULE = "palimpsest-extension"
_TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


@dataclass(frozen=True)
class Component:
    """A part: `url` in the form of package URLs, licence in SPDX terms; `folder` has the texts, if they are at hand."""

    name: str
    version: str
    url: str
    licence: str | None = None
    folder: Path | None = None


def of_release() -> list[Component]:
    """The components of this project, for all targets."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    platforms = [option for target in TARGETS for option in ("--filter-platform", target)]
    done = subprocess.run([*command, *platforms], cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"release: cargo metadata: {done.stderr.strip()}")
    return components(json.loads(done.stdout), (_ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8"))


def components(metadata: dict[str, Any], lock: str) -> list[Component]:
    """The crates that are linked in, and the packages of a lock file, each sorted by name."""
    return [*sorted(_crates(metadata), key=lambda each: (each.name, each.version)), *_packages(lock)]


def _crates(metadata: dict[str, Any]) -> Iterator[Component]:
    packages = {each["id"]: each for each in metadata["packages"]}
    nodes = {each["id"]: each for each in metadata["resolve"]["nodes"]}
    waiting = [found for found, package in packages.items() if package["name"] == _MODULE]
    seen = set(waiting)
    while waiting:
        found = waiting.pop()
        package = packages[found]
        if package["name"] != _MODULE:
            url = f"pkg:cargo/{package['name']}@{package['version']}"
            yield Component(
                package["name"], package["version"], url, package["license"], Path(package["manifest_path"]).parent
            )
        for used in nodes[found]["deps"]:
            linked = any(kind["kind"] is None for kind in used["dep_kinds"])
            if linked and not _is_macro(packages[used["pkg"]]) and used["pkg"] not in seen:
                seen.add(used["pkg"])
                waiting.append(used["pkg"])


def _is_macro(package: dict[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _packages(lock: str) -> Iterator[Component]:
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE):
        yield Component(name, version, f"pkg:pypi/{name}@{version}")


def document(found: Sequence[Component], version: str) -> dict[str, Any]:
    """The CycloneDX 1.6 document of a release; equal inputs give equal documents, so there is no time or serial."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "name": "palimpsest-ssd", "version": version, "bom-ref": "palimpsest-ssd",
                "purl": f"pkg:pypi/palimpsest-ssd@{version}", "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_entry(each) for each in found],
        "dependencies": [{"ref": "palimpsest-ssd", "dependsOn": [each.url for each in found]}],
    }  # fmt: skip


def _entry(each: Component) -> dict[str, Any]:
    entry = {"type": "library", "name": each.name, "version": each.version, "purl": each.url, "bom-ref": each.url}
    if each.licence is None:
        return entry
    return entry | {"licenses": [{"expression": each.licence.replace("/", " OR ")}]}


def licences(found: Sequence[Component]) -> str:
    """The licences of linked crates, then the texts, each once. Raises SystemExit if one has none."""
    linked = [each for each in found if each.folder is not None]
    if nameless := [each.name for each in linked if not each.licence]:
        raise SystemExit(f"release: {', '.join(nameless)} name no licence; expected SPDX terms in the manifests")
    lines = ["# Licences of the crates that are linked into the native module", ""]
    for licence in sorted({str(each.licence) for each in linked}):
        names = ", ".join(f"{each.name} {each.version}" for each in linked if each.licence == licence)
        lines += [f"- {licence}: {names}"]
    texts: dict[str, list[str]] = {}
    for each in linked:
        assert each.folder is not None
        for path in sorted(each.folder.iterdir()):
            if path.is_file() and _TEXTS.match(path.name):
                texts.setdefault(path.read_text(encoding="utf-8", errors="replace").strip(), []).append(each.name)
    for text, owners in texts.items():
        lines += ["", f"## {', '.join(dict.fromkeys(owners))}", "", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def write_licences(found: Sequence[Component]) -> Path:
    """Writes LICENCES.md of the checkout, for the next wheel or sdist."""
    path = _ROOT / "LICENCES.md"
    path.write_text(licences(found), encoding="utf-8")
    return path


if __name__ == "__main__":
    write_licences(of_release())
