"""Examples outside the workspace: simulators of others on a drive of `palimpsest-drive`, with their own packages."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def _cargo(crate: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    keys = {**os.environ, "CARGO_TARGET_DIR": f"{target}/examples"}
    return subprocess.run(("cargo", *arguments), cwd=crate, env=keys, capture_output=True, text=True, check=False)


def _need_packages(crate: Path) -> None:
    """Downloads the packages that the committed lock file names; skips if there is no registry."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    fetched = _cargo(crate, "fetch", "--locked")
    if fetched.returncode != 0:
        reason = fetched.stderr.strip()
        assert "lock file" not in reason, reason
        pytest.skip(f"needs the packages of {crate.name}: {reason.splitlines()[0]}")


@pytest.mark.contract
@pytest.mark.long
def test_moonpool_runs_on_simulated_drives() -> None:
    """The storage contract that moonpool ships, and a collection that stalls one disk."""
    crate = EXAMPLES / "moonpool"
    _need_packages(crate)
    done = _cargo(crate, "test", "--offline", "--locked")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("the_storage_contract_of_moonpool_holds", "a_collection_stalls_all_files_of_one_disk"):
        assert f"test {name} ... ok" in done.stdout


@pytest.mark.contract
@pytest.mark.long
def test_kv_fetches_wait_for_collections() -> None:
    """The SSD tier of aisimulate-core, in a patched copy, on a bandwidth and on two drives."""
    crate = EXAMPLES / "aisimulate"
    patched = subprocess.run((sys.executable, crate / "patch.py"), capture_output=True, text=True, check=False)
    if patched.returncode != 0:
        assert "expected once" not in patched.stderr, patched.stderr
        pytest.skip(f"needs the packages of aisimulate: {patched.stderr.strip().splitlines()[0]}")
    _need_packages(crate)
    done = _cargo(crate, "run", "--offline", "--locked", "--quiet")
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[1:]]
    found = {name: [float(field) for field in fields] for name, *fields in rows}
    fetches, evictions, none, _, roomy = found["drive, roomy"]
    _, _, collections, _, full = found["drive, collecting"]
    assert fetches > 600
    assert evictions > 20_000
    assert none == 0
    assert collections > 5000
    assert full > 1.5 * roomy
