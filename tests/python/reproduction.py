"""Tests that hold for the reproduction of every paper: contract, agreement rule, same bytes, real traces."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from conftest import Command, figures
from layout import CHROMIUM, DRIVER, check_pictures, started
from palimpsest.reproduce import outputs, reproduce, study
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.figures import Figure

AMOUNTS = ("gc_bandwidth", "map", "uneven_", "above_1_")
"""Claims in percent that are no change between two numbers: names, or beginnings of names."""


def is_change(claim: dict[str, Any]) -> bool:
    """Whether a claim is of a change in percent."""
    return claim["unit"] == "%" and not claim["id"].startswith(AMOUNTS)


def agrees(ours: float | None, paper: float, change: bool) -> bool:
    """Changes agree within a quarter of the logarithm of the paper's ratio, amounts within a factor of 1.25."""
    if ours is None or (ours <= -100 if change else ours * paper <= 0):
        return False
    if change:
        own, other = math.log1p(ours / 100), math.log1p(paper / 100)
        return abs(own - other) <= abs(other) / 4
    return paper / 1.25 <= ours <= paper * 1.25


def changed(monkeypatch: pytest.MonkeyPatch, paper: str, **parts: Any) -> dict[str, Any]:
    """Merges changes into the parts of a paper's TOML for one test; a list replaces the part's."""
    data = copy.deepcopy(study.load(paper))
    for part, changes in parts.items():
        data[part] |= changes
    monkeypatch.setattr(study, "load", lambda name: data if name == paper else pytest.fail(f"reads {name}"))
    return data


class Reproduced:
    """The tests of a reproduction; a paper is a subclass with claims, figures and changes.

    Attributes:
        paper: name of the paper.
        claims: ids of the claims.
        figures: ids of the figures, in order.
        trace: requests of a real trace, as lines of CSV.
    """

    paper: str
    claims: frozenset[str]
    figures: tuple[str, ...]
    trace: tuple[str, ...]

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes the quick reproduction the smallest that has every figure."""
        raise NotImplementedError

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        """Checks further conditions on the numbers of the claims and on the files in the folder."""

    def check_trace(self, extra: Figure) -> None:
        """Checks further conditions on the figure of the real trace."""

    @pytest.fixture
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shrink(monkeypatch)

    @pytest.mark.long
    def test_quick_gives_claims_and_figures(self, palimpsest: Command, tmp_path: Path) -> None:
        # Up to nine minutes of one core (docs/reproduce.md), and other tests run beside.
        made = figures(palimpsest("reproduce", self.paper, "--quick", "--json", "--out", str(tmp_path), timeout=3600))
        assert made["paper"] == self.paper
        assert all(claim["number_agrees"] or claim["note"] for claim in made["claims"])
        self.check_contract(made, tmp_path, list(self.figures))
        self.check_ours({claim["id"]: claim["ours"] for claim in made["claims"]}, tmp_path)
        if CHROMIUM and DRIVER:
            for browser in started():
                check_pictures(browser, tmp_path)

    def check_contract(self, made: dict[str, Any], folder: Path, pictures: list[str]) -> None:
        """Checks claims, the agreement rule, figures and files of a reproduction in `folder`."""
        assert {claim["id"] for claim in made["claims"]} == self.claims
        for claim in made["claims"]:
            assert {"id", "claim", "paper", "ours", "unit", "agrees", "note"} <= claim.keys()
            if isinstance(claim["paper"], float | int):
                assert claim["number_agrees"] is agrees(claim["ours"], claim["paper"], is_change(claim)), claim
            assert claim["agrees"] is (claim["number_agrees"] and claim["mechanism_holds"] is not False), claim
            assert claim["mechanism_holds"] is (None if claim["left"] is None else claim["left"] <= 50), claim
            # The smallest runs are too small to measure some things, and say nothing of them.
            assert claim["number_agrees"] or claim["note"] or claim["ours"] is None, claim
        assert [figure["id"] for figure in made["figures"]] == pictures
        for figure in made["figures"]:
            assert Path(figure["data"]).is_file()
            assert Path(figure["picture"]).read_text(encoding="utf-8").startswith("<?xml")
        # The note of every figure from a synthetic workload states that.
        page = (folder / "index.html").read_text(encoding="utf-8")
        pages = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.html"))
        assert pages.lower().count("synthetic") > len(self.figures) / 2
        assert "What holds, what does not, and why" in page

    @pytest.mark.usefixtures("small")
    def test_smallest(self, tmp_path: Path) -> None:
        """The contract holds with a real trace, and the bytes are the same whatever runs beside."""
        lines = ["time_ns,op,offset_bytes,size_bytes", *self.trace]
        traces = tmp_path / "traces"
        traces.mkdir()
        (traces / "own.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        files = []
        for jobs in (1, 2):
            out = tmp_path / str(jobs)
            made = reproduce(self.paper, Batch(jobs, traces=str(traces)))
            outputs.write(made, out)
            files.append({path.name: path.read_bytes() for path in sorted(out.iterdir())})
        assert files[0] == files[1]
        self.check_contract(json.loads(json.dumps(made.to_dict(out))), out, [*self.figures, "traces"])
        extra = made.figures[-1]
        assert extra.data["trace"].unique().to_list() == ["own"]
        self.check_trace(extra)
