"""Makes `target/patched`: aisimulate-core 0.13.0 from the registry, in which a device serves the SSD tier.

The tier and its transfers are private to that crate: three lines change, and `transfers.rs` is added. Ignored: the
tests of the crate, which name the replaced type.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MANIFEST = """
[package]
name = "source"
version = "0.1.0"
edition = "2024"
[lib]
path = "Cargo.toml"
[dependencies]
aisimulate-core = "=0.13.0"
"""
CHANGES = {
    "src/engine/mod.rs": ("mod offload_transfer;", "mod offload_transfer;\npub mod transfers;"),
    "src/engine/g3_offload/tier.rs": (
        "use crate::engine::offload_transfer::{self, FairTransfers};",
        "use crate::engine::offload_transfer;\nuse crate::engine::transfers::Transfers as FairTransfers;",
        "        self.transfers.submit(offload_transfer::Job {",
        "        self.transfers.place(pool, &keys, |each| self.entries.contains_key(each));\n"
        "        self.transfers.submit(offload_transfer::Job {",
    ),
}


def _source() -> Path:
    """The folder of the downloaded crate."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Cargo.toml").write_text(MANIFEST, encoding="utf-8")
        command = ("cargo", "metadata", "--format-version=1")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    packages = json.loads(done.stdout)["packages"]
    return Path(next(each["manifest_path"] for each in packages if each["name"] == "aisimulate-core")).parent


def main() -> None:
    """Copies and changes the crate."""
    target = HERE / "target" / "patched"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(_source(), target)
    for path, changes in CHANGES.items():
        text = (target / path).read_text(encoding="utf-8")
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            if text.count(old) != 1:
                sys.exit(f"{path}: {old!r} is there {text.count(old)} times; expected once")
            text = text.replace(old, new)
        (target / path).write_text(text, encoding="utf-8")
        shutil.copystat(__file__, target / path)  # cargo builds a file of an old time only once
    shutil.copy2(HERE / "transfers.rs", target / "src/engine/transfers.rs")


if __name__ == "__main__":
    main()
