"""Small mistakes and accidents: the message, and the results that are kept."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import at_work
import palimpsest as ps
from conftest import COMMAND, Command, figures
from palimpsest.metrics import is_figure
from palimpsest.result import figures as figures_of
from palimpsest.sweeps.definition import from_text

SMALL = ("--ssd", "mga-8k", "--precondition", "none", "--workload", "rw=randrw,bs=4k,size=16MiB,n=300")
BESIDE = """[base]
workload = "trade,n=10"
[grid]
ftl = ["page", "mga"]
ftl.victim = ["greedy", "fifo"]
"""


@pytest.mark.contract
def test_results_of_another_run_are_not_overwritten(palimpsest: Command, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "a"))
    for command in (("run", *SMALL), ("run", *SMALL)):  # The same run again is accepted.
        done = palimpsest(*command, *out)
        assert done.returncode == 0, done.stderr
    done = palimpsest("run", *SMALL, "--seed", "2", *out)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: --out {tmp_path / 'a'}: there are results of another run; expected another folder, or --force to "
        "replace them\n"
    )
    assert palimpsest("run", *SMALL, "--seed", "2", *out, "--force").returncode == 0
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["seed"] == 2


@pytest.mark.contract
def test_debugging_keeps_the_status(palimpsest: Command) -> None:
    done = palimpsest("run", "--ssd", "nope", env=os.environ | {"PALIMPSEST_DEBUG": "1"})
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.contract
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_ends_keep_what_was_measured(number: signal.Signals) -> None:
    endless = ("run", "--workload", "rw=randwrite,bs=4k,n=1e12", "--precondition", "none", "--json")
    # The parent of these tests may ignore the signal, as nohup does; then the command would, too.
    here = signal.signal(number, signal.SIG_DFL)
    with subprocess.Popen([COMMAND, *endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(number, here)
        at_work.wait(process)
        process.send_signal(number)
        try:
            printed, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, "interrupted\n")
    assert json.loads(printed)["interrupted"] is True


@pytest.mark.contract
def test_a_trace_from_standard_input(palimpsest: Command) -> None:
    trace = "time_ns,op,offset_bytes,size_bytes\n" + "".join(f"{at}000,w,{at}000,4096\n" for at in range(50))
    command = ("run", "--ssd", "mga-8k", "--precondition", "none", "--workload", "-", "--json")
    assert figures(palimpsest(*command, input=trace))["requests"]["write"] == 50


@pytest.mark.contract
def test_any_text_by_its_columns(palimpsest: Command, tmp_path: Path) -> None:
    lines = ["Timestamp,Response,IOType,LUN,Offset,Size"]
    lines += [f"1456087450.{at:06d},0.000157,{'RW'[at % 2]},{at % 3},{4096 * at},8192" for at in range(90)]
    path = tmp_path / "systor.csv"
    path.write_text("\n".join(lines) + "\n")
    command = ("trace", "info", str(path), "--json", "--columns", "time=1:s,op=3,offset=5,size=6,volume=4")
    found = figures(palimpsest(*command))
    assert (found["requests"]["read"], found["requests"]["write"], found["duration_ns"]) == (45, 45, 89_000)
    assert (len(found["volumes"]), found["bytes"]["all"], found["format"]) == (3, 90 * 8192, "columns")
    done = palimpsest("run", "--workload", str(path), "--columns", "time=1:s,op=3,offset=5")
    assert done.returncode == 2
    assert "--columns time=1:s,op=3,offset=5: size is missing" in done.stderr


@pytest.mark.contract
def test_names_in_other_case_have_near_matches(palimpsest: Command) -> None:
    for arguments, meant in (
        (("--ftl", "PAGE"), "page"), (("--ssd", "MGA-8K"), "mga-8k"), (("--set", "ftl.victim=GREEDY"), "greedy"),
        (("--fidelity", "COUNT"), "count"),
    ):  # fmt: skip
        done = palimpsest("run", *arguments)
        assert done.returncode == 2
        assert f"did you mean {meant}" in done.stderr


def test_a_layer_beside_its_key_in_a_sweep() -> None:
    found = from_text(BESIDE, "s.toml", Path())
    assert found.axes == ["ftl", "ftl.victim"]
    with pytest.raises(
        ps.InputError, match=r"s\.toml:7: report\.figure: no result has a figure flash\.erase; did you mean"
    ):
        from_text(BESIDE + '[report]\nfigure = "flash.erase"\n', "s.toml", Path())
    with pytest.raises(ps.InputError, match=r"s\.toml:6: expected TOML"):
        from_text(BESIDE + "x = =\n", "s.toml", Path())


def test_every_figure_of_a_result_is_known(fake: Any) -> None:
    assert fake
    for name, value in figures_of(ps.run("w").to_dict()).items():
        # Evidence and conditions of figures are none.
        is_evidence = name.partition(".")[0] in ("sim", "steady", "run_in", "basis")
        if isinstance(value, int | float) and not is_evidence and not isinstance(value, bool):
            assert is_figure(name), name
    assert not is_figure("latency_ns.read.p98")


class Frame:
    """A text that is no workload."""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seed": None}, "seed: expected a whole number from 0"),
        ({"overrides": None}, "overrides: expected a mapping of configuration keys"),
        ({"overrides": ["ftl.victim=fifo"]}, "overrides: expected a mapping"),
        ({"requests": "many"}, "requests: not a number; expected one such as 250000, 1e6 or 100k"),
        ({"ftl": ["page"]}, "ftl: expected the name of one layer"),
        (
            {"workload": Frame()},
            "workload: expected a preset, the path of a trace, a specification, or a data frame, found a Frame",
        ),
    ],
)
def test_one_sentence_says_what_was_expected(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ps.InputError, match=said):
        ps.run(**settings)


def test_counts_may_be_texts(fake: Any) -> None:
    assert fake
    assert ps.run("w", requests="2k").requests["read"] == 600


def test_folders_say_what_they_are_and_lack(fake: Any, tmp_path: Path) -> None:
    assert fake
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ps.InputError, match=r"the folder of a sweep; .* \(palimpsest\.Sweep\.load reads sweeps\)"):
        ps.load(tmp_path)
    folder = ps.run("w").save(tmp_path / "a")
    for name in ("wear.parquet", "latency.parquet"):
        (folder / name).unlink()
    with pytest.warns(UserWarning, match=r"latency\.parquet, wear\.parquet missing"):
        ps.load(folder)
