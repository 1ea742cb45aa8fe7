"""The command for tests, run by a process that has loaded the program: it forks one for each command.

What a command prints and its status are those of the installed script, which the forked process runs; the loading is
done once instead of for each (80 ms, 180 with tables). Not modelled: what happens while a program is being loaded, and
options of `subprocess.run` other than `cwd`. Tests of these start processes of their own, as those of the documents do.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


class Loaded:
    """The process that has loaded the program; it ends at `close`, or with the process of the tests."""

    def __init__(self, script: Path) -> None:
        self._script = script
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self._process.wait()

    def run(self, *arguments: str | Path, timeout: float, cwd: str | Path = ".") -> subprocess.CompletedProcess[str]:
        """What `subprocess.run` gives for the script with these arguments, what it prints captured as text.

        Raises:
            subprocess.TimeoutExpired: the command took more than `timeout` seconds and was killed.
        """
        words = [str(word) for word in (self._script, *arguments)]
        with contextlib.ExitStack() as opened:
            request, printed, errors = (opened.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
            json.dump({"words": words, "folder": str(Path(cwd).absolute()), "environment": dict(os.environ)}, request)
            request.seek(0)
            socket.send_fds(self._socket, [b"?"], [file.fileno() for file in (request, printed, errors)])
            process = self._number(None)
            try:
                status = self._number(timeout)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                self._number(None)
                raise subprocess.TimeoutExpired(words, timeout) from None
            for file in (printed, errors):
                file.seek(0)
            return subprocess.CompletedProcess(words, status, printed.read(), errors.read())

    def _number(self, timeout: float | None) -> int:
        """What the process says next, within so many seconds."""
        self._socket.settimeout(timeout)
        return int.from_bytes(self._socket.recv(4), "little", signed=True)


def load() -> None:
    """Imports all of the program, and the library of its tables."""
    package = importlib.import_module("palimpsest")
    for module in pkgutil.walk_packages(package.__path__, "palimpsest."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def serve(requests: socket.socket) -> dict[str, Any]:
    """Forks a process for each request and sends its number and its status; returns only where it was forked."""
    while streams := socket.recv_fds(requests, 1, 3)[1]:
        if not (process := os.fork()):
            requests.close()
            request: dict[str, Any] = json.loads(Path(f"/proc/self/fd/{streams[0]}").read_text(encoding="utf-8"))
            for place, stream in ((1, streams[1]), (2, streams[2])):
                os.dup2(stream, place)
            for stream in streams:
                os.close(stream)
            return request
        for stream in streams:
            os.close(stream)
        requests.send(process.to_bytes(4, "little", signed=True))
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        requests.send(status.to_bytes(4, "little", signed=True))
    sys.exit()


def end(script: Callable[[], object]) -> NoReturn:
    """Runs the script and ends as Python does, but frees nothing: that takes longer than a short command."""
    status: object = 0
    try:
        script()
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    if not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def main() -> None:
    """Loads the program, and is the script in each process that it forks."""
    load()
    gc.collect()
    gc.freeze()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    end(lambda: runpy.run_path(sys.argv[0], run_name="__main__"))


if __name__ == "__main__":
    main()
