"""Runs the notebooks of the documentation as pages with outputs: `python tools/tour.py docs/tour.md docs/pacing.md`.

A page and its notebook have one name. A notebook runs once for each state of the inputs: `target/tour/`
and `target/pacing/` keep the outputs for the pages and for the tests.
The plotly.js beside the page draws the plots, so the site needs no network.
"""

import fcntl
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from plotly.offline import get_plotlyjs

_ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = _ROOT / "docs" / "tour.ipynb"
PACING = _ROOT / "docs" / "pacing.ipynb"
_KEPT = _ROOT / "target"
_PLOTLY = "application/vnd.plotly.v1+json"


def execute(path: Path) -> NotebookNode:
    """The notebook with outputs, run in an empty folder.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources=resources, extra_arguments=["--log-level=ERROR"]
        )
        return client.execute()


def executed(path: Path) -> NotebookNode:
    """The notebook with its outputs; the kept ones if no input has changed.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    folder = _KEPT / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Other processes wait here for the outputs.
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = folder / f"{state(path)}.ipynb"
        if not kept.exists():
            notebook = execute(path)
            for old in folder.glob("*.ipynb"):
                old.unlink()
            unfinished = kept.with_suffix(".new")
            nbformat.write(notebook, unfinished)  # type: ignore[no-untyped-call]
            unfinished.rename(kept)
        return nbformat.read(kept, as_version=4)  # type: ignore[no-untyped-call, no-any-return]


def state(path: Path) -> str:
    """A digest of the outputs' inputs: the notebook, the package with its module, the versions of other packages."""
    package = _ROOT / "python" / "palimpsest"
    sources = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256(sys.version.encode())
    for source in (path, Path(__file__), _ROOT / "requirements" / "dev.lock", *sorted(sources)):
        digest.update(str(source).encode())
        with source.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _shown(output: NotebookNode, name: str) -> str:
    """One output as Markdown: a plot, else HTML, else text."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```\n"
    data = output.data
    if _PLOTLY in data:
        # A legend at the side would leave no room for the plot on a phone.
        below = {"legend": {"orientation": "h", "y": -0.25}}
        figure = {"data": data[_PLOTLY]["data"], "layout": data[_PLOTLY]["layout"] | below}
        drawn = json.dumps(figure).replace("</", "<\\/")
        return (
            f'<div id="{name}" style="height: 26rem"></div>\n'
            f'<script>Plotly.newPlot("{name}", {drawn}, {{}}, {{responsive: true}})</script>\n'
        )
    if "text/html" in data:
        # A blank line would end the HTML in Markdown.
        return '<div class="output">' + "".join(line.strip() for line in data["text/html"].splitlines()) + "</div>\n"
    return f"```text\n{data['text/plain']}\n```\n"


def page(notebook: NotebookNode, name: str) -> str:
    """The page of the notebook `name`, as Markdown."""
    parts = ['<script src="plotly.min.js"></script>\n']
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(f"{cell.source}\n")
            continue
        parts.append(f"```python\n{cell.source}\n```\n")
        outputs = (output for output in cell.outputs if output.get("name") != "stderr")
        parts += [_shown(output, f"output-{number}-{at}") for at, output in enumerate(outputs)]
    parts.append(f"This page is a notebook: [{name}]({name}).\n")
    return "\n".join(parts)


if __name__ == "__main__":
    for written in map(Path, sys.argv[1:]):
        notebook = written.with_suffix(".ipynb")
        written.write_text(page(executed(_ROOT / "docs" / notebook.name), notebook.name), encoding="utf-8")
        (written.parent / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
