"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

import polars as pl
import pytest

from conftest import Command
from palimpsest.reproduce import mga, mga_implied, mga_runs
from palimpsest.reproduce.batch import Batch
from reproduction import Reproduced

pytestmark = pytest.mark.contract


class TestMga(Reproduced):
    """MGA: claims, figures and smallest drives."""

    module = mga
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
        small = mga_runs.Scale(blocks=16, requests=500, first=4, trace_requests=200)
        monkeypatch.setattr(mga, "QUICK", small)
        monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:3])
        monkeypatch.setattr(mga_implied, "NEIGHBOURS", mga_implied.NEIGHBOURS[:2])


def test_workloads_have_the_statistics_of_the_table() -> None:
    batch = Batch(jobs=2)
    batch.run(mga.statistics_run(name) for name in mga_runs.WORKLOADS)
    assert mga.table_ii(batch).data.filter(pl.col("off_percent").abs() >= 2).is_empty()


@pytest.mark.long
@pytest.mark.parametrize("setting", mga_implied.BY_SEED)
def test_the_implied_setting_gives_every_claim(setting: mga_implied.Setting) -> None:
    """MGA paper, Sec. IV: all numbers at once, under one setting (see `mga_implied`)."""
    scale = mga_runs.Scale(blocks=16, requests=20_000, first=0, trace_requests=0)
    batch = Batch(jobs=2)
    batch.run(mga_implied.runs(scale, setting))
    claims = mga.judged_all(mga_implied.effects(batch, scale, setting))
    assert [claim.id for claim in claims if not claim.agrees] == []


def test_an_implied_setting_that_is_not_known_is_refused(palimpsest: Command) -> None:
    done = palimpsest("reproduce", "womv", "--implied")
    assert done.returncode == 2
    assert "no implied setting is known; expected --assumed, or one of mga, llh, spread, codesign" in done.stderr
