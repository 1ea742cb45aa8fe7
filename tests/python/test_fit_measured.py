"""`palimpsest fit`: logs of SMART, jobs that ran together, tables of a load, progress, and the coverage of ranges."""

import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from palimpsest import engine
from palimpsest.errors import InputError
from palimpsest.fits import files, running, space
from palimpsest.fits.measured import GroupRuns, How, OneRun
from palimpsest.fits.work import Work
from palimpsest.reproduce.batch import Batch
from palimpsest.result import Result
from palimpsest.validate import truth

SMALL = (
    "ssd.channels=1", "ssd.chips_per_channel=1", "ssd.dies_per_chip=1", "ssd.planes_per_die=1",
    "ssd.blocks_per_plane=48", "buffer.size=256KiB",
)  # fmt: skip
_COUNTERS = How(workload="rw=randwrite", capacity=10**9)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _reading(units: object, media: object, name: str = "Physical media units written") -> str:
    """The logs as nvme-cli 2 prints them, one after the other."""
    return json.dumps({"critical_warning": 0, "data_units_written": units}, indent=2) + json.dumps({name: media})


@pytest.mark.unit
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_reading(1000, {"hi": 0, "lo": 512_000_000}), _reading(2000, {"hi": 0, "lo": 1_536_000_000})),
        # --output-format-version=2, and numbers of 128 bits as text.
        (
            _reading("1000", {"hi": 0, "lo": 512_000_000}, "physical_media_units_written"),
            _reading("2000", {"hi": 0, "lo": 1_536_000_000}, "physical_media_units_written"),
        ),
        (_reading(1000, {"hi": 1, "lo": 0}), _reading(2000, {"hi": 1, "lo": 1_024_000_000})),
        # smartctl -j, and the log of OCP beside it.
        (
            '{"nvme_smart_health_information_log": {"data_units_written": 1000}}{"Physical media units written": 0}',
            '{"nvme_smart_health_information_log": {"data_units_written": 2000}}'
            '{"Physical media units written": 1024000000}',
        ),
    ],
)
def test_logs_of_smart_and_ocp_are_counters(tmp_path: Path, first: str, second: str) -> None:
    found = files.read(_written(tmp_path / "nvme.json", f"{first}\n{second}\n"), _COUNTERS)
    assert [target.real for target in found.targets] == [2.0]
    listed = files.read(_written(tmp_path / "list.json", f"[{first},{second}]".replace("}{", "},{")), _COUNTERS)
    assert [target.real for target in listed.targets] == [2.0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_reading(1000, 0), "expected two readings at least, of the host's counter (`nvme smart-log -o json`)"),
        (
            '{"data_units_written": 1}\n{"data_units_written": 2}',
            "reading 1 has no counter of the media; expected the output of `nvme ocp smart-add-log -o json`",
        ),
        (_reading(2, 0) + _reading(1, 5), "reading 2: a counter is not above that of the line before"),
        (_reading("x", 0), "data_units_written is 'x'; expected a whole number, or its parts hi and lo"),
        (_reading(-2, 0), "data_units_written is -2; expected a whole number"),
        ('{"data_units_written": 1} x', "expected the output of nvme or smartctl in JSON"),
    ],
)
def test_wrong_logs_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = _written(tmp_path / "nvme.json", text)
    with pytest.raises(InputError) as error:
        files.read(path, _COUNTERS)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)


@pytest.mark.contract
@pytest.mark.parametrize("pages", [1, 3])
@pytest.mark.parametrize("vary", [(), ("ftl.streams=1,2",)])
def test_a_drive_that_is_not_full_needs_more_writes(tmp_path: Path, pages: int, vary: tuple[str, ...]) -> None:
    """Counters of less than one pass are refused, also where keys move the writes that a shot still gathers."""
    path = _written(tmp_path / "a.csv", "host_gb,media_gb\n0.1,0.1\n0.2,0.2\n0.4,0.4\n")
    how = How(workload="rw=randwrite,bs=128k,randrepeat=0", capacity=10**9)
    drive = (*SMALL, f"part.pages_per_program={pages}")
    settings = running.Settings(start="enterprise-tlc-7.68t", overrides=drive, vary=vary, evaluations=1, how=how)
    said = "the measured drive had not begun to collect garbage, after 0.4 passes over the drive; expected counters"
    with pytest.raises(InputError, match=f"^{said}"):
        running.fit([path], settings)


@pytest.mark.unit
def test_a_search_sees_every_third_of_many_rows() -> None:
    rows = files.read(truth.OWN / "latency-under-load-cm7-r-3.84tb.csv", How())
    groups = frozenset(target.group for target in rows.targets)
    assert rows.early(groups) == {"10000", "70000", "130000"}
    few = groups - {"10000", "200000", "300000"}
    assert rows.early(few) == few


def _side(rate: float, mean: float) -> dict[str, Any]:
    shares = {"50.000000": 1000 * mean, "95.000000": 2000 * mean, "99.000000": 3000 * mean}
    return {"total_ios": 1000, "iops": rate, "lat_ns": {"mean": 1000 * mean}, "clat_ns": {"percentile": shares}}


@pytest.mark.contract
def test_jobs_that_ran_together_are_one_job_file(tmp_path: Path) -> None:
    """Reads beside writes, and reads alone after them, as fio 3.35 prints them."""
    jobs = [
        {"jobname": "reads", "groupid": 0, "job options": {"rw": "randread", "iodepth": "4"}, "read": _side(9e3, 400)},
        {"jobname": "writes", "groupid": 0, "job options": {"rw": "write", "rate_iops": "1000,1000"},
         "write": _side(1e3, 20)},
        {"jobname": "alone", "groupid": 1, "job options": {"rw": "randread"}, "read": _side(1e4, 100)},
    ]  # fmt: skip
    text = json.dumps({"global options": {"bs": "4k", "runtime": "60"}, "jobs": jobs})
    found = files.read(_written(tmp_path / "out.json", text), How(precondition="fill:50%"))
    assert isinstance(found, GroupRuns)
    drive = space.Drive("default", "page", SMALL)
    reads, writes, alone = (found.run(drive, group) for group in ("reads", "writes", "alone"))
    assert reads == writes
    assert alone.workload == "bs=4k,rw=randread,size=100%"
    assert Path(reads.workload).read_text(encoding="utf-8").split() == [
        "[reads]", "bs=4k", "rw=randread", "iodepth=4", "size=100%", "time_based=1", "runtime=2000000us",
        "[writes]", "bs=4k", "rw=write", "rate_iops=1000,1000", "size=100%", "time_based=1", "runtime=2000000us",
    ]  # fmt: skip
    engine.check([reads])
    # The figures of a section, not of the run.
    section: dict[str, Any] = {
        "job": "writes", "requests": {"read": 0, "write": 990, "trim": 0, "flush": 0}, "throughput": {"iops": 990.0},
        "latency_ns": {"read": None, "write": {"mean": 21e3, "p50": 20e3, "p99": 60e3}},
    }  # fmt: skip
    result = Result({"jobs": [{"job": "reads"}, section]}, {}, "")
    ours = {target.name: found.figure(target, result) for target in found.targets if target.group == "writes"}
    assert ours == {"write.iops": 990.0, "write.mean": 21.0, "write.p50": 20.0, "write.p99": 60.0}


@pytest.mark.contract
def test_sections_are_found_again_on_their_drive(tmp_path: Path) -> None:
    """The figures of two sections as fio would print them are those of the drive that they came from."""
    plain = ("part.t_read_types=[]", "sim.suspend_pulse=0us", "controller.read_ahead=0", "part.t_suspend_erase=20us")
    drive = space.Drive("default", "page", (*SMALL, *plain))
    options = [
        {"rw": "randread", "bs": "4k", "iodepth": "2"},
        {"rw": "write", "bs": "16k", "rate_iops": "2000"},
    ]
    names = ("reads", "writes")
    sections = [
        "\n".join(
            [f"[{name}]", *(f"{key}={value}" for key, value in each.items()), "time_based=1", "runtime=500ms", ""]
        )
        for name, each in zip(names, options, strict=True)
    ]
    path = _written(tmp_path / "a.fio", "\n".join(sections))
    result = engine.run_one(drive.run(str(path), "fill:50%"))
    jobs = []
    for name, each, found in zip(names, options, result["jobs"], strict=True):
        kind = "read" if name == "reads" else "write"
        times = found["latency_ns"][kind]
        side = {
            "total_ios": found["requests"][kind], "iops": found["throughput"]["iops"],
            "lat_ns": {"mean": times["mean"]}, "clat_ns": {"percentile": {"50.000000": times["p50"]}},
        }  # fmt: skip
        jobs.append({"jobname": name, "groupid": 0, "job options": each, kind: side})
    again = files.read(_written(tmp_path / "out.json", json.dumps({"jobs": jobs})), How(precondition="fill:50%"))
    ours = again.ours(Batch(), drive, frozenset(names))
    assert ours == pytest.approx({target.id: target.real for target in again.targets}, rel=0.05)
    assert len(ours) == 6


@pytest.mark.contract
def test_a_table_of_a_load_is_a_measurement(tmp_path: Path) -> None:
    """The table of another drive has its own name; keys of the fit replace those of the small drive."""
    text = (
        "rate_per_s,probe_reads_per_s,read_mean_us,write_p99_us\n10000,5000,80,10\n50000,5000,,11\n90000,5000,99,200\n"
    )
    found = files.read(_written(tmp_path / "another.csv", text), How())
    assert [(target.group, target.name, target.real) for target in found.targets] == [
        ("10000", "read.mean", 80), ("10000", "write.p99", 10), ("50000", "write.p99", 11),
        ("90000", "read.mean", 99), ("90000", "write.p99", 200),
    ]  # fmt: skip
    drive = space.Drive("default", None, ("ssd.over_provisioning=30%",))
    table = found._on(drive, frozenset({"50000"}))  # type: ignore[attr-defined]
    assert [cells["rate_per_s"] for _, cells in table.rows] == ["50000"]
    assert [each for each in table.quick if each.startswith("ssd.over")] == ["ssd.over_provisioning=30%"]


@pytest.mark.unit
def test_a_stopped_fit_says_how_many_points_it_keeps(tmp_path: Path) -> None:
    assert running.kept(tmp_path) == 0
    (tmp_path / "evaluations.jsonl").write_text('{"key": "a", "ours": [1.0]}\n{"key": "b", "ours": [2.0]}\n{"key"')
    assert running.kept(tmp_path) == 2, "a line cut short is no point"


@pytest.mark.unit
def test_time_left_is_known_before_the_first_point_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    work = Work(enabled=False)
    work._has_bars = True
    work._started = now[0]
    work.expect(True, {"search": 60.0, "ranges": 30.0})
    with work.step("search", True):
        assert work.text() == "fit: search: 0 points"
        with work.batch(True, 12.0, 6.0, 1000):
            update = work.watch("run")
            assert update is not None
            now[0] += 1.0
            # Half of the first of two runs of six passes: three of ninety passes in a second.
            update("run", 500, 0, 0)
            assert work.text().endswith("3 %, about 0:29 left")
            now[0] += 3.0
        assert work.text().endswith("13 %, about 0:26 left")
        # A run that says no more has ended when the thread begins the next one.
        with work.batch(True, 0.0, 6.0, 0):
            ended = work.watch("run")
            assert ended is not None
            ended("precondition", 1, 2, 0)
            ended("run", 1, 0, 0)
            assert sum(work._shares.values()) == 0.5
            work.watch("run")
            assert sum(work._shares.values()) == 1.0
        # Points that need no run cost no time, and no rate.
        work.known(True, 6.0)
        assert work.text().endswith("about 0:24 left")
    # A step that ends early gives its rest back.
    assert work.text().endswith("about 0:10 left")


@pytest.mark.unit
def test_early_passes_stand_for_all() -> None:
    passes = [f"pass {at}" for at in range(1, 40)]
    found = files.read(Path(running.__file__).parent.parent / "validate/truth/waf-tlc-7.68tb.csv", How())
    assert isinstance(found, OneRun)
    assert found.early(frozenset(passes)) == frozenset(passes[:6])
    assert found.early(frozenset(passes[:7])) == frozenset(passes[:7]), "shorter runs would save little"
    assert found.work(frozenset(passes[:6])) == pytest.approx(6.95)


_JOBS = (
    "rw=randread,bs=4k,iodepth=1", "rw=randread,bs=4k,iodepth=16", "rw=randwrite,bs=16k,iodepth=4",
    "rw=read,bs=64k,iodepth=2",
)  # fmt: skip


def _fio(path: Path, drive: space.Drive) -> Path:
    """Output of fio for a drive: four jobs, one after the other."""
    jobs = []
    for at, spec in enumerate(_JOBS):
        result = engine.run_one(drive.run(spec, "fill:100%", 2000))
        kind = "write" if "write" in spec else "read"
        times = result["latency_ns"][kind]
        shares = {"50.000000": times["p50"], "90.000000": times["p90"], "99.000000": times["p99"]}
        side = {
            "total_ios": 2000, "iops": 2000 / (result["simulated_ns"] / 1e9), "lat_ns": {"mean": times["mean"]},
            "clat_ns": {"percentile": shares},
        }  # fmt: skip
        options = dict(part.split("=") for part in spec.split(","))
        jobs.append({"jobname": f"j{at}", "job options": {**options, "stonewall": ""}, kind: side})
    return _written(path, json.dumps({"jobs": jobs}))


@pytest.mark.contract
@pytest.mark.long
def test_nine_of_ten_determined_values_are_in_their_ranges(tmp_path: Path) -> None:
    """20 drives: four keys of the default space drawn at random each time, with values drawn from their bounds."""
    inside, missed = 0, []
    start = space.Drive("default", None, SMALL)
    found = space.default_space(start, counted=False, timed=True)
    # Reads meet no programs in these jobs.
    drawn = [key for key in found if not key.name.startswith("sim.suspend")]
    for seed in range(20):
        rng = random.Random(1000 + seed)
        keys = rng.sample(drawn, 4)
        known = {key.name: rng.choice(key.choices) if key.choices else key.at(rng.random()) for key in keys}
        ends = (key.choices or (f"{key.text(key.low)}..{key.text(key.high)}",) for key in keys)
        vary = tuple(f"{key.name}={','.join(values)}" for key, values in zip(keys, ends, strict=True))
        settings = running.Settings(
            start="default", overrides=SMALL, evaluations=40, jobs=2, seed=1 + seed, vary=vary,
            how=How(precondition="fill:100%"),
        )  # fmt: skip
        path = _fio(tmp_path / "out.json", replace(start.at(keys, known), seed=100 + seed))
        for each in running.fit([path], settings).stages[0].ranges:
            if not each.is_determined:
                continue
            true = known[each.key.name]
            if each.key.choices:
                is_inside = true in each.choices
            else:
                assert each.low is not None
                assert each.high is not None
                is_inside = each.low <= float(true) <= each.high
            inside += is_inside
            missed += [] if is_inside else [(seed, each.key.name, true, each.low, each.high, each.choices)]
    assert inside >= 20, "too few values are determined"
    assert len(missed) <= 0.1 * (inside + len(missed)), missed


@pytest.mark.contract
def test_a_drive_that_does_not_fit_has_status_3(palimpsest: Command, tmp_path: Path) -> None:
    # Six bytes programmed for each one: no drive with so much spare space does.
    rows = "\n".join(f"{at * 10**8},{6 * at * 10**8}" for at in range(1, 31))
    path, out = _written(tmp_path / "smart.csv", f"host_bytes,media_bytes\n{rows}\n"), tmp_path / "fitted"
    keys = [argument for key in SMALL for argument in ("--set", key)]
    done = palimpsest(
        "fit", str(path), "--start", "enterprise-tlc-7.68t", *keys, "--workload", "rw=randwrite,bs=16k,randrepeat=0",
        "--capacity", "1GB", "--evaluations", "1", "--vary", "ssd.over_provisioning=40%..60%",
        "--out", str(out),
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "the drive does not fit: write amplification is " in done.stdout
    assert "the drive should not be used" in done.stderr
    lines = (out / "drive.toml").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("# Verdict: the drive does not fit: write amplification is ")
    stored = json.loads((out / "fit.json").read_text(encoding="utf-8"))
    assert (stored["verdict"], stored["verdicts"][0]["verdict"]) == ("does not fit", "does not fit")
    assert stored["verdicts"][0]["mean_absolute_percent"] > stored["verdicts"][0]["bound_percent"] == 10
    assert "The drive does not fit" in (out / "index.html").read_text(encoding="utf-8")
