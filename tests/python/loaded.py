"""Runs the command for tests in a process that has loaded the program and forks for each command.

The forked process runs the installed script, so output and status are the script's. Loading happens once instead of for
each command (80 ms, 180 with tables, 500 with figures). Not modelled: effects and decisions of loading (the width of
the help), and options of `subprocess.run` other than `cwd`. Tests of these start separate processes.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

import ask


class Loaded:
    """The process that has loaded the program; it ends at `close`, or with the process of the tests.

    Attributes:
        folder: a folder with the command `palimpsest`, for the path of a shell.
    """

    def __init__(self, script: Path) -> None:
        self._script = script
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self._place = str(self.folder / "socket")
        words = [sys.executable, "-IS", ask.__file__, self._place, str(script)]
        command = self.folder / script.name
        command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        # The process ends when no other process holds the write end of its standard input.
        begin = [sys.executable, __file__, self._place]
        self._process = subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        assert said.readline() == b"loaded\n", "the program cannot be loaded"
        said.close()

    def close(self) -> None:
        """Ends the process."""
        held: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        held.close()
        self._process.wait()
        self._temporary.cleanup()

    def run(self, *arguments: str | Path, timeout: float, cwd: str | Path = ".") -> subprocess.CompletedProcess[str]:
        """Returns the result of `subprocess.run` for the script with these arguments, with the output captured as text.

        Raises:
            subprocess.TimeoutExpired: the command took more than `timeout` seconds and was killed.
        """
        words = [str(word) for word in (self._script, *arguments)]
        with contextlib.ExitStack() as opened:
            printed, errors = (opened.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            streams = (0, printed.fileno(), errors.fileno())
            asked = opened.enter_context(ask.ask(self._place, words, str(Path(cwd).absolute()), os.environ, streams))
            process = ask.number(asked)
            asked.settimeout(timeout)
            try:
                status = ask.number(asked)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                asked.settimeout(None)
                ask.number(asked)
                raise subprocess.TimeoutExpired(words, timeout) from None
            for file in (printed, errors):
                file.seek(0)
            return subprocess.CompletedProcess(words, status, printed.read(), errors.read())


def load() -> None:
    """Imports the whole program, and the libraries of its tables and figures."""
    package = importlib.import_module("palimpsest")
    for module in pkgutil.walk_packages(package.__path__, "palimpsest."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("matplotlib.figure")


def send(asked: socket.socket, number: int) -> None:
    """Sends a number to the client, if it is still connected."""
    with contextlib.suppress(OSError):
        asked.send(number.to_bytes(4, "little", signed=True))


def serve(requests: socket.socket) -> dict[str, Any]:
    """Forks for each request and sends the process number and the status; returns only in a forked process."""
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    for descriptor in (sys.stdin.fileno(), requests.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == sys.stdin.fileno():
                sys.exit()
            if descriptor in running:
                process, asked = running.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                send(asked, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
                asked.close()
                continue
            asked, _ = requests.accept()
            streams = socket.recv_fds(asked, 1, 4)[1]
            if not (process := os.fork()):
                for other in (requests, asked, *(other for _, other in running.values())):
                    other.close()
                for other_end in running:
                    os.close(other_end)
                request: dict[str, Any] = json.loads(Path(f"/proc/self/fd/{streams[0]}").read_text(encoding="utf-8"))
                for place, stream in enumerate(streams[1:]):
                    os.dup2(stream, place)
                for stream in streams:
                    os.close(stream)
                return request
            for stream in streams:
                os.close(stream)
            send(asked, process)
            ended = os.pidfd_open(process)
            running[ended] = process, asked
            poll.register(ended, select.POLLIN)


def end(script: Callable[[], object]) -> NoReturn:
    """Runs the script and exits like Python without freeing memory, which takes longer than a short command."""
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
    """Loads the program and serves; runs the script in each forked process."""
    load()
    gc.collect()
    gc.freeze()
    requests = socket.socket(socket.AF_UNIX)
    requests.bind(sys.argv[1])
    requests.listen()
    print("loaded", flush=True)
    request = serve(requests)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    end(lambda: runpy.run_path(sys.argv[0], run_name="__main__"))


if __name__ == "__main__":
    main()
