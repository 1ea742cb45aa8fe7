"""Folders of results on a full disk: figures come first, written files stay, and the error names the file.

Tests of root use a file system in memory of a few pages. The other tests limit the length of files, or replace the
function that writes one.
"""

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import palimpsest as ps
from conftest import COMMAND, Command
from nvme_initiator import Admin, Disk, Queue, StatusError
from nvme_target import NQN, served
from palimpsest import files, outputs
from test_images import start
from test_serve import WRITE

CONTRACT, UNIT = pytest.mark.contract, pytest.mark.unit
SHORT = ("--workload", "rw=randread,bs=4k,size=64MiB,n=500", "--precondition", "none")
NO_SPACE = os.strerror(errno.ENOSPC)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder of 160 KiB: enough for the figures of a run, not for the page."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "none", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this user may mount nothing: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path, leave: int) -> None:
    """Fills a disk up to a few KiB."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        with contextlib.suppress(OSError):
            while filler.write(bytes(1024)):
                pass
        filler.truncate(filler.tell() - (leave << 10))


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@CONTRACT
def test_a_run_on_a_full_disk_keeps_its_figures(palimpsest: Command, small_disk: Path) -> None:
    done = palimpsest("run", *SHORT, "--json", "--out", str(small_disk))
    assert done.returncode == 1
    assert json.loads(done.stdout)["ftl"] == "subpage"
    expected = rf"error: {small_disk}/report.html: {NO_SPACE}; kept summary.json, config.toml, \S+ and \d more\n"
    assert re.fullmatch(expected, done.stderr), done.stderr
    assert {"summary.json", "config.toml", "latency.parquet"} <= set(names(small_disk))
    assert ps.load(small_disk).to_dict() == json.loads(done.stdout)


@CONTRACT
def test_a_comparison_on_a_full_disk_keeps_its_summary(palimpsest: Command, small_disk: Path) -> None:
    for path in (small_disk / "more", small_disk / "again"):
        done = palimpsest("compare", *SHORT, "--json", "--out", str(path))
        assert done.returncode == 1
        assert len(json.loads(done.stdout)["runs"]) == 2
        assert re.fullmatch(rf"error: {path}[/\w.]*: {NO_SPACE}; kept [^\n]+\n", done.stderr), done.stderr
    assert len(json.loads((small_disk / "more" / "summary.json").read_text())["runs"]) == 2


@CONTRACT
def test_a_sweep_on_a_full_disk_names_the_file(palimpsest: Command, small_disk: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        "[base]\nworkload = 'rw=randread,bs=4k,size=64MiB,n=50'\nprecondition = 'none'\n"
        "[grid]\nftl = ['page', 'subpage', 'dftl']\nseed = {from = 1, to = 6, step = 1}\n"
    )
    done = palimpsest("sweep", str(file), "--out", str(small_disk / "s"), "--json", "--jobs", "1")
    assert done.returncode == 1
    shown = json.loads(done.stdout)["points"]
    kept, error = done.stderr.splitlines()
    assert re.fullmatch(rf"error: {small_disk}/s/[^\n:]+: {NO_SPACE}", error), done.stderr
    assert re.match(r"\d+ of 18 points are kept", kept)
    assert 0 < int(kept.split()[0]) <= len(shown)


@CONTRACT
@pytest.mark.parametrize(
    ("arguments", "first", "leave"),
    [
        ("trace info rw=randread,bs=4k,size=64MiB,n=20000 --json --out DISK", "trace.json", 160),
        (
            "fit job.toml --start mga-16k --vary part.t_read=30us..60us --evaluations 2 --json --out DISK",
            "fit.json",
            24,
        ),
    ],
)
def test_figures_come_before_pages(
    palimpsest: Command, small_disk: Path, tmp_path: Path, arguments: str, first: str, leave: int
) -> None:
    (tmp_path / "job.toml").write_text(
        "[[figure]]\nworkload = 'rw=randread,bs=4k,size=1MiB,n=100'\nmeasure = 'read.mean'\nvalue = 60\nunit = 'us'\n"
        "requests = 100\nprecondition = 'fill:1%'\n"
    )
    fill(small_disk, leave)
    done = palimpsest(*arguments.replace("DISK", str(small_disk)).split(), cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)
    error = done.stderr.splitlines()[-1]
    assert re.fullmatch(rf"error: {small_disk}/[^\n:]+: {NO_SPACE}; kept {first}[^\n]*", error), done.stderr
    assert (small_disk / first).stat().st_size


@CONTRACT
def test_a_record_on_a_full_disk_is_named(small_disk: Path, tmp_path: Path) -> None:
    fill(small_disk, 0)
    place = tmp_path / "s"
    command = f"{COMMAND} serve --ssd mga-8k --listen unix:{place} --record {small_disk}/r.parquet --run true"
    done = subprocess.run(command.split(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(
        rf"error: the record ends after 0 requests: {small_disk}/r.parquet: {NO_SPACE}[^\n]*",
        done.stderr.splitlines()[-1],
    )


@CONTRACT
def test_a_full_disk_beneath_an_image_ends_the_server(small_disk: Path) -> None:
    """Regression: the server answered every request with an error, and never ended."""
    server, client = start(small_disk, "--ssd", "mga-8k", "--ftl", "page")

    def write_all() -> None:
        for block in range(1000):
            client.ask(WRITE, 8192 * block, 8192, os.urandom(8192))

    with pytest.raises(AssertionError, match=f", {errno.EIO}, "):
        write_all()
    client.socket.close()
    said = server.communicate(timeout=60)[1]
    assert server.returncode == 1
    assert "every further request is refused, and the server ends" in said
    assert re.search(rf"^error: the image cannot be written: {NO_SPACE}", said, re.MULTILINE)


@CONTRACT
@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_an_nvme_write_to_a_full_disk_has_a_status(small_disk: Path, clock: str) -> None:
    options = ("--image", str(small_disk / "drive.pal"), "--clock", clock)
    with served(*options) as (process, place):
        disk = Disk(place, NQN, number=1, controller=Admin(place, NQN).controller)

        def write_all() -> None:
            for block in range(1000):
                disk.write(block, os.urandom(4096))

        with pytest.raises(StatusError) as refused:
            write_all()
        assert refused.value.status == 6, "internal error"
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert f"the image cannot be written: {NO_SPACE}" in said
    while Queue.opened:
        Queue.opened.pop().close()


@CONTRACT
def test_a_recording_on_a_full_disk_is_named(palimpsest: Command, small_disk: Path) -> None:
    program = "dd if=/dev/urandom of={file} bs=4k count=100 conv=notrunc,fsync 2>&1"
    crash = ("crash", "--run", program, "--check", "true", "--size", "1MiB", "--no-drive")
    done = palimpsest(*crash, "--out", str(small_disk / "a"))
    if "palimpsest crash needs" in done.stderr or "/dev/fuse" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert re.fullmatch(rf"error: {small_disk}/a/log.bin: {NO_SPACE}[^\n]*\n", done.stderr), done.stderr


@CONTRACT
def test_a_drawing_that_cannot_be_written_is_named(palimpsest: Command, small_disk: Path, tmp_path: Path) -> None:
    assert palimpsest("run", *SHORT, "--out", str(tmp_path / "a")).returncode == 0
    fill(small_disk, 40)
    done = palimpsest("figure", "cdf", str(tmp_path / "a"), "-o", str(small_disk / "a.png"), "--columns", "2")
    assert done.returncode == 1
    assert re.fullmatch(rf"error: {small_disk}/a\.(png|csv): {NO_SPACE}; kept [^\n]+\n", done.stderr), done.stderr


@CONTRACT
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_on_a_full_disk_is_named(small_disk: Path, unbuffered: str) -> None:
    fill(small_disk, 4)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with (small_disk / "out.json").open("w") as full:
        command = [str(COMMAND), "run", *SHORT, "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (1, f"error: standard output: {NO_SPACE}\n")


@CONTRACT
def test_a_folder_that_may_not_be_written_costs_no_run(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for command in ("run", "compare", "reproduce mga", "validate --quick", "trace info trade"):
        done = subprocess.run(
            [COMMAND, *command.split(), "--out", small_disk], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: --out {small_disk}: the folder may not be written; expected another")


@UNIT
def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    result = ps.run("rw=randread,bs=4k,size=64MiB,n=50", precondition="none")
    result.save(folder)
    shutil.rmtree(folder.parent)
    result.save(folder)
    files.write_in_order(tmp_path / "c" / "d", [("e", b"f")])
    assert (tmp_path / "c" / "d" / "e").read_bytes() == b"f"


@UNIT
def test_a_result_that_fails_leaves_no_page_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (ps.run("rw=randread,bs=4k,size=64MiB,n=50", precondition="none", seed=seed) for seed in (1, 2))
    assert one.save(tmp_path / "a").joinpath("report.html").is_file()
    whole = files.write_whole

    def full(path: Path, content: bytes) -> None:
        if path.name == "report.html":
            raise OSError(errno.ENOSPC, NO_SPACE, str(path))
        whole(path, content)

    monkeypatch.setattr(files, "write_whole", full)
    with pytest.raises(OSError, match=re.escape(f"{NO_SPACE}; kept summary.json, config.toml")) as error:
        two.save(tmp_path / "a")
    assert error.value.filename == str(tmp_path / "a" / "report.html")
    assert ps.load(tmp_path / "a") == two
    assert not (tmp_path / "a" / "report.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@UNIT
def test_a_write_without_a_name_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_number: int) -> None:
        raise OSError(errno.ENOSPC, NO_SPACE)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=NO_SPACE) as error:
        files.write_whole(tmp_path / "a", b"b")
    assert error.value.filename == str(tmp_path / "a")
    assert not any(tmp_path.iterdir())
    assert outputs
