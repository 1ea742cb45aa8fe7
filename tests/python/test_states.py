"""Kept states: a state gives the same results as preconditioning, for any content of the folder."""

import collections
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import COMMAND, Command, measured
from palimpsest import states
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
    states.use_none()


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
        ("--state-size=2GiB --no-cache", "--state-size: --no-cache keeps no states; expected one of them"),
        ("--no-cache --state=a", "--no-cache: --state names a folder in place of the cache; expected one of them"),
        ("--state=/dev/null", "/dev/null: the folder of states cannot be made: File exists (os error 17)"),
    ):
        done = palimpsest(*RUN, *option.split(), cwd=tmp_path)
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


CACHED = (
    "--set=ssd.channels=2", "--set=ssd.blocks_per_plane=96", "--workload=rw=randrw,bs=4k,n=500",
    "--precondition=fill:90%,random:0.1x",
)  # fmt: skip
"""Options of a drive that is large enough for the cache."""
ANEW = "preconditioned drive: 1 stored for later runs (--no-cache stores none)\n"
AGAIN = "preconditioned drive: 1 loaded (--no-cache preconditions anew)\n"


@pytest.fixture
def cached(tmp_path: Path) -> Command:
    """Calls the command with a cache in the folder of the test, and these variables of the environment."""

    def call(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
        environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)} | variables
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done

    return call


def test_runs_start_from_the_cache_by_default(cached: Command, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "palimpsest" / "states"
    without = cached("run", *CACHED, "--json", "--no-cache")
    off = cached("run", *CACHED, "--json", PALIMPSEST_NO_CACHE="1")
    assert without.stderr == off.stderr == ""
    assert not folder.exists()
    first, second = (cached("run", *CACHED, "--json") for _ in range(2))
    assert (first.stderr, second.stderr) == (f"note: {folder}: {ANEW}", f"note: {folder}: {AGAIN}")
    assert figures(first.stdout) == figures(second.stdout) == figures(without.stdout) == figures(off.stdout)
    # A cache of another user, of another program, or damaged.
    (kept,) = files(folder)
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1])
    (folder / f"{'0' * 32}.state").write_text("not ours")
    third = cached("run", *CACHED, "--json")
    expected = f"note: {kept}: the file is torn, or is no state of this drive and this program; "
    assert third.stderr == f"{expected}the drive is preconditioned anew\nnote: {folder}: {ANEW}"
    assert figures(third.stdout) == figures(without.stdout)
    assert kept.read_bytes() == whole
    # A folder of the user replaces the cache.
    named = cached("run", *CACHED, "--json", PALIMPSEST_STATE=str(tmp_path / "named"))
    assert named.stderr == ""
    assert (tmp_path / "named" / kept.name).read_bytes() == whole
    anew = cached("run", *CACHED, "--json", "--no-cache", PALIMPSEST_STATE=str(tmp_path / "other"))
    assert (anew.stderr, (tmp_path / "other").exists()) == ("", False)


def test_the_cache_is_bounded_and_keeps_its_own(cached: Command, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "palimpsest" / "states"
    cached("run", *CACHED, "--requests=1")
    (first,) = files(folder)
    size = first.stat().st_size
    for number in range(5):
        shutil.copy(first, folder / f"{number:032x}.state")
        os.utime(folder / f"{number:032x}.state", (number + 1, number + 1))
    bound = f"--state-size={5 * size + size // 2}"
    cached("run", *CACHED, "--requests=1", "--seed=2", bound)
    left = [path.name for path in files(folder)]
    assert [f"{number:032x}.state" in left for number in range(5)] == [False, False, True, True, True]
    assert first.name in left
    assert len(left) == 5
    # Runs of one process keep each other's drives: the last ones find no space.
    for old in files(folder):
        os.utime(old, (1, 1))
    seeds = cached("run", *CACHED, "--seeds=11..17", "--requests=1", bound)
    assert "preconditioned drives: 5 stored" in seeds.stderr
    assert len(files(folder)) == 5
    assert not first.exists()


def test_without_a_place_for_the_cache_runs_work(cached: Command, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = cached("run", *CACHED, "--requests=1", XDG_CACHE_HOME=str(file))
    said = f"note: {file}/palimpsest/states: "
    assert done.stderr.startswith(said)
    assert done.stderr.endswith("the preconditioned drive is not kept (--no-cache tries nothing)\n")
    assert done.stderr.count("\n") == 1
    # A relative folder does not count (XDG Base Directory Specification).
    cached("run", *CACHED, "--requests=1", XDG_CACHE_HOME="relative")
    assert files(tmp_path / ".cache" / "palimpsest" / "states")
    assert not (tmp_path / "relative").exists()
    # Small drives are preconditioned as fast as they are loaded.
    small = cached("run", *OPTIONS, "--requests=1")
    assert small.stderr == ""
    assert len(files(tmp_path / ".cache" / "palimpsest" / "states")) == 1


def test_comparisons_and_sweeps_start_from_the_cache(cached: Command, tmp_path: Path) -> None:
    compared = ("compare", *CACHED, "--ftl=page,subpage", "--json")
    results = [json.loads(cached(*compared, *more).stdout)["runs"] for more in (["--no-cache"], [], [])]
    for runs in results:
        for each in runs:
            del each["sim"]
    assert results[0] == results[1] == results[2]
    said = cached(*compared).stderr
    assert "preconditioned drives: 2 loaded (--no-cache" in said
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[base]\nworkload = "rw=randrw,bs=4k,n=500"\nssd.channels = 2\nssd.blocks_per_plane = 96\n'
        'precondition = "fill:90%,random:0.1x"\n'
        '[grid]\nftl = ["page", "subpage"]\nhost.iodepth = [1, 4]\n',
        encoding="utf-8",
    )
    without = cached("sweep", str(file), "--out=a", "--jobs=2", "--no-cache")
    swept = cached("sweep", str(file), "--out=b", "--jobs=1")
    assert "preconditioned drives" not in without.stderr
    assert "preconditioned drives: 2 loaded (--no-cache" in swept.stderr
    assert measured(tmp_path / "a").equals(measured(tmp_path / "b"))


def test_code_of_the_user_is_not_in_the_cache(cached: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Oldest:\n    def choose(self, blocks):\n        return blocks.age.argmax()\n"
    )
    done = cached("run", *CACHED, "--requests=1", "--set=ftl.victim=mine.py:Oldest")
    assert done.stderr == ""
    assert not files(tmp_path / "cache" / "palimpsest" / "states")


def test_processes_share_the_cache_without_torn_files(cached: Command, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: cached("run", *CACHED, "--json"), range(4)))
    assert len({json.dumps(figures(each.stdout)) for each in done}) == 1
    assert all(each.stderr.endswith((ANEW, AGAIN)) for each in done)
    assert len(list((tmp_path / "cache" / "palimpsest" / "states").iterdir())) == 1


def test_the_cache_has_the_place_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    places = {"linux": ".cache", "darwin": "Library/Caches", "freebsd14": ".cache"}
    for system, place in places.items():
        monkeypatch.setattr(sys, "platform", system)
        assert states.cache_folder() == tmp_path / place / "palimpsest" / "states"
    monkeypatch.setattr(Path, "home", lambda: Path("relative"))
    assert states.cache_folder() is None
    states.use_cache(1)
    assert states.environment() == {states.FOLDER: ""}
    states.use_none()
