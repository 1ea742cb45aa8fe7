"""Options that have an effect only beside others: each row of the table is refused alone, and accepted beside them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import palimpsest as ps
from conftest import COMMAND, Command
from palimpsest import states
from palimpsest.cli import cli
from palimpsest.needs import NEEDS, refuse_idle

CONTRACT, UNIT = pytest.mark.contract, pytest.mark.unit

RUNS = {
    "seed": ("--seeds 1..2 --seed 1", "--seed 1"),
    "interval": ("--interval t", "--interval t --seeds 3,4"),
    "operations": ("--operations o.parquet --seeds 1..2", "--operations o.parquet"),
    "start": ("--start spread", "--start spread --seeds 1..2"),
    "at_most": ("--at-most 5", "--at-most 5e6 --until 1%"),
    "operations_window": ("--operations-window 1..9", "--operations-window 1..9 --operations o.parquet"),
    "payload": ("--payload none --check", "--payload tag --check"),
    "state": ("--precondition none --state states", "--state states"),
    "no_cache": ("--precondition none --no-cache", "--no-cache"),
    "format": ("--from csv --columns time=1", "--from csv"),
    "force": ("--force", "--force --out out"),
}
SERVED = {
    "image_sync": ("--image-sync", "--image-sync --image new.pal"),
    "force": ("--force", "--force --out out"),
}
FORMAT = ("t.csv --from csv --columns time=1", "t.csv --from csv")
DRAWN = "table empty -o t.tex", "bars empty -o t.pdf"
PROGRAM = "--out out --run ./a --check ./b"
EXAMPLES: dict[str, dict[str, tuple[str, str]]] = {
    "run": {**RUNS, "against": ("--against a.json --seeds 1..2", "--against a.json")},
    "compare": {
        **RUNS,
        "ftl": ("a:ftl=page --ftl mga", "--ftl mga"),
        "ssd": ("a:ssd=mga-8k b:ftl=page,ssd=mga-16k --ssd default", "a:ssd=mga-8k page --ssd default"),
    },
    "check": {
        "cases": ("page --cases 2 --case cuts:1", "page --cases 2"),
        "seconds": ("page --seconds 2 --case cuts:1", "page --seconds 2"),
    },
    "objects": {"force": ("--force", "--force --out out")},
    "sweep": {
        "state": ("a.toml --engine dask --address tcp://a:1 --state states", "a.toml --state states"),
        "no_cache": ("a.toml --engine dask --address tcp://a:1 --no-cache", "a.toml --no-cache"),
    },
    "figure": {
        "figure": ("cdf empty -o t.pdf --figure iops", "bars empty -o t.pdf --figure iops"),
        "requests": ("bars empty -o t.pdf --class read", "tail empty -o t.pdf --class read"),
        "x": ("bars empty -o t.pdf --x ftl", "bars swept -o t.pdf --x ftl"),
        "by": ("time swept -o t.pdf --by ftl", "cdf swept -o t.pdf --by ftl"),
        "style": (f"{DRAWN[0]} --style acm", f"{DRAWN[1]} --style acm"),
        "columns": (f"{DRAWN[0]} --columns 1", f"{DRAWN[1]} --columns 1"),
        "xlabel": (f"{DRAWN[0]} --xlabel a", f"{DRAWN[1]} --xlabel a"),
        "ylabel": (f"{DRAWN[0]} --ylabel a", f"{DRAWN[1]} --ylabel a"),
        "log": (f"{DRAWN[1]} --log x", f"{DRAWN[1]} --log y"),
    },
    "trace info": {"input_format": FORMAT},
    "trace convert": {"input_format": (f"{FORMAT[0]} o.csv", f"{FORMAT[1]} o.csv")},
    "serve": SERVED,
    "nvme": SERVED,
    "attach": SERVED,
    "mount": {name: (f"{refused} mnt", f"{taken} mnt") for name, (refused, taken) in SERVED.items()},
    "detach": {"names": ("pal0 --all", "pal0")},
    "live": {"port": ("--out lab --port 1", "--port 1"), "no_browser": ("--out lab --no-browser", "--no-browser")},
    "crash": {
        "keep": ("--out out --keep disk", "--out out --keep disk --state ab"),
        "budget": ("--out out --state ab --budget 3", "--out out --budget 3"),
        "minutes": ("--out out --state ab --minutes 3", "--out out --minutes 3"),
        "jobs": ("--out out --state ab --jobs 3", "--out out --jobs 3"),
        "force": ("--out out --state ab --force", f"{PROGRAM} --force"),
        "ssd": ("--out out --ssd mga-8k", f"{PROGRAM} --ssd mga-8k"),
        "ftl": (f"{PROGRAM} --no-drive --ftl page", f"{PROGRAM} --ftl page"),
        "overrides": ("--out out --set a.b=1", f"{PROGRAM} --set a.b=1"),
        "precondition": (f"{PROGRAM} --no-drive --precondition fill:1%", f"{PROGRAM} --precondition fill:1%"),
        "cache": ("--out out --cache none", f"{PROGRAM} --cache none"),
        "size": ("--out out --size 1MiB", f"{PROGRAM} --size 1MiB"),
        "atomic": ("--out out --atomic 512", f"{PROGRAM} --atomic 512"),
        "seed": ("--out out --seed 2", f"{PROGRAM} --seed 2"),
        "no_drive": ("--out out --no-drive", f"{PROGRAM} --no-drive"),
        "mount_options": (f"{PROGRAM} --mount-options a", f"{PROGRAM}{{mount}} --mount-options a"),
    },
}
"""For each row of the table, refused arguments and accepted arguments."""

ALONE = {
    "run": "job ftl ssd workload overrides precondition requests warmup fidelity check seeds skip_bad columns volumes "
    "alone arrivals repeat until fit_memory out as_json state_size strict",
    "compare": "runs jobs slo workload overrides precondition requests warmup fidelity check seeds skip_bad columns "
    "volumes arrivals repeat until fit_memory out as_json state_size strict",
    "objects": "workload cache policy requests ssd ftl overrides fidelity seed format skip_bad arrivals cold jobs out "
    "as_json",
    "import mqsim": "config workload scenario result out force",
    "import femu": "line out force",
    "import simplessd": "config out force",
    "sweep": "file fit_memory out jobs engine address dry_run point_timeout fresh slo state_size as_json strict",
    "leaderboard": "ftl add ssd workload seeds requests reference by out jobs state state_size no_cache as_json",
    "reproduce": "paper quick settings traces seed jobs engine address out as_json",
    "validate": "quick truth jobs out as_json",
    "fit": "measurements start ftl overrides vary hold_out workload capacity precondition evaluations minutes seed "
    "jobs engine address out as_json",
    "report": "folder",
    "figure": "kind results output",
    "rerun": "folder",
    "cite": "",
    "help": "topic",
    "why": "folder as_json",
    "list": "kind as_json",
    "show": "ssd ftl overrides fit_memory",
    "demo": "out",
    "new-layer": "folder kind source",
    "trace info": "workload ssd seed requests columns volumes skip_bad out as_json",
    "trace convert": "source output requests columns volumes skip_bad output_format",
    "trace synth": "workload output ssd seed requests output_format",
    "image info": "image as_json",
    "image check": "image as_json",
    "image compact": "image as_json",
    "serve": "ssd ftl overrides listen page once run image record precondition clock seed timeout out as_json",
    "nvme": "ssd ftl overrides listen nqn hosts block namespaces others advertise page once run image record "
    "precondition clock seed timeout out as_json",
    "attach": "ssd ftl overrides name file_only run listen page image record precondition clock seed out as_json",
    "detach": "everything",
    "mount": "folder ssd ftl overrides scheme page run image record precondition clock seed out as_json",
    "crash": "setup run check out timeout state as_json",
    "check": "layer seed overrides ssd case as_json",
    "live": "out",
    "completion": "shell",
}
"""Options that work beside any others, or that the reading module refuses."""


def commands(group: click.Group, words: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{words}{name} ")
        else:
            yield f"{words}{name}", found


@UNIT
def test_every_option_is_in_the_table_or_acts_alone() -> None:
    for name, command in commands(cli):
        rows = {need.option for need in NEEDS.get(name, ())}
        alone = set(ALONE[name].split())
        assert not rows & alone, name
        assert rows | alone == {each.name for each in command.params}, name
        assert EXAMPLES.get(name, {}).keys() == rows, name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "empty").mkdir()
    (tmp_path / "swept").mkdir()
    (tmp_path / "swept" / "sweep.json").touch()
    (tmp_path / "t.csv").touch()
    (tmp_path / "a.toml").touch()
    monkeypatch.chdir(tmp_path)
    # The option takes effect at parsing, so later tests of this process would use these states.
    monkeypatch.setattr(states, "_keep", lambda *_, **_more: None)
    return tmp_path


ROWS = [(name, option, *both) for name, rows in EXAMPLES.items() for option, both in rows.items()]


def checked(name: str, arguments: str) -> None:
    """Parses the arguments of a command, and checks the options as the command does before the start."""
    context, command = click.Context(cli, info_name="palimpsest"), dict(commands(cli))[name]
    for word in name.split()[:-1]:
        context = click.Context(cli.commands[word], parent=context, info_name=word)
    with command.make_context(name.split()[-1], arguments.split(), parent=context) as made:
        refuse_idle(made)


@UNIT
@pytest.mark.parametrize(("name", "option", "refused", "taken"), ROWS)
def test_an_option_without_effect_is_refused(folder: Path, name: str, option: str, refused: str, taken: str) -> None:
    assert folder
    with pytest.raises(click.BadParameter) as error:
        checked(name, refused)
    assert error.value.param is not None
    assert error.value.param.name == option
    assert "expected " in error.value.message
    checked(name, taken)


@CONTRACT
def test_a_refused_option_ends_with_one_line(palimpsest: Command) -> None:
    done = palimpsest("run", "--seed", "1", "--seeds", "1..2")
    expected = "error: --seed: --seeds names the seed of every run; expected one of them\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@CONTRACT
def test_a_window_beyond_the_end_is_refused_with_figures(palimpsest: Command, tmp_path: Path) -> None:
    file = tmp_path / "o.parquet"
    small = ("--workload", "rw=randread,bs=4k,size=64MiB,n=500", "--precondition", "none", "--json")
    for window in ("501..600", "10s..12s"):
        done = palimpsest("run", *small, "--operations", str(file), "--operations-window", window)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(
            f"error: --operations-window {window}: the run ended before the window, after 500"
        )
        assert done.stdout.startswith("{")
        assert not file.exists()
    known = palimpsest("run", *small, "--requests", "50", "--operations", str(file), "--operations-window", "51..60")
    assert (known.returncode, known.stdout) == (2, "")
    assert "the run has 50 requests" in known.stderr


@CONTRACT
@pytest.mark.parametrize("content", ["", "title = 'a'\n", "[base]\n"])
def test_a_sweep_that_sets_nothing_is_refused(palimpsest: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "a.toml").write_text(content)
    done = palimpsest("sweep", "a.toml", "--dry-run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: a.toml: the sweep sets nothing; expected options")


@CONTRACT
def test_an_exclusion_without_effect_is_refused(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[grid]\nftl = ['page', 'mga']\n[[exclude]]\nftl = 'subpage'\n")
    done = palimpsest("sweep", "a.toml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: a.toml:3: exclude[0]: no point of the grid has these values; expected")


@CONTRACT
def test_a_dry_run_checks_the_engine_and_sees_fresh(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        "[base]\nworkload = 'rw=randread,bs=4k,size=64MiB,n=50'\nprecondition = 'none'\n[grid]\nftl = ['page']\n"
    )
    done = palimpsest("sweep", "a.toml", "--dry-run", "--engine", "dask", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert palimpsest("sweep", "a.toml", "--out", "o", cwd=tmp_path).returncode == 0
    for fresh, finished in (((), True), (("--fresh",), False)):
        again = palimpsest("sweep", "a.toml", "--out", "o", "--dry-run", "--json", *fresh, cwd=tmp_path)
        assert f'"finished": {str(finished).lower()}' in again.stdout


@CONTRACT
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("trace info t.csv --seed 3", "--seed: t.csv is a trace (csv), which reads no drive and no seed; expected"),
        ("trace info t.csv --ssd mga-8k", "--ssd: t.csv is a trace (csv), which reads no drive and no seed; expected"),
        ("reproduce mga --traces empty", "--traces empty: no traces there; expected files that end in .zst, .gz, .csv"),
        ("fit job.toml --start default --capacity 1GiB", "--capacity: these measurements have their own; expected"),
        ("fit job.toml --start default --workload trade", "--workload: these measurements have their own; expected"),
        ("mount empty --ftl page --scheme rr", "--scheme rr: the layer page chooses the channels itself; expected"),
    ],
)
def test_the_module_that_reads_an_option_refuses_it(
    palimpsest: Command, folder: Path, arguments: str, says: str
) -> None:
    (folder / "t.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n")
    (folder / "job.toml").write_text(
        "[[figure]]\nworkload = 'rw=randread,bs=4k'\nmeasure = 'iops'\nvalue = 9\nunit = '1/s'\n"
    )
    done = palimpsest(*arguments.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    assert says in done.stderr


@CONTRACT
@pytest.mark.parametrize("width", ["0", "", "-4", "x", "²"])
def test_a_width_of_zero_columns_is_unknown(palimpsest: Command, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    plain = palimpsest("list", "ftls")
    monkeypatch.setenv("COLUMNS", width)
    done = subprocess.run([COMMAND, "list", "ftls"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, "")


@UNIT
def test_seeds_of_the_api_exclude_one_seed() -> None:
    with pytest.raises(ps.InputError, match="seed: `seeds` names the seed of every run; expected one of them"):
        ps.replicate(seeds=[1, 2], seed=3)
