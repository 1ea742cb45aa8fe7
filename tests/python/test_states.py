"""Kept states: a state gives the same results as preconditioning, for any content of the folder."""

import collections
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import Command, measured
from palimpsest import _core, states
from palimpsest.sweeps.local import _take

SMALL = {"ssd.channels": 2, "ssd.blocks_per_plane": 24, "host.fold": True}
OPTIONS = [f"--set={key}={str(value).lower()}" for key, value in SMALL.items()]
RUN = ("run", *OPTIONS, "--workload=rw=randrw,bs=4k,n=500", "--json")


def figures(text: str) -> Any:
    """A printed result without time and memory of the run."""
    found = json.loads(text)
    del found["sim"]
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.state"))


def test_a_second_run_goes_on_from_the_state_of_the_first(palimpsest: Command, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    without = figures(palimpsest(*RUN).stdout)
    first = palimpsest(*RUN, f"--state={folder}")
    (kept,) = files(folder)
    before = kept.stat()
    second = palimpsest(*RUN, f"--state={folder}")
    assert figures(first.stdout) == figures(second.stdout) == without
    assert first.stderr == second.stderr == ""
    assert kept.stat().st_ino == before.st_ino, "the file was read, not written again"
    assert kept.stat().st_mtime_ns > before.st_mtime_ns, "what is used is kept longest"
    # Another workload and host find the state; another drive and seed do not.
    shared = palimpsest(*RUN[:-2], "--workload=rw=randread,bs=8k,n=300", "--set=host.iodepth=3", f"--state={folder}")
    assert shared.returncode == 0
    assert len(files(folder)) == 1
    palimpsest(*RUN, f"--state={folder}", "--set=ftl.victim=fifo")
    assert len(files(folder)) == 2


@pytest.fixture
def keep() -> Iterator[Callable[..., None]]:
    """`keep_states`, until the end of the test."""
    yield ps.keep_states
    _core.keep_states(0, None, 0)
    states._chosen.clear()


def run(seed: int = 1, progress: Any = None, **settings: Any) -> ps.Result:
    overrides = SMALL | settings
    return ps.run("rw=randrw,bs=4k,n=500", overrides=overrides, seed=seed, progress=progress, series=False)


def test_what_is_wrong_with_a_file_is_a_note(keep: Callable[..., None], tmp_path: Path) -> None:
    without = run()
    keep(tmp_path, memory=0)
    assert run() == without
    (kept,) = files(tmp_path)
    whole = kept.read_bytes()
    flipped = bytearray(whole)
    flipped[-100] ^= 4
    for wrong in (b"", whole[: len(whole) // 2], bytes(flipped), b"not a state at all", whole + b"more"):
        kept.write_bytes(wrong)
        with pytest.warns(UserWarning, match=f"note: {kept}: the file is torn, or is no state of") as notes:
            assert run() == without
        assert len(notes) == 1
        assert kept.read_bytes() == whole, "the state is made anew"
    assert run() == without
    assert kept.read_bytes() == whole


def test_a_folder_takes_no_more_than_its_size(keep: Callable[..., None], tmp_path: Path) -> None:
    other = tmp_path / "0123.txt"
    other.write_text("not ours")
    keep(tmp_path, memory=0)
    run()
    (first,) = files(tmp_path)
    size = first.stat().st_size
    os.utime(first, (1, 1))
    keep(tmp_path, size=2 * size + 1000, memory=0)
    run(seed=2)
    assert first.exists()
    assert len(files(tmp_path)) == 2
    run(seed=3)
    assert not first.exists(), "the one used least recently goes"
    assert len(files(tmp_path)) == 2
    keep(tmp_path, size="100KiB", memory=0)
    with pytest.warns(UserWarning, match="the folder may take 102400; expected a larger size"):
        run(seed=4)
    assert other.read_text() == "not ours"
    assert len(files(tmp_path)) == 2


def test_mistakes(palimpsest: Command, tmp_path: Path) -> None:
    expected = "--state-size: '2Gb' is no size; expected one such as 2GiB or 500MiB"
    for option, said in (
        ("--state-size=2Gb", expected),
        ("--state-size=2GiB", "--state-size: no folder of states is kept; expected --state DIR beside it"),
        ("--state=/dev/null", "/dev/null: the folder of states cannot be made: File exists (os error 17)"),
    ):
        done = palimpsest(*RUN, option, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"error: {said}\n")


def test_points_of_a_sweep_use_the_folder(palimpsest: Command, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    base = "".join(f"{key} = {str(value).lower()}\n" for key, value in SMALL.items())
    file.write_text(
        f'[base]\nworkload = "rw=randread,bs=4k,n=300"\n{base}[grid]\nhost.iodepth = [1, 4, 16]\n', encoding="utf-8"
    )
    for out, more in (("a", ()), ("b", (f"--state={tmp_path / 'states'}",))):
        done = palimpsest("sweep", str(file), f"--out={tmp_path / out}", "--jobs=1", *more)
        assert done.returncode == 0, done.stderr
    assert len(files(tmp_path / "states")) == 1
    assert measured(tmp_path / "a").equals(measured(tmp_path / "b"))


def test_a_worker_goes_on_with_the_drive_that_it_has() -> None:
    def taken(*waiting: tuple[str, int], state: str | None, others: set[str | None]) -> tuple[str, int]:
        queue = collections.deque(
            ({"identity": f"{place}", "state": one}, tries) for place, (one, tries) in enumerate(waiting)
        )
        task, tries = _take(queue, state, others)
        assert len(queue) == len(waiting) - 1
        return str(task["identity"]), tries

    points = (("a", 1), ("a", 1), ("b", 1), ("c", 1), ("b", 2))
    assert taken(*points, state=None, others={None}) == ("0", 1)
    assert taken(*points, state="b", others={"a", "b"}) == ("2", 1)
    assert taken(*points, state=None, others={"a", "b", None}) == ("3", 1), "a drive that no other worker is at"
    assert taken(*points, state="d", others={"a", "b", "c", "d"}) == ("0", 1)
    assert taken(("a", 1), ("b", 2), state="b", others={"b"}) == ("0", 1), "what was tried before is last"


def test_runs_of_a_program_share_states_in_memory(
    keep: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without, folder = run(), tmp_path / "states"
    keep(folder, size="1GiB")
    assert states.environment() == {states.FOLDER: str(folder), states.SIZE: str(1 << 30)}
    assert run() == without
    assert run() == without
    assert run(**{"host.iodepth": 2}).requests == without.requests
    (kept,) = files(folder)
    kept.write_bytes(b"torn")
    assert run() == without, "memory has it"
    keep(folder, memory=0)
    with pytest.warns(UserWarning, match="the file is torn"):
        assert run() == without
    monkeypatch.setattr(states, "_decided", False)
    monkeypatch.setenv(states.FOLDER, str(tmp_path / "named"))
    assert run() == without
    assert len(files(tmp_path / "named")) == 1, "the environment names it"
    with pytest.raises(ps.InputError, match="size of states 'much'"):
        keep(size="much")
    with pytest.raises(ps.InputError, match="the folder of states cannot be made"):
        keep("/dev/null/x")
