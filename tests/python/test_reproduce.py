"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

import polars as pl
import pytest

from conftest import Command
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.papers import mga
from palimpsest.reproduce.study import Study, load
from reproduction import Reproduced, changed

pytestmark = pytest.mark.contract


class TestMga(Reproduced):
    """Claims, figures and smallest drives of MGA."""

    paper = "mga"
    claims = frozenset({
        "response_trade", "response_synth_a", "erases_trade", "wa_trade_8k", "wa_trade_16k", "map_growth",
        "hybrid_close", "merges_at", "merges",
    })  # fmt: skip
    figures = (
        "table2",
        "fig7a",
        "fig7b",
        "fig8",
        "fig9a",
        "fig9b",
        "fig10",
        "fig11",
        "wa_8k",
        "wa_16k",
        "sweep",
        "implied",
    )
    trace = tuple(f"{i * 1000000},w,{i * 8192},4096" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = {"blocks": 16, "requests": 500, "first": 4, "trace_requests": 200}
        points = load("mga")["points"]
        near = [{}, points["neighbours"][1] | {"each": ["1%"]}]
        few = {"unknowns": points["unknowns"][:3], "neighbours": near}
        changed(monkeypatch, "mga", scales={"quick": small}, points=few)


def test_workloads_have_the_statistics_of_the_table() -> None:
    study = Study("mga", Batch(jobs=2))
    study.batch.run(study.runs(["statistics"]))
    assert study.figure("table2").data.filter(pl.col("off_percent").abs() >= 2).is_empty()


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_implied_setting_gives_every_claim(seed: int) -> None:
    """MGA paper, Sec. IV: all numbers at once, under one setting (see the module of the paper)."""
    study = Study("mga", Batch(jobs=2))
    point = {**study.implied, "seeds": [seed]}
    study.batch.run(study.runs(["compared", "thresholds"], point))
    assert [claim.id for claim in mga.near_claims(study, point) if not claim.agrees] == []


def test_an_implied_setting_that_is_not_known_is_refused(palimpsest: Command) -> None:
    done = palimpsest("reproduce", "womv", "--implied")
    assert done.returncode == 2
    assert "no implied setting is known; expected --assumed, or one of mga, llh, spread, codesign" in done.stderr
