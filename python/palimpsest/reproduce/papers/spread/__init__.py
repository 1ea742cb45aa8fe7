"""The SPREAD paper: Park et al., on flash with large pages that reads parts of them ("subpage-parallel reads").

Models Table I, Table II, Fig. 1, 2 and 6 and the numbers of Sec. V, on synthetic workloads with the statistics of Table
II and Fig. 1; beside each the closed-form bound. Beyond the paper: settings on which the result depends, the read
command under other layers, and real traces. Sensing times of other words and slopes are assumed: linear between the
entries of Table I, and for one KiB the continuation of the first two. A user's folder of the real traces replaces
workloads by name (`[real]`).

The implied setting. Reads of 2 KiB gain 2.2 and 1.9 times where Table I allows 3.0 and 2.6, and their latency falls by
as much as their IOPS rise, so the rest of a request's time is the same under all layers and inside the measurement: the
paper's layer runs in the host. Some 110 us of host time for each request, beside the time of others, give both at 20 in
flight (50 us at 8, 90 us at 16), and bring the loss of su nearer to the paper's third. Collections gain little and usr
much only on a full drive with much spare space, host and moved data in one stream, a write buffer of some pages, and
the host before collections. A joint search found all values; the paper states none of them, so that the setting is
consistent with the paper's numbers, and no more.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from .... import _core
from ....result import Result
from ...claims import Claim
from ...measures import change, iops, mean, seeds_note
from ...study import Point, Study

__all__ = [
    "T_READ_US", "T_WORD_US", "by_reader", "claims", "counted_bound", "effects", "footnote_us", "implied_claims",
    "near_claims", "overhead", "raf_of", "read_sizes", "read_sizes_of_presets", "sensing_table", "single_reads",
    "sizes_bound", "stated", "times",
]  # fmt: skip

T_READ_US = (35.0, 45.0, 55.0, 65.0, 75.0, 85.0, 95.0, 99.0)
"""Table I: sensing 1 to 8 code words of 2 KiB."""
T_WORD_US = 2.5
"""Table I: transferring one code word."""
Measure = Callable[[Result], float | None]
WORD, WORDS = 2048, 8
CHANNELS, CHIPS = 4, 2
T_PROGRAM_US, T_ERASE_US = 660.0, 3500.0
_COMMAND_NS = 1000
"""Length of a command in the last column of Table I."""


def times(values: Iterable[float]) -> str:
    """Microseconds as a list of times in a configuration."""
    return "[" + ",".join(f'"{round(1000 * value)}ns"' for value in values) + "]"


def footnote_us(words: int) -> float:
    """Microseconds to sense words by footnote 5, through the first two entries of Table I.

    Pre-charging takes a constant time, and discharging a time in proportion to the size.
    """
    one, two, *_ = T_READ_US
    return one + (two - one) * (words - 1)


def sensing_table(word_kib: int) -> list[float]:
    """Microseconds to sense 1, 2, ... words of another size: Table I, linear between its entries."""

    def sense(kib: float) -> float:
        at = min(max(int(kib // 2), 1), len(T_READ_US) - 1)
        low, high = T_READ_US[at - 1], T_READ_US[at]
        return low + (kib - 2 * at) / 2 * (high - low)

    return [sense(word_kib * count) for count in range(1, WORD * WORDS // 1024 // word_kib + 1)]


# Bounds in closed form


def _spec_of(workload: str) -> dict[str, str]:
    """The keys of a workload preset and their values."""
    text = _core.workload_spec(workload)
    if text is None:
        raise KeyError(workload)
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if value:
            pairs[name] = value
            last = name
        else:
            pairs[last] += f",{part}"
    return pairs


def _bytes(text: str) -> int:
    return int(text[:-1]) * 1024 if text.endswith("k") else int(text)


def read_sizes(workload: str) -> dict[int, float]:
    """Sizes in bytes of the reads of a workload preset, and the share of each."""
    spec = _spec_of(workload)
    if "bssplit" not in spec:
        return {_bytes(spec["bs"].split(",")[0]): 1.0}
    split = (part.split("/") for part in spec["bssplit"].split(",")[0].split(":"))
    return {_bytes(size): int(share) / 100 for size, share in split}


def _command_us(layer: str, words: int) -> tuple[float, float]:
    """Microseconds that a command for so many words takes the chip, and the part that takes the bus."""
    bus = T_WORD_US * (WORDS if layer == "page-fgm" else words)
    return bus + (T_READ_US[words - 1] if layer == "spftl" else T_READ_US[-1]), bus


def sizes_bound(layer: str, workload: str) -> float:
    """Most reads a second on a drive that was written in order: 4 min(2 / E[tR + tDMA], 1 / E[tDMA]).

    The means are over the sizes of the reads and the places where they may start.
    """
    align = _bytes(_spec_of(workload).get("blockalign", "4k"))
    page = WORD * WORDS
    chip = bus = 0.0
    for size, share in read_sizes(workload).items():
        starts = range(0, page, align)
        for start in starts:
            at = start
            while at < start + size:
                end = min(start + size, (at // page + 1) * page)
                words = -(-(end % page or page) // WORD) - at % page // WORD
                spent = _command_us(layer, words)
                chip += share * spent[0] / len(starts)
                bus += share * spent[1] / len(starts)
                at = end
    return 1e6 * CHANNELS * min(CHIPS / chip, 1 / bus)


def counted_bound(result: Mapping[str, Any] | Result) -> float:
    """Most requests a second if no chip and no bus were ever idle, from the operations that a run counted.

    Sensing times of spread reads lie on the straight line through the first and the last entry of Table I, because no
    other entry is below that line.
    """
    flash, requests = result["flash"], result["requests"]
    reads, us_per_word = flash["page_reads"], (T_READ_US[-1] - T_READ_US[0]) / (WORDS - 1)
    if result["ftl"] == "spftl":
        sensing = reads * (T_READ_US[0] - us_per_word) + flash["bytes_sensed"] / WORD * us_per_word
    else:
        sensing = reads * T_READ_US[-1]
    bus = flash["bytes_transferred"] / WORD * T_WORD_US
    chip = bus + sensing + flash["page_programs"] * T_PROGRAM_US + flash["erases"] * T_ERASE_US
    least_us = max(chip / (CHANNELS * CHIPS), bus / CHANNELS)
    return float(1e6 * (requests["read"] + requests["write"]) / least_us)


# Tables


def single_reads(study: Study, _point: Point) -> pl.DataFrame:
    """Latencies of single reads in nanoseconds beside Table I: a row for each size, a column for each reader."""
    rows: dict[int, dict[str, Any]] = {}
    for cell in study.cells("single"):
        spent = study.result("single", **cell)["latency_ns"]["read"]
        if spent["mean"] != spent["max"]:
            raise AssertionError(f"single reads of {cell['reader']} differ: {spent}")
        words = cell["words"]
        paper = round(1000 * (T_READ_US[words - 1] + T_WORD_US * words))
        model = round(1000 * (footnote_us(words) + T_WORD_US * words))
        row = {"size_kib": 2 * words, "paper_ns": paper, "footnote_ns": model}
        rows.setdefault(words, row)[cell["reader"]] = int(spent["mean"])
    return pl.DataFrame(list(rows.values()))


def by_reader(data: pl.DataFrame) -> pl.DataFrame:
    """Rows of `single_reads` as one row for each size and layer, Table I and its footnote included."""
    layers = ["page-fgm", "dma-fgm", "spftl"]
    long = data.unpivot(on=layers, index="size_kib", variable_name="layer", value_name="ns")
    long = long.with_columns(us=pl.col("ns") / 1000)
    tables = [
        pl.DataFrame({"size_kib": data["size_kib"], "layer": name, "us": data[column] / 1000})
        for name, column in (("Table I", "paper_ns"), ("footnote 5", "footnote_ns"))
    ]
    return pl.concat([long.select(tables[0].columns), *tables])


def read_sizes_of_presets(study: Study, _point: Point) -> pl.DataFrame:
    """Shares and cumulated shares of the sizes of the presets' reads, in percent."""
    rows: list[dict[str, Any]] = []
    for name in study.names["motivation"][:3]:
        total = 0.0
        for size, share in sorted(read_sizes(name).items()):
            total += 100 * share
            rows.append({"workload": name, "bytes": size, "percent": 100 * share, "percent_up_to": total})
    return pl.DataFrame(rows)


def overhead(study: Study, _point: Point) -> pl.DataFrame:
    """The paper's effects, ours, and ours with 20 us more for each flash command, in percent."""
    default, *_ = study.unknowns
    shown = {
        f"{default['what']}: {default['value']}": "ours",
        "overhead of a flash command: 20 us on the bus": "ours, 20 us more a command",
    }
    points = {shown[row["label"]]: row for row in study.table("sweep").iter_rows(named=True) if row["label"] in shown}
    rows: list[dict[str, Any]] = []
    for name, text in study.data["sweep"]["effects"].items():
        paper = {"paper": study.data["claims"][name]["paper"]} | {of: point[name] for of, point in points.items()}
        rows += [{"claim": name, "what": text, "of": of, "percent": percent} for of, percent in paper.items()]
    return pl.DataFrame(rows, schema_overrides={"percent": pl.Float64()})


def stated(data: pl.DataFrame, paper: Mapping[tuple[str, str], float]) -> pl.Series:
    """The paper's number for each row, by workload and layer; null where the paper states none."""
    return pl.Series("paper", [paper.get(key) for key in data.select("workload", "layer").iter_rows()], pl.Float64)


def raf_of(result: Mapping[str, Any]) -> float | None:
    """Read amplification of the host's reads; over the bytes requested, where every read is the host's."""
    if result["requests"]["write"]:
        found: float | None = result["read_amplification"]["host"]
        return found
    return float(result["flash"]["bytes_sensed"] / result["host"]["bytes_read"])


# Effects and claims


def _read_ns(result: Result) -> float:
    return float(result["latency_ns"]["read"]["mean"])


def _collection_ns(result: Result) -> float | None:
    time = result["gc"]["mean_ns"]
    return None if time is None else float(time)


@dataclass(frozen=True)
class _Runs:
    """The runs of one point: `seeds` of usr, and of the other workloads if `repeats`, else the first alone."""

    study: Study
    point: Point
    seeds: Sequence[int]
    repeats: bool

    def mean(self, layer: str, workload: str, measure: Measure, *, ideal: bool = False) -> float | None:
        seeds = self.seeds if self.repeats or workload == "usr" else self.seeds[:1]
        result = self.study.at("main", self.point, layer=layer, workload=workload, ideal=ideal)
        return mean(measure(result(seed=seed)) for seed in seeds)

    def against(self, workload: str, measure: Measure, layer: str, base: str) -> float | None:
        return change(self.mean(layer, workload, measure), self.mean(base, workload, measure))

    def effects(self) -> dict[str, float | None]:
        page, dma, own = self.study.names["layers"]
        return {
            "iops_page": self.against("kv", iops, own, page),
            "iops_dma": self.against("kv", iops, own, dma),
            "latency_page": self.against("kv", _read_ns, own, page),
            "latency_dma": self.against("kv", _read_ns, own, dma),
            "dma_page": self.against("kv", iops, dma, page),
            "iops_usr": self.against("usr", iops, own, page),
            "iops_stg": self.against("stg", iops, own, page),
            "gc_usr": self.against("usr", _collection_ns, own, page),
            "gc_stg": self.against("stg", _collection_ns, own, page),
            "su": change(self.mean(page, "su", iops), self.mean(page, "su", iops, ideal=True)),
        }


def _seeds(study: Study, point: Point) -> range:
    return range(1, study.scales[point.get("scale", "main")]["seeds"] + 1)


def effects(study: Study, point: Point) -> dict[str, float | None]:
    """The effects at a point, in percent."""
    return _Runs(study, point, _seeds(study, point), point.get("repeats", True)).effects()


def near_claims(study: Study, point: Point) -> list[Claim]:
    """The claims on effects at a point."""
    found = effects(study, point)
    return [study.claim(name, ours) for name, ours in (found | {"usr_beyond": found["iops_usr"]}).items()]


def _by_seed(study: Study, point: Point) -> list[dict[str, float | None]]:
    return [_Runs(study, point, [seed], repeats=True).effects() for seed in _seeds(study, point)]


def _main_effects(study: Study, point: Point) -> dict[str, float | None]:
    """The effects of the claims at a point: "up to" means over all workloads."""
    measured = study.table("main", point)

    def gains(column: str, own: str, base: str) -> list[float]:
        values = {layer: measured.filter(pl.col("layer") == layer)[column].to_list() for layer in (own, base)}
        return [100 * (of / than - 1) for of, than in zip(values[own], values[base], strict=True)]

    return effects(study, point) | {
        "iops_page": max(gains("iops", "spftl", "page-fgm")),
        "iops_dma": max(gains("iops", "spftl", "dma-fgm")),
        "latency_page": min(gains("read_us", "spftl", "page-fgm")),
        "latency_dma": min(gains("read_us", "spftl", "dma-fgm")),
        "dma_page": max(gains("iops", "dma-fgm", "page-fgm")),
    }


def _row(measured: pl.DataFrame, layer: str, workload: str) -> dict[str, Any]:
    return measured.row(by_predicate=(pl.col("layer") == layer) & (pl.col("workload") == workload), named=True)


_BOUNDED = {
    "iops_page": ("kv", "spftl", "page-fgm"),
    "iops_dma": ("kv", "spftl", "dma-fgm"),
    "dma_page": ("kv", "dma-fgm", "page-fgm"),
    "iops_usr": ("usr", "spftl", "page-fgm"),
    "iops_stg": ("stg", "spftl", "page-fgm"),
}
"""Workload, layer and baseline of each claim of IOPS."""


def _bounds_note(study: Study, name: str) -> str:
    """The bound of a claim of IOPS beside the measured numbers."""
    if name not in _BOUNDED:
        return ""
    workload, *layers = _BOUNDED[name]
    own, base = (_row(study.table("main"), layer, workload) for layer in layers)
    kind = "closed form of its sizes" if workload == "kv" else "counted operations"
    more = change(own["bound_iops"], base["bound_iops"])
    return study.note("bounds", workload=workload, kind=kind, own=own, base=base, more=more)


def _su_note(study: Study) -> str:
    raf = _row(study.table("motivation"), "page-fgm", "su")["raf"]
    # A page has 4 units; each was overwritten with probability 1 - exp(-1/4), and is then in another page.
    gone = 1 - pow(2.718281828459045, -0.25)
    return study.note("su", raf=raf, expected=4 * gone + 1 - gone**4)


def claims(study: Study) -> list[Claim]:
    """The claims at the assumed setting, each claim that does not agree with the measured reason."""
    main, each = _main_effects(study, {}), _by_seed(study, {})
    worst = max(
        abs(own - less - row["paper_ns"])
        for row in study.table("single").iter_rows(named=True)
        for own, less in ((row["spftl"], 0), (row["spftl, command of 1 us"], _COMMAND_NS))
    )
    made = [study.claim("table_1", worst)]
    for name in study.data["sweep"]["effects"]:
        claim = study.claim(name, main[name])
        note = f"{seeds_note(each, name)} {_bounds_note(study, name)}"
        if not claim.agrees:
            note += study.data["notes"]["because"][name] + study.reason(name)
        if name == "su":
            note += _su_note(study)
        made.append(claim.with_note(note.strip()))
    made.append(study.claim("usr_beyond", main["iops_usr"]))
    return [*made, *_amplifications(study, {}), *study.closed()]


def implied_claims(study: Study) -> list[Claim]:
    """The claims at the implied setting."""
    main, each = _main_effects(study, study.implied), _by_seed(study, study.implied)
    made = [
        study.claim(name, main[name]).with_note(f"Implied, {seeds_note(each, name)}")
        for name in study.data["sweep"]["effects"]
    ]
    made.append(study.claim("usr_beyond", main["iops_usr"]))
    return [*made, *_amplifications(study, study.implied)]


def _amplifications(study: Study, point: Point) -> Iterator[Claim]:
    """The claims on bytes that are read and not requested."""
    measured = study.table("main", point)
    for workload in ("kv", "grp", "prj"):
        raf = _row(measured, "spftl", workload)["raf"]
        yield study.claim(f"raf_{workload}", raf, of="raf", workload=workload)
    fragmented = min(_row(measured, "page-fgm", name)["raf"] for name in study.names["collected"])
    yield study.claim("raf_fragmented", fragmented / _row(measured, "page-fgm", "prj")["raf"])
    raf = _row(measured, "page-fgm", "usr")["raf_gc"]
    used = None if raf is None else 100 / raf
    yield study.claim("gc_bandwidth", used).with_note(study.note("gc_bandwidth"))
