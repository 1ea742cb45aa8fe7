"""Tables and figures of the LLH paper that follow from the chips: data of parts, the model of wear, and energies.

Models Tables 2 to 5 and Figs. 3 to 5, and shapes the bars of Fig. 7. Ignores chip c35, which has no lifetime in the
paper.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from .... import _core, wear
from ....charts import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "a16_averages", "bars_of_fig_7", "bit_error_rates", "chips_of", "draw_rates", "energies_of_a16",
    "energy_averages", "least_overhead", "lifetimes_lost", "spare_of_code",
]  # fmt: skip

_Rows = list[dict[str, Any]]


def _part(name: str) -> dict[str, Any]:
    """The keys of a part, as texts with units."""
    part: dict[str, Any] = tomllib.loads(_core.show("default", None, [f"ssd.part={name}"]))["part"]
    return part


def _number(text: str) -> float:
    return float(text.rstrip("%KiMBuJ"))


def least_overhead() -> float:
    """Cells over bits, less one, of the best code that writes the same number of bits twice (Rivest and Shamir).

    The first write programs a share p of the cells and stores h(p) bits a cell; the second stores 1 - p. Both are equal
    at the best p, where h is the entropy of a bit.
    """
    low, high = 0.0, 0.5
    for _ in range(60):
        p = (low + high) / 2
        entropy = -p * math.log2(p) - (1 - p) * math.log2(1 - p)
        low, high = (p, high) if entropy < 1 - p else (low, p)
    return 1 / (1 - low) - 1


def spare_of_code(chip: str, failure: float) -> int:
    """Bytes of spare area that a polar code needs for logical pages of half a page of a chip, by its failure rate."""
    page = round(1024 * _number(_part(chip)["page_size"]))
    return _core.wom_spare_needed("polar", page // 2, page, failure)


def chips_of(paper: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    """Table 2 beside the parts."""
    rows: _Rows = []
    for name, theirs in paper.items():
        part = _part(name)
        size = _number(part["page_size"])
        own = (size, part["pages_per_block"], 100 * _number(part["spare_size"]) / 1024 / size, part["endurance"])
        whats = ("page, KiB", "pages of a block", "spare area, %", "lifetime, cycles")
        for what, of, ours in zip(whats, theirs, own, strict=True):
            rows.append({"chip": name.upper(), "what": what, "paper": float(of), "ours": round(float(ours), 2)})
    return pl.DataFrame(rows)


def lifetimes_lost(bias: str, losses: Mapping[str, Any]) -> pl.DataFrame:
    """Table 3 or 4, lifetime lost to raised voltages or to re-programs in percent, beside the model."""
    rows: _Rows = []
    for name, theirs in losses[bias].items():
        for share, paper in zip(losses["shares"], theirs, strict=True):
            life = wear.life(name, bias, share)
            # At T the block is never programmed otherwise; else only lasting loss counts.
            own = 1 - life.cycles / life.endurance if share == 1 else life.lasting_loss
            sooner = life.ends_biased and share < 1
            row = {"chip": name.upper(), "share": share, "group": f"{name.upper()}\n{share:g} T"}
            rows += [
                row | {"series": "paper", "lost_percent": float(paper), "beyond_while_biased": None},
                row | {"series": "model", "lost_percent": 100 * own, "beyond_while_biased": sooner},
            ]
    return pl.DataFrame(rows, schema_overrides={"beyond_while_biased": pl.Boolean()})


def bit_error_rates(bias: str, shares: Sequence[float]) -> pl.DataFrame:
    """Bit error rates of chip A16 by cycles, biased up to each share of the lifetime."""
    cycles = [float(at) for at in range(0, 3001, 25)]
    rows: _Rows = []
    for share in shares:
        rates = wear.bit_error_rates(cycles, "a16", bias, share)
        label = "as usual" if share == 0 else f"biased up to {share:g} T"
        rows += [{"series": label, "cycles": at, "rate": rate} for at, rate in zip(cycles, rates, strict=True)]
    return pl.DataFrame(rows)


def draw_rates(axes: "Axes", data: pl.DataFrame) -> None:
    """Draws bit error rates, and the rate at which a lifetime ends."""
    for index, name in enumerate(data["series"].unique(maintain_order=True).to_list()):
        rows = data.filter(pl.col("series") == name)
        axes.plot(rows["cycles"].to_list(), rows["rate"].to_list(), label=name, color=LIGHT[index])
    axes.axhline(1e-3, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xlabel("cycles")
    axes.set_ylabel("raw bit error rate")
    axes.set_ylim(top=2e-2)
    axes.legend(ncols=3, loc="upper left", fontsize=9)


def energy_averages(part: Mapping[str, float], pages: int) -> dict[str, tuple[float, float]]:
    """Microjoules of an average logical read and write, baseline and LLH, from the operations.

    A block has `pages` pages, half of them low. LLH writes the low pages, then reads and programs each of them again
    with half as many logical pages, then writes the high pages: 5/4 of `pages` logical pages an erase. A read of a
    logical page of the second write reads two pages.
    """
    read = (part["e_read"] + part["e_read_high"]) / 2
    write = (part["e_program"] + part["e_program_high"]) / 2 + part["e_erase"] / pages
    low, second, high = part["e_program_low_first"], part["e_read"] + part["e_reprogram"], part["e_program_high_second"]
    llh_write = ((low + second + high) / 2 + part["e_erase_reused"] / pages) / 1.25
    llh_read = (part["e_read"] / 2 + 2 * part["e_read"] / 4 + part["e_read_high"] / 2) / 1.25
    return {"average logical read": (read, llh_read), "average logical write": (write, llh_write)}


def a16_averages() -> dict[str, tuple[float, float]]:
    """The averages of chip A16."""
    part = _part("a16")
    values = {key: _number(text) for key, text in part.items() if key.startswith("e_") and isinstance(text, str)}
    return energy_averages(values, part["pages_per_block"])


def energies_of_a16(table: Mapping[str, Any], averages: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    """Table 5: microjoules of operations by scheme beside the part's, and the averages that follow from them."""
    part, rows = _part("a16"), _Rows()
    for what in table["LLH"]:
        for scheme in ("baseline", "LLH"):
            if what in table[scheme]:
                key, paper = table[scheme][what]
                rows.append({"operation": what, "scheme": scheme, "paper_uj": paper, "ours_uj": _number(part[key])})
    own = a16_averages()
    for what, of in averages.items():
        for scheme, paper, ours in zip(("baseline", "LLH"), of, own[what], strict=True):
            rows.append({"operation": what, "scheme": scheme, "paper_uj": paper, "ours_uj": round(ours, 3)})
    return pl.DataFrame(rows)


def bars_of_fig_7(measured: pl.DataFrame, page: int) -> pl.DataFrame:
    """Rows of one size of pages as bars: expected, measured for each threshold, and by the reuse of the run."""
    rows = measured.filter(pl.col("page_kib") == page)
    first = rows.filter(pl.col("threshold") == "OP/2")
    return pl.concat(
        of.select(
            "workload",
            "over_provisioning",
            series=series,
            ratio=column,
            ratio_low=f"{column}_low",
            ratio_high=f"{column}_high",
        )
        for of, series, column in (
            (first, pl.lit("expected (paper)"), "expected"),
            (rows, pl.lit("threshold ") + pl.col("threshold"), "normalized"),
            (first, pl.lit("by what was reused"), "by_reuse"),
        )
    )
