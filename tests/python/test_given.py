"""Values that a command cannot take at their word: options given twice, one seed, bounds below 0, texts as files."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

import palimpsest as ps
from conftest import Command
from palimpsest.cli import cli
from palimpsest.commands import Commands

CONTRACT = pytest.mark.contract
SMALL: dict[str, Any] = {"ssd.channels": 2, "ssd.blocks_per_plane": 24, "part.pages_per_block": 16}
SETS = [f"--set={key}={value}" for key, value in SMALL.items()]
LONG = ",".join(["rw=randwrite,bs=4k,size=50%", *(f"name=a{at},rw=randread,n=10" for at in range(300))])


@CONTRACT
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["figure", "bars", ".", "-o", "a.pdf", "--figure", "A", "--figure", "B"], "--figure: given 2 times"),
        (["compare", "--ftl", "page", "--ftl", "subpage"], "--ftl: given 2 times; expected one option, as --ftl A,B"),
        (["compare", "--slo=wa<3", "--slo", "iops>1"], "--slo: given 2 times; expected one option, as --slo FIGURE"),
        (["run", "--ftl=page", "--ftl", "page"], "--ftl: given 2 times; expected one value for a command"),
        (["run", "--seeds=1..2", "--seeds=3..4"], "--seeds: given 2 times; expected one option, as --seeds 1..5|1,2"),
        (["run", "--workload", "a", "--workload", "b", "--workload", "c"], "--workload: given 3 times"),
        (["trace", "info", "a.csv", "--requests", "1", "--requests", "2"], "--requests: given 2 times"),
        (["check", "page", "--case", "cuts:0", "--case", "cuts:1"], "--case: given 2 times"),
        (["run", "--seeds", "3"], "--seeds: '3' names one seed; expected several, such as 1..3, or --seed 3 for one"),
        (["run", "--seeds", "1..1"], "--seeds: '1..1' names one seed; expected several, such as 1..3, or --seed 1"),
        (["compare", "--slo", "read.p99<-1ms"], "--slo: read.p99<-1ms: latency_ns.read.p99 is never below 0"),
        (["compare", "--slo", "wa<0"], "--slo: wa<0: write_amplification is never below 0; expected a larger bound"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_one_line_says_what_is_wrong(palimpsest: Command, arguments: list[str], says: str) -> None:
    done = palimpsest(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"error: {says}"), done.stderr


def _commands(group: click.Command, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(group, Commands):
        return [(path, group)]
    context = click.Context(group)
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [each for name, one in found if one is not None for each in _commands(one, (*path, name))]


def test_no_command_takes_the_last_of_two_values() -> None:
    checked = 0
    for path, command in _commands(cli, ()):
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag or option.multiple:
                continue
            values = [option.opts[-1], "1"] * 2
            with pytest.raises(click.UsageError, match="given 2 times"):
                command.make_context(path[-1], values)
            checked += 1
    assert checked > 100


def test_options_that_may_be_repeated_still_may(palimpsest: Command) -> None:
    done = palimpsest("show", "--set", "ssd.channels=2", "--set=ssd.blocks_per_plane=64")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "out"
    base = {"ssd": "mga-8k", "workload": "rw=randwrite,bs=8k,n=50", "precondition": "none", **SMALL}
    grid = {"ftl": ["page", "block"], "host.iodepth": [1, 2]}
    ps.sweep({"base": base, "grid": grid}, out=folder, jobs=1)
    return folder


@CONTRACT
@pytest.mark.parametrize("kind", ["heat", "lines", "bars"])
def test_the_axes_of_a_figure_differ(palimpsest: Command, sweep: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "a.pdf"
    done = palimpsest("figure", kind, str(sweep), "-o", str(out), "--x", "ftl", "--by", "ftl")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    says = "error: --by ftl: the x axis has this one, too; expected another of the sweep: host.iodepth\n"
    assert done.stderr == says
    # The other axis is x where only --by names one.
    done = palimpsest("figure", kind, str(sweep), "-o", str(out), "--by", "ftl")
    assert done.returncode == 0, done.stderr
    assert {line.split(",")[0] for line in out.with_suffix(".csv").read_text().splitlines()[1:]} == {"page", "block"}


@CONTRACT
def test_commands_on_a_sweep_speak_of_commands(palimpsest: Command, sweep: Path) -> None:
    for command in ("why", "rerun"):
        done = palimpsest(command, str(sweep))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"{sweep}: this is the folder of a sweep" in done.stderr
        assert "ps." not in done.stderr


@CONTRACT
def test_the_present_folder_has_a_name(palimpsest: Command, sweep: Path, tmp_path: Path) -> None:
    done = palimpsest("report", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "expected a folder that `palimpsest run --out` or `compare --out` wrote" in done.stderr
    assert palimpsest("report", ".", cwd=sweep).returncode == 0
    made = palimpsest("run", "--ssd=mga-8k", *SETS, "--workload=rw=randwrite,bs=8k,n=50", "--precondition=none",
                      "--out=.", cwd=tmp_path)  # fmt: skip
    assert made.returncode == 0, made.stderr
    done = palimpsest("report", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_keys_have_the_same_place_everywhere() -> None:
    load = "rw=randwrite,bs=8k,n=50"
    expected = ps.run(load, ssd=ps.Ssd("mga-8k", **SMALL), precondition="none")
    found = ps.run(load, ssd="mga-8k", precondition="none", **SMALL)
    assert found.config == expected.config
    (one,) = ps.compare(["page"], ssd="mga-8k", workload=load, precondition="none", **SMALL)
    assert one.config["ssd"] == expected.config["ssd"]
    with pytest.raises(ps.InputError, match=r"unknown key ssd\.chanels; did you mean ssd\.channels"):
        ps.run(load, **{"ssd.chanels": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected option 'chanels'"):
        ps.run(load, chanels=1)  # type: ignore[call-arg]


@CONTRACT
@pytest.mark.parametrize("size", [256, 1000, 4095, 4097, 20_000])
def test_a_long_text_is_no_file_name(palimpsest: Command, tmp_path: Path, size: int) -> None:
    properties = "-device femu,devsz_mb=4096,femu_mode=1,secsz=512,secs_per_pg=8,pgs_per_blk=256,blks_per_pl=256"
    line = f"{properties},id=nvme0,serial={'x' * (size - len(properties) - 18)}"
    done = palimpsest("import", "femu", line, cwd=tmp_path)
    assert "File name too long" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "femu.toml").is_file()
    text = LONG[:size].rpartition(",name=")[0]
    run = palimpsest("run", "--ssd=mga-8k", *SETS, "--workload", text, "--precondition=none", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["requests"]
    for command in (
        ["run", "--workload", "x" * size], ["run", "--columns", f"time={'1' * size}", "--workload", "a.csv"],
        ["run", "--ssd", "x" * size], ["trace", "info", "y" * size], ["objects", "--workload", "z" * size],
        ["show", "--set", f"ftl.victim={'v' * size}"], ["report", "r" * size], ["why", "r" * size],
        ["run", "--workload", f"rw=read,n=1,dp_scheme={'d' * size},dataplacement=fdp"],
        ["run", "--workload", f"rw=read,n=1,random_distribution={'d' * size}"],
        ["run", "--alone", "--workload", "rw=read,n=1," + "x" * size], ["run", "--against", "f" * size],
        ["figure", "bars", "s" * size, "-o", "a.pdf"], ["sweep", "s" * size], ["rerun", "r" * size],
    ):  # fmt: skip
        done = palimpsest(*command, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (command[:3], done.stderr[-300:])
        assert "unexpected" not in done.stderr
