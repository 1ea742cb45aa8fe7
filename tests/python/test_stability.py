"""The names that docs/promises.md promises: those in promised.json must exist; new ones may be added.

A release adds its new names to the file: `python tests/python/test_stability.py`. A name may leave the file one release
after the name began to warn.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import palimpsest as ps
from conftest import ROOT
from palimpsest import _core, tables
from palimpsest.cli import cli
from palimpsest.commands import command, echo
from result_schema import RESULT

FILE = Path(__file__).with_name("promised.json")
PAGE = ROOT / "docs" / "promises.md"


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{before}{name} ")
        else:
            yield f"{before}{name}", found


def header_functions() -> list[str]:
    """The functions of `palimpsest.h`, which cbindgen makes from these sources."""
    sources = sorted((ROOT / "crates" / "c" / "src").rglob("*.rs"))
    text = "\n".join(each.read_text(encoding="utf-8") for each in sources)
    return sorted(re.findall(r'extern "C" fn (palimpsest_\w+)', text))


def present() -> dict[str, list[str]]:
    """The promised kinds of names, as they are now."""
    options = [
        f"{name} {option}"
        for name, found in commands(cli)
        for each in found.params
        for option in (each.opts if isinstance(each, click.Option) else [each.human_readable_name])
    ]
    return {
        "commands": sorted(name for name, _ in commands(cli)),
        "options": sorted(options),
        "keys": sorted(key for key, *_ in _core.configuration_keys()),
        "figures": sorted(RESULT),
        "files": sorted(f"{file}: {column}" for file, columns in tables.TABLES.values() for column in columns),
        "python": sorted(ps.__all__),
        "c": header_functions(),
    }


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["commands", "options", "keys", "figures", "files", "python", "c"])
def test_no_promised_name_is_gone(kind: str) -> None:
    promised = json.loads(FILE.read_text(encoding="utf-8"))
    assert set(promised) == set(present())
    names = promised[kind]
    assert len(names) >= 7
    assert names == sorted(set(names))
    gone = sorted(set(names) - set(present()[kind]))
    assert not gone, f"promised {kind} that are gone: {', '.join(gone)}; a name must warn for one release first"


def test_an_option_that_leaves_warns_and_works() -> None:
    @command(short_help="Do nothing.")
    @click.option("--new", is_flag=True)
    @click.option("--old", is_flag=True, deprecated="expected --new")
    def planted(*, new: bool, old: bool) -> None:
        echo(f"new {new or old}")

    done = CliRunner().invoke(planted, ["--old"])
    assert (done.exit_code, done.stdout) == (0, "new True\n")
    assert done.stderr.count("\n") == 1
    assert "'old' is deprecated. expected --new" in done.stderr


def test_the_page_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+|crates/[\w/.]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []


if __name__ == "__main__":
    FILE.write_text(json.dumps(present(), indent=0) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FILE.name}: {sum(map(len, present().values()))} names\n")
