"""A matrix of options by outputs: each cell is right, or refused by name.

`OPTIONS` are the rows, `REFUSED` the cells without an output; each other cell is checked by its output's function. Runs
are tiny, so that their figures mean nothing: a cell is right if it has every contender once, by its label.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

import palimpsest as ps
from palimpsest import engine, outputs
from palimpsest.cli import cli
from palimpsest.replicates import Replicates

pytestmark = pytest.mark.contract

DRIVE = ("--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=24", "--precondition", "fill:60%", "--warmup", "0")
WORK = ("--workload", "rw=randrw,bs=4k,size=8MiB,n=600,iodepth=4")
TWO = ("--workload", "bs=4k,size=4MiB,n=300,iodepth=4,name=reader,rw=randread,name=writer,rw=randwrite")
LAYERS = ("--ftl", "page,mga")
SEEDS = ("--seeds", "1..2")
SLOWEST = ("--operations", "slowest:5")


PLAIN: dict[str, Any] = {"workload": WORK[1], "ssd": "mga-8k", "precondition": "none", "ssd.blocks_per_plane": 24}


@dataclass(frozen=True)
class Option:
    """A command, the labels of its contenders, and the facts that outputs show."""

    command: tuple[str, ...]
    labels: tuple[str, ...]
    seeds: int = 1
    shown: str = "IOPS|throughput"
    explained: bool = False


OPTIONS = {
    "run": Option(("run", *WORK, "--ftl", "page"), ("page",)),
    "compare": Option(("compare", *WORK, *LAYERS), ("page", "mga")),
    "run, seeds": Option(("run", *WORK, *SEEDS), ("mga",), 2),
    "seeds": Option(("compare", *WORK, *LAYERS, *SEEDS), ("page", "mga"), 2),
    "three, seeds": Option(("compare", *WORK, "--ftl", "page,mga,subpage", *SEEDS), ("page", "mga", "subpage"), 2),
    "alone": Option(("run", *TWO, "--ftl", "page", "--alone"), ("page",), shown="fairness"),
    "slo": Option(("compare", *WORK, *LAYERS, "--slo", "wa<9"), ("page", "mga"), shown="write amplification < 9"),
    "operations": Option(("compare", *WORK, *LAYERS, *SLOWEST), ("page", "mga"), explained=True),
    "operations, seeds": Option(("compare", *WORK, *LAYERS, *SEEDS, *SLOWEST), ("page", "mga"), 2, explained=True),
    "tenants": Option(("compare", *TWO, *LAYERS), ("page", "mga"), shown="tenant|writer|by job"),
    "tenants, seeds": Option(("compare", *TWO, *LAYERS, *SEEDS), ("page", "mga"), 2),
    "interrupted": Option(("run", *WORK, "--ftl", "page"), ("page",), shown="interrupted|IOPS|throughput"),
    "interrupted, seeds": Option(("compare", *WORK, *LAYERS, "--seeds", "1..9"), ("page", "mga"), 2),
}
"""Rows of the matrix. `--until` has a row once the option takes a width of an interval."""

NEVER = {
    "alone, seeds": (("run", *TWO, "--alone", *SEEDS), "--alone: with --seeds each run would need its own"),
    "slo, seeds": (("compare", *WORK, "--slo", "wa<9", *SEEDS), "conditions are those of one seed; expected no"),
    "timeline, seeds": (("run", *WORK, "--operations", "o.parquet", *SEEDS), "expected slowest:N, or no --seeds"),
}  # fmt: skip
"""Combinations that no command takes, and the refusal."""

KINDS = ("cdf", "tail", "bars", "lines", "heat", "time", "table")
OUTPUTS = ("terminal", "json", "page", *KINDS, "load", "notebook", "why")
INTERRUPT_AFTER = 5
"""Runs that end before Ctrl-C: two seeds of both layers, and the third seed of one."""


def refusal(option: Option, output: str) -> str | None:
    """The message of a cell that has no output; None for others."""
    if output in ("lines", "heat"):
        return rf"figure {output}: expected the folder of a sweep"
    if output == "time" and option.seeds > 1:
        return r"figure time: windows are those of one seed; expected the folder of one, such as .*/seed-1$"
    if output == "why" and not option.explained:
        return r"has no parts of response times; expected a result of `palimpsest run --operations slowest:20"
    return None


@dataclass(frozen=True)
class Made:
    """The outputs of a command: its text, its JSON, and its folder."""

    option: Option
    text: str
    data: dict[str, Any]
    folder: Path


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Standard output of a command, in this process, because a separate process would load the program again."""
    capsys.readouterr()
    cli.main([*arguments], standalone_mode=False)
    return capsys.readouterr().out


def command(name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Made:
    """Runs the command of a row twice: for its text and folder, and for its JSON."""
    option, texts = OPTIONS[name], []
    first = engine.run_one
    for more in (("--out", str(folder)), ("--json",)):
        arguments = [*option.command[:1], *DRIVE, *option.command[1:], *more]
        if name != "interrupted, seeds":
            texts.append(called(capsys, *arguments))
            continue
        ended: list[object] = []

        def one(*given: Any, ended: list[object] = ended, **options: Any) -> Any:
            if len(ended) == INTERRUPT_AFTER:
                raise KeyboardInterrupt
            ended.append(given)
            return first(*given, **options)

        with monkeypatch.context() as patched:
            patched.setattr(engine, "run_one", one)
            capsys.readouterr()
            with pytest.raises((KeyboardInterrupt, click.Abort)):
                cli.main([*arguments, "--jobs", "1"], standalone_mode=False)
        read = capsys.readouterr()
        assert "2 of 9 seeds finished in every run" in read.err
        texts.append(read.out)
    text, data = texts[0], json.loads(texts[1])
    if name == "interrupted":
        result = ps.load(folder)
        assert isinstance(result, ps.Result)
        data = result.to_dict() | {"interrupted": True}
        outputs.save([ps.Result(data, result.series, result.configuration)], folder, together=False)
    return Made(option, text, data, folder)


def check_terminal(made: Made, _capsys: Any) -> None:
    assert re.search(made.option.shown, made.text)
    assert all(label in made.text for label in made.option.labels)
    assert (f"mean of {made.option.seeds} seeds" in made.text) == (made.option.seeds > 1)
    if len(made.option.labels) > 1:
        assert f"{made.option.labels[1]} vs {made.option.labels[0]}: " in made.text


def check_json(made: Made, _capsys: Any) -> None:
    runs = made.data.get("runs", [made.data])
    labels = [run.get("label") or run["ftl"] for run in runs]
    assert labels == [label for label in made.option.labels for _ in range(made.option.seeds)]
    if made.option.seeds > 1:
        assert [run["seed"] for run in runs] == made.data["seeds"] * len(made.option.labels)
        assert [group["label"] for group in made.data["groups"]] == [*made.option.labels]
        pairs = len(made.option.labels) * (len(made.option.labels) - 1) // 2
        assert all(len(each["pairs"]) == pairs for each in made.data["verdicts"])
        assert ("write_amplification" in {each["figure"] for each in made.data["verdicts"]}) == (pairs > 0)
    if made.option.shown == "fairness":
        assert made.data["tenancy"]["fairness"]["jain"] > 0


def check_page(made: Made, capsys: Any) -> None:
    assert called(capsys, "report", str(made.folder)).strip() == str(made.folder / "report.html")
    page = (made.folder / "report.html").read_text()
    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert title[1].startswith(f"{', '.join(made.option.labels)} on mga-8k")
    heads = re.search(r'<table class="figures[^"]*">.*?</tr>', page, re.DOTALL)
    assert heads is not None
    assert re.findall("<th[^>]*>([^<]+)</th>", heads[0].replace("ratio", "")) == [*made.option.labels]
    links = re.findall('href="([^"]+/report.html)"', page)
    assert links == [
        f"{label}/seed-{seed}/report.html"
        for label in made.option.labels
        for seed in range(1, made.option.seeds + 1)
        if made.option.seeds > 1
    ]
    assert all((made.folder / link).is_file() for link in links)
    assert ("±" in heads.string) or made.option.seeds == 1


def check_load(made: Made, _capsys: Any) -> None:
    found = ps.load(made.folder)
    if made.option.seeds > 1:
        assert isinstance(found, Replicates)
        assert (found.labels, len(found.seeds)) == ([*made.option.labels], made.option.seeds)
        assert found.to_polars().filter(figure="throughput.iops")["number"].to_list() == [made.option.seeds] * len(
            made.option.labels
        )
        assert found.to_polars("runs").select("label", "seed").height == len(found.results)
        assert found.to_polars("time")["label"].unique(maintain_order=True).to_list() == found.labels
        assert found.plot.cdf() is not None
    else:
        assert not isinstance(found, Replicates)
        results = [found] if isinstance(found, ps.Result) else list(found)
        assert [result.label for result in results] == [*made.option.labels]


def check_notebook(made: Made, _capsys: Any) -> None:
    found = ps.load(made.folder)
    page = found._repr_html_()
    heads = re.search(r'<table class="figures[^"]*">.*?</tr>', page, re.DOTALL)
    assert heads is not None
    assert re.findall("<th[^>]*>([^<]+)</th>", heads[0].replace("ratio", "")) == [*made.option.labels]
    assert "±" in page or made.option.seeds == 1
    console = Console(file=io.StringIO(), width=100)
    console.print(found)
    assert "-seed-" not in page + console.file.getvalue()  # type: ignore[attr-defined]


def check_why(made: Made, capsys: Any) -> None:
    parts = json.loads(called(capsys, "why", str(made.folder), "--json"))
    assert [*parts] == [*made.option.labels]
    assert "difference from page" in called(capsys, "why", str(made.folder))


def check_figure(kind: str, made: Made, capsys: Any) -> None:
    file = made.folder.parent / f"{made.folder.name}.{'tex' if kind == 'table' else 'svg'}"
    figure = ("--figure", "throughput.iops") if kind == "bars" else ()
    called(capsys, "figure", kind, str(made.folder), "-o", str(file), *figure)
    rows = list(csv.DictReader(file.with_suffix(".csv").read_text().splitlines()))
    labels = made.option.labels
    if kind == "table":
        bounds = [
            f"{label}{end}" for label in labels for end in ("", " low", " high")[: 3 if made.option.seeds > 1 else 1]
        ]
        assert [*rows[0]] == ["figure", "name", *bounds]
        assert (r"$\pm$" in file.read_text()) == (made.option.seeds > 1)
        return
    assert list(dict.fromkeys(row["x" if kind == "bars" else "series"] for row in rows)) == [*labels]
    if kind == "bars":
        assert all((row["low"] != "") == (made.option.seeds > 1) for row in rows)
        assert "-seed-" not in file.read_text()


CHECKS: dict[str, Callable[[Made, Any], None]] = {
    "terminal": check_terminal, "json": check_json, "page": check_page, "load": check_load,
    "notebook": check_notebook, "why": check_why,
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_each_output_of_an_option_is_right_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = command(name, tmp_path / "made", capsys, monkeypatch)
    assert "-seed-" not in made.text + json.dumps(made.data)
    for output in OUTPUTS:
        refused = refusal(made.option, output)
        if refused is None:
            if output in KINDS:
                check_figure(output, made, capsys)
            else:
                CHECKS[output](made, capsys)
            continue
        arguments = ["figure", output, str(made.folder), "-o", str(tmp_path / "no.svg")] if output in KINDS else []
        with pytest.raises(ps.InputError, match=refused):
            cli.main(arguments or ["why", str(made.folder)], standalone_mode=False)
    names = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    assert not [each for each in names if "-seed-" in each]
    assert not [each for each in tmp_path.rglob("*.html") if "-seed-" in each.read_text()]


@pytest.mark.parametrize("name", NEVER)
def test_a_combination_without_a_meaning_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, expected = NEVER[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=re.escape(expected)) as raised:
        cli.main([arguments[0], *DRIVE, *arguments[1:]], standalone_mode=False)
    assert raised.type.__name__ in ("InputError", "UsageError", "BadParameter")


def test_a_folder_of_an_earlier_version_has_replicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Earlier versions wrote a comparison with a run `LABEL-seed-N` for each seed."""
    runs = [
        ps.Result(run.to_dict() | {"label": run["ftl"]}, run.series, run.configuration)
        for run in ps.replicate(["page", "mga"], seeds=[1, 2], series=True, **PLAIN).results
    ]
    old = [
        ps.Result(run.to_dict() | {"label": f"{run.label}-seed-{run.seed}"}, run.series, run.configuration)
        for run in runs
    ]
    ps.Comparison(old).save(tmp_path / "old")
    found = ps.load(tmp_path / "old")
    assert isinstance(found, Replicates)
    assert (found.labels, found.seeds) == (["page", "mga"], [1, 2])
    called(capsys, "report", str(tmp_path / "old"))
    page = (tmp_path / "old" / "report.html").read_text()
    assert "<title>page, mga on mga-8k" in page
    assert "mga-seed-2/report.html" in page
    found.save(tmp_path / "new")
    again = ps.load(tmp_path / "new")
    assert again == found
    ps.Comparison([runs[0], *old[1:]]).save(tmp_path / "mixed")
    assert isinstance(ps.load(tmp_path / "mixed"), ps.Comparison), "not every label ends in its seed"


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    run = ps.run(ftl="page", **PLAIN)
    Replicates([run], ["page"], [1], "t").save(tmp_path / "a")
    file = tmp_path / "a" / "summary.json"
    data = json.loads(file.read_text())
    for wrong in ({"contenders": ["mga"]}, {"seeds": [1, 2]}, {"method": "z"}, {"seeds": None}):
        file.write_text(json.dumps(data | {"replicates": data["replicates"] | wrong}))
        with pytest.raises(
            ps.InputError, match="does not match the runs; expected the file that `--seeds --out` wrote"
        ):
            ps.load(tmp_path / "a")


def test_a_folder_takes_the_same_seeds_again(tmp_path: Path) -> None:
    """A former bug: the second call with the same seeds was refused as another run."""
    arguments = ["run", *DRIVE, *WORK, "--ftl", "page", "--out", str(tmp_path / "a")]
    cli.main([*arguments, "--seeds", "1..2"], standalone_mode=False)
    cli.main([*arguments, "--seeds", "1..2"], standalone_mode=False)
    with pytest.raises(ps.InputError, match="there are results of another run"):
        cli.main([*arguments, "--seeds", "1..3"], standalone_mode=False)


def test_a_sweep_gives_its_replicates(tmp_path: Path) -> None:
    spec = {
        "base": PLAIN,
        "grid": {"ftl": ["page", "mga"], "seed": [1, 2]},
    }
    swept = ps.sweep(spec, out=tmp_path / "s", jobs=1)
    found = swept.replicates()
    assert (found.labels, found.seeds) == (["page", "mga"], [1, 2])
    means = swept.intervals("write_amplification", ["ftl"])
    assert found.to_polars().filter(figure="write_amplification")["mean"].to_list() == means["mean"].to_list()
    alone = ps.sweep(spec | {"grid": {"ftl": ["page", "mga"]}}, out=tmp_path / "t", jobs=1)
    with pytest.raises(ps.InputError, match="the sweep has no axis seed"):
        alone.replicates()
