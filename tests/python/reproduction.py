"""What every reproduction of a paper must do, whichever paper: contract, agreement rule, same bytes, real traces."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from conftest import Command, figures
from palimpsest.reproduce import outputs
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.figures import Figure
from palimpsest.reproduce.outputs import Reproduction


def check_quick(
    palimpsest: Command, paper: str, folder: Path, claims: set[str], pictures: list[str]
) -> dict[str, float]:
    """Runs `reproduce PAPER --quick` into `folder`, and checks what the contract says of it; ours of each claim."""
    made = figures(palimpsest("reproduce", paper, "--quick", "--json", "--out", str(folder)))
    assert made["paper"] == paper
    assert {claim["id"] for claim in made["claims"]} == claims
    for claim in made["claims"]:
        assert {"id", "claim", "paper", "ours", "unit", "agrees", "note"} <= claim.keys()
        if isinstance(claim["paper"], float | int):
            assert claim["agrees"] is (abs(claim["ours"] - claim["paper"]) <= abs(claim["paper"]) / 4)
        assert claim["agrees"] or claim["note"], claim
    assert [figure["id"] for figure in made["figures"]] == pictures
    for figure in made["figures"]:
        assert Path(figure["data"]).is_file()
        assert Path(figure["picture"]).read_text(encoding="utf-8").startswith("<?xml")
    # Every figure from a synthetic look-alike of a trace says so.
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.lower().count("synthetic") > len(pictures) / 2
    return {claim["id"]: claim["ours"] for claim in made["claims"]}


def check_same_bytes(reproduce: Callable[[Batch], Reproduction], folder: Path) -> None:
    """Whatever runs beside, the files are the same."""
    files = []
    for jobs in (1, 2):
        out = folder / str(jobs)
        outputs.write([reproduce(Batch(jobs))], out, each_apart=False)
        files.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    assert files[0] == files[1]


def trace_figure(reproduce: Callable[[Batch], Reproduction], folder: Path, requests: Iterable[str]) -> Figure:
    """The last figure with `own.csv` as the only real trace: that of the traces."""
    lines = ["time_ns,op,offset_bytes,size_bytes", *requests]
    (folder / "own.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = reproduce(Batch(2, traces=str(folder)))
    assert json.dumps(made.to_dict())
    extra = made.figures[-1]
    assert extra.id == "traces"
    assert extra.data["trace"].unique().to_list() == ["own"]
    return extra
