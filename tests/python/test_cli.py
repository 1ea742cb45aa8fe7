"""The contract of the command line, on the native module: statuses, one-line errors, JSON, determinism."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import at_work
import result_schema
from conftest import ROOT, Command, figures, trace_sample

pytestmark = pytest.mark.contract

SMALL = ("--workload", "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=3000,iodepth=8", "--precondition", "none")


def without_sim(result: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in result.items() if key != "sim"})


def one_error_line(text: str) -> str:
    assert re.fullmatch(r"error: [^\n]+\n", text), text
    return text


def test_run_prints_one_object_with_every_figure(palimpsest: Command) -> None:
    result = figures(palimpsest("run", "--json", *SMALL))
    assert result_schema.problems(result) == []
    assert result["requests"]["read"] + result["requests"]["write"] == 3000
    assert result["host"]["bytes_read"] == 4096 * result["requests"]["read"]


def test_count_fidelity_has_no_times(palimpsest: Command) -> None:
    result = figures(palimpsest("run", "--json", "--fidelity", "count", *SMALL))
    assert result_schema.problems_at_count_fidelity(result) == []


def test_same_bytes_for_the_same_run(palimpsest: Command) -> None:
    results = [figures(palimpsest("run", "--json", *SMALL)) for _ in range(2)]
    assert without_sim(results[0]) == without_sim(results[1])


def test_runs_are_verified_unless_switched_off(palimpsest: Command) -> None:
    verified, counted, unverified = (
        figures(palimpsest("run", "--json", *SMALL, *options))
        for options in ((), ("--fidelity=count",), ("--payload=none",))
    )
    assert [each["payload"] for each in (verified, counted, unverified)] == ["tag", "tag", "none"]
    said = "every read verified; every acknowledgement checked"
    assert said in verified["notes"]
    assert "every read verified" in counted["notes"]
    assert not any("verified" in note for note in unverified["notes"])
    same = ("requests", "latency_ns", "flash", "gc", "simulated_ns", "energy_uj")
    assert [verified[key] for key in same] == [unverified[key] for key in same]


def test_another_seed_gives_another_run(palimpsest: Command) -> None:
    results = [figures(palimpsest("run", "--json", "--seed", seed, *SMALL)) for seed in ("1", "2")]
    assert without_sim(results[0] | {"seed": 0}) != without_sim(results[1] | {"seed": 0})


def test_jobs_do_not_change_results(palimpsest: Command) -> None:
    runs = [figures(palimpsest("compare", "--json", "--jobs", jobs, *SMALL))["runs"] for jobs in ("1", "2")]
    assert [run["ftl"] for run in runs[0]] == ["page", "subpage"]
    assert [without_sim(run) for run in runs[0]] == [without_sim(run) for run in runs[1]]


def test_compare_gives_the_figures_of_run(palimpsest: Command) -> None:
    compared = figures(palimpsest("compare", "--json", "--ftl", "subpage,page", *SMALL))["runs"]
    alone = figures(palimpsest("run", "--json", "--ftl", "page", *SMALL))
    assert without_sim(compared[1]) == without_sim(alone)


def test_series_do_not_change_results(palimpsest: Command, tmp_path: Path) -> None:
    with_series = figures(palimpsest("run", "--json", "--out", str(tmp_path), *SMALL))
    assert without_sim(with_series) == without_sim(figures(palimpsest("run", "--json", *SMALL)))
    assert {"summary.json", "config.toml", "timeseries.parquet", "latency.parquet", "report.html"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_histogram_counts_every_request(palimpsest: Command, tmp_path: Path) -> None:
    import polars as pl

    figures(palimpsest("run", "--json", "--out", str(tmp_path), *SMALL))
    latency = pl.read_parquet(tmp_path / "latency.parquet")
    assert latency.filter(pl.col("class") == "all")["count"].sum() == 3000
    time = pl.read_parquet(tmp_path / "timeseries.parquet")
    assert time["requests"].sum() == 3000


def test_saved_configuration_runs_again(palimpsest: Command, tmp_path: Path) -> None:
    first = figures(palimpsest("run", "--json", "--out", str(tmp_path), *SMALL))
    again = figures(palimpsest("run", "--json", "--ssd", str(tmp_path / "config.toml"), *SMALL))
    assert first["config"] == again["config"]
    assert first["flash"] == again["flash"]


def test_summary_has_the_key_figures(palimpsest: Command) -> None:
    done = palimpsest("run", *SMALL)
    assert done.returncode == 0, done.stderr
    for word in ("IOPS", "p99.9", "amplified", "erases", "map DRAM"):
        assert word in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--ftl", "pgae"], "page"),
        (["run", "--ssd", "no-such-drive"], "no-such-drive"),
        (["run", "--workload", "no-such-workload"], "no-such-workload"),
        (["run", "--set", "part.page_sise=16KiB"], "page_size"),
        (["run", "--set", "part.page_size=16"], "16KiB"),
        (["run", "--set", "part.page_size"], "="),
        (["run", "--precondition", "fill:190%"], "fill"),
        (["run", "--workload", "rw=randwrite,bs=4k,engine=x"], "engine"),
        (["run", "--requests", "many"], "1e6"),
        (["run", "--requests", "-1"], "--requests"),
        (["run", "--seed", "0.5"], "--seed"),
        (["run", "--warmup", "110%"], "warmup"),
        (["run", "--fidelity", "exact"], "timed, count"),
        (["run", "--no-such-option"], "--help"),
        (["compare", "--ftl", "page,page"], "--ftl"),
        (["list", "ftl"], "ftls"),
        (["report", "no-such-folder"], "summary.json"),
        (["no-such-command"], "--help"),
    ],
)
def test_mistakes_are_one_line_and_status_2(palimpsest: Command, arguments: list[str], says: str) -> None:
    done = palimpsest(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in one_error_line(done.stderr)


def test_bad_line_of_a_trace_is_named(palimpsest: Command, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n10,W,x,4096\n20,R,0,4096\n")
    done = palimpsest("run", "--workload", str(trace), "--precondition", "none")
    assert done.returncode == 2
    assert f"error: {trace}:3: " in one_error_line(done.stderr)
    skipped = figures(palimpsest("run", "--json", "--skip-bad", "--workload", str(trace), "--precondition", "none"))
    assert skipped["requests"]["write"] == 1
    assert skipped["requests"]["read"] == 1


def test_show_is_toml_that_names_sources(palimpsest: Command) -> None:
    import tomllib

    done = palimpsest("show", "--set", "ftl.victim=fifo")
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout)["ftl"]["victim"] == "fifo"


def test_list_has_the_names_of_the_contract(palimpsest: Command) -> None:
    names = figures(palimpsest("list", "--json"))
    assert {"page", "subpage"} <= names["ftls"].keys()
    assert {"default"} <= names["ssds"].keys()
    assert {"oltp-zipf", "mysql-like"} <= names["workloads"].keys()


def test_real_trace_runs_whole(palimpsest: Command) -> None:
    trace = trace_sample("blkreplay_linux-mysql.load.zst")
    result = figures(palimpsest("run", "--json", "--workload", str(trace), "--precondition", "none"))
    # The 80,793 requests of its README, and the one read-ahead (`RA`), which is a read.
    assert sum(result["requests"].values()) == 80_794


def test_interrupt_keeps_what_was_measured() -> None:
    endless = ["run", "--workload", "rw=randwrite,bs=4k,n=1e12", "--precondition", "none", "--json"]
    command = Path(sys.executable).parent / "palimpsest"
    with subprocess.Popen([command, *endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        at_work.wait(process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "interrupted\n")
    result = json.loads(output)
    assert result["interrupted"]
    assert result["requests"]["write"] > 0


def test_python_reads_the_same_figures(palimpsest: Command) -> None:
    import palimpsest as ps

    workload = ps.fio(rw="randrw", rwmixread=30, bs="4k", size="64MiB", n=3e3, iodepth=8)
    result = ps.Ssd("default").run(workload, precondition="none")
    command = figures(palimpsest("run", "--json", "--workload", workload, "--precondition", "none"))
    assert without_sim(result.to_dict()) == without_sim(command)


def test_stub_matches_the_native_module(tmp_path: Path) -> None:
    """The stub alone in a package, so the checker need not read polars and plotly."""
    stubs = tmp_path / "palimpsest"
    stubs.mkdir()
    (stubs / "__init__.pyi").touch()
    shutil.copy(ROOT / "python" / "palimpsest" / "_core.pyi", stubs)
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "palimpsest._core"],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_of_one_layer_are_compared_by_their_labels(palimpsest: Command, tmp_path: Path) -> None:
    small = ("--ssd", "mga-16k", "--set", "ssd.blocks_per_plane=16", "--workload", "rw=randwrite,n=2000,bs=16k")
    runs = ("greedy:ftl.victim=greedy", "cb:ftl=page,ftl.victim=cost-benefit", "subpage")
    made = figures(palimpsest("compare", *runs, *small, "--json", "--out", str(tmp_path)))["runs"]
    assert [run.get("label") for run in made] == ["greedy", "cb", None]
    assert [run["config"]["ftl"]["victim"] for run in made][:2] == ["greedy", "cost-benefit"]
    assert (made[1]["ftl"], made[2]["ftl"]) == ("page", "subpage")
    assert {"greedy", "cb", "subpage"} <= {path.name for path in tmp_path.iterdir()}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "greedy" in page
    assert palimpsest("report", str(tmp_path)).returncode == 0
    for wrong, said in (
        (("a:ftl.victim=greedy", "a:ftl.victim=fifo"), "run 'a': given twice; expected a label of its own"),
        (("a:greedy",), "'greedy': expected KEY=VALUE"),
        (("../a:ftl=page",), "expected a layer, or LABEL:KEY=VALUE"),
        (("a:ftl=page", "--ftl", "mga"), "expected runs as arguments, or --ftl, not both"),
    ):
        done = palimpsest("compare", *wrong, *small)
        assert done.returncode == 2
        assert said in done.stderr
