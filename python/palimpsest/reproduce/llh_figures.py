"""Figures and tables of the LLH paper: each from finished runs, or from the model of wear."""

import tomllib
from typing import TYPE_CHECKING, Any

import polars as pl

from .. import _core, wear
from ..charts import LIGHT
from . import figures
from .batch import Batch
from .figures import Draw, Figure
from .llh_runs import OVER_PROVISIONING, SEEDS, THRESHOLDS, WORKLOADS, Scale, Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CHIPS",
    "SYNTHETIC",
    "a16_averages",
    "energy_averages",
    "fig_3_to_5",
    "fig_7",
    "fig_7c",
    "fig_8",
    "life_figure",
    "table_2",
    "table_3_and_4",
    "table_5",
    "table_6",
]

SYNTHETIC = "MSR and FIU: synthetic workloads with the statistics of the paper's."
_Rows = list[dict[str, Any]]

CHIPS = {
    "a16": (16, 256, 10.15, 3000),
    "a27": (8, 256, 7.81, 5000),
    "b16": (16, 512, 11.42, 10000),
    "b29": (4, 256, 5.47, 10000),
}
"""Table 2: KiB of a page, pages of a block, spare area in percent of a page, cycles of a lifetime."""

SHARES = (1.0, 0.6, 0.4, 0.2)
LOSSES: dict[str, dict[str, tuple[float, ...]]] = {
    "voltage": {
        "a16": (32, 8, 6, 2), "a27": (29, 9, 6.5, 3), "b16": (20, 8, 6, 3), "b29": (30.5, 9, 6.5, 3.5),
    },
    "reprogram": {
        "a16": (38, 8.5, 5.2, 1), "a27": (59.5, 8, 6, 2.5), "b16": (99, 7, 5, 3), "b29": (31, 8.5, 5.5, 3),
    },
}  # fmt: skip
"""Tables 3 and 4: lifetime lost, in percent, by the shares of the lifetime in `SHARES`."""

TABLE_5 = {
    "erase": ("e_erase", "e_erase_reused", 192.79, 186.49),
    "read L": ("e_read", "e_read", 50.37, 50.37),
    "read H": ("e_read_high", "e_read_high", 51.25, 51.25),
    "program L1": ("e_program", "e_program_low_first", 68.18, 68.55),
    "reprogram L2": (None, "e_reprogram", None, 63.04),
    "program H": ("e_program_high", "e_program_high_second", 195.65, 180.85),
}
"""Operation: keys of the part and the paper's microjoules, baseline and LLH."""
AVERAGES = {"average logical read": (50.81, 60.79), "average logical write": (132.64, 145.71)}


def _part(name: str) -> dict[str, Any]:
    """The keys of a part, as texts with units."""
    part: dict[str, Any] = tomllib.loads(_core.show("default", None, [f"ssd.part={name}"]))["part"]
    return part


def _number(text: str) -> float:
    return float(text.rstrip("%KiMBuJ"))


def _ratios(label: str, *, least: float) -> Draw:
    """Bars of ratios by workload and series, with a line at 1."""
    bars = figures.bars("workload", "series", "ratio", label)

    def drawn(axes: "Axes", rows: pl.DataFrame) -> None:
        bars(axes, rows)
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_ylim(bottom=least)

    return figures.slanted(drawn)


def _where(draw: Draw, **values: object) -> Draw:
    """The same of the rows that have these values."""
    return lambda axes, rows: draw(axes, rows.filter(*(pl.col(key) == value for key, value in values.items())))


def table_2() -> Figure:
    """The chips."""
    rows: _Rows = []
    for name, (page, pages, spare, cycles) in CHIPS.items():
        part = _part(name)
        size = _number(part["page_size"])
        own = (size, part["pages_per_block"], 100 * _number(part["spare_size"]) / 1024 / size, part["endurance"])
        for what, paper, ours in zip(
            ("page, KiB", "pages of a block", "spare area, %", "lifetime, cycles"),
            (page, pages, spare, cycles),
            own,
            strict=True,
        ):
            rows.append({"chip": name.upper(), "what": what, "paper": float(paper), "ours": round(float(ours), 2)})
    data = pl.DataFrame(rows)
    draws = [
        (what, _where(figures.bars("chip", "what", "ours", ""), what=what))
        for what in data["what"].unique(maintain_order=True)
    ]
    note = "The parts a16, a27, b16 and b29; c35 has its page and block, and no lifetime, as in the paper."
    return Figure("table2", "Table 2: the chips", note, data, figures.panels(data, draws, height=1.9))


def table_3_and_4() -> list[Figure]:
    """What raised threshold voltages and re-programs cost of a lifetime: the tables beside the model."""
    made = []
    titles = {"voltage": "Table 3: lifetime lost to raised V_th", "reprogram": "Table 4: lifetime lost to re-programs"}
    for number, (bias, title) in enumerate(titles.items(), start=3):
        rows: _Rows = []
        for name, losses in LOSSES[bias].items():
            for share, paper in zip(SHARES, losses, strict=True):
                life = wear.life(name, bias, share)
                # At T the block is never programmed otherwise; else only lasting loss counts.
                own = 1 - life.cycles / life.endurance if share == 1 else life.lasting_loss
                sooner = life.ends_biased and share < 1
                row = {"chip": name.upper(), "share": share, "group": f"{name.upper()}\n{share:g} T"}
                rows += [
                    row | {"series": "paper", "lost_percent": float(paper), "beyond_while_biased": None},
                    row | {"series": "model", "lost_percent": 100 * own, "beyond_while_biased": sooner},
                ]
        schema = {"beyond_while_biased": pl.Boolean()}
        data = pl.DataFrame(rows, schema_overrides=schema)
        svg = figures.panels(data, [(title, figures.bars("group", "series", "lost_percent", "%"))], height=3.6)
        note = (
            "The model of `nand/wear.rs` takes the rows as data and gives them back. `beyond_while_biased`: by "
            "the row of T, "
            "the block is above 1e-3 before that share, though only while it is programmed so (Sec. 3.4 says it "
            "of B16)."
        )
        made.append(Figure(f"table{number}", title, note, data, svg))
    return made


def fig_3_to_5() -> list[Figure]:
    """Bit error rates of chip A16 against its cycles, by the model."""
    curves = {
        "fig3": ("Fig. 3: effects of raised V_th, A16", "voltage", (0.0, 1.0, 0.6, 0.4, 0.2)),
        "fig4": ("Fig. 4: short-term effects of re-programs, A16", "reprogram", (0.0, 1.0)),
        "fig5": ("Fig. 5: long-term effects of re-programs, A16", "reprogram", (0.0, 0.6, 0.4, 0.2)),
    }
    cycles = [float(at) for at in range(0, 3001, 25)]
    made = []
    for name, (title, bias, shares) in curves.items():
        rows: _Rows = []
        for share in shares:
            rates = wear.bit_error_rates(cycles, "a16", bias, share)
            label = "as usual" if share == 0 else f"biased up to {share:g} T"
            rows += [{"series": label, "cycles": at, "rate": rate} for at, rate in zip(cycles, rates, strict=True)]
        data = pl.DataFrame(rows)
        note = (
            "By the model, not measured: exponential growth to 1e-3 at T, the tables' losses, and an assumed "
            "1e-5 of a new "
            "block (`part.ber_fresh`); the paper gives its curves as pictures only."
        )
        made.append(Figure(name, title, note, data, figures.panels(data, [(title, _rates)], height=3.8)))
    return made


def _rates(axes: "Axes", data: pl.DataFrame) -> None:
    for index, name in enumerate(data["series"].unique(maintain_order=True).to_list()):
        rows = data.filter(pl.col("series") == name)
        axes.plot(rows["cycles"].to_list(), rows["rate"].to_list(), label=name, color=LIGHT[index])
    axes.axhline(1e-3, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xlabel("cycles")
    axes.set_ylabel("raw bit error rate")
    axes.set_ylim(top=2e-2)
    axes.legend(ncols=3, loc="upper left", fontsize=9)


def energy_averages(part: dict[str, float], pages: int) -> dict[str, tuple[float, float]]:
    """Microjoules of an average logical read and write, baseline and LLH, from those of the operations.

    A block has `pages` pages, half of them low. LLH writes its low pages, then reads and programs each of them again
    with half as many logical pages, then its high pages: 5/4 of `pages` logical pages an erase, of which those of the
    second write are read as two pages each.
    """
    read = (part["e_read"] + part["e_read_high"]) / 2
    write = (part["e_program"] + part["e_program_high"]) / 2 + part["e_erase"] / pages
    low, second, high = part["e_program_low_first"], part["e_read"] + part["e_reprogram"], part["e_program_high_second"]
    llh_write = ((low + second + high) / 2 + part["e_erase_reused"] / pages) / 1.25
    llh_read = (part["e_read"] / 2 + 2 * part["e_read"] / 4 + part["e_read_high"] / 2) / 1.25
    return {"average logical read": (read, llh_read), "average logical write": (write, llh_write)}


def a16_averages() -> dict[str, tuple[float, float]]:
    """Those of chip A16."""
    part = _part("a16")
    values = {key: _number(text) for key, text in part.items() if key.startswith("e_") and isinstance(text, str)}
    return energy_averages(values, part["pages_per_block"])


def table_5() -> Figure:
    """Energies of chip A16: the paper's beside the part's, and the averages that follow from them."""
    part, rows = _part("a16"), _Rows()
    for what, (base_key, llh_key, base, llh) in TABLE_5.items():
        for scheme, key, paper in (("baseline", base_key, base), ("LLH", llh_key, llh)):
            if key is not None:
                rows.append({"operation": what, "scheme": scheme, "paper_uj": paper, "ours_uj": _number(part[key])})
    own = a16_averages()
    for what, paper_pair in AVERAGES.items():
        for scheme, paper, ours in zip(("baseline", "LLH"), paper_pair, own[what], strict=True):
            rows.append({"operation": what, "scheme": scheme, "paper_uj": paper, "ours_uj": round(ours, 3)})
    data = pl.DataFrame(rows)
    title = "Table 5: energy of operations, A16"
    draw = figures.slanted(figures.bars("operation", "scheme", "ours_uj", "uJ"))
    note = "Operations are data of the part; the averages are computed from them."
    return Figure("table5", title, note, data, figures.panels(data, [(title, draw)]))


def table_6(batch: Batch, scale: Scale) -> Figure:
    """Statistics of the workloads, measured, beside the paper's table."""
    rows: _Rows = []
    for name, row in WORKLOADS.items():
        result = batch[scale.options(name, Variant("hotcold"))]
        requests, host = result["requests"], result["host"]
        share = scale.smaller * 16 // scale.banks
        own = {
            "requests, M": (row.requests, (requests["read"] + requests["write"]) * share / 1e6),
            "write ratio": (row.writes, requests["write"] / (requests["read"] + requests["write"])),
            "hot write ratio": (row.hot, result["ftl_stats"]["hot_share"]),
            "total writes, GiB": (row.gib, host["bytes_written"] * share / 2**30),
        }
        for what, (paper, ours) in own.items():
            off = 100 * (ours / paper - 1)
            rows.append({"workload": name, "what": what, "paper": float(paper), "ours": ours, "off_percent": off})
    data = pl.DataFrame(rows)
    title = "Measured less Table 6"
    draw = figures.slanted(figures.bars("workload", "what", "off_percent", "%"))
    note = (
        f"{SYNTHETIC} Hot by the classifier of each source. Requests of 4 KiB (FIU, Zipf) make writes that the table, "
        "rounded, does not quite have; runs are shorter, and counts are scaled up."
    )
    return Figure("table6", "Table 6: the workloads and the paper's", note, data, figures.panels(data, [(title, draw)]))


def fig_7(measured: pl.DataFrame, shrunk: str, end: str = "") -> list[Figure]:
    """Normalized erases with 8 KiB pages (a) and 32 KiB pages (b), beside the expected ones; `end`: of their names."""
    made = []
    for letter, page in (("a", 8), ("b", 32)):
        rows = measured.filter(pl.col("page_kib") == page)
        first = rows.filter(pl.col("threshold") == THRESHOLDS[0])
        data = pl.concat(
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
        draws = [
            (
                f"Over-provisioning {percent} %",
                _where(_ratios("erases, hotcold = 1", least=0.7), over_provisioning=percent),
            )
            for percent in OVER_PROVISIONING
        ]
        title = f"Fig. 7 ({letter}): erases, {page} KiB pages"
        note = (
            f"{SYNTHETIC} {shrunk} Expected: (5 - X) / 5 with X of Table 6. By what was reused: the same formula with "
            "X of all pages programmed, moved ones included, the share of low pages that the run found invalid, and "
            f"its failures of encoding. Means of {len(SEEDS)} seeds; whiskers from the least to the greatest."
        )
        made.append(Figure(f"fig7{letter}{end}", title, note, data, figures.panels(data, draws, width=11, height=3.8)))
    return made


def fig_7c(rows: pl.DataFrame, shrunk: str) -> Figure:
    """Response times."""
    title = "Fig. 7 (c): response time, 32 KiB pages, over-provisioning 28 %"
    note = (
        f"{SYNTHETIC} {shrunk} Ten times as fast as Table 6, replayed twice; the last 12 hours of the week are "
        f"measured. Writes are "
        "acknowledged when buffered."
    )
    return Figure("fig7c", title, note, rows, figures.panels(rows, [(title, _ratios("hotcold = 1", least=0.0))]))


def fig_8(measured: pl.DataFrame, shrunk: str) -> list[Figure]:
    """Energy, and the data moved by collection that explains it, with 32 KiB pages."""
    best = measured.filter((pl.col("page_kib") == 32) & (pl.col("threshold") == THRESHOLDS[0]))
    made = []
    for name, column, title in (
        ("fig8", "energy", "Fig. 8: energy, 32 KiB pages"),
        ("moved", "moved", "Data moved by collection, 32 KiB pages"),
    ):
        data = best.select("workload", ratio=column, series=pl.format("OP {} %", "over_provisioning"))
        note = f"{SYNTHETIC} {shrunk} The baseline is 1."
        svg = figures.panels(data, [(title, _ratios("hotcold = 1", least=0.0 if column == "moved" else 0.7))], width=11)
        made.append(Figure(name, title, note, data, svg))
    return made


def life_figure(measured: pl.DataFrame) -> Figure:
    """The reduction of erases in bytes that the host can write."""
    rows = measured.filter((pl.col("page_kib") == 8) & (pl.col("threshold") == THRESHOLDS[0]))
    data = rows.select(
        "workload",
        series=pl.format("OP {} %", "over_provisioning"),
        life_percent="life_percent",
        fewer_erases_percent=100 * (1 - pl.col("normalized")),
    )
    draws = [
        ("Host writes in a life, change", figures.slanted(figures.bars("workload", "series", "life_percent", "%"))),
        ("Fewer erases", figures.slanted(figures.bars("workload", "series", "fewer_erases_percent", "%"))),
    ]
    note = (
        f"{SYNTHETIC} `lifetime.projected_host_bytes` of llh over that of hotcold: blocks are reused in the first "
        f"0.4 of their "
        "life, at a cost by Table 4 (A16)."
    )
    svg = figures.panels(data, draws, width=11)
    return Figure("life", "Lifetime: host bytes until the mean block reaches 1e-3", note, data, svg)
