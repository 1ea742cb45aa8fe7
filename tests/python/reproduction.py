"""What every reproduction of a paper must do, whichever paper: contract, agreement rule, same bytes, real traces."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    assert all(claim["agrees"] or claim["note"] for claim in made["claims"])
    return check_contract(made, folder, claims, pictures)


def check_contract(made: dict[str, Any], folder: Path, claims: set[str], pictures: list[str]) -> dict[str, float]:
    """Checks claims, the agreement rule, figures and files of a reproduction in `folder`; ours of each claim."""
    assert {claim["id"] for claim in made["claims"]} == claims
    for claim in made["claims"]:
        assert {"id", "claim", "paper", "ours", "unit", "agrees", "note"} <= claim.keys()
        if isinstance(claim["paper"], float | int):
            off = math.inf if claim["ours"] is None else abs(claim["ours"] - claim["paper"])
            assert claim["agrees"] is (off <= abs(claim["paper"]) / 4), claim
        # The smallest runs are too small to measure some things, and say nothing of them.
        assert claim["agrees"] or claim["note"] or claim["ours"] is None, claim
    assert [figure["id"] for figure in made["figures"]] == pictures
    for figure in made["figures"]:
        assert Path(figure["data"]).is_file()
        assert Path(figure["picture"]).read_text(encoding="utf-8").startswith("<?xml")
    # Every figure from a synthetic look-alike of a trace says so.
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.lower().count("synthetic") > len(pictures) / 2
    return {claim["id"]: claim["ours"] for claim in made["claims"]}


@dataclass(frozen=True)
class Smallest:
    """The smallest reproduction that has every figure: ours of each claim, its files, the figure of the real trace."""

    ours: dict[str, float]
    folder: Path
    traces: Figure


def check_smallest(
    reproduce: Callable[[Batch], Reproduction],
    folder: Path,
    claims: set[str],
    pictures: list[str],
    requests: Iterable[str],
) -> Smallest:
    """Checks that the contract holds, that files are the same whatever runs beside, and the last figure.

    It is that of the real traces, of which `own.csv` with these requests is the only one.
    """
    lines = ["time_ns,op,offset_bytes,size_bytes", *requests]
    traces = folder / "traces"
    traces.mkdir()
    (traces / "own.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = []
    for jobs in (1, 2):
        out = folder / str(jobs)
        made = reproduce(Batch(jobs, traces=str(traces)))
        outputs.write([made], out, each_apart=False)
        files.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
    assert files[0] == files[1]
    described = json.loads(json.dumps(made.to_dict(out)))
    ours = check_contract(described, out, claims, [*pictures, "traces"])
    extra = made.figures[-1]
    assert extra.data["trace"].unique().to_list() == ["own"]
    return Smallest(ours, out, extra)
