"""`ps.Drive`: the times and the result of a run, batches, power cuts, and wrong calls."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palimpsest as ps

SMALL: dict[str, Any] = {"ssd.blocks_per_plane": 48}
TINY: dict[str, Any] = {"ssd.blocks_per_plane": 32}
UNREAD: dict[str, Any] = {"ftl.merge_limits": "1/1/1/1"}
COUNT = 3000


def _requests(seed: int = 1) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    kinds = [("read", "write")[int(each)] for each in rng.integers(0, 2, COUNT)]
    times = np.cumsum(rng.integers(0, 40_000, COUNT))
    return kinds, rng.integers(0, 4000, COUNT) * 4096, 4096 << rng.integers(0, 3, COUNT), times - times[0]


def _trace(path: Path) -> Path:
    rows = zip(*_requests(), strict=True)
    lines = ["time_ns,op,offset_bytes,size_bytes"]
    lines += [f"{time},{kind},{offset},{size}" for kind, offset, size, time in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _figures(result: ps.Result) -> dict[str, object]:
    # A drive does not know the workload of a program, which the evidence of a run depends on.
    skipped = ("sim", "provenance", "workload", "trace_format", "notes", "label", "check", "steady")
    found = {key: value for key, value in json.loads(result.to_json()).items() if key not in skipped}
    # Nor whether its requests wait for others.
    found["basis"].pop("is_open")
    return found


@pytest.mark.contract
def test_a_drive_has_the_result_of_a_run(tmp_path: Path) -> None:
    ssd = ps.Ssd("default", **SMALL)
    run = ps.run(_trace(tmp_path / "t.csv"), ssd=ssd, payload="tag", precondition="none")
    single, many = (ps.Drive("default", **SMALL) for _ in range(2))
    for kind, offset, size, time in zip(*_requests(), strict=True):
        single.submit(kind, int(offset), int(size), int(time))
    assert len(single.wait()) == COUNT
    assert many.submit_many(*_requests()) == 0
    assert len(many.wait()) == COUNT
    figures = [_figures(each) for each in (run, single.finish(), many.finish())]
    assert figures[1] == figures[2]
    assert {key: value for key, value in figures[0].items() if key in figures[1]} == figures[1]


@pytest.mark.contract
def test_a_batch_is_the_loop_in_python() -> None:
    kinds, offsets, sizes, _ = _requests()
    batch = ps.Drive("default", closed_loop=True, **SMALL)
    done = batch.play(kinds, offsets, sizes, depth=4)
    assert (np.diff(done.time_ns.astype(np.int64)) >= 0).all()
    assert sorted(done.ticket) == list(range(COUNT))
    loop = ps.Drive("default", closed_loop=True, **SMALL)
    left, ended = iter(zip(kinds, offsets, sizes, strict=True)), []
    for request in left:
        loop.submit(request[0], int(request[1]), int(request[2]))
        ended += loop.completed()
        while loop.in_flight == 4:
            loop.advance(2**63)
            ended += loop.completed()
    while loop.in_flight:
        loop.advance(2**63)
        ended += loop.completed()
    assert [each.time_ns for each in ended] == done.time_ns.tolist()
    assert _figures(batch.finish()) == _figures(loop.finish())


@pytest.mark.contract
def test_bytes_survive_a_power_cut() -> None:
    drive = ps.Drive("mga-8k", ftl="page", payload="bytes", power_cuts=True, **TINY)
    drive.submit("write", 0, 8192, data=b"x" * 8192)
    drive.submit("flush")
    assert (drive.wait().status == 0).all()
    drive.submit("write", 0, 8192, data=b"y" * 8192)
    drive.power_cut(drive.now + 1)
    drive.advance(2**63)
    assert [each.status for each in drive.completed()] == ["power lost"]
    drive.submit("read", 0, 8192)
    drive.advance(2**63)
    (done,) = drive.completed()
    assert done.data in (b"x" * 8192, b"y" * 8192)
    assert drive.finish().power["cuts"] == 1


@pytest.mark.contract
def test_wrong_calls_are_one_line() -> None:
    drive = ps.Drive("default", **SMALL)
    drive.submit("write", 0, 4096, at=1000)
    for call, said in (
        (lambda: drive.submit("write", 0, 4096, at=10), "expected from 1000 ns"),
        (lambda: drive.submit("write", drive.size, 4096), "expected at most"),
        (lambda: drive.submit("write", 1, 4096), "512"),
        (lambda: drive.submit("erase"), "expected one of read, write, trim, flush"),  # type: ignore[arg-type]
        (lambda: drive.submit_many("read", [0, 4096], [4096], [0, 1]), "1 values for 2 requests"),
        (lambda: drive.submit_many("erase", [0], 4096, [2000]), "expected read, write, trim, flush"),
        (lambda: drive.submit_many("read", [0.5], 4096, [2000]), "whole numbers"),
        (lambda: drive.play("read", [0], 4096, depth=0), "depth 0"),
        (lambda: drive.power_cut(5000), "power_cuts"),
        (lambda: ps.Drive("nothing"), "nothing"),
        (lambda: ps.Drive("default", **UNREAD), "ftl.merge_limits"),
    ):
        with pytest.raises(ps.InputError, match=said) as raised:
            call()
        assert "\n" not in str(raised.value)
    drive.wait()
    drive.finish()
    with pytest.raises(ps.InputError, match="finished"):
        drive.submit("flush")


def test_drives_from_a_state_continue() -> None:
    first = ps.Drive("default", ftl="mga", precondition="fill:80%", **SMALL)
    offsets = np.random.default_rng(1).integers(0, 4000, 2000) * 4096
    first.play("write", offsets, 4096, depth=8)
    state = first.save()
    drives = [first, *(ps.Drive("default", ftl="mga", state=state, **SMALL) for _ in range(2))]
    times = [drive.play("write", offsets, 4096, depth=8).time_ns for drive in drives]
    assert (times[0] == times[1]).all()
    assert (times[0] == times[2]).all()
    figures = [_figures(drive.finish()) for drive in drives]
    assert figures[1] == figures[2]
    with pytest.raises(ps.InputError, match=r"another drive or build \(ftl.name = .*; here"):
        ps.Drive("default", ftl="page", state=state, **SMALL)
    with pytest.raises(ps.InputError, match="damaged bytes"):
        ps.Drive("default", ftl="mga", state=state[:-1], **SMALL)
