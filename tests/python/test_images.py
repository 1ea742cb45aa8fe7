"""Images of served drives, on the native module: `serve --image` and the commands `image`."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import palimpsest as ps
from conftest import COMMAND, Command
from palimpsest.images import look
from test_serve import FLUSH, READ, SMALL, WRITE, Client

pytestmark = pytest.mark.contract


def start(folder: Path, *options: str) -> tuple[subprocess.Popen[str], Client]:
    """A server of `drive.pal` in `folder`, and a client of it."""
    place = folder / "drive.sock"
    command = [str(COMMAND), "serve", "--image", "drive.pal", "--listen", f"unix:{place}", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    while not lines or " at " not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    return process, Client(socket.AF_UNIX, str(place))


def test_a_drive_in_an_image_survives_its_server(palimpsest: Command, tmp_path: Path) -> None:
    path = tmp_path / "drive.pal"
    process, client = start(tmp_path, *SMALL, "--ftl", "subpage")
    for number in range(40):
        client.ask(WRITE, number * 8192, 4096, bytes([number + 1]) * 4096)
    client.ask(FLUSH, 0, 0)
    with pytest.raises(ps.InputError, match="in use by another process"):
        look("info", path)
    process.kill()
    client.socket.close()
    process.communicate()
    found = look("info", path)
    assert (found["drive"], found["ftl"], found["format"], found["ended_well"]) == ("mga-8k", "subpage", 5, False)
    assert found["written"]["host_bytes"] == 40 * 4096
    assert 40 * 4096 <= found["written"]["stored_bytes"] < found["disk_bytes"] < 2 << 20 < found["file_bytes"]
    # The image provides the configuration, and any other is refused.
    process, client = start(tmp_path)
    for number in range(40):
        assert client.ask(READ, number * 8192, 4096) == bytes([number + 1]) * 4096
    process.terminate()
    client.socket.close()
    assert re.search(r"workload +nbd: 40 requests", process.communicate(timeout=30)[0])
    other = palimpsest("serve", "--image", str(path), "--set", "ssd.blocks_per_plane=32", "--run", "true")
    assert other.returncode == 2
    assert "the image was made with ssd.blocks_per_plane = 64, not 32; expected" in other.stderr
    shown = palimpsest("image", "info", str(path)).stdout
    assert "services       2, of which 1 were broken off; the last: well" in shown
    assert look("check", path)["damaged"] == 0
    assert "given back" in palimpsest("image", "compact", str(path)).stdout


def test_files_that_are_no_images_get_one_line(palimpsest: Command, tmp_path: Path) -> None:
    process, client = start(tmp_path, *SMALL, "--ftl", "page")
    client.ask(WRITE, 0, 16384, os.urandom(16384))
    process.terminate()
    client.socket.close()
    process.communicate(timeout=30)
    whole = tmp_path / "drive.pal"
    with whole.open("rb") as file:
        begin = file.read(70_000)
    for name, contents in {"foreign": b"a file of someone's", "short": begin}.items():
        path, expected = tmp_path / name, {"foreign": "is no image", "short": "cut short"}[name]
        path.write_bytes(contents)
        for what in ("info", "check", "compact"):
            with pytest.raises(ps.InputError, match=expected):
                look(what, path)
        done = palimpsest("serve", "--run", "true", "--image", str(path))
        assert (done.returncode, done.stderr.count("\n"), expected in done.stderr) == (2, 1, True), done.stderr
        assert path.read_bytes() == contents
    with whole.open("r+b") as file:
        # Cells are at the end of the file.
        at = os.lseek(file.fileno(), whole.stat().st_size - look("info", whole)["flash_bytes"], os.SEEK_DATA)
        first = os.pread(file.fileno(), 1, at)[0]
        os.pwrite(file.fileno(), bytes([first ^ 1]), at)
    checked = palimpsest("image", "check", str(whole))
    assert checked.returncode == 1
    assert "its bytes do not match their checksum\n" in checked.stdout
    assert look("check", whole)["damaged"] == 1


def test_a_served_folder_says_how_to_play_its_requests(palimpsest: Command, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    place = f"unix:{tmp_path}/drive.sock"
    served = palimpsest("serve", *SMALL, "--listen", place, "--run", "true", "--out", str(folder))
    assert served.returncode == 0, served.stderr
    done = palimpsest("rerun", str(folder))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"palimpsest run --ssd {folder / 'config.toml'} --workload FILE.parquet" in done.stderr


CLIENT = """
import os, socket, struct, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
def take(count):
    taken = b""
    while len(taken) < count:
        taken += client.recv(count - len(taken))
    return taken
take(18)
client.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
take(10)
for number in range(200):
    offset, data = number * 37 % 91 * 8192, os.urandom(8192)
    client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1, number, offset, len(data)) + data)
    take(16)
    if number % 50 == 0:
        client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 3, number, 0, 0))
        take(16)
"""


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_a_served_folder_with_its_record_is_repeated(palimpsest: Command, tmp_path: Path, clock: str) -> None:
    folder, place = tmp_path / "out", tmp_path / "s"
    script = tmp_path / "client.py"
    script.write_text(CLIENT, encoding="ascii")
    folder.mkdir()
    served = palimpsest(
        "serve", *SMALL, "--clock", clock, "--precondition", "fill:50%", "--listen", f"unix:{place}",
        "--run", f"{sys.executable} -S {script} {place}", "--record", str(folder / "run.parquet"), "--out", str(folder),
    )  # fmt: skip
    assert served.returncode == 0, served.stderr
    done = palimpsest("rerun", str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "every byte agrees" in done.stdout
    with (folder / "run.parquet").open("ab") as file:
        file.write(b"x")
    changed = palimpsest("rerun", str(folder))
    assert (changed.returncode, changed.stderr.count("\n")) == (2, 1), changed.stderr
    assert f"{folder / 'run.parquet'}: the file is not the one" in changed.stderr


def test_an_image_is_a_drive_by_its_name(palimpsest: Command, tmp_path: Path) -> None:
    path = tmp_path / "drive.pal"
    made = palimpsest("serve", *SMALL, "--image", str(path), "--listen", f"unix:{tmp_path}/s", "--run", "true")
    assert made.returncode == 0, made.stderr
    for ssd, said in (("drive.pal", None), ("none.pal", "none.pal: there is no such file; expected")):
        done = palimpsest("run", "--ssd", ssd, "--workload", "rw=randwrite,bs=4k", "--requests", "100", cwd=tmp_path)
        assert (done.returncode == 0) == (said is None), done.stderr
        assert said is None or said in done.stderr
