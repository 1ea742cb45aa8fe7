"""Compares locked packages with the OSV database of known vulnerabilities; offline, lists the locked packages.

Exit status: 0 if the database knows no vulnerability, 1 if it knows one, 2 if it gave no answer.
"""

import json
import re
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATABASE = "https://api.osv.dev/v1/querybatch"
MOST = 500
"""Packages in one request."""
UNKNOWN = 2
"""Exit status without an answer."""

Package = tuple[str, str, str]
"""Ecosystem, name, version."""


def crates(lock: Path) -> set[Package]:
    """The crates of a lock file from a registry."""
    packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
    return {("crates.io", each["name"], each["version"]) for each in packages if "source" in each}


def python(lock: Path) -> set[Package]:
    """The packages that a requirements file pins."""
    pins = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\\n]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {("PyPI", name, version) for name, version in pins}


def locked() -> list[Package]:
    """All locked packages."""
    found = {each for lock in (ROOT / "Cargo.lock", ROOT / "fuzz/Cargo.lock") for each in crates(lock)}
    found |= {each for lock in (ROOT / "requirements").glob("*.lock") for each in python(lock)}
    return sorted(found)


def weaknesses(packages: list[Package]) -> list[str]:
    """A line for each package with a known vulnerability.

    Raises:
        OSError: the database cannot be reached.
    """
    found = []
    for first in range(0, len(packages), MOST):
        part = packages[first : first + MOST]
        queries = [{"package": {"ecosystem": eco, "name": name}, "version": version} for eco, name, version in part]
        body = json.dumps({"queries": queries}).encode()
        request = urllib.request.Request(DATABASE, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            results = json.load(answer)["results"]
        for (_, name, version), result in zip(part, results, strict=True):
            if known := [each["id"] for each in result.get("vulns", [])]:
                found.append(f"{name} {version}: {', '.join(known)}")
    return found


def main() -> int:
    """Asks the database and prints the answer."""
    packages = locked()
    try:
        found = weaknesses(packages)
    except (OSError, KeyError, ValueError) as error:
        for ecosystem, name, version in packages:
            print(f"{ecosystem:10} {name} {version}")
        print(f"audit: unknown: {len(packages)} packages are locked, and {DATABASE} gave no answer: {error}")
        return UNKNOWN
    for line in found:
        print(line)
    print(f"audit: {len(packages)} packages are locked; vulnerabilities are known of {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
