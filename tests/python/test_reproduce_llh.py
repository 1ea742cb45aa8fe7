"""The reproduction of the LLH paper end to end, on the native module: contract, agreement rule, same bytes."""

from functools import partial

import pytest

from palimpsest import InputError, wear
from palimpsest.reproduce import llh, llh_claims, llh_figures, llh_implied, llh_published, llh_runs
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.figures import Figure
from reproduction import Reproduced

pytestmark = pytest.mark.contract


@pytest.mark.long
class TestLlh(Reproduced):
    """LLH: claims, figures and smallest drives."""

    module = llh
    claims = frozenset({
        "erases_msr", "erases_fiu", "erases_zipf", "normalized_most", "normalized_least", "op_7", "threshold",
        "published_0.9_2", "published_0.95_2", "published_1_2", "published_0.9_4", "published_0.95_4", "published_1_4",
        "pages_28", "pages_7", "response_mean", "response_p99", "copied", "energy", "energy_write", "energy_read",
        "life_a16", "life_a27", "life_b29", "lesson1", "lesson2", "lesson3", "lesson4", "lesson5",
    })  # fmt: skip
    figures = (
        "table2", "table3", "table4", "fig3", "fig4", "fig5", "table5", "table6", "fig7a", "fig7b", "fig7c", "fig8",
        "moved", "life", "sweep", "published", "baseline", "beyond", "fig7a_implied", "fig7b_implied",
    )  # fmt: skip
    trace = tuple(f"{i * 1000000},w,{i % 3000 * 16384},16384" for i in range(20_000))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        few = {name: llh_runs.WORKLOADS[name] for name in ("hm_0", "online", "zipf-0.95", "zipf-1")}
        for module in (llh, llh_claims, llh_figures):
            monkeypatch.setattr(module, "WORKLOADS", few)
        for module in (llh, llh_claims):
            monkeypatch.setattr(module, "TIMED", ("hm_0",))
        monkeypatch.setattr(llh, "SEEDS", (1,))
        small = llh_runs.Scale(banks=1, smaller=4, timed_smaller=16, trace_requests=30_000)
        monkeypatch.setattr(llh, "QUICK", small)
        monkeypatch.setattr(llh_published, "FULL", small)
        monkeypatch.setattr(llh_published, "SEEDS", (1,))
        monkeypatch.setattr(llh_implied, "SCALE", small)
        monkeypatch.setattr(llh_implied, "BY_SEED", llh_implied.BY_SEED[:1])
        monkeypatch.setattr(llh, "UNKNOWNS", llh_runs.UNKNOWNS[:2])
        monkeypatch.setattr(llh, "_BEYOND", ("hm_0",))

    def check_trace(self, extra: Figure) -> None:
        assert extra.data.height == 1


@pytest.mark.long
def test_the_implied_setting_gives_every_claim_on_erases() -> None:
    """LLH paper, Sec. 6: all numbers at once, the means of three seeds under one setting (see `llh_implied`)."""
    batch = Batch(jobs=2)
    found = []
    for setting in llh_implied.BY_SEED:
        options = partial(setting.options, llh_implied.SCALE)
        batch.run(llh_claims.needed(options, llh_claims.CLAIMED))
        found.append(llh_claims.effects(llh_claims.normalized_erases(batch, options, llh_claims.CLAIMED)))
    assert [claim.id for claim in llh_claims.claims_over_seeds(found) if not claim.agrees] == []


@pytest.mark.long
def test_neighbours_of_the_implied_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llh_claims, "WORKLOADS", {"hm_0": llh_runs.WORKLOADS["hm_0"]})
    monkeypatch.setattr(llh_implied, "SCALE", llh_runs.Scale(banks=1, smaller=4, timed_smaller=16, trace_requests=0))
    kept = [setting for setting in llh_implied.NEIGHBOURS if setting.what in ("implied", "hot data that stays, MSR")]
    monkeypatch.setattr(llh_implied, "NEIGHBOURS", kept)
    monkeypatch.setattr(llh_implied, "SEEDS", (1,))
    data = llh_implied.neighbours(Batch(jobs=2)).data
    assert data["value"].to_list() == ["as found", "1 %", "5 %"]
    # With more data that stays, fewer low pages can be reused.
    assert data["erases_msr"][1] < data["erases_msr"][2]


def test_wear_by_the_tables() -> None:
    for bias, chips in llh_figures.LOSSES.items():
        for chip, losses in chips.items():
            for share, lost in zip(llh_figures.SHARES, losses, strict=True):
                life = wear.life(chip, bias, share)
                own = 1 - life.cycles / life.endurance if share == 1 else life.lasting_loss
                assert 100 * own == pytest.approx(lost), (bias, chip, share)
    usual, reused = (wear.bit_error_rates([0, 3000], "a16", "reprogram", share) for share in (0, 0.4))
    assert usual == pytest.approx([1e-5, 1e-3])
    assert reused[1] > usual[1]
    with pytest.raises(InputError, match="bias heat: there is no such value; expected one of none, reprogram, voltage"):
        wear.life("a16", "heat")
    with pytest.raises(InputError, match="no part is called"):
        wear.bit_error_rates([0], "a17")
