"""The command `palimpsest live`: the lab in a browser, served to this machine alone, or written as a folder.

The page of `live` runs the simulator as WebAssembly, which `make live` builds. Ignored: other machines, and HTTPS.
"""

import functools
import shutil
import threading
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from .commands import command, say, show
from .errors import InputError

FOLDER = Path(__file__).parent / "live"
MODULE = "palimpsest.wasm.gz"
_WAIT_S = 0.5


class _Handler(SimpleHTTPRequestHandler):
    """Serves files without a log, with the type that modules need on every system."""

    extensions_map = {  # noqa: RUF012 - as http.server has it
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
    }

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@command("live", short_help="Watch a small drive work, in a browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0: any free port.")
@click.option("--no-browser", is_flag=True, help="Open no browser, and print the address alone.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the static folder, and serve nothing."
)
def live(port: int, *, no_browser: bool, out: Path | None) -> None:
    """Watch a small drive in slow motion: nine guided scenes in a browser, offline.

    The page runs the simulator itself. Ctrl-C ends the server.

    \b
    Examples:
      palimpsest live
      palimpsest live --port 8000 --no-browser
      palimpsest live --out lab
    """
    if not (FOLDER / MODULE).is_file():
        raise InputError(
            f"live: this installation has no {MODULE}; expected a wheel with it, or `make live` in the sources"
        )
    if out is not None:
        _write(out)
    else:
        _serve(port, opens=not no_browser)


def _write(out: Path) -> None:
    """Copies the files of the lab into a new or empty folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: there is such a file or folder already; expected a new or an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.iterdir()):
        shutil.copyfile(path, out / path.name)
    show(f"{out}: serve this folder by any web server, such as python -m http.server")


def _serve(port: int, *, opens: bool) -> None:
    """Serves the lab until Ctrl-C."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Handler, directory=str(FOLDER)))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--port {port}: {reason}; expected a free port, or 0 for any") from error
    address = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        show(f"the lab is at {address}; Ctrl-C ends it")
        if opens:
            webbrowser.open(address)
        while thread.is_alive():
            thread.join(_WAIT_S)
    except KeyboardInterrupt:
        say("the lab has ended")
    finally:
        server.shutdown()
        server.server_close()
