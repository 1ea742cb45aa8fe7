"""Writes the reference page of the documentation from the program: registries, and every configuration key."""

import sys
from pathlib import Path

from palimpsest import _core
from palimpsest.options import REGISTRIES

_HEAD = """# Reference

This page is written by the program when the documentation is built.
"""


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD, "## Names\n"]
    for kind in REGISTRIES:
        rows = [
            f"| `{name}` | {description.replace('|', '&#124;')} |" for name, description in _core.list_registry(kind)
        ]
        if rows:
            parts.append("\n".join([f"### {kind}\n", "| name | what it is |", "| --- | --- |", *rows, ""]))
    parts.append(
        "## Configuration keys\n\n"
        "What `palimpsest show` prints for the preset `default`: each key with its meaning and where its value comes "
        "from.\n\n"
        f"```toml\n{_core.show('default', None, [])}\n```\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
