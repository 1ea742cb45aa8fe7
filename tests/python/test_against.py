"""`palimpsest run --against`: outputs of fio of several versions and forms, beside the figures of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import Command
from palimpsest import against, fio_output, report
from palimpsest.errors import InputError
from palimpsest.options import RunOptions
from palimpsest.result import Result


def _times(mean: float, **more: Any) -> dict[str, Any]:
    return {"min": 1, "max": 10 * mean, "mean": mean, "percentile": {"50.000000": mean, "99.950000": 4 * mean}, **more}


def _side(mean: float, rate: float = 1000.0, **more: Any) -> dict[str, Any]:
    return {
        "io_bytes": 4096000, "bw_bytes": int(4096 * rate), "bw": int(4 * rate), "iops": rate, "runtime": 1000,
        "total_ios": 1000, "clat_ns": _times(mean), "lat_ns": {"mean": mean + 500}, **more,
    }  # fmt: skip


def _output(*jobs: tuple[str, dict[str, Any]], common: dict[str, str] | None = None, group: int = 0) -> str:
    made = [
        {"jobname": name, "groupid": group, "job options": {"rw": "randread", "bs": "4k"}, **each}
        for name, each in jobs
    ]
    return json.dumps({"fio version": "fio-3.35", "global options": common or {}, "jobs": made}, indent=2)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _result(fake: Any, **more: Any) -> Result:
    text, series = fake.run(RunOptions(ftl="page", series=True).to_json(), None)
    return Result(json.loads(text) | more, json.loads(series), "")


def _rows(result: Result) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["job"], row["kind"], row["figure"]): row for row in result["against"]["rows"]}


ONE = _output(("a", {"read": _side(80_000), "write": _side(20_000)}))


def test_figures_of_one_job_are_those_of_the_run(fake: Any, tmp_path: Path) -> None:
    """The percentiles of fio's list, from the figures or else the histogram; the page and the table have them."""
    path = _written(tmp_path / "a.json", ONE)
    beside = against.Against(path, RunOptions(), None, given=False)
    assert beside.options.workload == "rw=randread,bs=4k,size=100%"
    assert (beside.options.requests, beside.options.series) == (2000, True)
    result = beside.compared(_result(fake))
    rows = _rows(result)
    read = result["latency_ns"]["read"]
    assert [key[2] for key in rows if key[1] == "read"] == [
        "iops", "bytes_per_s", "clat.mean", "clat.p50", "clat.p99.95",
    ]  # fmt: skip
    assert rows["a", "read", "clat.p50"]["ours"] == read["p50"]
    assert rows["a", "read", "clat.p50"]["ratio"] == read["p50"] / 80_000
    assert read["p50"] <= rows["a", "read", "clat.p99.95"]["ours"]
    total, made = sum(result["requests"].values()), result["requests"]["read"]
    assert rows["a", "read", "iops"]["ours"] == pytest.approx(result["throughput"]["iops"] * made / total)
    assert "from submission to completion (lat_percentiles=1" in result["against"]["notes"][-1]
    lacking = "not compared, because fio printed other percentiles (percentile_list): p90, p99, p99.9, p99.99"
    assert lacking in result["against"]["notes"]
    console = Console(width=80, record=True)
    console.print(against.render(result["against"]))
    text = console.export_text()
    assert "a: reads" in text
    assert "clat p99.95" in text
    assert max(map(len, text.splitlines())) <= 80
    page = report.page([result])
    assert "clat p99.95" in page
    assert "Beside fio" in page


def test_sections_have_their_own_figures(fake: Any, tmp_path: Path) -> None:
    """A section that only one side has is named; with `group_reporting` a job of fio has a group of sections."""
    job: dict[str, Any] = {
        "job": "a", "copies": 1, "requests": {"read": 9, "write": 0, "trim": 0, "flush": 0}, "bytes_read": 36864,
        "bytes_written": 0, "throughput": {"iops": 500.0, "bytes_per_s": 5e5},
        "latency_ns": {"all": None, "write": None, "read": {"mean": 7, "p50": 8, "p99": 9}},
    }  # fmt: skip
    run = _result(fake, jobs=[job, job | {"job": "b"}])
    path = _written(tmp_path / "a.json", _output(("a", {"read": _side(80)}), ("c", {"read": _side(80)})))
    found = against.Against(path, RunOptions(workload=str(path)), None, given=True).compared(run)
    rows = _rows(found)
    assert (rows["a", "read", "clat.p50"]["ours"], rows["a", "read", "iops"]["ours"]) == (8, 500)
    assert rows["a", "read", "clat.p99.95"]["ours"] is None
    assert found["against"]["notes"][:2] == [
        "fio ran c, which this run has not",
        "the run has b, which fio did not run",
    ]
    assert found["against"]["notes"][2].endswith("and trims none: p99.95")
    grouped = _written(tmp_path / "g.json", _output(("a", {"read": _side(80)}), common={"group_reporting": ""}))
    found = against.Against(grouped, RunOptions(workload=str(path)), None, given=True).compared(run)
    assert _rows(found)["a", "read", "clat.p99.95"]["ours"] is not None


@pytest.mark.parametrize(
    "text",
    [
        f"a: (g=0): rw=randread\nfio-3.35\n{ONE}\n\na: (groupid=0)\n  read: IOPS=1\n",
        f"{ONE.replace('80000', '90000')}\n{ONE}\n",
        f"{ONE}\n{ONE[: len(ONE) // 2]}",
    ],
    ids=["normal,json", "status-interval", "status-interval, killed"],
)
def test_text_around_and_several_objects(text: str, tmp_path: Path) -> None:
    job = fio_output.read(_written(tmp_path / "a.json", text)).jobs[0]
    assert job.sides["read"].times == {
        "lat.mean": 80_500,
        "clat.mean": 80_000,
        "clat.p50": 80_000,
        "clat.p99.95": 320_000,
    }


def test_version_two_has_microseconds_and_kilobytes(tmp_path: Path) -> None:
    old = {"total_ios": 10, "iops": 90.0, "bw": 360, "clat": _times(84), "lat": {"mean": 85.0}}
    job = fio_output.read(_written(tmp_path / "a.json", _output(("a", {"read": old})))).jobs[0]
    assert (job.sides["read"].bytes_per_s, job.sides["read"].iops) == (360 * 1024, 90)
    assert (job.sides["read"].times["lat.mean"], job.sides["read"].times["clat.p50"]) == (85_000, 84_000)


def test_bins_join_the_percentiles_of_copies(tmp_path: Path) -> None:
    one, two = (_side(80, clat_ns=_times(80, bins=bins)) for bins in ({"70": 999, "90": 1}, {"300": 1000}))
    joined = fio_output.read(_written(tmp_path / "a.json", _output(("a", {"read": one}), ("a", {"read": two}))))
    assert (joined.jobs[0].sides["read"].times["clat.p50"], joined.jobs[0].sides["read"].iops) == (90, 2000)
    plain = fio_output.read(_written(tmp_path / "a.json", _output(*[("a", {"read": _side(80)})] * 2)))
    assert "clat.p50" not in plain.jobs[0].sides["read"].times


def test_jobs_after_others_wait_for_them(tmp_path: Path) -> None:
    first, last = (json.loads(_output((name, {"read": _side(8)}), group=at)) for at, name in enumerate("ab"))
    path = _written(tmp_path / "a.json", json.dumps(first | {"jobs": first["jobs"] + last["jobs"]}))
    beside = against.Against(path, RunOptions(), tmp_path, given=False)
    beside.begin()
    file = Path(beside.options.workload)
    assert file == tmp_path / "against.fio"
    assert file.read_text(encoding="utf-8").split() == [
        "[a]", "rw=randread", "bs=4k", "size=100%", "time_based=1", "runtime=1000000us",
        "[b]", "rw=randread", "bs=4k", "size=100%", "stonewall", "time_based=1", "runtime=1000000us",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no JSON object"),
        ("  read: IOPS=5\n", "there is no JSON object"),
        ("3;fio-3.35;a;0;0\n", "there is fio's terse output"),
        (ONE[: len(ONE) // 2], "the JSON is not whole"),
        ('{"jobs": [{"job": "a"}]}', "the output has no jobs"),
        (_output(("a", {"read": {"total_ios": 0}})), "job a: the job has no requests"),
    ],
)
def test_other_files_are_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        fio_output.read(_written(tmp_path / "a.json", text))
    assert "\n" not in str(caught.value)
    assert "; expected " in str(caught.value)


def test_other_jobs_are_refused_before_the_run(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.json", _output(("a", {"read": _side(80)}), ("b", {"read": _side(80)})))
    job = _written(tmp_path / "x.fio", "[global]\nrw=randread\n[x]\n")
    for workload, found in ((str(job), "x"), ("rw=randread,bs=4k", "one workload")):
        with pytest.raises(InputError, match=f"fio ran a, b; the run has {found}; expected"):
            against.Against(path, RunOptions(workload=workload), None, given=True)


@pytest.mark.contract
def test_the_command_compares_and_repeats(palimpsest: Command, tmp_path: Path) -> None:
    """Without a workload the output's job is played; `rerun` repeats the run, without fio's figures."""
    path = _written(tmp_path / "a.json", _output(("a", {"read": _side(80_000)}), ("b", {"read": _side(80_000)})))
    drive = ("--ssd", "mga-16k", "--precondition", "fill:10%", "--requests", "500", "--out", "out")
    done = palimpsest("run", "--against", str(path), *drive, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["against"]["rows"]
    assert {(row["job"], row["kind"]) for row in rows} == {("a", "read"), ("b", "read")}
    again = palimpsest("rerun", "out", cwd=tmp_path)
    assert "every byte agrees" in again.stdout, again.stdout + again.stderr
    both = palimpsest("run", "rw=read,bs=4k", "--workload", "trade", cwd=tmp_path)
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
